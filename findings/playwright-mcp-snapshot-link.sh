#!/usr/bin/env bash
# The answer of Playwright's MCP server to a click does not hold the page that the click led to, although its option for
# snapshots in answers is `full` by default: it holds a link to a file. A client that cannot read the server's files, as
# one over the network cannot, sees nothing of the page, and has to call `browser_snapshot` after every action. That
# doubles the calls of an agent, and the answers say nothing about it.
#
# Seen with @playwright/mcp 0.0.83 and Chromium 156 (chromium-headless-shell 156.0.8078.108 of Debian):
#
#   browser_click: the page's text no, a link to a file yes
#   browser_snapshot: the page's text yes, a link to a file no
set -euo pipefail
browser="$(command -v chromium-headless-shell || true)"
[ -n "$browser" ] || { echo "chromium-headless-shell is not installed (Debian: apt-get install chromium-headless-shell)" >&2; exit 2; }
folder="$(mktemp -d)"
trap 'rm -rf "$folder"' EXIT
cd "$folder"
echo '{"private": true}' > package.json
npm install --silent --no-audit --no-fund --ignore-scripts @playwright/mcp@0.0.83
cat > look.py <<'PYTHON'
import json
import re
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

PAGES = {"/": "<title>One</title><a href=/two>Go on</a>", "/two": "<title>Two</title><p>Here is the answer"}


class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        body = PAGES.get(self.path, "").encode()
        self.send_response(200 if body else 404)
        self.send_header("Content-Type", "text/html")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


site = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
threading.Thread(target=site.serve_forever, daemon=True).start()
flags = ["--disable-background-networking", "--no-first-run", "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1"]
launch = {"executablePath": sys.argv[1], "headless": True, "chromiumSandbox": False, "args": flags}
with open("config.json", "w") as config:
    json.dump({"browser": {"browserName": "chromium", "isolated": True, "launchOptions": launch}}, config)
server = subprocess.Popen(
    ["node", "node_modules/@playwright/mcp/cli.js", "--config", "config.json"],
    stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
)  # fmt: skip
number = 0


def ask(method, **params):
    global number
    number += 1
    server.stdin.write(json.dumps({"jsonrpc": "2.0", "id": number, "method": method, "params": params}) + "\n")
    server.stdin.flush()
    while True:
        answer = json.loads(server.stdout.readline())
        if answer.get("id") == number:
            return answer["result"]


def call(tool, **arguments):
    return "\n".join(part["text"] for part in ask("tools/call", name=tool, arguments=arguments)["content"])


ask("initialize", protocolVersion="2025-06-18", capabilities={}, clientInfo={"name": "look", "version": "1"})
server.stdin.write(json.dumps({"jsonrpc": "2.0", "method": "notifications/initialized"}) + "\n")
call("browser_navigate", url=f"http://127.0.0.1:{site.server_address[1]}/")
ref = re.search(r"ref=(\w+)", call("browser_snapshot"))[1]
said = {"browser_click": call("browser_click", element="Go on", target=ref), "browser_snapshot": call("browser_snapshot")}
server.stdin.close()
server.wait(30)
seen = {tool: ("Here is the answer" in text, "[Snapshot](" in text) for tool, text in said.items()}
for tool, (text, link) in seen.items():
    print(f"{tool}: the page's text {'yes' if text else 'no'}, a link to a file {'yes' if link else 'no'}")
assert seen == {"browser_click": (False, True), "browser_snapshot": (True, False)}, said
PYTHON
python3 look.py "$browser"
echo "as described"
