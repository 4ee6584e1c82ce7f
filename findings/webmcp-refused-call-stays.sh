#!/usr/bin/env bash
# A call of a form's tool (WebMCP) that the form's own validation refuses leaves its values in the form, in Chromium. The
# next call sends them: one that lacks a required argument succeeds with the value of the refused call before, as does an
# optional argument that nobody gives again. Arguments that the schema forbids (an unknown name or choice) leave nothing.
#
# Also seen: a form that navigates is answered `Completed` with an empty output, before the page has changed; the schema of
# a field with `maxlength` has no `maxLength`.
#
# Seen with playwright 1.65.2 and Chromium 156 (chromium-headless-shell 156.0.8078.108 of Debian), --enable-features=WebMCP:
#
#   {"guests": 5}: Error (Please fill out this field)
#   {"name": "Ann"}: Completed, requested /book?guests=5&name=Ann&note=
#   schema: required ["guests", "name"], note {"type": "string"}
set -euo pipefail
browser="$(command -v chromium-headless-shell || true)"
[ -n "$browser" ] || { echo "chromium-headless-shell is not installed (Debian: apt-get install chromium-headless-shell)" >&2; exit 2; }
folder="$(mktemp -d)"
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check playwright==1.65.2
cat > "$folder/look.py" <<'PYTHON'
import asyncio
import json
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

from playwright.async_api import async_playwright

PAGE = b"""<!doctype html><title>Table</title>
<form action=/book toolname=book tooldescription="Book a table" toolautosubmit>
<input type=number name=guests min=1 max=8 required><input name=name required><input name=note maxlength=5>
<button>Book</button></form>"""
requested: list[str] = []


class Site(BaseHTTPRequestHandler):
    def do_GET(self):
        requested.append(self.path)
        self.send_response(200)
        self.send_header("content-type", "text/html")
        self.end_headers()
        self.wfile.write(PAGE if self.path == "/" else b"<title>Booked</title>")

    def log_message(self, *args):
        pass


async def look(url):
    async with async_playwright() as playwright:
        flags = ["--enable-features=WebMCP", "--disable-background-networking", "--no-first-run"]
        flags += ["--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1"]
        browser = await playwright.chromium.launch(executable_path=sys.argv[1], args=flags)
        page = await browser.new_page()
        devtools = await page.context.new_cdp_session(page)
        tools, answers = asyncio.Queue(), asyncio.Queue()
        devtools.on("WebMCP.toolsAdded", lambda event: [tools.put_nowait(tool) for tool in event["tools"]])
        devtools.on("WebMCP.toolResponded", answers.put_nowait)
        await devtools.send("WebMCP.enable")
        await page.goto(url)
        tool = await asyncio.wait_for(tools.get(), 10)

        async def call(arguments):
            requested.clear()
            call = {"frameId": tool["frameId"], "toolName": tool["name"], "input": arguments}
            await devtools.send("WebMCP.invokeTool", call)
            answer = await asyncio.wait_for(answers.get(), 10)
            await asyncio.sleep(1)
            print(json.dumps(arguments), answer["status"], answer.get("errorText", ""), *requested)
            return answer["status"]

        statuses = [await call({"guests": 5}), await call({"name": "Ann"})]
        schema = tool["inputSchema"]
        print("Chromium", browser.version)
        print("required", schema["required"], "note", schema["properties"]["note"])
        await browser.close()
        return statuses, schema


server = ThreadingHTTPServer(("127.0.0.1", 0), Site)
Thread(target=server.serve_forever, daemon=True).start()
statuses, schema = asyncio.run(look(f"http://127.0.0.1:{server.server_port}/"))
assert statuses == ["Error", "Completed"], statuses
assert requested == ["/book?guests=5&name=Ann&note="], requested
assert schema["required"] == ["guests", "name"]
assert schema["properties"]["note"] == {"type": "string"}
PYTHON
"$folder/venv/bin/python" "$folder/look.py" "$browser"
echo "as described"
