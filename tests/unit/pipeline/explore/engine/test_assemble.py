"""Inherited edges: what a state takes over from its parent."""

from dataclasses import replace

from tests.sites.static_pages import BASE, NOWHERE
from tests.sites.static_pages import look as snapshot_of
from waygraph.index.graph import Action, Edge
from waygraph.pipeline.browser.page.snapshot import Candidate
from waygraph.pipeline.explore.engine.assemble import build_graph
from waygraph.pipeline.explore.records.state import State


def page(path, word):
    """Return a page with a search form, whose word is one of the page's own headings."""
    search = Action("submit", role="searchbox", name="Search", xpath="/html[1]/body[1]/input[1]", value=word)
    seen = snapshot_of(f"<h1>{word}</h1>", f"{BASE}{path}")
    box = Candidate(search, "input", disabled=False, submits="get", download=False, box=NOWHERE)
    return replace(seen, candidates=(*seen.candidates, box))


def test_an_inherited_search_uses_the_word_that_led_to_its_target():
    start, help_page, found = page("/", "museum"), page("/help", "exploring"), page("/search?q=museum", "results")
    snapshots = {seen.id: seen for seen in (start, help_page, found)}
    states = {seen.id: State.of(seen, seen.id, 0, None if seen is start else start.id) for seen in snapshots.values()}
    graph = build_graph(
        states,
        [Edge(start.id, found.id, start.candidates[-1].action, 100.0)],
        "element",
        snapshots.__getitem__,
        depth=lambda _: 0,
        load_ms=lambda _: 100.0,
        known_page=lambda *_: None,
        session_of=lambda _: "",
    )
    (edge,) = graph.edges_from(help_page.id)
    assert (edge.target, edge.action.value, edge.inherited) == (found.id, "museum", True)
