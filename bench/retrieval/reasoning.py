"""Benchmark of steps around retrieval: the `rule` selector, shorter questions, and the answer "nothing matches".

    python -m bench.retrieval.reasoning --store FOLDER [--split dev|test] [--encoder text-large]
        [--save]

Retrieval is that of `text`, or of the encoder of --encoder, first 30 of a site, as `POST /v1/navigate` takes them. On
dev every weight of the grid is tried; on test only the default (`RuleWeights()`, the committed thresholds), once. Ways
cost what they cost from anywhere, by loading a URL. `--save` writes bench/results/reasoning-SPLIT.json, for
`text-large` reasoning-SPLIT-text-large.json.
"""

from __future__ import annotations

import argparse
import itertools
import json
import re
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from bench.result_files import RESULTS, run_info, write_result
from bench.retrieval.__main__ import compare, summary
from bench.retrieval.embeddings import identity, remembering_encoder
from bench.retrieval.maps import names
from bench.retrieval.metrics import Scores, area_under_curve, ranks_of
from bench.retrieval.queries import Question
from bench.retrieval.systems import Corpus, encoded, read_corpus, served
from waygraph.core.errors import NoPath
from waygraph.core.schemas import Hit
from waygraph.index.graph.paths import PathFinder
from waygraph.pipeline.encode.text.encoder import TextEncoder
from waygraph.pipeline.encode.text.weights import MODELS
from waygraph.serve.select import RetrievedState
from waygraph.serve.select import SelectionQuery as Asked
from waygraph.serve.select.confidence import LEVELS, TEXT_LEVELS
from waygraph.serve.select.no_match import THRESHOLDS
from waygraph.serve.select.rule import RuleSelector, RuleWeights

#: Candidates that a selector gets.
K = 30
#: Tried on dev, all combinations.
GRID = {
    "words": (0.0, 0.02, 0.05, 0.1, 0.2, 0.3),
    "cost": (0.0, 0.01, 0.03, 0.1),
}
#: Of the answerable dev questions, so many may be said to have no answer.
FALSE_FLAGS = 0.05

#: What questions begin with that says nothing about the page.
STOP_PHRASES = re.compile(
    r"""^\s*(?:please\s+)?(?:
      (?:where|how)\s+(?:can|do|could|may|should|would)\s+(?:i|we|one|you)\s+(?:find|see|get\s+to|go\s+to|look\s+at)?
    | where\s+(?:is|are)(?:\s+the)?
    | (?:show|take|bring|lead)\s+me\s+(?:to\s+)?(?:the\s+)?
    | (?:i|we)\s+(?:want|need|would\s+like)\s+to\s+(?:see|find|go\s+to)?
    | (?:the\s+|a\s+)?(?:page|screen|place|list|panel|view)\s+
      (?:where|with|of|that\s+(?:shows|lists|says|has))(?:\s+i\s+can)?
    | (?:see|find|look\s+(?:at|over|for)|open|browse|find\s+out\s+whether|find\s+answers\s+about)\b
    )\s*""",
    re.IGNORECASE | re.VERBOSE,
)


@dataclass(frozen=True)
class Run:
    """The questions of a split on one site with the scores of all states."""

    corpus: Corpus
    questions: tuple[Question, ...]
    scores: Scores
    costs: tuple[float | None, ...]


def stripped(ask: str) -> str:
    """Return a question without its opening phrase; the question itself if nothing else is left.

    >>> stripped("Where can I find unpaid orders"), stripped("where is")
    ('unpaid orders', 'where is')
    """
    return STOP_PHRASES.sub("", ask, count=1).strip() or ask


def runs(corpora: Sequence[Corpus], text: TextEncoder, rewrite: Callable[[str], str] = lambda ask: ask) -> list[Run]:
    """Score all states for all questions whose page is mapped, and for those without an answer."""
    found = []
    for corpus in corpora:
        questions = tuple(question for question in corpus.questions if question.targets or not question.is_answerable)
        scores = served(encoded(text), text.name)(corpus, [rewrite(question.query.ask) for question in questions])
        finder = PathFinder(corpus.graph)
        costs = tuple(_cost(finder, node_id) for node_id in corpus.graph.nodes)
        found.append(Run(corpus, questions, scores, costs))
    return found


def _cost(finder: PathFinder, node_id: str) -> float | None:
    try:
        return finder.cheapest_path(None, node_id).cost_ms
    except NoPath:
        return None


def top1(measured: Sequence[Run]) -> dict[str, list[list[float]]]:
    """Ranks of the targets as retrieval has them."""
    return {
        run.corpus.name: [
            ranks_of(question.targets, row)
            for question, row in zip(run.questions, run.scores, strict=True)
            if question.targets
        ]
        for run in measured
    }


