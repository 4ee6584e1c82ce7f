"""Benchmark of the search of tools: what somebody wants to do on a site, and the tool that does it.

    python -m bench.tool_questions --store FOLDER [--states 40] [--split dev|test] [--misses] [--save]

Questions are in `bench/retrieval/questions/tools/SITE.yaml`, in the form of `bench.retrieval.queries`: paths are those
of states that have the tool, texts those of the tool (name, title, description, inputs, choices). They were written
from lists of the tools in maps of at most 40 states, before anything was ranked. Such maps are made by
`python -m bench.retrieval.maps --store FOLDER --states 40`, which also says to which split a site belongs. There are no
questions about JupyterLab, whose map has no tools. `--save` replaces the rows of these sites in
bench/results/tool-questions.json.
"""

from __future__ import annotations

import argparse
import json
import statistics
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from bench.result_files import RESULTS, run_info, with_sites_before, write_result
from bench.retrieval.embeddings import identity, remembering_encoder
from bench.retrieval.maps import SITES, names, open_map
from bench.retrieval.metrics import bootstrap
from bench.retrieval.queries import FOLDER, Query, Target, read_queries
from waygraph.core.settings import Settings
from waygraph.index.catalog.loaded_map import LoadedMap
from waygraph.index.catalog.tool_search import find_tools, tool_texts
from waygraph.index.graph import InteractionGraph, Tool
from waygraph.index.store import MapVersion, Store
from waygraph.index.vectors.exact import ExactIndex
from waygraph.index.vectors.multivector import MultiVector
from waygraph.pipeline.encode.text.encoder import TextEncoder
from waygraph.pipeline.encode.text_counts import clean
from waygraph.pipeline.jobs.publishing.draft import draft_from_version, encode_map

QUESTIONS = FOLDER / "tools"
RESULT = RESULTS / "tool-questions.json"
#: What is compared: the words of tools alone, these and the states that have the tools, and vectors of tools as well.
SYSTEMS = ("words", "words and pages", "words, pages and vectors")


def is_meant(target: Target, tool: Tool, graph: InteractionGraph) -> bool:
    """Tell whether a target of a question means a tool."""
    if not any(target.is_at(graph.nodes[state].url) for state in tool.states):
        return False
    said = "\n".join(map(clean, tool_texts(tool)))
    return all(text in said for text in target.shows) and not any(text in said for text in target.hides)


def answers(query: Query, version: MapVersion) -> frozenset[str]:
    """Return the ids of the tools that a question means; none for tools that the map lacks."""
    targets = [Target.parse(text) for text in query.at]
    return frozenset(
        tool.id for tool in version.tools.values() if any(is_meant(each, tool, version.graph) for each in targets)
    )


@contextmanager
def publish_encoded(version: MapVersion, text: TextEncoder) -> Iterator[str]:
    """Publish a map with its vectors to a store of its own, and return the folder of the store."""
    found = encode_map(
        version.graph, version.observations.values(), version.leads.values(), version.tools.values(), text
    )
    draft = draft_from_version(version, Settings(), replace(found, lead_pages={}))
    # Screenshots stay behind in the store of the map.
    bare = {node: replace(seen, screenshot="", dom="", aria="") for node, seen in draft.observations.items()}
    with tempfile.TemporaryDirectory() as folder:
        Store.open(folder, create=True).publish(replace(draft, observations=bare, report={}))
        yield folder


def encoded(version: MapVersion, text: TextEncoder) -> LoadedMap:
    """Return a map with its vectors, as it is opened from a store."""
    with publish_encoded(version, text) as folder:
        read = Store.open(folder).read(version.manifest.site)
    index = ExactIndex(read.manifest.encoder.dim)
    index.add((name, page.vectors) for name, page in read.pages.items())
    return LoadedMap(read, index)


def rankings(loaded: LoadedMap, ask: str, query: MultiVector) -> dict[str, list[str]]:
    """Return the ids of all tools, best first, by system."""
    own, states = (
        {hit.node_id: hit.score for hit in index.search(query, max(1, len(index)))}
        for index in (loaded.tool_index, loaded.index)
    )
    signals: Sequence[tuple[Mapping[str, float], Mapping[str, float]]] = ({}, {}), ({}, states), (own, states)
    return {
        system: [
            found.tool.id
            for found in find_tools(
                loaded.tools, loaded.tool_words, ask, own=of_tools, states=of_states, keep=lambda *_: True
            )
        ]
        for system, (of_tools, of_states) in zip(SYSTEMS, signals, strict=True)
    }


def measured(name: str, version: MapVersion, text: TextEncoder) -> dict[str, Any]:
    """Return the rank of the best right tool for each question about a site, by system."""
    queries = read_queries(name, QUESTIONS)
    meant = [answers(query, version) for query in queries]
    loaded = encoded(version, text)
    rows = []
    for query, right, vectors in zip(queries, meant, text.encode_queries([q.ask for q in queries]), strict=True):
        if right:
            found = rankings(loaded, query.ask, vectors)
            rows.append({"ask": query.ask, **{name: 1 + min(map(ids.index, right)) for name, ids in found.items()}})
    sizes = {"states": len(version.graph), "tools": len(version.tools), "not in the map": len(queries) - len(rows)}
    return {"split": SITES[name].split, **sizes, "questions": rows}


def summary(sites: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """Return recall by system, and what vectors change with its 95% interval, over the questions about some sites."""
    rows = [row for site in sites.values() for row in site["questions"]]
    found: dict[str, Any] = {"n": len(rows)}
    for system in SYSTEMS:
        found[system] = {f"recall@{k}": round(statistics.fmean(row[system] <= k for row in rows), 3) for k in (1, 10)}
    for k in (1, 10):
        changes = {
            name: [float(row[SYSTEMS[2]] <= k) - float(row[SYSTEMS[1]] <= k) for row in site["questions"]]
            for name, site in sites.items()
        }
        found[f"recall@{k}, change by vectors"] = [round(value, 3) for value in bootstrap(changes)]
    return found


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--store", type=Path, default=Path("retrieval-maps"))
    parser.add_argument("--states", type=int, default=40, help="take the maps of at most this many states")
    parser.add_argument("--split", choices=("dev", "test"), default="dev")
    parser.add_argument("--misses", action="store_true", help="print the questions whose tool is not the first")
    parser.add_argument("--save", action="store_true", help="replace the rows of these sites in the file of results")
    options = parser.parse_args()

    remembering = remembering_encoder("text", options.store)
    sites = {}
    for name in names(options.split):
        if (QUESTIONS / f"{name}.yaml").exists():
            sites[name] = measured(name, open_map(name, options.store, options.states), remembering.text)
            remembering.save()
            print(f"{name}: {sites[name]['tools']} tools, {summary({name: sites[name]})}", flush=True)
    print(f"{options.split}: {summary(sites)}")
    if options.misses:
        for name, site in sites.items():
            for row in site["questions"]:
                if row[SYSTEMS[2]] > 1:
                    print(f"{name}: {row['ask']}: {[row[system] for system in SYSTEMS]}")
    if options.save:
        about = {**identity(remembering.text), **run_info(), "limit": options.states}
        rows = {
            name: {key: value for key, value in site.items() if key != "questions"} | {**summary({name: site}), **about}
            for name, site in sites.items()
        }
        known = with_sites_before(RESULT, rows, list(SITES))
        document = json.loads(RESULT.read_text(encoding="utf-8")) if RESULT.exists() else {}
        splits = document.get("splits", {}) | {options.split: summary(sites)}
        write_result(RESULT, {"splits": splits, "sites": known})


if __name__ == "__main__":
    main()
