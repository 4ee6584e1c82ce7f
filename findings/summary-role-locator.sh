#!/usr/bin/env bash
# Playwright has no role for a `<summary>`: no role locator finds it, and `aria_snapshot` shows its text as that of the
# group around it, like any text. In the browser's own accessibility tree it is a control, a disclosure triangle with a
# name. An agent that reads snapshots, or acts by role and name, cannot open it.
#
# Seen with playwright 1.65.2 and Chromium 156 (chromium-headless-shell 156.0.8078.108 of Debian):
#
#   accessibility tree: DisclosureTriangle 'Opening hours'
#   locators by role: button 0, link 0, group 1
#   snapshot: - group: Opening hours
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

PAGE = "<!doctype html><title>Names</title><details><summary>Opening hours</summary>Daily</details>"

with sync_playwright() as playwright:
    flags = ["--disable-background-networking", "--no-first-run", "--host-resolver-rules=MAP * ~NOTFOUND"]
    browser = playwright.chromium.launch(executable_path=sys.argv[1], args=flags)
    page = browser.new_page()
    page.set_content(PAGE)
    devtools = page.context.new_cdp_session(page)
    nodes = devtools.send("Accessibility.getFullAXTree")["nodes"]
    controls = [node for node in nodes if not node["ignored"] and node["role"]["value"] == "DisclosureTriangle"]
    found = {role: page.get_by_role(role).count() for role in ("button", "link", "group")}
    snapshot = page.locator("body").aria_snapshot()
    print("Chromium", browser.version)
    browser.close()
print("accessibility tree:", *(f"{node['role']['value']} {node['name']['value']!r}" for node in controls))
print("locators by role:", ", ".join(f"{role} {count}" for role, count in found.items()))
print("snapshot:", snapshot)
assert [node["name"]["value"] for node in controls] == ["Opening hours"]
assert found == {"button": 0, "link": 0, "group": 1}
assert snapshot == "- group: Opening hours"
PYTHON
"$folder/venv/bin/python" "$folder/look.py" "$browser"
echo "as described"
