"""Plans after a step that failed."""

import asyncio

from tests.stores import draft
from waygraph.client.map_source import ThreadedMapSource
from waygraph.index.graph import Action, Edge, InteractionGraph, Node, PathStep
from waygraph.index.store import Store
from waygraph.pipeline.browser.page.replay import ReplayedStep, ReplayResult
from waygraph.sdk.local import StoreMap
from waygraph.sdk.path_planning import PathPlanner

MENU = Action("click", role="button", name="Menu")


def link(name, target):
    return Action("click", role="link", name=name, target=f"http://site/{target}")


def test_a_link_that_a_menu_does_not_have_on_one_page_is_followed_on_others(tmp_path):
    names = ("odd", "start", "news", "forum")
    nodes = [Node(name, f"http://site/{name}", name, (name,), 0, addressable=True) for name in names]
    forum = link("Forum", "forum")
    edges = [
        Edge("odd", "forum", forum, inherited=True, openers=(MENU,)),
        Edge("odd", "start", link("Home", "start"), inherited=True),
        Edge("start", "forum", forum, 100.0),
        Edge("start", "news", link("News", "news"), 100.0),
        Edge("news", "forum", link("Discuss", "forum"), 100.0),
    ]
    store = Store.open(str(tmp_path / "maps"), create=True)
    store.publish(draft(store, "site", graph=InteractionGraph(nodes, edges), observations={}, pages={}))
    step = PathStep(forum, "forum", "http://site/forum", 0.0, inherited=True, openers=(MENU,))
    gone = ReplayedStep(step, "", "http://site/odd", "", 0.0, agrees=False, problem="no element", gone=True)

    async def plan(maps):
        planner = PathPlanner(ThreadedMapSource(maps), "site", "forum", allow_goto=False)
        planner.note_failure("odd", [step], ReplayResult(complete=False, snapshot=None, view=None, steps=(gone,)))
        return await planner.plan("odd", lambda _: False)

    with StoreMap(store.location) as maps:
        assert [each.action.name for each in asyncio.run(plan(maps))] == ["Home", "Forum"]


def test_after_a_failure_no_path_begins_with_a_link_that_the_page_does_not_show(tmp_path):
    """Results of a search, of which each page that has the form shows other tools."""
    names = ("results", "edit", "history", "start", "page")
    nodes = [Node(name, f"http://site/{name}", name, (name,), 0, addressable=True) for name in names]
    edges = [
        *(Edge("results", name, link(name, name), 100.0) for name in ("page", "edit", "history")),
        Edge("results", "start", link("start", "start"), 1000.0),
        *(Edge(name, "page", link("page", "page"), 100.0) for name in ("edit", "history", "start")),
    ]
    store = Store.open(str(tmp_path / "maps"), create=True)
    store.publish(draft(store, "site", graph=InteractionGraph(nodes, edges), observations={}, pages={}))
    step = PathStep(link("page", "page"), "page", "http://site/page", 0.0)
    gone = ReplayedStep(step, "", "http://site/results", "", 0.0, agrees=False, problem="no element", gone=True)

    async def plan(maps, shown):
        planner = PathPlanner(ThreadedMapSource(maps), "site", "page", allow_goto=False)

        async def names():
            return [each.action.name for each in await planner.plan("results", lambda action: action.name not in shown)]

        first = await names()
        planner.note_failure("results", [step], ReplayResult(complete=False, snapshot=None, view=None, steps=(gone,)))
        return first, await names()

    with StoreMap(store.location) as maps:
        assert asyncio.run(plan(maps, {"start"})) == (["page"], ["start", "page"])
        # With no other path, the link is tried: rows of long lists are shown when they are scrolled to.
        assert asyncio.run(plan(maps, set()))[1] == ["edit", "page"]
