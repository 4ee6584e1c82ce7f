#!/usr/bin/env bash
# The JSON Schema that Chromium derives from a form for WebMCP is not what JSON Schema's words mean:
#
# - of `<input type=time>`, `month`, `week`, `datetime-local` and `color`, `format` holds a regular expression; `pattern` is
#   the keyword for that, and validators ignore or refuse an unknown format
# - `pattern` is copied without the anchors that HTML implies: "x1y" fits the schema of pattern="[0-9]", and the form refuses it
# - a list without options gets `anyOf: []`, which JSON Schema does not allow
# - `step=any` of a range is lost: the schema says `multipleOf: 1`
#
# Who validates arguments before a call, as MCP clients do, has to mend the schema first.
#
# Seen with playwright 1.65.2, jsonschema 4.26.0 and Chromium 156 (chromium-headless-shell 156.0.8078.108 of Debian),
# --enable-features=WebMCP; see the output of this script.
set -euo pipefail
browser="$(command -v chromium-headless-shell || true)"
[ -n "$browser" ] || { echo "chromium-headless-shell is not installed (Debian: apt-get install chromium-headless-shell)" >&2; exit 2; }
folder="$(mktemp -d)"
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check playwright==1.65.2 jsonschema==4.26.0
cat > "$folder/look.py" <<'PYTHON'
import asyncio
import json
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

from jsonschema import Draft202012Validator, SchemaError
from playwright.async_api import async_playwright

PAGE = b"""<!doctype html><title>Form</title><form action=/go toolname=book tooldescription="Book a table">
<input type=time name=time><input type=month name=month><input type=color name=color>
<input name=digit pattern="[0-9]"><select name=table></select><input type=range name=level step=any><button>Go</button></form>"""


class Site(BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.send_header("content-type", "text/html")
        self.end_headers()
        self.wfile.write(PAGE)

    def log_message(self, *args):
        pass


async def schema_of(url):
    async with async_playwright() as playwright:
        flags = ["--enable-features=WebMCP", "--disable-background-networking", "--no-first-run"]
        flags += ["--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1"]
        browser = await playwright.chromium.launch(executable_path=sys.argv[1], args=flags)
        page = await browser.new_page()
        devtools = await page.context.new_cdp_session(page)
        tools = asyncio.Queue()
        devtools.on("WebMCP.toolsAdded", lambda event: [tools.put_nowait(tool) for tool in event["tools"]])
        await devtools.send("WebMCP.enable")
        await page.goto(url)
        tool = await asyncio.wait_for(tools.get(), 10)
        print("Chromium", browser.version)
        await browser.close()
        return tool["inputSchema"]


server = ThreadingHTTPServer(("127.0.0.1", 0), Site)
Thread(target=server.serve_forever, daemon=True).start()
schema = asyncio.run(schema_of(f"http://127.0.0.1:{server.server_port}/"))
fields = schema["properties"]
for name, field in fields.items():
    print(f"{name}: {json.dumps(field)}")
for name in ("time", "month", "color"):
    assert fields[name]["format"].startswith("^") and "pattern" not in fields[name], name
assert Draft202012Validator(fields["digit"]).is_valid("x1y")
assert fields["level"]["multipleOf"] == 1
try:
    Draft202012Validator.check_schema(fields["table"])
except SchemaError as error:
    print("the schema of the list is invalid:", error.message)
else:
    raise AssertionError("the schema of the list is valid")
PYTHON
"$folder/venv/bin/python" "$folder/look.py" "$browser"
echo "as described"
