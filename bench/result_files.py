"""What all benchmarks write: machine and date, quantiles, and JSON files in the folder bench/results."""

from __future__ import annotations

import datetime as dt
import json
import os
import platform
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

RESULTS = Path(__file__).parent / "results"


def run_info() -> dict[str, str]:
    """Return date and machine of a run."""
    return {
        "date": dt.datetime.now(dt.UTC).isoformat(timespec="seconds"),
        "machine": f"{os.cpu_count()} cores, {platform.machine()}, {platform.system()} {platform.release()}",
    }


def processor() -> dict[str, object]:
    """Return processor, usable cores and load, for benchmarks whose numbers are CPU-bound."""
    lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    models = (line.partition(":")[2].strip() for line in lines if "model name" in line)
    return {
        "cpu": next(models, platform.processor()),
        "cores": len(os.sched_getaffinity(0)),
        "python": platform.python_version(),
        "load_before": round(os.getloadavg()[0], 2),
    }


def quantiles(values: Sequence[float], shares: Sequence[float], digits: int) -> list[float]:
    """Return quantiles, interpolated linearly; an empty list without values.

    >>> quantiles([1, 2, 4], (0, 0.5, 0.75), 2)
    [1.0, 2.0, 3.0]
    """
    return [round(float(each), digits) for each in np.quantile(values, shares)] if values else []


def quantiles_ms(milliseconds: Sequence[float], digits: int = 3) -> dict[str, float]:
    """Return median, 99th percentile and maximum under the names that results use; zeros without values.

    >>> quantiles_ms([1.0, 3.0])
    {'p50_ms': 2.0, 'p99_ms': 2.98, 'max_ms': 3.0}
    """
    found = quantiles(milliseconds, (0.5, 0.99, 1.0), digits) or [0.0, 0.0, 0.0]
    return dict(zip(("p50_ms", "p99_ms", "max_ms"), found, strict=True))


def write_result(path: Path, document: Mapping[str, Any]) -> None:
    """Write a result and print its path."""
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
    print(f"saved to {path}")


def with_sites_before(path: Path, sites: Mapping[str, Any], order: Sequence[str]) -> dict[str, Any]:
    """Return results by site with those of an earlier run for the sites that were not run this time."""
    before = json.loads(path.read_text(encoding="utf-8"))["sites"] if path.exists() else {}
    known = before | dict(sites)
    return {name: known[name] for name in order if name in known}
