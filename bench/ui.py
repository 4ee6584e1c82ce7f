"""Benchmark of the page of the service: time to the first paint of a large map, frame rate, memory, list of sites.

    python -m bench.ui [--states 5000] [--edges 40000] [--sites 100] [--save]

A headless Chromium without a GPU opens the page of a service in this process, at 1280 x 800. Times are those of the
browser, from the start of the navigation to marks that the page sets when a complete frame is drawn. Frames are counted
with `requestAnimationFrame`, at most 60 a second, while real mouse events drag the map and turn the wheel: the rate is
the number of frames divided by the time, and the slowest 5% of the intervals between frames are given too. Memory is
the proportional set size of the browser process that renders the page. `service_cpu_ms` is the CPU time of this process
until the map was drawn, which depends less on other work of the machine than times do. The report of the large map is
written to a file, and opened from it. `--save` also writes bench/results/ui.json.
"""

from __future__ import annotations

import argparse
import socket
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any

import psutil
import uvicorn
from playwright.sync_api import Browser, Page, sync_playwright

from bench.result_files import RESULTS, processor, quantiles, run_info, write_result
from bench.ui_store import publish
from waygraph.core.settings import Settings
from waygraph.index.store import Store
from waygraph.pipeline.browser.process.find import find_browser
from waygraph.serve.http.api import create_api
from waygraph.serve.query.maps import Maps
from waygraph.serve.views.site_report import site_report

LARGE = "large.example"
SIZE = {"width": 1280, "height": 800}
#: Duration of each movement in seconds.
MOVE_SECONDS = 4.0

#: What is measured, with the address of the view. The first one also opens the map in the service.
VIEWS = {
    "as it opens, map not open in the service": "",
    "as it opens": "?",
    "groups of alike pages opened": "?groups=open",
    "all states and all edges": "?groups=open&edges=all&inherited=yes",
}

_COUNT_FRAMES = """() => {
  window.frameTimes = [];
  const step = (time) => { window.frameTimes.push(time); window.frameLoop = requestAnimationFrame(step); };
  window.frameLoop = requestAnimationFrame(step);
}"""
_MARK = "(name) => performance.getEntriesByName(name)[0]?.startTime ?? null"


@contextmanager
def service(store: str) -> Iterator[str]:
    """Run the service in this process, and yield its URL."""
    settings = Settings(store=store)
    with Maps(settings) as maps:
        maps.open()
        listening = socket.create_server(("127.0.0.1", 0))
        server = uvicorn.Server(uvicorn.Config(create_api(settings, maps), log_level="error"))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
        thread.start()
        try:
            yield f"http://127.0.0.1:{listening.getsockname()[1]}/"
        finally:
            server.should_exit = True
            thread.join()
            listening.close()


def mark(page: Page, name: str) -> int:
    """Wait for a mark of the page, and return its time since the start of the navigation, in milliseconds."""
    # Not `wait_for_function`: the policy of the page forbids the evaluation of strings.
    while (found := page.evaluate(_MARK, name)) is None:
        page.wait_for_timeout(20)
    return round(float(found))


def frames(page: Page, kind: str) -> dict[str, float]:
    """Move the map with the mouse, and return the rate of frames and the intervals between them."""
    page.mouse.move(800, 420)
    page.evaluate(_COUNT_FRAMES)
    started = time.perf_counter()
    if kind == "pan":
        page.mouse.down()
    number = 0
    while time.perf_counter() - started < MOVE_SECONDS:
        number += 1
        if kind == "pan":
            page.mouse.move(800 + 6 * (number % 60 - 30), 420 + 3 * (number % 40 - 20))
        else:
            page.mouse.wheel(0, -60 if number % 80 < 40 else 60)
    if kind == "pan":
        page.mouse.up()
    times = page.evaluate("() => { cancelAnimationFrame(window.frameLoop); return window.frameTimes; }")
    gaps = [after - before for before, after in pairwise(times)]
    p50, p95, most = quantiles(gaps, (0.5, 0.95, 1.0), 1)
    rate = round(1000 * len(gaps) / (times[-1] - times[0]), 1)
    return {"frames_per_second": rate, "gap_p50_ms": p50, "gap_p95_ms": p95, "gap_max_ms": most, "events": number}


