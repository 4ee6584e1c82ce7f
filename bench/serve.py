"""Benchmark of the service: latency, load, overload, publishing, kills, memory; each value beside its target.

    python -m bench.serve [--part NAME ...] [--sites 100] [--states 500] [--seconds 60]
                          [--soak MINUTES] [--rate N] [--save]

Publishes synthetic maps of realistic shapes (`bench.serve_store`), starts the real service (Ray Serve, the real query
encoder) with default settings, and prints each measured value beside its target. Without --part all parts run, in about
ten minutes on two quiet CPUs; publishing and opening 100 maps takes three of them.

    latency    one client: search, path, locate, a search asked before, beside a no-op
    load       16 clients, beside the same searches in a process without HTTP
    overload   three times as many requests as were answered
    publish    a new version during load
    kill       SIGKILL to the replica during load
    memory     all sites opened: growth beside the size of what is open
    soak       memory over time under load, for half a minute unless --soak says more, as fast as four clients get
               answers unless --rate says less

CPU time per request is given too: on a busy machine it says more than the wall clock. `--save` keeps the parts that ran
in bench/results/serve.json.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from collections.abc import Callable
from dataclasses import asdict
from functools import partial
from pathlib import Path

from bench import serve_parts as parts
from bench.result_files import processor, run_info, write_result
from bench.serve_process import Service
from bench.serve_store import fill
from waygraph.core.settings import Settings
from waygraph.index.store import Store
from waygraph.pipeline.encode.registry import create_encoder

RESULTS = Path(__file__).parent / "results" / "serve.json"


def table(rows: list[parts.Row]) -> str:
    """One line per row: value, target, whether it is met."""
    lines = []
    for row in rows:
        target = "" if row.target is None else f"{'>=' if row.at_least else '<='} {row.target:g} {row.unit}"
        verdict = {None: "", True: "pass", False: "FAIL"}[row.passed]
        lines.append(f"{row.what:<68} {row.value:>8g} {row.unit:<4} {target:<12} {verdict:<5} {row.note}".rstrip())
    return "\n".join(lines)


def main() -> None:
    """Measure, print, and with `--save` keep what was measured."""
    known: dict[str, Callable[[parts.Bench, Service], list[parts.Row]]] = {
        "memory": parts.memory,
        "latency": parts.latency,
        "load": parts.load,
        "overload": parts.overload,
        "publish": parts.publish,
        "kill": parts.kill,
    }
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--part", action="append", choices=[*known, "soak"])
    parser.add_argument("--sites", type=int, default=100)
    parser.add_argument("--states", type=int, default=500)
    parser.add_argument("--seconds", type=float, default=60, help="of the load")
    parser.add_argument("--soak", type=float, default=0.5, metavar="MINUTES")
    parser.add_argument("--rate", type=float, default=float("inf"), help="searches a second of the soak, at most")
    parser.add_argument(
        "--store", help="a store that an earlier run made with the same sizes, or a folder to make it in"
    )
    parser.add_argument("--save", action="store_true", help="write bench/results/serve.json")
    options = parser.parse_args()
    known["soak"] = partial(parts.soak, minutes=options.soak, rate=options.rate)
    with tempfile.TemporaryDirectory(prefix="waygraph-bench-") as folder:
        # As the service does: one thread for one question.
        encoder = create_encoder(Settings().encode.model_copy(update={"threads": 1}))
        store = Store.open(options.store or folder, create=True)
        fill(store, options.sites, options.states, encoder)
        bench = parts.Bench(store, encoder, options.sites, options.states, options.seconds)
        with Service(store.location) as service:
            for name in options.part or known:
                measured_on = processor()
                rows = known[name](bench, service)
                print(f"\n{name} {measured_on}\n{table(rows)}", flush=True)
                if options.save:
                    save(name, bench, measured_on, rows)


def save(name: str, bench: parts.Bench, measured_on: dict[str, object], rows: list[parts.Row]) -> None:
    """Keep one part's rows beside those of other parts."""
    kept = json.loads(RESULTS.read_text())["parts"] if RESULTS.exists() else {}
    kept[name] = {
        **run_info(),
        "machine": measured_on,
        "store": f"{bench.sites} sites x {bench.states} states",
        "rows": [{**asdict(row), "passed": row.passed} for row in rows],
    }
    write_result(RESULTS, {"parts": kept})


if __name__ == "__main__":
    main()
