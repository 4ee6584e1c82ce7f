"""Does a question find its page state? Recall and MRR of the text encoder on a mapped site, beside simpler recipes.

    python -m bench.retrieval [--store maps --site 127.0.0.1:8000] [--questions FILE] [--save]

Questions are descriptions of what a state is for, committed before any encoder saw them
(tests/ground_truth/descriptions.json); their targets are named by the hand-written ground truth, and recognised in
the map by URL and texts. Scores are exact MaxSim. `--save` also writes bench/results/retrieval.json.

How clean the numbers are: the recipe was fixed before the questions were read, except for the passages, added after it
had missed its target (recall@1 0.6, recall@5 0.9); they are the usual chunking of passage retrieval. A glossary of page
names, written after reading the questions, did no better and was thrown away.
"""

from __future__ import annotations

import argparse
import asyncio
import datetime as dt
import json
import os
import platform
import statistics
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

import numpy as np
from numpy.typing import NDArray

from index.graph import Observation
from index.store import Store
from index.vectors.exact import maxsim
from pipeline.encode.composites import StateText, describe
from pipeline.encode.counts import clean, count_segments
from pipeline.encode.site_text import SiteText
from pipeline.encode.text import TextEncoder
from pipeline.explore import explore_site
from tests.ground_truth.demo_shop import TrueState, truth
from waygraph.demo_site import DemoSite
from waygraph.settings import EncodeSettings, Settings

QUESTIONS = Path(__file__).parent.parent / "tests" / "ground_truth" / "descriptions.json"

Matrix = NDArray[np.float32]


@dataclass(frozen=True)
class Question:
    """A text, and the states that answer it (any of them)."""

    text: str
    targets: frozenset[str]


@dataclass(frozen=True)
class Site:
    """What recipes are given: every state, in the order of the map, and what the site repeats."""

    observations: Sequence[Observation]
    text: SiteText
    encoder: TextEncoder

    def described(self) -> list[StateText]:
        """All states in words."""
        return [describe(observation, self.text) for observation in self.observations]

    def embed(self, texts: Sequence[str]) -> Matrix:
        """One unit vector per text."""
        return self.encoder.model.embed(texts)


def segments_alone(site: Site) -> list[Matrix]:
    return [site.embed([clean(s.text) for s in o.segments] or [o.title]) for o in site.observations]


def context_alone(site: Site) -> list[Matrix]:
    return [site.embed([state.context]) for state in site.described()]


def composites_alone(site: Site) -> list[Matrix]:
    return [site.embed([row.text for row in state.rows]) for state in site.described()]


def states_not_told_apart(site: Site) -> list[Matrix]:
    context = SiteText(site.text.boilerplate, site.text.titles).to_json()
    return [page.vectors for page in site.encoder.encode_pages(site.observations, context)]


def without_passages(site: Site) -> list[Matrix]:
    return [
        site.embed([row.text for row in state.composites]) + site.embed([state.context]) for state in site.described()
    ]


def encoder_as_it_is(site: Site) -> list[Matrix]:
    return [page.vectors for page in site.encoder.encode_pages(site.observations, site.text.to_json())]


RECIPES: dict[str, Callable[[Site], list[Matrix]]] = {
    "every segment a row": segments_alone,
    "context text alone (p)": context_alone,
    "composites without p": composites_alone,
    "composites + p, URL states not told apart": states_not_told_apart,
    "composites + p, no passages": without_passages,
    "composites and passages + p (the encoder)": encoder_as_it_is,
}


def rank_of(targets: frozenset[str], scores: Mapping[str, float]) -> float:
    """Rank of the best target, from 1; among equal scores the average position."""
    best = max(scores[target] for target in targets)
    better = sum(score > best for score in scores.values())
    equal = sum(score == best for node, score in scores.items() if node not in targets)
    return 1 + better + equal / 2


def summary(ranks: Sequence[float]) -> dict[str, float]:
    return {
        "recall@1": sum(rank <= 1 for rank in ranks) / len(ranks),
        "recall@5": sum(rank <= 5 for rank in ranks) / len(ranks),
        "recall@10": sum(rank <= 10 for rank in ranks) / len(ranks),
        "mrr": statistics.fmean(1 / rank for rank in ranks),
    }


def compare(site: Site, questions: Sequence[Question]) -> tuple[list[dict], dict[str, list[float]]]:
    """One row of numbers, and the rank of each question, per recipe."""
    queries = [site.encoder.encode_query(question.text) for question in questions]
    rows, ranks = [], {}
    for name, recipe in RECIPES.items():
        pages = dict(zip((o.node_id for o in site.observations), recipe(site), strict=True))
        ranks[name] = [
            rank_of(question.targets, {node: maxsim(query, page) for node, page in pages.items()})
            for question, query in zip(questions, queries, strict=True)
        ]
        vectors = statistics.fmean(len(page) for page in pages.values())
        rows.append({"recipe": name, "rows/state": vectors, **summary(ranks[name])})
    return rows, ranks


