"""Benchmark of `waygraph index` as a whole process: where its seconds go, by phase and by kind of process.

    python -m bench.index_time [--runs 3] [--depth 3] [--save]

Maps the demo shop with the command that a user types, in a new store each time, and reads phases from the run's report.
CPU time is that of all processes below the command, read from /proc several times a second, so the last moments of a
process may be missing. CPU seconds divided by the cores are the least time that the same work can take on this machine.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import psutil

from bench.process_tree import Tree
from bench.result_files import RESULTS, processor, run_info, write_result
from waygraph.demo_site import DemoSite

RESULT = RESULTS / "index-time.json"
#: Wanted seconds, on two quiet cores.
TARGET_SECONDS = 25.0
_SAMPLE_SECONDS = 0.1


def measure(url: str, depth: int, store: Path) -> dict[str, Any]:
    """Run the command once. Return seconds by phase and CPU seconds by kind of process."""
    began = time.monotonic()
    command = [sys.executable, "-m", "waygraph", "index", url, "--depth", str(depth), "--store", str(store)]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        tree = Tree(psutil.Process(process.pid))
        while process.poll() is None:
            tree.sample_cpu()
            time.sleep(_SAMPLE_SECONDS)
    seconds = time.monotonic() - began
    if process.returncode:
        raise SystemExit(f"waygraph index ended with {process.returncode}")
    report = json.loads(next(store.glob("runs/*/report.json")).read_text(encoding="utf-8"))
    site = report["sites"][0]
    phases = {
        "start of actors": report["phases"]["start"],
        "exploration": site["exploration"]["seconds"],
        "encoding after it": site["publication"]["encode_seconds"],
        "publishing": site["publication"]["publish_seconds"],
    }
    phases["everything else: imports, start of actors and browser, end"] = seconds - sum(phases.values())
    used = tree.cpu_by_kind()
    return {
        "seconds": round(seconds, 2),
        "states": site["exploration"]["states"],
        "documents": site["exploration"]["counters"]["requests/document"],
        "encoder ready after": report["phases"]["encoder_ready"],
        "phases": {name: round(took, 2) for name, took in phases.items()},
        "cpu": used,
        "cpu seconds": round(sum(used.values()), 2),
    }


def summary(runs: Sequence[Mapping[str, Any]], cores: int) -> dict[str, Any]:
    """Return the medians of runs: in seconds, by phase, and CPU seconds by kind of process."""
    kinds = sorted({kind for run in runs for kind in run["cpu"]})
    cpu = {kind: round(statistics.median(run["cpu"].get(kind, 0.0) for run in runs), 2) for kind in kinds}
    used = statistics.median(run["cpu seconds"] for run in runs)
    return {
        "seconds": statistics.median(run["seconds"] for run in runs),
        "target": TARGET_SECONDS,
        "cpu seconds": used,
        "cpu seconds / cores": round(used / cores, 2),
        "phases": {name: statistics.median(run["phases"][name] for run in runs) for name in runs[0]["phases"]},
        "cpu": dict(sorted(cpu.items(), key=lambda item: -item[1])),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--depth", type=int, default=3)
    parser.add_argument("--save", action="store_true")
    options = parser.parse_args()
    about = {**run_info(), **processor()}
    runs = []
    with DemoSite() as shop:
        for _ in range(options.runs):
            with tempfile.TemporaryDirectory() as folder:
                runs.append(measure(shop.url, options.depth, Path(folder) / "store"))
            print(json.dumps(runs[-1], indent=1), flush=True)
    found = {**about, "medians": summary(runs, len(os.sched_getaffinity(0))), "runs": runs}
    print(json.dumps(found["medians"], indent=1))
    if options.save:
        write_result(RESULT, found)


if __name__ == "__main__":
    main()
