"""Benchmark of leads beside states: whether searches still find the pages that were visited, and what leads add.

    python -m bench.retrieval.leads --store FOLDER --sites NAME ... [--states N] [--described]
                                    [--ranks FILE] [--before FILE] [--save]
    python -m bench.retrieval.leads --store FOLDER --sites NAME ... [--states N] --requests FOLDER

Asks the questions of `questions/` and those of `bench.function_pages` of maps that `bench.retrieval.maps` made, as the
service does: each map is encoded with the `text` encoder and published twice, with its leads and without.
`--states N` takes the maps that `bench.retrieval.maps --states N` made: the fewer states, the more pages are leads.
`--described` describes states and leads by the replies in `replies/`, where there is one to a request; those about
leads are in `describe-leads-SITE.jsonl`. `--requests` writes the requests about the leads that questions need, and
about as many others, as a file for a batch service.
`--ranks` writes the rank of each answer, `--before` compares them with those that another build wrote. `--save`
replaces the rows of these maps in bench/results/lead-words.json.
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from bench import function_pages
from bench.result_files import RESULTS, run_info, write_result
from bench.retrieval.embeddings import identity, remembering_encoder
from bench.retrieval.maps import open_map
from bench.retrieval.metrics import SEED, bootstrap
from bench.retrieval.queries import Target, read_queries, resolve
from bench.retrieval.with_model import REPLIES
from waygraph.agents.describe.plan import DescriptionPlan, Per, plan_descriptions
from waygraph.agents.describe.prompt import PageReply
from waygraph.agents.describe.run import publish, take_replies
from waygraph.agents.models.batch_file import batch_lines, read_replies
from waygraph.agents.models.budget import ModelBudget
from waygraph.agents.models.chat import ChatReply
from waygraph.agents.models.structured import request_for
from waygraph.core.settings import ChatSettings, Settings
from waygraph.index.catalog.catalog import Catalog
from waygraph.index.graph import Description
from waygraph.index.store import MapDraft, MapVersion, Store
from waygraph.index.vectors.edge import EdgeIndex
from waygraph.pipeline.encode.text.encoder import TextEncoder
from waygraph.pipeline.jobs.publishing.draft import draft_from_version, encode_map
from waygraph.serve.select.confidence import TEXT_LEVELS
from waygraph.serve.select.no_match import TEXT_THRESHOLD

RESULT = RESULTS / "lead-words.json"
#: Hits that are asked for, and the rank of a page that is not among them.
HITS, NOT_FOUND = 30, 1_000


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
class Answer:
    """The answer to a question: rank of the best right page, score of the first hit and its lead over the second."""

    rank: int
    best: float
    margin: float


def asked_map(name: str, version: MapVersion, text: TextEncoder, *, is_described: bool) -> dict[str, Any]:
    """Return the questions about a map with their ranks, with leads among the hits and without."""
    questions = _questions(name, version)
    found = encode_map(version.graph, version.observations.values(), version.leads.values(), (), text)
    draft = draft_from_version(version, Settings(), found)
    descriptions = _described(name, version) if is_described else {}
    of_states = {node: each for node, each in descriptions.items() if node in version.observations}
    served = _asked(draft, descriptions, questions, version, text)
    alone = _asked(replace(draft, leads={}, lead_pages={}), of_states, questions, version, text)
    rows = [
        {
            "ask": question.ask,
            "source": question.source,
            "visited": bool(question.states),
            "lead": bool(question.leads),
            "rank": answer.rank,
            "rank without leads": without.rank,
            "best": round(answer.best, 4),
            "margin": round(answer.margin, 4),
        }
        for question, answer, without in zip(questions, served, alone, strict=True)
    ]
    described = [len(of_states), len(descriptions) - len(of_states)]
    sizes = {"states": len(version.graph), "leads": len(version.leads), "described states and leads": described}
    return {"site": name, **sizes, "questions": rows}


def _plan(version: MapVersion) -> DescriptionPlan:
    return plan_descriptions(version, Per.STATE, again=True, leads=len(version.leads))


def _described(name: str, version: MapVersion) -> dict[str, Description]:
    """Return the descriptions of states and leads that the replies give."""
    replies: dict[str, ChatReply] = {}
    for file in (REPLIES / f"describe-{name}.jsonl", REPLIES / f"describe-leads-{name}.jsonl"):
        if file.exists():
            replies |= read_replies(file, ChatSettings())
    return take_replies(_plan(version), replies, ModelBudget("the benchmark")).descriptions


def write_requests(name: str, version: MapVersion, folder: Path) -> None:
    """Write the requests about leads that answer questions, and about as many others of the site."""
    questions = _questions(name, version)
    ids = [*version.graph.nodes, *version.leads]
    needed = {ids[i] for question in questions if not question.states for i in question.leads}
    subjects = {each.states[0]: each for each in _plan(version).subjects if each.states[0] in version.leads}
    others = random.Random(SEED).sample(
        sorted(subjects.keys() - needed), k=min(len(needed), len(subjects) - len(needed))
    )
    chosen = {subjects[each].digest: subjects[each] for each in sorted({*needed, *others} & subjects.keys())}
    requests = {digest: request_for(each.request, PageReply) for digest, each in sorted(chosen.items())}
    file = folder / f"describe-leads-{name}.jsonl"
    file.write_text("".join(batch_lines(requests, ChatSettings(model="model"))), encoding="utf-8")
    print(f"{len(requests)} requests in {file}")


def _asked(
    draft: MapDraft,
    descriptions: Mapping[str, Description],
    questions: Sequence[Asked],
    version: MapVersion,
    text: TextEncoder,
) -> list[Answer]:
    """Publish a map to a store of its own, and ask it all questions, as the service does."""
    ids = [*version.graph.nodes, *version.leads]
    answers = []
    with tempfile.TemporaryDirectory() as folder:
        store = Store.open(folder, create=True)
        bare = {node: replace(seen, screenshot="", dom="", aria="") for node, seen in draft.observations.items()}
        store.publish(replace(draft, observations=bare, report={}))
        publish(store, store.read(draft.site), descriptions, text)
        make_index = lambda manifest: EdgeIndex(manifest.encoder.dim)  # noqa: E731
        with closing(Catalog(store, make_index)) as catalog, catalog.open(draft.site) as opened:
            for question, query in zip(questions, text.encode_queries([q.ask for q in questions]), strict=True):
                hits = opened.search(query, HITS, words=question.ask)
                right = {ids[i] for i in question.states | question.leads}
                rank = next((hit.rank for hit in hits if hit.node_id in right), NOT_FOUND)
                answers.append(Answer(rank, hits[0].score, hits[0].score - hits[1].score))
    return answers


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


def summary(maps: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return recall, and what leads change for the questions about visited pages; confidence and flags as served."""
    rows = [row for each in maps for row in each["questions"]]
    found: dict[str, Any] = {}
    for source in ("questions", "function pages"):
        visited = [row for row in rows if row["visited"] and row["source"] == source]
        found[source] = {**_recall(visited), **_changes(maps, source, "rank without leads")}
        found[f"confidence, {source}"] = [[least, served, *_right(visited, least)] for least, served in TEXT_LEVELS]
    found["leads alone"] = _recall([row for row in rows if row["lead"] and not row["visited"]])
    for name, answerable in (("with an answer", True), ("without an answer", False)):
        asked = [row for row in rows if (row["visited"] if answerable else not (row["visited"] or row["lead"]))]
        found[f"flagged, {name}"] = [sum(row["best"] < TEXT_THRESHOLD for row in asked), len(asked)]
    return found


