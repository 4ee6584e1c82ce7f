"""Tree search with a map: states that are judged without a visit, and returns to states without an address."""

import pytest

from tests.blobs import MemoryBlobs
from tests.browsers import BROWSERS, LOOPBACK_ONLY
from tests.exploring import explore
from tests.sites.server import FixtureServer
from waygraph import AsyncWaygraph
from waygraph.agents.actions import AgentSession, ClickAction, SessionOptions
from waygraph.agents.run_record import AttemptEnd
from waygraph.agents.search import (
    VALUE_PER_SCORE,
    Judgement,
    MapHits,
    NearestElements,
    NearnessReward,
    Proposals,
    ProposedAction,
    SearchOptions,
    SearchTree,
    TaskNearness,
    TreeSearchAgent,
)
from waygraph.core.settings import EncodeSettings, Settings
from waygraph.index.store import Store
from waygraph.pipeline.encode.registry import create_encoder
from waygraph.pipeline.jobs.publishing.draft import encode_draft

START = """<!doctype html><title>Start</title><h1>Start</h1><a href=/rooms>Rooms</a> <a href=/press>Press</a>
<button id=b>Show figures</button><script>b.onclick = () => fetch('/count', {method: 'POST', body: 'x=1'})</script>"""
ROOMS = """<!doctype html><title>Rooms</title><h1>Rooms</h1><a href=/attic>Upstairs</a>
<button onclick="panel.hidden = false">Details</button>
<div id=panel hidden><p>Made of oak</p><button onclick="more.hidden = false">More</button></div>
<p id=more hidden>From one forest</p>"""
ATTIC = "<!doctype html><title>Storage under the roof</title><h1>Storage under the roof</h1><p>Boxes and old lamps"
PAGES = {"/": START, "/rooms": ROOMS, "/attic": ATTIC, "/press": "<!doctype html><title>Press</title><h1>Press</h1>"}


@pytest.fixture(scope="module")
def site():
    with FixtureServer(PAGES) as server:
        yield server


@pytest.fixture(scope="module")
def encoder():
    return create_encoder(EncodeSettings())


@pytest.fixture(scope="module")
def store(site, encoder, tmp_path_factory):
    return published(site, encoder, tmp_path_factory.mktemp("rooms") / "maps")


@pytest.fixture(scope="module")
def start_store(site, encoder, tmp_path_factory):
    """Return the store of a map of the start page, which knows the other pages by its links alone."""
    return published(site, encoder, tmp_path_factory.mktemp("start") / "maps", depth=0)


def published(site, encoder, path, **explore_settings):
    """Explore the site and publish its map; return the folder of the store."""
    blobs = MemoryBlobs()
    capture = explore(site.url, blobs=blobs, **explore_settings)
    opened = Store.open(str(path), create=True)
    for content in blobs.values():
        opened.blobs.put(content)
    opened.publish(encode_draft(capture, Settings(), encoder))
    return path


class ByName:
    """Proposes the elements with these names, in the states with these titles, without scores."""

    name = "names"

    def __init__(self, script):
        self.script = script

    async def propose(self, request):
        wanted = self.script.get(request.observation.title, {})
        return Proposals(
            tuple(
                ProposedAction(ClickAction(element=each.ref), wanted[each.name])
                for each in request.observation.elements
                if each.name in wanted
            )
        )


class ByText:
    """Values states by a text that they show: the last one that is known counts, else 0.5."""

    judges_answers = False

    def __init__(self, values=None):
        self.values = values or {}

    async def judge_states(self, task, states):  # noqa: ARG002 - a Reward
        found = ([self.values[text] for text in each.texts if text in self.values] for each in states)
        return Judgement(tuple([0.5, *values][-1] for values in found))

    async def judge_actions(self, task, state, actions):  # noqa: ARG002
        return Judgement((0.0,) * len(actions))


def search(site, store, generators, reward, task, *, tree_file, session=None, **options):
    """Search from the start page with `generators(maps)`; return the run and the tree."""

    async def work():
        browser = await BROWSERS.browser()
        context = await browser.new_context(viewport={"width": 1280, "height": 800}, reduced_motion="reduce")
        try:
            page = await context.new_page()
            await page.goto(site.url)
            async with (
                AsyncWaygraph(store) as maps,
                AgentSession(page, SessionOptions(browser=LOOPBACK_ONLY, **session or {}), maps=maps) as opened,
            ):
                wanted = SearchOptions(tree_file=tree_file, **{"sites": (key(site),), **options})
                return await TreeSearchAgent(opened, generators(maps), reward, wanted, maps=maps).run(task)
        finally:
            await context.close()

    run = BROWSERS.run(work())
    return run, SearchTree.model_validate_json(tree_file.read_bytes())


def key(site):
    return site.url.split("/")[2]


@pytest.fixture
def tree_file(tmp_path):
    return tmp_path / "tree.json"


@pytest.fixture
def nearness(encoder):
    return TaskNearness(encoder)


def hits(site):
    return lambda maps: [MapHits(maps, [key(site)])]


