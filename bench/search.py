"""Benchmark of search: speed, recall against exact MaxSim, and size of every engine on the same vectors.

    python -m bench.search [--part NAME ...] [--save]

Without --part all parts but those for a GPU run, one after the other; each takes less than three minutes on two quiet
cores.

    service   a search over 500 states in this process and over HTTP, beside a no-op of the same service
    engines   exact search over 838 states x 746 vectors x 128 with 20 and 120 query rows: all of ours
    others    the same for qdrant-client in process and, where it is installed, fast-plaid
    growth    the packed scorer at 1,000, 5,000 and 20,000 states, the embedded engine up to 5,000
    pooling   which way of making few rows of many keeps the best states among its candidates
    sizes     bytes per state on the disk and what each way of keeping vectors costs in recall
    switch    from how many values on two stages across sites are faster than exact scoring
    stages, near-duplicates
              20,000 states on 100 sites in two stages against exact scoring, for two kinds of sites
    gpu       exact search over 838, 20,000 and 100,000 states on a GPU, with share of its memory bandwidth
    gpu, fast-plaid
              838 states beside fast-plaid on the same GPU, where it is installed

The vectors are synthetic (`bench.synthetic`, and the store of `service` is random): speed, size and recall against
exact MaxSim are real; the quality of retrieval is not measured here. `--save` keeps the parts that ran in
bench/results/search.json.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from functools import partial
from typing import Any

from bench import result_files, search_engines, search_gpu, search_pooling, search_service, search_stages

RESULTS = result_files.RESULTS / "search.json"

PARTS: dict[str, Callable[[], list[dict[str, Any]]]] = {
    "service": search_service.measure_all,
    "engines": search_engines.exact,
    "others": search_engines.others,
    "growth": search_engines.growth,
    "pooling": search_pooling.pooling,
    "sizes": search_stages.sizes,
    "switch": search_stages.switch,
    "stages": partial(search_stages.stages, "pages", 0.98),
    "near-duplicates": partial(search_stages.stages, "near-duplicates", 0.95),
}
#: Not part of a run without --part, since most machines have no GPU.
GPU_PARTS: dict[str, Callable[[], list[dict[str, Any]]]] = {
    "gpu": search_gpu.gpu,
    "gpu, fast-plaid": search_gpu.fast_plaid,
}


def table(rows: list[dict[str, Any]]) -> str:
    """Rows under the names of all their fields."""
    names = list(dict.fromkeys(name for row in rows for name in row))
    cells = [names] + [["" if row.get(name) is None else str(row[name]) for name in names] for row in rows]
    widths = [max(len(line[column]) for line in cells) for column in range(len(names))]
    return "\n".join("  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)) for line in cells)


def main() -> None:
    """Measure, print, and with `--save` keep what was measured."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--part", action="append", choices=sorted(PARTS | GPU_PARTS))
    parser.add_argument("--save", action="store_true", help="write bench/results/search.json")
    options = parser.parse_args()
    for name in options.part or PARTS:
        measured_on = result_files.processor()
        rows = (PARTS | GPU_PARTS)[name]()
        print(f"\n{name} {measured_on}\n{table(rows)}", flush=True)
        if options.save:
            parts = json.loads(RESULTS.read_text()).get("parts", {}) if RESULTS.exists() else {}
            parts[name] = {**result_files.run_info(), "machine": measured_on, "rows": rows}
            result_files.write_result(RESULTS, {"parts": parts})


if __name__ == "__main__":
    main()
