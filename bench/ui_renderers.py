"""Benchmark of renderers for the page of the service: sigma.js (WebGL) and a 2D canvas, without a GPU.

    python -m bench.ui_renderers [--save]

Builds `bench/ui_sigma` (needs npm and its registry), opens it in a headless Chromium, and moves a graph of 5,000 nodes,
with and without 40,000 edges, for 40 frames. Each frame draws everything. Prints the median and the 95th percentile of
the time between two frames; `--save` also writes bench/results/ui-renderers.json.
"""

from __future__ import annotations

import argparse
import functools
import http.server
import subprocess
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from playwright.sync_api import sync_playwright

from bench.result_files import RESULTS, processor, quantiles, run_info, write_result
from waygraph.pipeline.browser.process.find import find_browser

SOURCES = Path(__file__).parent / "ui_sigma"
NODES, EDGES = 5_000, 40_000


class _QuietHandler(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        """Log nothing."""


@contextmanager
def served(folder: str) -> Iterator[str]:
    """Serve a folder, and yield its URL."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(_QuietHandler, directory=folder))
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}/"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--save", action="store_true", help="write the result to bench/results/")
    options = parser.parse_args()
    rows = []
    with tempfile.TemporaryDirectory() as built:
        subprocess.run(["npm", "ci", "--no-audit", "--no-fund", "--silent"], cwd=SOURCES, check=True)
        build = ["npx", "vite", "build", "--outDir", built, "--base", "./", "--logLevel", "error"]
        subprocess.run(build, cwd=SOURCES, check=True)
        before = processor()
        with served(built) as url, sync_playwright() as driver:
            browser = driver.chromium.launch(executable_path=str(find_browser().path))
            for kind, edges in (("sigma", EDGES), ("sigma", 0), ("canvas", EDGES), ("canvas", 0)):
                page = browser.new_page(viewport={"width": 1280, "height": 800})
                page.goto(url)
                gaps = page.evaluate(f"measureRenderer({kind!r}, {NODES}, {edges})")
                p50, p95 = quantiles(gaps, (0.5, 0.95), 1)
                rows.append(
                    row := {"renderer": kind, "nodes": NODES, "edges": edges, "gap_p50_ms": p50, "gap_p95_ms": p95}
                )
                print(row)
                page.close()
            version = browser.version
            browser.close()
    if options.save:
        document = {**run_info(), **before, "browser": f"Chromium {version}, headless, no GPU", "rows": rows}
        write_result(RESULTS / "ui-renderers.json", document)


if __name__ == "__main__":
    main()
