#!/usr/bin/env bash
# A page's speculation rules make Chromium request other pages. Playwright's `route("**/*")`, its `request` events and a
# DevTools session with `Fetch.enable` for all addresses do not see these requests, though they do see those of
# `<link rel=prefetch>`. Whoever records, mocks or paces requests with them misses pages that the server has delivered.
#
# Seen with playwright 1.65.2 and Chromium 156 (chromium-headless-shell 156.0.8078.108 of Debian):
#
#   server:  / /by-link /by-rules
#   route:   / /by-link
#   events:  / /by-link
#   DevTools: / /by-link
#
# What works instead: remove the header `Speculation-Rules` and the scripts, or refuse `Sec-Purpose` in a proxy.
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

PAGE = b"""<!doctype html><title>Start</title><link rel=prefetch href=/by-link>
<script type=speculationrules>{"prefetch": [{"urls": ["/by-rules"], "eagerness": "immediate"}]}</script>"""
served, prefetched = [], threading.Event()


class Site(BaseHTTPRequestHandler):
    def do_GET(self):
        served.append(self.path)
        if {"/by-link", "/by-rules"} <= set(served):
            prefetched.set()
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.end_headers()
        self.wfile.write(PAGE if self.path == "/" else b"<p>later")

    def log_message(self, *_):
        pass


async def main():
    server = ThreadingHTTPServer(("127.0.0.1", 0), Site)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    routed, events, paused = [], [], []
    async with async_playwright() as playwright:
        flags = ["--disable-background-networking", "--no-first-run", "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1"]
        browser = await playwright.chromium.launch(executable_path=sys.argv[1], args=flags)
        context = await browser.new_context()
        page = await context.new_page()

        async def pass_on(route):
            routed.append(urlsplit(route.request.url).path)
            await route.continue_()

        context.on("request", lambda request: events.append(urlsplit(request.url).path))
        await context.route("**/*", pass_on)
        devtools = await context.new_cdp_session(page)

        async def go_on(event):
            paused.append(urlsplit(event["request"]["url"]).path)
            await devtools.send("Fetch.continueRequest", {"requestId": event["requestId"]})

        devtools.on("Fetch.requestPaused", lambda event: asyncio.ensure_future(go_on(event)))
        await devtools.send("Fetch.enable", {"patterns": [{"urlPattern": "*"}]})
        await page.goto(f"http://127.0.0.1:{server.server_port}/")
        assert await asyncio.to_thread(prefetched.wait, 20), f"not prefetched: {served}"
        version = browser.version
        await browser.close()
    print("Chromium", version)
    for name, seen in (("server", served), ("route", routed), ("events", events), ("DevTools", paused)):
        print(f"{name}:", *sorted(set(seen) - {"/favicon.ico"}))
    for seen in (routed, events, paused):
        assert set(seen) - {"/favicon.ico"} == {"/", "/by-link"}, seen


asyncio.run(main())
PYTHON
"$folder/venv/bin/python" "$folder/look.py" "$browser"
echo "as described"
