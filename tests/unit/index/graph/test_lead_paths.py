"""Paths to pages that were not visited."""

from dataclasses import replace

import pytest

from waygraph.core.errors import NoPath
from waygraph.index.graph import Action, Edge, InteractionGraph, Lead, Node
from waygraph.index.graph.lead_paths import lead_edge, paths_to_lead
from waygraph.index.graph.paths import PathFinder

LINK = Action("click", role="link", name="Reports", target="http://x/reports")
LEAD = Lead("lead", "http://x/reports", ("Reports",), "", "", "menu", LINK, 2)
NODES = [
    Node("home", "http://x/", "Home", (), 0, addressable=True, load_ms=100),
    Node("menu", "http://x/", "Home", (), 1, addressable=False),
]
OPEN = Edge("home", "menu", Action("click", role="button", name="Menu"), 50)
FINDER = PathFinder(InteractionGraph(NODES, [OPEN]))


def paths(source, lead=LEAD, **conditions):
    conditions = {"allow_goto": True, **conditions}
    found = paths_to_lead(
        lead,
        source,
        lambda: FINDER.cheapest_path(source, lead.state, allow_goto=conditions["allow_goto"]),
        **conditions,
    )
    return [[step.action.kind for step in path.steps] for path in found]


@pytest.mark.parametrize(
    ("source", "expected"),
    [(None, [["goto"], ["goto", "click", "click"]]), ("menu", [["click"], ["goto"]])],
)
def test_the_page_is_loaded_by_its_url_or_its_link_is_clicked(source, expected):
    assert paths(source) == expected


def test_without_goto_the_path_leads_over_the_state_that_shows_the_link():
    assert paths("home", allow_goto=False) == [["click", "click"]]


def test_avoided_steps_are_not_used():
    assert paths("menu", avoid=[lead_edge(LEAD)]) == [["goto"]]
    assert paths("menu", avoid_gotos=["lead"]) == [["click"]]
    with pytest.raises(NoPath):
        paths("menu", avoid=[lead_edge(LEAD)], avoid_gotos=["lead"])


def test_no_path_leads_to_a_refused_page():
    refused = Lead("lead", "http://x/reports", ("Reports",), "", "", "menu", LINK, 2, refusal="robots")
    with pytest.raises(NoPath, match="robots"):
        paths("menu", refused)


def test_a_page_whose_links_no_person_sees_is_loaded_by_its_url():
    hidden = replace(LEAD, action=Action("goto", url=LEAD.url), hidden=True)
    assert paths(None, hidden) == paths("menu", hidden) == [["goto"]]
    for conditions in ({"allow_goto": False}, {"avoid_gotos": ["lead"]}):
        with pytest.raises(NoPath, match="only loading its URL"):
            paths("menu", hidden, **conditions)


def test_the_last_step_is_unverified_and_expects_the_lead():
    (path,) = paths_to_lead(LEAD, "menu", lambda: FINDER.cheapest_path("menu", "menu"), allow_goto=False)
    (step,) = path.steps
    assert (step.expected_node_id, step.expected_url, step.inherited, step.lead) == ("lead", LEAD.url, True, LEAD)
