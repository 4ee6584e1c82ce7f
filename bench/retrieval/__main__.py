"""Benchmark of retrieval: the `text` encoder beside simpler systems, on nine mapped sites.

    python -m bench.retrieval --store FOLDER [--split dev|test] [--only SITE ...] [--pages] [--encoder NAME]
        [--words WEIGHT ...] [--weights FOLDER ...] [--misses RANK] [--save]

Maps are made once, by `python -m bench.retrieval.maps --store FOLDER`; `README.md` says how queries and targets are
written. Scores are exact MaxSim within a site. Tune on dev; test is for the numbers that are reported. `--save` also
writes bench/results/retrieval-SPLIT.json, with `--pages` retrieval-SPLIT-pages.json.
"""

from __future__ import annotations

import argparse
import statistics
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from bench.result_files import RESULTS, run_info, write_result
from bench.retrieval.embeddings import RememberingEncoder, identity, remembering_encoder
from bench.retrieval.maps import names
from bench.retrieval.metrics import METRICS, RESAMPLES, area_under_curve, bootstrap, ranks_of
from bench.retrieval.queries import FOLDER, PAGES
from bench.retrieval.systems import Corpus, System, bm25, dense, encoded, prototype, read_corpus, served, with_words
from waygraph.core.settings import Settings
from waygraph.index.catalog.lexical import WORDS_WEIGHTS
from waygraph.pipeline.encode.protocol import Encoder
from waygraph.pipeline.encode.registry import create_encoder
from waygraph.pipeline.encode.text.weights import MODELS

BM25, DENSE, PROTOTYPE, UNNAMED, MAXSIM, REPEATED, UNADAPTED, TEXT = (
    "BM25 over text segments",
    "dense MiniLM, one vector a state",
    "prototype: composites + p",
    "text, without names and words",
    "text, MaxSim alone",
    "text, repeats not lowered",
    "text, without adapters",
    "text",
)

#: Ranks of all targets, best first, of each answerable question, by site.
Ranks = Mapping[str, Sequence[list[float]]]


def measure(system: System, corpora: Sequence[Corpus]) -> dict[str, Any]:
    """Measure a system on all questions whose page is mapped.

    Returns
    -------
    dict[str, Any]
        `ranks` by site, `plain`: ranks with plain states alone as targets, `no-answer AUC` (None without unanswerable
        questions), and `hubs`: the number of questions whose first hit is wrong, and of those whose first hit links to
        a right state.
    """
    ranks: dict[str, list[list[float]]] = {}
    plain: dict[str, list[list[float]]] = {}
    answered, unanswerable = [], []
    wrong = hubs = 0
    for corpus in corpora:
        questions = [question for question in corpus.questions if question.targets or not question.is_answerable]
        scores = system(corpus, [question.query.ask for question in questions])
        ranks[corpus.name], plain[corpus.name] = [], []
        for question, row in zip(questions, scores, strict=True):
            if question.targets:
                ranks[corpus.name].append(ranks_of(question.targets, row))
                plain[corpus.name].append(ranks_of(question.plain, row))
                answered.append(float(row.max()))
                if (first := int(row.argmax())) not in question.targets:
                    wrong += 1
                    hubs += bool(corpus.linked(first) & question.targets)
            else:
                unanswerable.append(float(row.max()))
    return {
        "ranks": ranks,
        "plain": plain,
        "no-answer AUC": area_under_curve(answered, unanswerable) if unanswerable else None,
        "hubs": {"wrong": wrong, "hubs": hubs},
    }


def summary(ranks: Ranks) -> dict[str, float]:
    """Every metric over all questions."""
    every = [found for site in ranks.values() for found in site]
    return {name: statistics.fmean(metric(found) for found in every) for name, metric in METRICS.items()}


