"""A page that no script has noticed being used serves all elements of its state, and is not loaded for each few."""

import threading
from collections import Counter

import pytest

from tests.exploring import explore
from tests.sites.server import FixtureServer, Page

#: Items of a state that one worker takes at once, fewer than by default.
CHUNK = 4
#: More than the items of a chunk, after which a page that was acted on is loaded again.
NAMES = [f"page-{number}" for number in range(CHUNK + 2)]
LINKS = "".join(f"<a href=/{name}>Open {name}</a> " for name in NAMES)
DOT = "<svg xmlns='http://www.w3.org/2000/svg' width='1' height='1'/>"
PAGES = {f"/{name}": f"<title>{name}</title><h1>{name}</h1><a href=/>Home</a>" for name in NAMES}


@pytest.fixture(scope="module", autouse=True)
def _small_chunks():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("waygraph.pipeline.explore.engine.round.CHUNK", CHUNK)
        yield


@pytest.fixture(scope="module")
def requested():
    """How often the start page was requested, and the counters, by what its script listens to."""

    def run(script):
        start = f"<title>Home</title><h1>Home</h1>{LINKS}<script>{script}</script>"
        with FixtureServer({"/": start, **PAGES}) as site:
            capture = explore(site.url, depth=1, workers=1, max_states=40)
            assert len(capture.graph) == len(NAMES) + 1
            return Counter(site.paths)["/"], capture.report.counters

    return {
        "unload": run("addEventListener('beforeunload', () => { window.leaves = (window.leaves ?? 0) + 1 })"),
        "nothing": run(""),
        "clicks": run("addEventListener('click', () => { window.clicks = (window.clicks ?? 0) + 1 })"),
        "pointer": run("addEventListener('mousemove', () => { window.moves = (window.moves ?? 0) + 1 })"),
    }


def test_a_state_with_many_links_is_loaded_once_for_all_of_them(requested):
    times, counters = requested["nothing"]
    # Twice at the start, once to find out whether its URL reproduces it, once to act on it.
    assert times == 4
    assert (counters["load/start"], counters["load/first"], counters.get("load/chunk", 0)) == (2, 1, 0)


@pytest.mark.parametrize("script", ["clicks", "pointer", "unload"])
def test_page_whose_scripts_notice_clicks_is_loaded_anew_for_each_chunk(requested, script):
    times, counters = requested[script]
    assert counters["load/chunk"] > 0
    assert times == 4 + counters["load/chunk"]


def test_a_page_that_changed_by_itself_while_it_waited_is_loaded_again():
    """Its picture arrives, and changes the page, while the document of the last link of the first chunk is loaded.

    Otherwise the change would count as the effect of the button, with which the next chunk begins.
    """
    held = []
    last = NAMES[CHUNK - 1]

    def picture(_):
        held.append(threading.Event())
        return Page(DOT, content_type="image/svg+xml", hold=held[-1], hold_at_most_s=300)

    def release(_):
        for each in held:
            each.set()
        return PAGES[f"/{last}"]

    script = """addEventListener('load', () => {
      const picture = new Image();
      picture.onload = () => document.body.append(document.createElement('hr'));
      picture.src = `/picture?${performance.timeOrigin}`;
    })"""
    links = [f"<a href=/{name}>Open {name}</a>" for name in NAMES]
    start = "".join([*links[:CHUNK], "<button>Idle</button>", *links[CHUNK:], f"<script>{script}</script>"])
    with FixtureServer({"/": start, **PAGES, "/picture": picture, f"/{last}": release}) as site:
        capture = explore(site.url, depth=1, workers=1, max_states=40, order="breadth")
    assert [edge.action.name for edge in capture.graph.edges if edge.source == edge.target] == ["Idle"]
    assert len(capture.graph) == len(NAMES) + 1
    counters = capture.report.counters
    assert (counters.get("load/not_back"), counters.get("load/chunk", 0)) == (1, 0)
