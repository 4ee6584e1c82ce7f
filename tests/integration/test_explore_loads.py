"""A page that no script has noticed being used serves all elements of its state, and is not loaded for each few."""

from collections import Counter

import pytest

from tests.exploring import explore
from tests.sites.server import FixtureServer

NAMES = [f"page-{number}" for number in range(30)]
LINKS = "".join(f"<a href=/{name}>Open {name}</a> " for name in NAMES)
PAGES = {f"/{name}": f"<title>{name}</title><h1>{name}</h1><a href=/>Home</a>" for name in NAMES}


@pytest.fixture(scope="module")
def requested():
    """How often the start page was requested, and the counters, by what its script listens to."""

    def run(script):
        start = f"<title>Home</title><h1>Home</h1>{LINKS}<script>{script}</script>"
        with FixtureServer({"/": start, **PAGES}) as site:
            capture = explore(site.url, depth=1, workers=1, max_states=40)
            assert len(capture.graph) == 31
            return Counter(site.paths)["/"], capture.report.counters

    return {
        "unload": run("addEventListener('beforeunload', () => { window.leaves = (window.leaves ?? 0) + 1 })"),
        "nothing": run(""),
        "clicks": run("addEventListener('click', () => { window.clicks = (window.clicks ?? 0) + 1 })"),
        "pointer": run("addEventListener('mousemove', () => { window.moves = (window.moves ?? 0) + 1 })"),
    }


def test_state_with_thirty_links_is_loaded_once_for_all_of_them(requested):
    times, counters = requested["nothing"]
    # Twice at the start, once to find out whether its URL reproduces it, once to act on it.
    assert times == 4
    assert (counters["load/start"], counters["load/first"], counters.get("load/chunk", 0)) == (2, 1, 0)


@pytest.mark.parametrize("script", ["clicks", "pointer", "unload"])
def test_page_whose_scripts_notice_clicks_is_loaded_anew_for_each_chunk(requested, script):
    times, counters = requested[script]
    assert counters["load/chunk"] > 0
    assert times == 4 + counters["load/chunk"]