def _recall(rows: Sequence[Mapping[str, Any]]) -> dict[str, float]:
    shares = {f"recall@{k}": statistics.fmean(row["rank"] <= k for row in rows) for k in (1, 10)} if rows else {}
    return {"n": len(rows), **shares}


def _changes(maps: Sequence[Mapping[str, Any]], source: str, base: str) -> dict[str, Any]:
    """Return the questions about visited pages that leave or enter the first hits, against the rank `base`."""
    found: dict[str, Any] = {}
    for k in (1, 10):
        changes = {
            each["site"]: [
                float(row["rank"] <= k) - float(row[base] <= k)
                for row in each["questions"]
                if row["visited"] and row["source"] == source
            ]
            for each in maps
        }
        changes = {site: each for site, each in changes.items() if each}
        if changes:
            flat = [change for each in changes.values() for change in each]
            found[f"recall@{k}, change"] = list(bootstrap(changes))
            found[f"recall@{k}, lost and won"] = [flat.count(-1.0), flat.count(1.0)]
    return found


def _right(rows: Sequence[Mapping[str, Any]], least: float) -> list[int]:
    """Return how many first hits are right of those at a level of confidence, and how many there are."""
    at = [row for row in rows if next(each for each, _ in TEXT_LEVELS if row["margin"] >= each) == least]
    return [sum(row["rank"] == 1 for row in at), len(at)]