def test_a_state_that_only_the_map_knows_is_judged_and_then_visited_at_once(site, store, nearness, tree_file):
    reward, task = NearnessReward(nearness), "storage under the roof"
    run, tree = search(site, store, lambda _: [NearestElements(nearness)], reward, task, tree_file=tree_file)
    assert (run.end, run.url) == (AttemptEnd.ANSWERED, site.at("/attic"))
    assert [step.action for step in run.steps] == ["visit [Storage under the roof]"]
    assert "Press" in {each.title for each in tree.known.values()}
    assert {each.state.title for each in tree.nodes} == {"Start", "Storage under the roof"}


def test_the_hits_of_the_map_are_candidates_where_the_search_begins(site, store, nearness, tree_file):
    reward, task = NearnessReward(nearness), "boxes and old lamps"
    run, tree = search(site, store, hits(site), reward, task, tree_file=tree_file, lookahead_states=0)
    assert run.steps[0].action == "visit [Storage under the roof]"
    assert {tuple(each.contexts) for each in tree.candidates} == {("map",)}


HARBOUR = "<!doctype html><title>Harbour</title><h1>Harbour</h1><p>Boats and nets"


def test_the_maps_of_all_sites_of_a_task_are_asked(site, store, encoder, nearness, tree_file):
    with FixtureServer({"/": HARBOUR}) as other:
        published(other, encoder, store)
        sites, url = (key(site), key(other)), other.url
        options = {"tree_file": tree_file, "sites": sites}
        reward, task = NearnessReward(nearness), "harbour with boats and nets"
        run, tree = search(site, store, lambda maps: [MapHits(maps, sites)], reward, task, **options)
    assert run.steps[0].action == "visit [Harbour]"
    assert tree.nodes[1].state.url == url
    assert tree.nodes[1].map_state == tree.candidates[tree.nodes[1].candidate].outcome


def test_a_hit_that_was_not_visited_when_the_map_was_made_is_a_candidate(site, start_store, nearness, tree_file):
    def lead_hits(maps):
        return [MapHits(maps, [key(site)], value_per_score=VALUE_PER_SCORE)]

    reward = NearnessReward(nearness)
    run, tree = search(site, start_store, lead_hits, reward, "press", tree_file=tree_file, lookahead_states=0)
    assert (run.steps[0].action, run.steps[0].status) == ("visit [Press]", "done")
    assert (tree.nodes[1].state.title, tree.nodes[1].map_state) == ("Press", "")


def test_an_action_has_the_value_of_the_outcome_that_the_map_expects(site, store, nearness, tree_file):
    script = ByName({"Start": {"Rooms": 0.99, "Press": 0.0}})
    reward = NearnessReward(nearness)
    run, tree = search(site, store, lambda _: [script], reward, "press", tree_file=tree_file, lookahead_states=0)
    assert run.steps[0].action == 'click link "Press"'
    assert run.steps[0].details["expected"] == tree.nodes[1].map_state != ""


def test_it_returns_to_a_state_without_an_address_over_the_map(site, store, tree_file):
    script = ByName({"Start": {"Rooms": 0, "Press": 0}, "Rooms": {"Details": 0, "More": 0}})
    reward = ByText({"Upstairs": 0.6, "Made of oak": 0.9, "From one forest": 0.1})
    run, tree = search(site, store, lambda _: [script], reward, "oak", tree_file=tree_file, lookahead_states=0)
    assert [step.action for step in run.steps[:4]] == [
        'click link "Rooms"',
        'click button "Details"',
        'click link "Press"',
        'click button "More"',
    ]
    assert tree.nodes[2].state.url == tree.nodes[1].state.url == site.at("/rooms")
    assert [(each.target, each.tried, each.arrived) for each in tree.backtracks[:2]] == [
        (0, ["map:0"], True),
        (2, ["map:2"], True),
    ]


def test_the_map_tells_before_it_is_performed_that_an_action_sends_data(site, store, tree_file):
    script = ByName({"Start": {"Show figures": 0.9, "Press": 0.1}})

    def run_with(**session):
        tree_file.unlink(missing_ok=True)
        options = {"tree_file": tree_file, "lookahead_states": 0, "session": session}
        return search(site, store, lambda _: [script], ByText(), "figures", **options)

    run, _ = run_with()
    assert [step.action for step in run.steps] == ['click link "Press"']
    assert site.mutations == 0
    run, tree = run_with(destructive="allow")
    assert [step.action for step in run.steps[:2]] == ['click link "Press"', 'click button "Show figures"']
    assert (site.mutations, tree.changes) == (1, 1)


def test_a_walk_to_a_state_that_is_gone_is_undone(site, store, nearness, tree_file):
    reward, task = NearnessReward(nearness), "boxes and old lamps"
    site.pages["/attic"] = "<!doctype html><title>Gone</title><h1>Gone</h1>"
    try:
        run, tree = search(site, store, hits(site), reward, task, tree_file=tree_file, lookahead_states=0)
    finally:
        site.pages["/attic"] = ATTIC
    assert run.steps[0].status == "failed"
    assert "was not reached" in run.steps[0].message
    assert run.url != site.at("/attic")
    assert all(each.state.title != "Gone" for each in tree.nodes)