def by_style(corpora: Sequence[Corpus], ranks: Ranks) -> dict[str, dict[str, float]]:
    """Every metric for the questions of each style."""
    found: dict[str, list[list[float]]] = {}
    for corpus in corpora:
        asked = [question for question in corpus.questions if question.targets]
        for question, of_targets in zip(asked, ranks[corpus.name], strict=True):
            found.setdefault(question.query.style, []).append(of_targets)
    return {style: summary({style: found[style]}) for style in sorted(found)}


def compare(better: Ranks, other: Ranks) -> dict[str, list[float]]:
    """Mean paired differences with their 95% intervals, by metric."""
    return {
        name: list(
            bootstrap(
                {
                    site: [metric(a) - metric(b) for a, b in zip(better[site], other[site], strict=True)]
                    for site in other
                }
            )
        )
        for name, metric in METRICS.items()
    }


def systems(encoder: RememberingEncoder) -> dict[str, System]:
    """Return the compared systems, by name."""
    text = encoder.text
    return {
        BM25: bm25,
        DENSE: dense(encoder.models[0]),
        PROTOTYPE: prototype(encoder.models[0]),
        UNNAMED: encoded(text, named=False),
        MAXSIM: encoded(text),
        REPEATED: with_words(encoded(text)),
        UNADAPTED: served(encoded(encoder.plain)),
        TEXT: served(encoded(text)),
    }


def other_systems(name: str, words: Sequence[float], store: Path) -> tuple[dict[str, System], list[RememberingEncoder]]:
    """Return an encoder with MaxSim alone, with words as served, with other weights of words; and what remembers."""
    encoder: Encoder
    remembering = []
    if name in MODELS:
        remembering.append(remembering_encoder(name, store))
        encoder = remembering[0].text
    else:
        encoder = create_encoder(Settings(encode={"encoder": name}).encode)
    found = {f"{name}, MaxSim alone": encoded(encoder)}
    if name in WORDS_WEIGHTS:
        found[name] = served(encoded(encoder), name)
    return found | {
        f"{name}, words at {weight:g}": with_words(encoded(encoder), weight) for weight in words
    }, remembering


def print_parts(parts: Mapping[str, Mapping[str, Mapping[str, float]]]) -> None:
    for name, by_part in parts.items():
        for part, values in by_part.items():
            shown = ", ".join(f"{metric} {value:.3f}" for metric, value in values.items())
            print(f"{name}, {part or 'of the first sites'}: {shown}")


