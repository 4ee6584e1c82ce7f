"""Benchmark of the text encoders: CPU time of a query, of the rows of a map, and of loading; peak memory.

    python -m bench.query_time --store FOLDER [--site SITE] [--encoder text] [--threads N] [--rounds N]
        [--against CHECKOUT [--python PYTHON]] [--save]

Every third question about the dev sites of `bench/retrieval` is encoded alone, as services do, and the pages of a site
of the store in batches of 32 states, as runs do. CPU time counts on a busy machine. With `--against`, another checkout
of waygraph takes turns in processes of its own, and the ratios of the medians and the largest difference of vectors are
printed. WAYGRAPH_ENCODE__WEIGHTS names the weights of `text-large`. `--save` writes bench/results/query-time.json.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from waygraph.core.settings import Settings
from waygraph.index.store import Store
from waygraph.pipeline.encode.protocol import Encoder
from waygraph.pipeline.encode.registry import create_encoder
from waygraph.pipeline.encode.text.anchor_text import with_anchor_texts
from waygraph.pipeline.encode.text_counts import count_segments

#: The programs that measure: this file is run by path, so that it measures whatever checkout is on PYTHONPATH.
PROGRAM = Path(__file__)
#: Queries that are encoded before the measurement, and states of a batch.
_WARM_UP, _STATES = 5, 32


def questions() -> list[str]:
    """Return every third question about the dev sites."""
    from bench.retrieval.maps import names
    from bench.retrieval.queries import read_queries

    return [question.ask for site in names("dev") for question in read_queries(site)][::3]


def measure(options: argparse.Namespace, asks: list[str]) -> tuple[dict[str, Any], np.ndarray]:
    """Return what this process needs for all of it, and the vectors of questions and rows."""
    version = Store.open(options.store).read(options.site)
    observations = with_anchor_texts(version.graph, version.observations.values())
    settings = Settings(encode={"encoder": options.encoder}).encode.model_copy(update={"threads": options.threads})
    started = time.process_time()
    encoder = create_encoder(settings)
    encoder.encode_queries(asks[:_WARM_UP])
    loaded = time.process_time()
    queries = [_timed(encoder, ask) for ask in asks]
    context = encoder.prepare_site(count_segments(observations))
    encoder.encode_pages(observations[:1], context)
    begun = time.process_time()
    pages = []
    for start in range(0, len(observations), _STATES):
        pages += encoder.encode_pages(observations[start : start + _STATES], context)
    rows = time.process_time() - begun
    found = {
        "encoder": encoder.fingerprint,
        "load, CPU s": loaded - started,
        "query, CPU ms": statistics.median(1000 * seconds for seconds, _ in queries),
        "rows, CPU s": rows,
        "peak, MiB": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
    }
    return found, np.concatenate([*(vectors for _, vectors in queries), *(page.vectors for page in pages)])


def _timed(encoder: Encoder, ask: str) -> tuple[float, np.ndarray]:
    started = time.process_time()
    found = encoder.encode_query(ask)
    return time.process_time() - started, found


def _in_process(options: argparse.Namespace, root: Path, python: str, scratch: Path) -> tuple[dict[str, Any], Path]:
    """Measure a checkout in a process of its own."""
    vectors = scratch / f"{root.name}.npy"
    words = [python, "-P", str(PROGRAM), "--one", str(scratch / "asks.json"), str(vectors), "--store", options.store]
    words += ["--site", options.site, "--encoder", options.encoder, "--threads", str(options.threads)]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(root), os.environ.get("PYTHONPATH", "")])}
    ran = subprocess.run(words, cwd=root, env=environment, capture_output=True, text=True, check=True)
    return json.loads(ran.stdout.splitlines()[-1]), vectors


def compare(options: argparse.Namespace) -> list[dict[str, Any]]:
    """Let checkouts take turns. Print and return the medians of each, and the ratios."""
    own = Path(__file__).resolve().parents[1]
    checkouts = {own: sys.executable}
    if options.against:
        checkouts = {options.against.resolve(): options.python or sys.executable, **checkouts}
    measured: dict[Path, list[dict[str, Any]]] = {root: [] for root in checkouts}
    with tempfile.TemporaryDirectory() as folder:
        scratch = Path(folder)
        (scratch / "asks.json").write_text(json.dumps(questions()))
        kept = {}
        for _ in range(options.rounds):
            for root, python in checkouts.items():
                found, kept[root] = _in_process(options, root, python, scratch)
                measured[root].append(found)
        vectors = [np.load(file) for file in kept.values()]
    rows: list[dict[str, Any]] = []
    for rounds in measured.values():
        numbers = {name: statistics.median(each[name] for each in rounds) for name in rounds[0] if name != "encoder"}
        rows.append({"encoder": rounds[0]["encoder"], **{name: round(value, 2) for name, value in numbers.items()}})
        print(json.dumps(rows[-1]), flush=True)
    if options.against:
        before, after = rows
        ratios = {name: round(after[name] / before[name], 2) for name in after if name != "encoder"}
        same = vectors[0].shape == vectors[1].shape
        ratios["largest difference"] = float(np.abs(vectors[0] - vectors[1]).max()) if same else "other texts"
        print(json.dumps(ratios))
        rows.append(ratios)
    return rows


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--store", required=True, help="store with the map whose rows are encoded")
    parser.add_argument("--site", help="its site; else the first of the store")
    parser.add_argument("--encoder", choices=("text", "text-large"), default="text")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--against", type=Path, metavar="CHECKOUT", help="another checkout of waygraph")
    parser.add_argument("--python", help="the interpreter of its environment; else this one")
    parser.add_argument("--save", action="store_true", help="write bench/results/query-time.json")
    parser.add_argument("--one", nargs=2, type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    options.site = options.site or Store.open(options.store).sites()[0]
    if options.one:
        found, vectors = measure(options, json.loads(options.one[0].read_text()))
        np.save(options.one[1], vectors)
        print(json.dumps(found))
        return
    rows = compare(options)
    if options.save:
        from bench.result_files import RESULTS, processor, run_info, write_result

        write_result(RESULTS / "query-time.json", {**run_info(), **processor(), "site": options.site, "rows": rows})


if __name__ == "__main__":
    main()
