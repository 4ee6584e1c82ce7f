"""Each distinct search form is submitted once, wherever it stands, whatever word the page gives, and only that one."""

import json
from functools import cache

import pytest

from tests.browsers import BROWSERS
from tests.exploring import explore
from tests.sites.server import FixtureServer
from waygraph.core.settings import Settings
from waygraph.index.graph.export import to_json
from waygraph.index.store import Store
from waygraph.pipeline.jobs.publishing.draft import draft_from_capture
from waygraph.sdk.local import StoreMap
from waygraph.sdk.teleport import teleport

FORM = "<form action=/find><input type=hidden name=lang value=en><input type=search name=q aria-label=Find></form>"
OTHER = "<form action=/people/find><input name=name required aria-label=Who><button>Search</button></form>"
IN_PAGE = """<form onsubmit="hits.innerHTML = `<a href=/item/${this.q.value}>Hit</a>`; return false">
    <input type=search name=q aria-label=Filter></form><div id=hits></div>"""
REMOVE = "<form action=/items/delete><input type=search name=q aria-label=Which></form>"
OUTSIDE = "<form action=http://elsewhere.example/find><input type=search name=q aria-label=Web></form>"


def listing(word):
    return f"<title>Results</title>{FORM}<h1>Results for {word}</h1><a href=/item/{word}>{word.title()}</a>"


PAGES = {
    "/": f"<title>Home</title><h1>Kettles</h1><a href=/lamps>Lamps</a><a href=/people>People</a>{FORM}",
    # The same form at another place, beside another heading.
    "/lamps": f"<title>Lamps</title><h1>Floor lamps</h1><p>Many.</p><div>{FORM}</div>{IN_PAGE}",
    "/people": f"<title>People</title><h1>Curators</h1>{OTHER}{REMOVE}{OUTSIDE}",
    "/find": lambda request: listing(request.query.get("q", "")),
    "/people/find": lambda request: f"<h1>Found {request.query.get('name', '')}</h1>",
    "/item/kettles": "<h1>A kettle</h1>",
    "/item/floor": "<h1>On the floor</h1>",
    "/items/delete": "<h1>Gone</h1>",
}


@pytest.fixture(scope="module")
def site():
    with FixtureServer(PAGES) as server:
        yield server


@pytest.fixture(scope="module")
def captures(site):
    """Return the capture for a number of workers; each is explored once."""
    return cache(lambda workers: explore(site.url, depth=3, workers=workers))


def searches(capture):
    nodes = capture.graph.nodes
    return {
        (edge.action.name, edge.action.value): nodes[edge.target]
        .url.partition("/")[2]
        .partition("/")[2]
        .partition("/")[2]
        for edge in capture.graph.edges
        if edge.action.kind == "submit" and not edge.inherited
    }


def test_each_distinct_form_is_submitted_once_with_a_word_of_its_page(captures):
    assert searches(captures(1)) == {
        ("Find", "kettles"): "find?lang=en&q=kettles",
        ("Who", "curators"): "people/find?name=curators",
        ("Filter", "floor"): "lamps",
    }


def test_what_the_results_lead_to_is_explored(captures):
    paths = {node.url.rpartition("/")[2] for node in captures(1).graph.nodes.values()}
    assert {"kettles", "floor"} <= paths


def test_further_forms_of_the_same_kind_are_skipped_with_the_reason(captures):
    skips = [(skip.reason, skip.detail.rpartition("/")[2]) for skip in captures(1).report.skips]
    assert ("same_form", "find?lang&q") in skips


def test_searches_that_may_change_something_or_leave_the_site_are_not_sent(site, captures):
    assert not any("delete" in target for _, target in site.requests)
    assert {"hazard", "external"} <= {skip.reason for skip in captures(1).report.skips}


@pytest.mark.extended
def test_the_map_does_not_depend_on_the_number_of_workers(captures):
    exports = [json.dumps(to_json(each.site, 1, each.graph, leads=each.leads)) for each in (captures(1), captures(3))]
    assert exports[0] == exports[1]


def test_search_forms_are_left_alone_when_that_is_disabled(site):
    before = len(site.paths)
    explore(site.url, depth=2, submit_search=False)
    assert not any("find" in path for path in site.paths[before:])


SUGGESTING = """<form action=/find>
    <input type=search name=q aria-label=Find oninput="fetch('/ajax', {method: 'POST', body: 'call=words'})"></form>"""
POSTING = """<form onsubmit="
    fetch('/table', {method: 'POST', body: 'rows=2'}).then(() => hits.textContent = 'Some'); return false">
    <input type=search name=q aria-label=Filter></form><div id=hits></div>"""


def test_paths_use_a_form_that_asks_for_suggestions_and_none_whose_results_come_by_a_stopped_request():
    pages = {
        "/": f"<title>Home</title><h1>Kettles</h1>{SUGGESTING}{POSTING}",
        "/find": "<h1>Results</h1><a href=/item>Item</a>",
        "/item": "<h1>A kettle</h1>",
    }
    with FixtureServer(pages) as server:
        capture = explore(server.url, depth=3)
        assert not {"/ajax", "/table"} & set(server.paths)
    edges = {edge.action.name: edge for edge in capture.graph.edges if edge.action.kind == "submit"}
    assert {request.kind for request in edges["Find"].blocked} == {"suggestion"}
    assert not edges["Find"].is_state_changing
    assert edges["Filter"].is_state_changing


def test_a_search_from_another_page_arrives_although_the_form_sends_the_page_along(tmp_path):
    def page(name, links=""):
        fields = f"<input type=hidden name=id value=page-{name}><input type=search name=q aria-label=Find>"
        return (
            f"<title>{name}</title><h1>{name.title()}</h1><p>About {name}</p><form action=/find>{fields}</form>{links}"
        )

    def results(request):
        word = request.query.get("q", "")
        text = f"<title>Results</title><h1>Results for {word}</h1><a href=/item>Item with {word}</a>"
        return text + f"<p>{len(word)} found in the stock, in store 3, on shelf 12.</p>"

    pages = {
        "/": page("kettles", "<a href=/lamps>Lamps</a>"),
        "/lamps": page("lamps"),
        "/find": results,
        "/item": "<title>Item</title><h1>A kettle</h1><p>Of copper, for gas and fire.</p>",
    }
    with FixtureServer(pages) as site:
        store = Store.open(str(tmp_path), create=True)
        capture = explore(site.url, depth=3, blobs=store.blobs)
        store.publish(draft_from_capture(capture, Settings()))
        with StoreMap(store.location) as maps:
            result = BROWSERS.run(walk(maps, site.at("/lamps"), capture, "/item"))
    assert result.outcome == "arrived"
    assert [step.action.split()[0] for step in result.steps] == ["submit", "click"]
    assert not any(step.problem for step in result.steps)


async def walk(maps, start, capture, path):
    """Walk over a map to the state at a path, without loading a URL."""
    (target,) = [node.id for node in capture.graph.nodes.values() if node.url.endswith(path)]
    context = await (await BROWSERS.browser()).new_context(viewport={"width": 1280, "height": 800})
    try:
        page = await context.new_page()
        await page.goto(start)
        return await teleport(page, maps, capture.site, target, allow_goto=False, report=False)
    finally:
        await context.close()
