#!/usr/bin/env bash
# `getComputedStyle(element, "::scroll-button(left)")` returns the style of another scroll button where the style sheet
# defines that of the right side alone, in Chromium. A script that asks "is there a button to the left?" by the computed
# `content`, as it would for `::before`, finds one on every side. The accessibility tree, which people's tools read, holds one.
#
# Seen with playwright 1.65.2 and Chromium 156 (chromium-headless-shell 156.0.8078.108 of Debian):
#
#   content of right, left, up, down: ">" ">" ">" ">"
#   buttons in the accessibility tree: 1
#
# What tells them apart: the used `width`, which is a length for a box that exists and `auto` for others.
set -euo pipefail
browser="$(command -v chromium-headless-shell || true)"
[ -n "$browser" ] || { echo "chromium-headless-shell is not installed (Debian: apt-get install chromium-headless-shell)" >&2; exit 2; }
folder="$(mktemp -d)"
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check playwright==1.65.2
cat > "$folder/look.py" <<'PYTHON'
import sys

from playwright.sync_api import sync_playwright

PAGE = """<!doctype html><title>Box</title><style>
#box { overflow: auto; width: 200px; height: 60px; white-space: nowrap }
#box::scroll-button(right) { content: ">" }
</style><div id=box><span style="display: inline-block; width: 900px">Wide</span></div>"""
SIDES = ("right", "left", "up", "down")
READ = "side => { const style = getComputedStyle(box, `::scroll-button(${side})`); return [style.content, style.width] }"

with sync_playwright() as playwright:
    flags = ["--disable-background-networking", "--no-first-run", "--host-resolver-rules=MAP * ~NOTFOUND"]
    browser = playwright.chromium.launch(executable_path=sys.argv[1], args=flags)
    page = browser.new_page()
    page.set_content(PAGE)
    read = {side: page.evaluate(READ, side) for side in SIDES}
    devtools = page.context.new_cdp_session(page)
    nodes = devtools.send("Accessibility.getFullAXTree")["nodes"]
    buttons = [node for node in nodes if node.get("role", {}).get("value") == "button"]
    print("Chromium", browser.version)
    browser.close()
print("content of right, left, up, down:", *(read[side][0] for side in SIDES))
print("width of right, left, up, down:", *(read[side][1] for side in SIDES))
print("buttons in the accessibility tree:", len(buttons))
assert read["left"][0] == read["right"][0] == '">"'
assert len(buttons) == 1
PYTHON
"$folder/venv/bin/python" "$folder/look.py" "$browser"
echo "as described"
