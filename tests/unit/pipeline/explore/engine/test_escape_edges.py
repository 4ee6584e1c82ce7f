"""Edges out of dialogs: which states have them."""

import dataclasses

import pytest
from msgspec.structs import replace

from tests.sites.static_pages import BASE
from tests.sites.static_pages import look as snapshot_of
from waygraph.index.graph import Edge, InteractionGraph, Node
from waygraph.pipeline.explore.engine.escape_edges import escape_edges
from waygraph.pipeline.explore.records.state import State

PAGE = snapshot_of("<button>Open</button><a href='/help'>Help</a>", f"{BASE}/")
DIALOG = snapshot_of("<div><div><button>Yes</button></div></div>", f"{BASE}/")
MENU = snapshot_of("<button>Open</button><p><a href='/forum'>Forum</a></p>", f"{BASE}/")
OTHER = snapshot_of("<h1>Other</h1>", f"{BASE}/other")


def edges_after_opening(shown, *, more=()):
    seen = (PAGE, shown)
    states = {each.id: State.of(each, each.id, 0, None if each is PAGE else PAGE.id) for each in seen}
    performed = [Edge(PAGE.id, shown.id, PAGE.candidates[0].action, 100.0)]
    nodes = [Node(each.id, each.url, "", (), 0, addressable=False) for each in seen]
    graph = InteractionGraph(nodes, [*performed, *more])
    snapshots = {each.id: each for each in seen}
    return list(escape_edges(states, performed, graph, snapshots.__getitem__))


def test_a_dialog_that_nothing_leads_out_of_is_left_by_the_escape_key():
    (edge,) = edges_after_opening(DIALOG)
    assert (edge.source, edge.target, str(edge.action), edge.inherited) == (DIALOG.id, PAGE.id, "press Escape", True)


def test_covered_elements_are_not_left_to_act_on():
    covered = dataclasses.replace(MENU, candidates=tuple(replace(each, covered=True) for each in MENU.candidates))
    assert edges_after_opening(covered)


@pytest.mark.parametrize("shown", [MENU, OTHER], ids=["menu", "another page"])
def test_a_page_that_can_still_be_used_is_no_dialog(shown):
    assert not edges_after_opening(shown)


def test_a_dialog_with_a_known_way_out_needs_no_other():
    closes = Edge(DIALOG.id, PAGE.id, DIALOG.candidates[0].action, 100.0)
    assert not edges_after_opening(DIALOG, more=[closes])
