#!/usr/bin/env bash
# Playwright's `aria_snapshot` shows inert parts of a page, which the browser's own accessibility tree leaves out: content
# below `inert`, and everything behind a dialog that was opened with `showModal()`. An agent that reads the page from
# such a snapshot is offered buttons that nobody can press.
#
# Seen with playwright 1.65.2 and Chromium 156 (chromium-headless-shell 156.0.8078.108 of Debian):
#
#   snapshot: Behind In dialog Inert
#   accessibility tree: In dialog
set -euo pipefail
browser="$(command -v chromium-headless-shell || true)"
[ -n "$browser" ] || { echo "chromium-headless-shell is not installed (Debian: apt-get install chromium-headless-shell)" >&2; exit 2; }
folder="$(mktemp -d)"
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check playwright==1.65.2
cat > "$folder/look.py" <<'PYTHON'
import re
import sys

from playwright.sync_api import sync_playwright

PAGE = """<!doctype html><title>Modal</title><button>Behind</button><div inert><button>Inert</button></div>
<dialog id=dialog><button>In dialog</button></dialog><script>dialog.showModal()</script>"""

with sync_playwright() as playwright:
    flags = ["--disable-background-networking", "--no-first-run", "--host-resolver-rules=MAP * ~NOTFOUND"]
    browser = playwright.chromium.launch(executable_path=sys.argv[1], args=flags)
    page = browser.new_page()
    page.set_content(PAGE)
    shown = sorted(re.findall(r'button "([^"]+)"', page.locator("body").aria_snapshot()))
    devtools = page.context.new_cdp_session(page)
    nodes = devtools.send("Accessibility.getFullAXTree")["nodes"]
    exposed = sorted(
        node["name"]["value"] for node in nodes if not node["ignored"] and node["role"]["value"] == "button"
    )
    print("Chromium", browser.version)
    browser.close()
print("snapshot:", *shown)
print("accessibility tree:", *exposed)
assert shown == ["Behind", "In dialog", "Inert"]
assert exposed == ["In dialog"]
PYTHON
"$folder/venv/bin/python" "$folder/look.py" "$browser"
echo "as described"
