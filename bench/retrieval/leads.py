"""Benchmark of leads beside states: whether searches still find the pages that were visited, and what leads add.

    python -m bench.retrieval.leads --store FOLDER --sites NAME ... [--states N] [--factors]
        [--save]

Asks the questions of `questions/` and those of `bench.function_pages` of maps that `bench.retrieval.maps` made, with
the MaxSim of the `text` encoder and with words, and compares each ranking with leads with the same one without. As in
the service, the 200 best by MaxSim get words, and further states of a URL are lowered. `--factors` adds other ways to
count leads. `--states N` takes the maps that `bench.retrieval.maps --states N` made: the fewer states, the more pages
are leads. `--save` replaces the rows of these maps in bench/results/lead-words.json.
"""

from __future__ import annotations

import argparse
import json
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from bench import function_pages
from bench.result_files import RESULTS, run_info, write_result
from bench.retrieval.embeddings import identity, remembering_encoder
from bench.retrieval.maps import open_map
from bench.retrieval.metrics import Scores, bootstrap, ranks_of
from bench.retrieval.queries import Target, read_queries, resolve
from bench.retrieval.systems import lowered_repeats, maxsim
from waygraph.index.catalog.lexical import (
    LEAD_FACTOR,
    LEAD_PENALTIES,
    WORDS_CANDIDATES,
    WORDS_WEIGHTS,
    LexicalIndex,
    lead_texts,
    state_texts,
)
from waygraph.index.graph import Lead, Node
from waygraph.index.store import MapVersion
from waygraph.pipeline.encode.text.encoder import TextEncoder
from waygraph.pipeline.jobs.publishing.draft import encode_map
from waygraph.serve.select.confidence import TEXT_LEVELS
from waygraph.serve.select.no_match import TEXT_THRESHOLD

RESULT = RESULTS / "lead-words.json"


@dataclass(frozen=True)
class Asked:
    """A question, and the pages that answer it as columns: states first, then leads. Without any: unanswerable.

    `source` is the list that the question is from.
    """

    ask: str
    source: str
    states: frozenset[int]
    leads: frozenset[int]


@dataclass(frozen=True)
class Variant:
    """How leads take part in a search.

    Attributes
    ----------
    name
        For the report.
    words
        Weight of the words of the query.
    leads
        Factor of the words of leads; None: without leads.
    counted
        Whether leads count for the rarity of words and the mean length.
    vectors
        Factor of the vectors of leads.
    penalty
        What is subtracted from the score of a lead that shows none of the query's words.
    """

    name: str
    words: float
    leads: float | None
    counted: bool = False
    vectors: float = LEAD_FACTOR
    penalty: float = 0.0


MAXSIM_ALONE = Variant("MaxSim, no leads", 0.0, None)
MAXSIM = Variant("MaxSim, leads", 0.0, 1.0)
ALONE = Variant("words, no leads", WORDS_WEIGHTS["text"], None)
SERVED = Variant("words, leads", WORDS_WEIGHTS["text"], LEAD_FACTOR, penalty=LEAD_PENALTIES["text"])
#: What was tried: leads counted as documents like states, other factors, and other penalties. Those with other factors
#: have no penalty.
TRIED = (
    Variant("words, leads counted", WORDS_WEIGHTS["text"], 1.0, counted=True),
    Variant("words, leads counted, x 0.7", WORDS_WEIGHTS["text"], 0.7, counted=True),
    Variant("MaxSim, leads not lowered", 0.0, 1.0, vectors=1.0),
    Variant("words, leads not lowered", WORDS_WEIGHTS["text"], 1.0, vectors=1.0),
    *(Variant(f"words, leads x {factor:g}", WORDS_WEIGHTS["text"], factor) for factor in (1.0, 0.85, 0.5, 0.25, 0.0)),
    *(
        Variant(f"words, leads - {penalty:g}", WORDS_WEIGHTS["text"], LEAD_FACTOR, penalty=penalty)
        for penalty in (0.0, 0.05, 0.07, 0.09, 0.12)
    ),
)