def ruled(measured: Sequence[Run], weights: RuleWeights) -> dict[str, list[list[float]]]:
    """Return the ranks of the targets after reranking the first `K`."""
    rule, ranks = RuleSelector(weights), {}
    for run in measured:
        of_site = []
        for question, row in zip(run.questions, run.scores, strict=True):
            if not question.targets:
                continue
            first = np.argsort(-row, kind="stable")[:K]
            order = rule.rank(Asked(question.query.ask), [_candidate(run, int(i), float(row[i])) for i in first])
            anew = row.astype(float).copy()
            anew[first[order]] = row.max() + np.arange(len(first), 0, -1)
            of_site.append(ranks_of(question.targets, anew))
        ranks[run.corpus.name] = of_site
    return ranks


def _candidate(run: Run, number: int, score: float) -> RetrievedState:
    seen = run.corpus.observations[number]
    hit = Hit(rank=1, node_id=seen.node_id, url=seen.url, title=seen.title, score=score)
    return RetrievedState(hit, tuple(s.text for s in seen.segments), lambda: None, lambda: run.costs[number])


def best_scores(measured: Sequence[Run]) -> tuple[list[float], list[float]]:
    """Return the best state's score of each answerable and of each unanswerable question."""
    every = [(q, float(row.max())) for run in measured for q, row in zip(run.questions, run.scores, strict=True)]
    return [score for q, score in every if q.targets], [score for q, score in every if not q.targets]


def flags(measured: Sequence[Run], threshold: float) -> dict[str, Any]:
    """Return the precision and recall of the flag `nothing_matches` at a threshold."""
    answerable, unanswerable = best_scores(measured)
    return {
        "threshold": threshold,
        "no-answer AUC": area_under_curve(answerable, unanswerable),
        "flagged of those without an answer": [sum(s < threshold for s in unanswerable), len(unanswerable)],
        "flagged of those with one": [sum(s < threshold for s in answerable), len(answerable)],
    }


def confidence_levels(measured: Sequence[Run], levels: Sequence[tuple[float, float]]) -> list[dict[str, Any]]:
    """Return for each level of confidence how often the first hit is right, of the questions whose page is mapped."""
    right: dict[float, list[bool]] = {least: [] for least, _ in levels}
    for run in measured:
        for question, row in zip(run.questions, run.scores, strict=True):
            if question.targets:
                first, second = np.argsort(-row, kind="stable")[:2]
                level = next(least for least in right if row[first] - row[second] >= least)
                right[level].append(int(first) in question.targets)
    served = dict(levels)
    return [
        {
            "least lead": least,
            "questions": len(found),
            "first hit right": float(np.mean(found)),
            "served": served[least],
        }
        for least, found in right.items()
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--store", type=Path, default=Path("retrieval-maps"))
    parser.add_argument("--split", choices=("dev", "test"), default="dev")
    parser.add_argument("--encoder", choices=sorted(MODELS), default="text")
    parser.add_argument("--save", action="store_true", help="write bench/results/reasoning-SPLIT.json")
    options = parser.parse_args()

    corpora = [read_corpus(name, options.store) for name in names(options.split)]
    remembering = remembering_encoder(options.encoder, options.store)
    text = remembering.text
    plain = runs(corpora, text)
    base = top1(plain)
    result: dict[str, Any] = {
        **run_info(),
        **identity(text),
        "split": options.split,
        "top1": summary(base),
    }
    if options.split == "dev":  # it won nothing there, so there is nothing to report on test
        short = top1(runs(corpora, text, stripped))
        changed = sum(stripped(q.query.ask) != q.query.ask for run in plain for q in run.questions)
        result["stripping"] = {"questions changed": changed, **summary(short)}
        result["stripping, minus top1"] = compare(short, base)
    remembering.save()
    tried = [RuleWeights(*values) for values in itertools.product(*GRID.values())] if options.split == "dev" else []
    by_weights = {weights: ruled(plain, weights) for weights in (RuleWeights(), *tried)}
    values = {weights: summary(ranks) for weights, ranks in by_weights.items()}
    best = max(values, key=lambda weights: (values[weights]["mrr"], values[weights]["recall@1"]))
    for name, chosen in {"rule, as served": RuleWeights(), "rule, best of the grid": best}.items():
        if name == "rule, as served" or tried:
            result[name] = {"weights": asdict(chosen), **values[chosen]}
            result[f"{name}, minus top1"] = compare(by_weights[chosen], base)
    if tried:
        threshold = float(np.quantile(best_scores(plain)[0], FALSE_FLAGS))
        result["nothing matches, fitted"] = flags(plain, round(threshold, 3))
    if text.fingerprint in THRESHOLDS:
        result["nothing matches, as served"] = flags(plain, THRESHOLDS[text.fingerprint])
    result["confidence"] = confidence_levels(plain, LEVELS.get(text.fingerprint, TEXT_LEVELS))
    result = _rounded(result)
    print(json.dumps(result, indent=2))
    if options.save:
        other = "" if text.name == "text" else f"-{text.name}"
        write_result(RESULTS / f"reasoning-{options.split}{other}.json", result)


def _rounded(value: Any) -> Any:
    if isinstance(value, float):
        return round(value, 4)
    if isinstance(value, dict):
        return {key: _rounded(each) for key, each in value.items()}
    return [_rounded(each) for each in value] if isinstance(value, list) else value


if __name__ == "__main__":
    main()