def print_misses(corpora: Sequence[Corpus], ranks: Ranks, beyond: int) -> None:
    for corpus in corpora:
        asked = [q for q in corpus.questions if q.targets]
        for question, found in zip(asked, ranks[corpus.name], strict=True):
            if found[0] > beyond:
                print(f"  {corpus.name} {found[0]:g}: {question.query.ask} -> {'; '.join(question.query.at)}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--store", type=Path, default=Path("retrieval-maps"), help="where bench.retrieval.maps has put the maps"
    )
    parser.add_argument("--split", choices=("dev", "test"), default="dev")
    parser.add_argument("--only", nargs="*", metavar="SITE", help="these sites of the split alone")
    parser.add_argument(
        "--pages", action="store_true", help="ask about nearly every page instead (questions/pages; some sites of dev)"
    )
    parser.add_argument("--encoder", nargs="*", default=[], help="encoders to measure besides `text`")
    parser.add_argument(
        "--words", nargs="*", type=float, default=[], help="weights of words to try with the encoders of --encoder"
    )
    parser.add_argument(
        "--weights",
        nargs="*",
        type=Path,
        default=[],
        metavar="FOLDER",
        help="other weights of `text`; each is named after its folder",
    )
    parser.add_argument("--misses", type=int, metavar="RANK", help="list questions answered beyond this rank")
    parser.add_argument(
        "--save", action="store_true", help="write bench/results/retrieval-SPLIT.json, with --only a file of its own"
    )
    arguments = parser.parse_args()

    questions = PAGES if arguments.pages else FOLDER
    asked = [name for name in names(arguments.split) if (questions / f"{name}.yaml").exists()]
    sites = [name for name in asked if name in (arguments.only or asked)]
    corpora = [read_corpus(name, arguments.store, questions) for name in sites]
    remembering = [remembering_encoder("text", arguments.store)]
    text, compared = remembering[0].text, systems(remembering[0])
    for folder in arguments.weights:
        remembering.append(remembering_encoder("text", arguments.store, folder))
        trained = encoded(remembering[-1].text)
        compared |= {f"{folder.name}, MaxSim alone": trained, folder.name: served(trained)}
    for name in arguments.encoder:
        others, more = other_systems(name, arguments.words, arguments.store)
        compared |= others
        remembering += more
    measured = {}
    for corpus in corpora:
        lacking = sum(question.is_answerable and not question.targets for question in corpus.questions)
        print(f"{corpus.name}: {len(corpus.questions)} queries, the pages of {lacking} are not in the map")
    print(f"{'':34}" + "".join(f"{name:>10}" for name in METRICS) + f"{'no-ans.':>9}{'hubs':>9}", flush=True)
    for name, system in compared.items():
        measured[name] = measure(system, corpora)
        for each in remembering:
            each.save()
        row = "".join(f"{value:10.3f}" for value in summary(measured[name]["ranks"]).values())
        hubs = "{hubs}/{wrong}".format_map(measured[name]["hubs"])
        told_apart = measured[name]["no-answer AUC"]
        print(f"{name:<34}{row}{'-' if told_apart is None else f'{told_apart:.3f}':>9}{hubs:>9}", flush=True)
    ours = measured[TEXT]["ranks"]
    differences = {name: compare(ours, result["ranks"]) for name, result in measured.items() if name != TEXT}
    for name, by_metric in differences.items():
        shown = ", ".join(f"{m} {d:+.3f} [{low:+.3f}, {high:+.3f}]" for m, (d, low, high) in by_metric.items())
        print(f"text - {name}: {shown}")
    by_site = {
        system: {site: summary({site: found}) for site, found in measured[system]["ranks"].items()}
        for system in (
            TEXT,
            *(folder.name for folder in arguments.weights),
            *(name for name in arguments.encoder if name in measured),
        )
    }
    styles = by_style(corpora, ours)
    print_parts({**by_site, "text, style": styles})
    print(f"text, plain states alone: {summary(measured[TEXT]['plain'])}")
    if arguments.misses is not None:
        print_misses(corpora, ours, arguments.misses)
    if arguments.save:
        result = {
            **run_info(),
            "split": arguments.split,
            **identity(text),
            "states": {corpus.name: len(corpus.observations) for corpus in corpora},
            "questions": {name: len(found) for name, found in ours.items()},
            "questions whose page is not in the map": {
                corpus.name: sum(question.is_answerable and not question.targets for question in corpus.questions)
                for corpus in corpora
            },
            "systems": {
                name: {**summary(found["ranks"]), "no-answer AUC": found["no-answer AUC"], **found["hubs"]}
                for name, found in measured.items()
            },
            "text, plain states alone": summary(measured[TEXT]["plain"]),
            **{f"{system} by site": sites for system, sites in by_site.items()},
            "text by style": styles,
            f"text minus others, mean and 95% interval of {RESAMPLES} paired resamples": differences,
        }
        part = ("-pages" if arguments.pages else "") + "".join(f"-{name}" for name in sites if arguments.only)
        write_result(RESULTS / f"retrieval-{arguments.split}{part}.json", _rounded(result))


def _rounded(value: Any) -> Any:
    if isinstance(value, float):
        return round(value, 4)
    if isinstance(value, dict):
        return {key: _rounded(each) for key, each in value.items()}
    return [_rounded(each) for each in value] if isinstance(value, list) else value


if __name__ == "__main__":
    main()