class AskedMap:
    """The questions about a map, with what every variant adds up: MaxSim and shares of words of states and leads."""

    def __init__(self, name: str, version: MapVersion, text: TextEncoder) -> None:
        self.name = name
        self.states = len(version.graph)
        self.leads = len(version.leads)
        self.questions = _questions(name, version)
        asks = [question.ask for question in self.questions]
        self.maxsim = _maxsim(version, text, asks)
        self._nodes: list[Node | Lead] = [*version.graph.nodes.values(), *version.leads.values()]
        pages = state_texts(version.graph, version.observations)
        leads = lead_texts(version.leads.values())
        self._shares = {
            counted: _shares(
                LexicalIndex({**pages, **leads}) if counted else LexicalIndex(pages, leads), asks, pages, leads
            )
            for counted in (False, True)
        }
        self._alone = _shares(LexicalIndex(pages), asks, pages, {})

    def scores(self, variant: Variant) -> Scores:
        """Return the scores of shape (questions, states and leads); -inf for what a search does not score."""
        found = self.maxsim.copy()
        found[:, self.states :] *= variant.vectors / LEAD_FACTOR
        if variant.leads is None:
            found[:, self.states :] = -np.inf
        if not variant.words:
            return found
        last = min(WORDS_CANDIDATES, found.shape[1]) - 1
        found[found < -np.partition(-found, last, axis=1)[:, [last]]] = -np.inf
        if variant.leads is None:
            found[:, : self.states] += variant.words * self._alone
            return lowered_repeats(found, self._nodes)
        shares = self._shares[variant.counted].copy()
        shares[:, self.states :] *= variant.leads
        found += variant.words * shares
        found[:, self.states :] -= variant.penalty * (1 - self._shares[variant.counted][:, self.states :])
        return lowered_repeats(found, self._nodes)


def _questions(name: str, version: MapVersion) -> list[Asked]:
    """Return the questions about a site. Leads answer those whose target is a path without further conditions."""
    urls = [node.url for node in version.graph.nodes.values()]
    leads = [lead.url for lead in version.leads.values()]
    asked = []
    for question in resolve(read_queries(name), version.graph, version.observations):
        paths = [target for target in map(Target.parse, question.query.at) if not (target.shows or target.hides)]
        found = {i for i, url in enumerate(leads, len(urls)) if any(target.is_at(url) for target in paths)}
        if question.targets or found or not question.is_answerable:
            asked.append(Asked(question.query.ask, "questions", question.targets, frozenset(found)))
    for page in function_pages.load(name):
        states = frozenset(i for i, url in enumerate(urls) if page.is_at(url))
        found = {i for i, url in enumerate(leads, len(urls)) if page.is_at(url)}
        if states or found:
            asked.append(Asked(page.question, "function pages", states, frozenset(found)))
    return asked


def _maxsim(version: MapVersion, text: TextEncoder, asks: Sequence[str]) -> Scores:
    """Return MaxSim of shape (questions, states and leads)."""
    found = encode_map(version.graph, version.observations.values(), version.leads.values(), text)
    pages = [*(found.pages[name] for name in version.graph.nodes), *(found.lead_pages[name] for name in version.leads)]
    return maxsim(text.encode_queries(asks), [page.vectors for page in pages])


def _shares(
    index: LexicalIndex, asks: Sequence[str], pages: Mapping[str, object], leads: Mapping[str, object]
) -> Scores:
    return np.stack([index.scores(ask, (*pages, *leads)) for ask in asks])


def best_rank(asked: Asked, row: Scores) -> float:
    """Return the rank of the best page that answers a question; infinite if none is scored."""
    columns = [column for column in asked.states | asked.leads if np.isfinite(row[column])]
    return ranks_of(columns, row)[0] if columns else float("inf")


def measure(maps: Sequence[AskedMap], variants: Sequence[Variant]) -> dict[str, Any]:
    """Return recall, paired differences, confidence and flags of each variant.

    Parameters
    ----------
    maps
        The maps with their questions.
    variants
        The variants; each is compared with that of the same weight of words without leads.

    Returns
    -------
    dict
        By variant.
    """
    ranks = {
        variant: {
            each.name: [best_rank(asked, row) for asked, row in zip(each.questions, each.scores(variant), strict=True)]
            for each in maps
        }
        for variant in variants
    }
    found: dict[str, Any] = {}
    for variant in variants:
        base = ranks[ALONE if variant.words else MAXSIM_ALONE]
        found[variant.name] = {
            **{source: _visited(maps, ranks[variant], base, source) for source in ("questions", "function pages")},
            "leads alone": _recall(
                [
                    rank
                    for each in maps
                    for asked, rank in zip(each.questions, ranks[variant][each.name], strict=True)
                    if asked.leads and not asked.states
                ]
            ),
            **(_scores_shown(maps, variant) if variant.words else {}),
        }
    return found


def _recall(ranks: Sequence[float]) -> dict[str, float]:
    if not ranks:
        return {"n": 0}
    shares = {f"recall@{k}": statistics.fmean(rank <= k for rank in ranks) for k in (1, 10)}
    return {"n": len(ranks), **shares}


def _visited(
    maps: Sequence[AskedMap],
    ranks: Mapping[str, Sequence[float]],
    base: Mapping[str, Sequence[float]],
    source: str,
) -> dict[str, Any]:
    """Return recall of the questions whose page was visited, and its difference from that without leads."""
    pairs = {
        each.name: [
            (rank, before)
            for asked, rank, before in zip(each.questions, ranks[each.name], base[each.name], strict=True)
            if asked.source == source and asked.states
        ]
        for each in maps
    }
    pairs = {name: found for name, found in pairs.items() if found}
    result: dict[str, Any] = _recall([rank for found in pairs.values() for rank, _ in found])
    for k in (1, 10):
        changes = {name: [float(a <= k) - float(b <= k) for a, b in found] for name, found in pairs.items()}
        if changes:
            flat = [change for each in changes.values() for change in each]
            result[f"recall@{k}, minus without leads"] = list(bootstrap(changes))
            result[f"recall@{k}, lost and won"] = [flat.count(-1.0), flat.count(1.0)]
    return result