def cost(observations: Sequence[Observation], questions: Sequence[Question]) -> dict[str, float]:
    """Milliseconds of a fresh encoder: a state (whole site at once), a question (one at a time)."""
    encoder = TextEncoder.load(EncodeSettings())
    encoder.encode_query("the first forward pass pays for setting up")
    began = time.perf_counter()
    encoder.encode_pages(observations, encoder.prepare_site(count_segments(observations)))
    pages = time.perf_counter() - began
    times = []
    for question in questions:
        began = time.perf_counter()
        encoder.encode_query(question.text)
        times.append(1000 * (time.perf_counter() - began))
    return {
        "ms/state": 1000 * pages / len(observations),
        "texts embedded/state": (encoder.model.embedded) / len(observations),
        "ms/question p50": statistics.median(times),
        "ms/question max": max(times),
    }


def load_questions(path: Path, observations: Sequence[Observation]) -> list[Question]:
    """Questions with the ids of their target states.

    Raises
    ------
    SystemExit
        When a target of the ground truth is not in the map, or the map holds two states that look like it.

    """
    known = truth().states
    questions = []
    for entry in json.loads(path.read_text(encoding="utf-8")):
        targets = set()
        for key in entry["target"]:
            nodes = [o.node_id for o in observations if looks_like(o, known[key])]
            if len(nodes) != 1:
                raise SystemExit(f"State '{key}' of the ground truth is {len(nodes)} times in this map.")
            targets.add(nodes[0])
        questions.append(Question(entry["query"], frozenset(targets)))
    return questions


def looks_like(observation: Observation, state: TrueState) -> bool:
    """Whether this is what the ground truth means: same URL and title, shows what it must, hides what it must."""
    parts = urlsplit(observation.url)
    shown = "\n".join(segment.text for segment in observation.segments)
    return (
        parts.path + (f"?{parts.query}" if parts.query else "") == state.path
        and observation.title == state.title
        and all(text in shown for text in state.shows)
        and not any(text in shown for text in state.hides)
    )


def explore_demo_shop() -> list[Observation]:
    """States of the bundled demo shop, as the explorer sees them now."""
    with DemoSite() as shop, tempfile.TemporaryDirectory() as folder:
        store = Store.open(folder, create=True)
        capture = asyncio.run(explore_site(shop.url, settings=Settings(), blobs=store.blobs))
    return [capture.observations[node_id] for node_id in capture.graph.nodes]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--store", help="a store that holds the demo shop; absent: explore the shop first")
    parser.add_argument("--site", help="key of the site in the store (default: the only one)")
    parser.add_argument("--questions", type=Path, default=QUESTIONS)
    parser.add_argument("--save", action="store_true", help="write bench/results/retrieval.json")
    arguments = parser.parse_args()

    if arguments.store:
        store = Store.open(arguments.store)
        version = store.read(arguments.site or store.sites()[0])
        observations = [version.observations[node_id] for node_id in version.graph.nodes]
    else:
        observations = explore_demo_shop()
    questions = load_questions(arguments.questions, observations)
    costs = cost(observations, questions)
    site = Site(observations, SiteText.from_counts(count_segments(observations)), TextEncoder.load(EncodeSettings()))
    rows, ranks = compare(site, questions)

    print(f"{len(observations)} states, {len(questions)} questions, encoder {site.encoder.fingerprint}")
    print(f"{'recipe':<44} {'rows':>5} {'R@1':>6} {'R@5':>6} {'R@10':>6} {'MRR':>6}")
    for row in rows:
        print(
            "{recipe:<44} {rows/state:5.1f} {recall@1:6.3f} {recall@5:6.3f} {recall@10:6.3f} {mrr:6.3f}".format(**row)
        )
    print("Questions that the encoder does not answer first:")
    for question, rank in zip(questions, ranks[list(RECIPES)[-1]], strict=True):
        if rank > 1:
            print(f"  rank {rank:g}: {question.text}")
    print(", ".join(f"{name} {value:.1f}" for name, value in costs.items()))
    if arguments.save:
        result = {
            "date": dt.datetime.now(dt.UTC).date().isoformat(),
            "machine": f"{platform.machine()}, {os.cpu_count()} CPUs, {platform.system()}",
            "states": len(observations),
            "questions": len(questions),
            "encoder": site.encoder.fingerprint,
            "rows": [{k: round(v, 4) if isinstance(v, float) else v for k, v in row.items()} for row in rows],
            "cost": {name: round(value, 2) for name, value in costs.items()},
        }
        target = Path(__file__).parent / "results" / "retrieval.json"
        target.parent.mkdir(exist_ok=True)
        target.write_text(json.dumps(result, indent=2) + "\n", encoding="utf-8")
        print(f"Wrote {target}")


if __name__ == "__main__":
    main()
