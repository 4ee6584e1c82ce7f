"""Picture of `waygraph demo` for the README: its output beside the screenshot that it takes.

    python -m bench.demo_picture [--output FOLDER]

Runs the demo (a minute or two), leaves out what would not fit, draws the rest and writes docs/images/demo.png.
"""

from __future__ import annotations

import argparse
import base64
import html
import re
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from playwright.sync_api import sync_playwright

from bench.ui_pictures import IMAGES
from waygraph.pipeline.browser.process.find import find_browser

_ORIGIN = re.compile(r"http://127\.0\.0\.1:\d+(?=/)")
_SIZE = {"width": 1500, "height": 640}
_PAGE = """<!doctype html><meta charset="utf-8"><style>
  body { margin: 0; background: #e9e6de; font: 14px sans-serif; }
  main { display: flex; gap: 28px; padding: 36px; align-items: stretch; }
  pre { flex: 1; margin: 0; padding: 22px; border-radius: 12px; background: #17211d; color: #e8efe9;
        font: 13px/19px "DejaVu Sans Mono", monospace; overflow: hidden; }
  figure { width: 640px; margin: 0; border-radius: 12px; overflow: hidden; background: #f6f3ec; }
  figcaption { padding: 9px 14px; background: #d8d4c8; color: #444; }
  img { display: block; width: 100%; }
</style><main><pre>OUTPUT</pre>
<figure><figcaption>demo-output/arrived.png</figcaption><img src="SCREENSHOT"></figure></main>"""


def shown_lines(lines: Sequence[str]) -> list[str]:
    """Return the lines of the demo's output that are drawn: the size of the map, the last query, the walk and the end.

    >>> mapping = ["x: exploring", "  9 states, 2 edges in 1.0 s", "", "Serving"]
    >>> shown_lines([*mapping, "  Query: a", "  Query: b", "", "Next:", "Demo finished"])[2:]
    ['  9 states, 2 edges in 1.0 s', '', 'Serving', '...', '  Query: b', '', 'Demo finished']
    """
    mapped = next(i for i, line in enumerate(lines) if re.match(r"  \d+ states, ", line))
    first, *_, last = (i for i, line in enumerate(lines) if line.startswith("  Query: "))
    end = lines.index("Next:")
    kept = ["$ make demo", "...", *lines[mapped:first], "...", *lines[last:end], lines[-1]]
    return [_ORIGIN.sub("", line) for line in kept]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--output", type=Path, help="folder for what the demo makes; a temporary one by default")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        output = options.output or Path(temporary)
        command = [sys.executable, "-m", "waygraph", "demo", "--output", str(output)]
        finished = subprocess.run(command, check=True, capture_output=True, text=True)
        lines = shown_lines(finished.stdout.replace(str(output), "demo-output").splitlines())
        screenshot = base64.b64encode((output / "arrived.png").read_bytes()).decode()
    page_text = _PAGE.replace("OUTPUT", html.escape("\n".join(lines)))
    page_text = page_text.replace("SCREENSHOT", f"data:image/png;base64,{screenshot}")
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=str(find_browser().path))
        page = browser.new_context(viewport=_SIZE, device_scale_factor=1.5).new_page()  # type: ignore[arg-type]
        page.set_content(page_text)
        page.locator("main").screenshot(path=IMAGES / "demo.png")
        browser.close()
    print(IMAGES / "demo.png")


if __name__ == "__main__":
    main()