def _scores_shown(maps: Sequence[AskedMap], variant: Variant) -> dict[str, Any]:
    """Return how often the first hit is right at each level of confidence, and how often the flag is set."""
    lists = ("questions", "function pages")
    right: dict[tuple[str, float], list[bool]] = {(each, least): [] for each in lists for least, _ in TEXT_LEVELS}
    flagged: dict[bool, list[bool]] = {True: [], False: []}
    for each in maps:
        for asked, row in zip(each.questions, each.scores(variant), strict=True):
            first, second = np.argsort(-row, kind="stable")[:2]
            answers = asked.states | asked.leads
            if asked.states:  # as the levels were fitted: the page is in the map
                level = next(least for least, _ in TEXT_LEVELS if row[first] - row[second] >= least)
                right[asked.source, level].append(int(first) in answers)
            if asked.states or not answers:
                flagged[bool(answers)].append(bool(row[first] < TEXT_THRESHOLD))
    return {
        "confidence": [
            {
                "least lead": least,
                "served": served,
                **{f"right, of {each}": [sum(right[each, least]), len(right[each, least])] for each in lists},
            }
            for least, served in TEXT_LEVELS
        ],
        "flagged of those without an answer": [sum(flagged[False]), len(flagged[False])],
        "flagged of those with one": [sum(flagged[True]), len(flagged[True])],
    }


def table(result: Mapping[str, Any]) -> str:
    """Return the variants as lines of text."""
    lines = [f"{'':30}{'questions @1 @10 lost/won':>36}{'function pages':>36}{'leads alone':>22}"]
    for name, each in result.items():
        shown = []
        for source in ("questions", "function pages"):
            found = each[source]
            changes = "  ".join("{}/{}".format(*found.get(f"recall@{k}, lost and won", (0, 0))) for k in (1, 10))
            shown.append(f"{found.get('recall@1', 0):.3f} {found.get('recall@10', 0):.3f} {changes} of {found['n']}")
        alone = each["leads alone"]
        shown.append(f"{alone.get('recall@1', 0):.3f} {alone.get('recall@10', 0):.3f} of {alone['n']}")
        lines.append(f"{name:30}{shown[0]:>36}{shown[1]:>36}{shown[2]:>22}")
    return "\n".join(lines)


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--store", type=Path, default=Path("retrieval-maps"))
    parser.add_argument("--sites", nargs="+", default=["wagtail", "fossil", "dokuwiki"])
    parser.add_argument("--states", type=int, help="take the maps of at most this many states")
    parser.add_argument("--factors", action="store_true", help="measure also what was tried, over all these sites")
    parser.add_argument("--save", action="store_true", help="replace these rows in bench/results/lead-words.json")
    options = parser.parse_args()

    remembering = remembering_encoder("text", options.store)
    text = remembering.text
    maps = [AskedMap(name, open_map(name, options.store, options.states), text) for name in options.sites]
    remembering.save()
    main_variants = (MAXSIM_ALONE, MAXSIM, ALONE, SERVED)
    rows = []
    for group in (*([each] for each in maps), *([maps] if len(maps) > 1 else [])):
        tried = TRIED if options.factors and len(group) == len(maps) else ()
        result = measure(group, (*main_variants, *tried))
        name = ", ".join(each.name for each in group)
        print(f"{name}: {sum(m.states for m in group)} states, {sum(m.leads for m in group)} leads\n{table(result)}\n")
        sizes = {each.name: {"states": each.states, "leads": each.leads} for each in group}
        about = {**identity(text), **run_info()}
        rows.append({"sites": name, "limit": options.states, "maps": sizes, "variants": _rounded(result), **about})
    print(json.dumps({k: v for k, v in rows[-1]["variants"][SERVED.name].items() if k != "questions"}))
    if options.save:
        done = {(row["sites"], row["limit"]) for row in rows}
        before = json.loads(RESULT.read_text(encoding="utf-8"))["results"] if RESULT.exists() else []
        kept_rows = [row for row in before if (row["sites"], row["limit"]) not in done]
        write_result(RESULT, {"results": [*kept_rows, *rows]})


def _rounded(value: Any) -> Any:
    if isinstance(value, float):
        return round(value, 4)
    if isinstance(value, dict):
        return {key: _rounded(each) for key, each in value.items()}
    return [_rounded(each) for each in value] if isinstance(value, list) else value


if __name__ == "__main__":
    main()
