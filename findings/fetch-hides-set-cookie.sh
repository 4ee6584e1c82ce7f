#!/usr/bin/env bash
# DevTools' `Fetch.requestPaused` shows the cookies that a request sends, but of an answer no `Set-Cookie`, though the
# browser obeys it; and a script's `fetch(..., {cache: "no-store"})` looks like any other: no header, no mark. Whoever
# answers later requests from earlier answers by these events hands out answers that gave a cookie, without the cookie,
# and old ones to scripts that ask for new ones.
#
# Seen with playwright 1.65.2 and Chromium 156 (chromium-headless-shell 156.0.8078.108 of Debian):
#
#   /gives answers with: content-length content-type date server
#   cookies of the page afterwards: given
#   /again is sent with cookie: yes
#   /new, asked for with no-store: cache-control at the server no-cache, in the event none
#
# What works instead: compare the cookies of the context before and after, or read `Network.responseReceivedExtraInfo`.
set -euo pipefail
browser="$(command -v chromium-headless-shell || true)"
[ -n "$browser" ] || { echo "chromium-headless-shell is not installed (Debian: apt-get install chromium-headless-shell)" >&2; exit 2; }
folder="$(mktemp -d)"
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check playwright==1.65.2
cat > "$folder/look.py" <<'PYTHON'
import asyncio
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urlsplit

from playwright.async_api import async_playwright

served = {}


class Site(BaseHTTPRequestHandler):
    def do_GET(self):
        served[self.path] = {name.lower(): value for name, value in self.headers.items()}
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.send_header("Content-Length", "2")
        if self.path == "/gives":
            self.send_header("Set-Cookie", "given=1; HttpOnly; Path=/")
        self.end_headers()
        self.wfile.write(b"ok")

    def log_message(self, *_):
        pass


async def main():
    server = ThreadingHTTPServer(("127.0.0.1", 0), Site)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    requests, answers = {}, {}
    async with async_playwright() as playwright:
        flags = ["--disable-background-networking", "--no-first-run", "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1"]
        browser = await playwright.chromium.launch(executable_path=sys.argv[1], args=flags)
        context = await browser.new_context()
        page = await context.new_page()
        devtools = await context.new_cdp_session(page)

        async def go_on(event):
            path = urlsplit(event["request"]["url"]).path
            if "responseStatusCode" in event:
                answers[path] = {header["name"].lower() for header in event["responseHeaders"]}
                await devtools.send("Fetch.continueResponse", {"requestId": event["requestId"]})
            else:
                requests[path] = {name.lower() for name in event["request"]["headers"]}
                await devtools.send("Fetch.continueRequest", {"requestId": event["requestId"], "interceptResponse": True})

        devtools.on("Fetch.requestPaused", lambda event: asyncio.ensure_future(go_on(event)))
        await devtools.send("Fetch.enable", {"patterns": [{"urlPattern": "*"}]})
        await page.goto(f"http://127.0.0.1:{server.server_port}/")
        await page.evaluate("async () => { await fetch('/gives'); await fetch('/again'); await fetch('/new', {cache: 'no-store'}) }")
        cookies = [cookie["name"] for cookie in await context.cookies()]
        version = browser.version
        await browser.close()
    print("Chromium", version)
    print("/gives answers with:", *sorted(answers["/gives"]))
    print("cookies of the page afterwards:", *cookies)
    print("/again is sent with cookie:", "yes" if "cookie" in requests["/again"] else "no")
    sent = served["/new"].get("cache-control", "none")
    print(f"/new, asked for with no-store: cache-control at the server {sent}, in the event", "some" if "cache-control" in requests["/new"] else "none")
    assert "set-cookie" not in answers["/gives"] and cookies == ["given"] and "cookie" in requests["/again"]
    assert sent == "no-cache" and not {"cache-control", "pragma"} & requests["/new"]


asyncio.run(main())
PYTHON
"$folder/venv/bin/python" "$folder/look.py" "$browser"
echo "as described"