def paired(maps: Sequence[Mapping[str, Any]], before: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return lines that compare the ranks of two builds, question by question."""
    ranks = {(each["site"], row["ask"]): row for each in before for row in each["questions"]}
    lines = []
    for name, visited in (("visited pages", True), ("leads alone", False)):
        pairs = [
            (ranks[each["site"], row["ask"]]["rank"], row["rank"])
            for each in maps
            for row in each["questions"]
            if row["visited"] is visited and (row["visited"] or row["lead"]) and (each["site"], row["ask"]) in ranks
        ]
        for k in (1, 10):
            old, new = (sum(pair[i] <= k for pair in pairs) for i in (0, 1))
            lost, won = (sum(a <= k < b for a, b in each) for each in (pairs, [(b, a) for a, b in pairs]))
            lines.append(f"{name} @{k}: {old} -> {new} of {len(pairs)} (lost {lost}, won {won})")
    return lines


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--store", type=Path, default=Path("retrieval-maps"))
    parser.add_argument("--sites", nargs="+", default=["wagtail", "fossil", "dokuwiki"])
    parser.add_argument("--states", type=int, help="take the maps of at most this many states")
    parser.add_argument("--described", action="store_true", help="with the generated descriptions of replies/")
    parser.add_argument("--requests", type=Path, metavar="FOLDER", help="write requests about leads here, and stop")
    parser.add_argument("--ranks", type=Path, help="file for the ranks of all answers")
    parser.add_argument("--before", type=Path, help="such a file of another build to compare with")
    parser.add_argument("--save", action="store_true", help="replace these rows in the file of results")
    options = parser.parse_args()

    remembering = remembering_encoder("text", options.store)
    about = {**identity(remembering.text), **run_info(), "limit": options.states, "described": options.described}
    maps = []
    for name in options.sites:
        version = open_map(name, options.store, options.states)
        if options.requests is not None:
            write_requests(name, version, options.requests)
            continue
        maps.append(asked_map(name, version, remembering.text, is_described=options.described))
        remembering.save()
        print(f"{name}: {json.dumps(_rounded(summary(maps[-1:])))}", flush=True)
    if not maps:
        return
    print(f"all: {json.dumps(_rounded(summary(maps)), indent=1)}")
    compared: list[str] = []
    if options.before is not None:
        compared = paired(maps, json.loads(options.before.read_text(encoding="utf-8")))
        print("\n".join(compared))
    if options.ranks is not None:
        options.ranks.write_text(json.dumps(maps), encoding="utf-8")
    if options.save:
        rows = [
            {key: value for key, value in each.items() if key != "questions"}
            | {**about, "summary": _rounded(summary([each])), "paired": compared if len(maps) == 1 else []}
            for each in maps
        ]
        done = {(row["site"], row["limit"], row["described"]) for row in rows}
        before = json.loads(RESULT.read_text(encoding="utf-8"))["results"] if RESULT.exists() else []
        kept = [row for row in before if (row["site"], row["limit"], row["described"]) not in done]
        write_result(RESULT, {"results": [*kept, *rows]})


def _rounded(value: Any) -> Any:
    if isinstance(value, float):
        return round(value, 4)
    if isinstance(value, dict):
        return {key: _rounded(each) for key, each in value.items()}
    return [_rounded(each) for each in value] if isinstance(value, list) else value


if __name__ == "__main__":
    main()