def renderer_mib(page: Page, browser: Browser) -> dict[str, float]:
    """Return the memory of the largest renderer process (proportional set size), and of the page's own objects."""
    page.request_gc()
    session = page.context.new_cdp_session(page)
    session.send("Performance.enable")
    metrics = {each["name"]: each["value"] for each in session.send("Performance.getMetrics")["metrics"]}
    processes = browser.new_browser_cdp_session().send("SystemInfo.getProcessInfo")["processInfo"]
    sizes = [psutil.Process(int(each["id"])).memory_full_info().pss for each in processes if each["type"] == "renderer"]
    return {
        "renderer_pss_mib": round(max(sizes) / 2**20, 1),
        "objects_mib": round(metrics.get("JSHeapUsedSize", 0.0) / 2**20, 1),
    }


def measure_map(browser: Browser, url: str, view: str, query: str) -> dict[str, Any]:
    """Open the large map, move it, and return what was measured."""
    page = browser.new_page(viewport=SIZE)  # type: ignore[arg-type]
    cpu = time.process_time()
    page.goto(f"{url}#/sites/{LARGE}{query}")
    first = mark(page, "waygraph:map-drawn")
    cpu = time.process_time() - cpu
    page.wait_for_timeout(1500)
    edges = page.evaluate(_MARK, "waygraph:edges-drawn")
    found = {
        "view": view,
        "first_map_ms": first,
        "service_cpu_ms": round(1000 * cpu),
        "edges_drawn_ms": None if edges is None else round(edges),
        "pan": frames(page, "pan"),
        "zoom": frames(page, "zoom"),
        **renderer_mib(page, browser),
    }
    page.close()
    return found


def measure_sites(browser: Browser, url: str, sites: int) -> dict[str, Any]:
    """Open the list of sites twice, and return the times until all cards are there."""
    found = {}
    for name in ("first", "again"):
        page = browser.new_page(viewport=SIZE)  # type: ignore[arg-type]
        page.goto(url)
        page.locator(".card").nth(sites - 1).wait_for()
        found[f"{name}_ms"] = round(page.evaluate("performance.now()"))
        page.close()
    return found


def measure_report(browser: Browser, store: Store, folder: Path) -> dict[str, Any]:
    """Write the report of the large map, open it from disk, and return its size and times."""
    cpu = time.process_time()
    file = folder / "report.html"
    file.write_text(site_report(store, LARGE).html(), encoding="utf-8")
    cpu = time.process_time() - cpu
    page = browser.new_page(viewport=SIZE)  # type: ignore[arg-type]
    page.goto(file.as_uri(), wait_until="commit")
    first = mark(page, "waygraph:map-drawn")
    page.close()
    return {"mib": round(file.stat().st_size / 2**20, 2), "written_cpu_ms": round(1000 * cpu), "first_map_ms": first}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--states", type=int, default=5_000)
    parser.add_argument("--edges", type=int, default=40_000)
    parser.add_argument("--sites", type=int, default=100)
    parser.add_argument("--save", action="store_true", help="write the result to bench/results/")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        store = Store.open(str(Path(folder) / "maps"), create=True)
        publish(store, LARGE, options.states, options.edges)
        for number in range(options.sites - 1):
            publish(store, f"site-{number:03d}.example", 20, 60)
        before = processor()
        with service(store.location) as url, sync_playwright() as driver:
            browser = driver.chromium.launch(executable_path=str(find_browser().path))
            sites = measure_sites(browser, url, options.sites)
            print(f"{options.sites} sites: {sites}")
            rows = []
            for view, query in VIEWS.items():
                rows.append(row := measure_map(browser, url, view, query))
                print(row)
            report = measure_report(browser, store, Path(folder))
            print(f"report: {report}")
            version = browser.version
            browser.close()
    if options.save:
        size = {"states": options.states, "edges": options.edges, "sites": options.sites}
        document = {**run_info(), **before, "browser": f"Chromium {version}, headless, no GPU", **size}
        write_result(RESULTS / "ui.json", {**document, "list_of_sites": sites, "map": rows, "report": report})


if __name__ == "__main__":
    main()
