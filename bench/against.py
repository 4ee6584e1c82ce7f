"""Benchmark of this build beside an older one: both do the same in one run, by turns, and their exports must be equal.

    python -m bench.against --rev REV [--part NAME ...] [--runs 3] [--save]

The files of the commit REV are put into a folder once, with an environment of their own if this one lacks what they
need. A run is REV, then this build; what is printed for each quantity is the median of the runs' ratios, this build
to REV. Ratios hold on a busy machine, where seconds do not, and those of CPU seconds hold best.

    shop     `waygraph index` of the demo shop
    sites    the same of sites of others (`bench.real_sites`), --states of each; what a state takes
    page     one page, from nothing
    cold     `--help`, `search`, `path` and `show` in a new process, on a map of 500 states
    serve    `waygraph serve`: start, memory, an empty request, searches; with `serve --local`, and beside the same
             application run by uvicorn alone

Each part gives wall seconds, CPU seconds, peak memory (PSS) and number of processes of the whole process tree
(`bench.process_tree`). --save keeps the parts that ran in bench/results/against.json.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from bench import against_parts as parts
from bench.against_parts import DIFFERENT, OLDER, THIS, UVICORN, Run
from bench.builds import checked_out, older
from bench.result_files import RESULTS, processor, run_info, write_result
from bench.serve import table
from bench.serve_parts import Row

RESULT = RESULTS / "against.json"
#: Largest wanted ratios, of this build to the older one.
TARGETS = {
    "demo shop: seconds": 0.5,
    "demo shop: CPU seconds": 0.55,
    "demo shop: peak MiB": 0.5,
    "node-red: seconds": 0.4,
    "sites: seconds, geometric mean": 0.6,
    "search: seconds": 0.35,
    "search: peak MiB": 0.35,
    "search, 1 client: p50 ms": 0.6,
    "search, 16 clients: p50 ms": 0.6,
}
#: Largest wanted ratios to the same application run by uvicorn alone.
TARGETS_UVICORN = {
    THIS: {"seconds to ready": 2.0, "MiB when ready": 1.7, "empty request: CPU ms": 5.0},
    f"{THIS} --local": {"seconds to ready": 1.2, "MiB when ready": 1.2, "empty request: CPU ms": 1.2},
}


def ratios(runs: Sequence[Run], of: str, to: str) -> dict[str, float]:
    """Return the median ratio of each quantity that two sides have, from the ratios of each run.

    >>> ratios([{"a": {"s": 10.0}, "b": {"s": 5.0}}, {"a": {"s": 20.0}, "b": {"s": 12.0}}], "b", "a")
    {'s': 0.55}
    """
    found = {}
    for what in runs[0].get(of, {}):
        pairs = [(run[of][what], run[to].get(what, 0.0)) for run in runs]
        if all(before for _, before in pairs):
            found[what] = round(statistics.median(now / before for now, before in pairs), 3)
    return found


def medians(runs: Sequence[Run]) -> dict[str, dict[str, float]]:
    """Return the median of each quantity of each side."""
    return {
        side: {what: round(statistics.median(run[side][what] for run in runs), 3) for what in values}
        for side, values in runs[0].items()
    }


def rows(runs: Sequence[Run]) -> list[Row]:
    """Return the rows of the table of a part: ratios with their targets, and the medians behind them."""
    middle, by_quantity = medians(runs), ratios(runs, THIS, OLDER)
    found = [
        _row(what, ratio, TARGETS.get(what), middle[OLDER][what], middle[THIS][what])
        for what, ratio in by_quantity.items()
    ]
    if of_sites := [by_quantity[f"{site}: seconds"] for site in parts.SITES if f"{site}: seconds" in by_quantity]:
        what = "sites: seconds, geometric mean"
        found.append(Row(what, round(statistics.geometric_mean(of_sites), 3), "", TARGETS[what]))
    found += [Row(what, value, "", 0) for what, value in middle[THIS].items() if what.endswith(f": {DIFFERENT}")]
    for side, targets in TARGETS_UVICORN.items():
        if UVICORN in middle and side in middle:
            found += [
                _row(f"{side} / {UVICORN}: {what}", ratio, targets.get(what), middle[UVICORN][what], middle[side][what])
                for what, ratio in ratios(runs, side, UVICORN).items()
            ]
    return found


def _row(what: str, ratio: float, target: float | None, before: float, now: float) -> Row:
    return Row(what, ratio, "", target, note=f"{before:g} -> {now:g}")


def save(part: str, about: Mapping[str, Any], runs: Sequence[Run]) -> None:
    """Keep one part beside those of other parts."""
    kept = json.loads(RESULT.read_text(encoding="utf-8"))["parts"] if RESULT.exists() else {}
    sides = [(THIS, OLDER), *((side, UVICORN) for side in TARGETS_UVICORN if UVICORN in runs[0])]
    found = {f"{of} / {to}": ratios(runs, of, to) for of, to in sides}
    kept[part] = {**run_info(), **about, "ratios": found, "medians": medians(runs), "runs": runs}
    write_result(RESULT, {"parts": kept})


def main() -> None:
    """Measure, print, and with `--save` keep what was measured."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rev", required=True, help="the older commit")
    parser.add_argument("--rev-python", metavar="PYTHON", help="a Python with the dependencies of that commit")
    parser.add_argument("--part", action="append", choices=parts.PARTS)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--site", action="append", choices=parts.SITES, help="of the part sites")
    parser.add_argument("--states", type=int, help="of each site; a quarter of it of node-red", default=100)
    parser.add_argument("--maps", type=int, default=20, help="served maps of 500 states, of the part serve")
    parser.add_argument("--scratch", type=Path, help="folder for builds and sites, kept for the next run")
    parser.add_argument("--save", action="store_true", help="write bench/results/against.json")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="waygraph-bench-") as temporary:
        scratch = (options.scratch or Path(temporary)).absolute()
        scratch.mkdir(parents=True, exist_ok=True)
        builds = {OLDER: older(options.rev, scratch, options.rev_python), THIS: checked_out()}
        for build in builds.values():
            build.compile()
        about = {side: {"commit": build.name, **build.versions} for side, build in builds.items()}
        print(json.dumps(about, indent=1), flush=True)
        bench = parts.Bench(
            builds,
            options.runs,
            scratch,
            Path(temporary),
            tuple(options.site or parts.SITES),
            options.states,
            options.maps,
        )
        for name in options.part or parts.PARTS:
            measured_on = processor()
            runs = parts.PARTS[name](bench)
            print(f"\n{name} {measured_on}, load after {os.getloadavg()[0]:.2f}\n{table(rows(runs))}", flush=True)
            if options.save:
                save(name, {"machine": measured_on, "builds": about}, runs)


if __name__ == "__main__":
    main()
