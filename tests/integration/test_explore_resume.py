"""A stopped exploration resumes from its checkpoint and gives the same map."""

import asyncio
import json

import pytest

from tests.blobs import MemoryBlobs
from tests.browsers import BROWSERS, LOOPBACK_ONLY
from tests.exploring import explore_with
from tests.sites.server import FixtureServer
from waygraph.core.settings import Settings
from waygraph.index.graph.export import to_json
from waygraph.pipeline.explore.exploration import explore_site

pytestmark = pytest.mark.extended

SETTINGS = Settings(browser=LOOPBACK_ONLY, explore={"depth": 2, "workers": 2})

LINKS = {"/": "Home", "/a": "A", "/b": "B", "/c": "C", "http://elsewhere.example/": "Away"}
NAVIGATION = f"<nav>{''.join(f'<a href={url}>{name}</a>' for url, name in LINKS.items())}</nav>"


def page(name, below=""):
    """A page with navigation, a button, a form that is never submitted, and links to its child pages."""
    return f"""<title>{name}</title>{NAVIGATION}<h1>Page {name}</h1><div id=more></div>
    <button onclick="more.innerHTML = '<p>More of {name}</p><button>Less</button>'">More of {name}</button>
    <form method=post action=/buy><button>Buy {name}</button></form>{below}"""


PAGES = {
    "/": page("home"),
    **{f"/{name}": page(name, f"<a href=/{name}/1>{name} one</a><a href=/{name}/2>{name} two</a>") for name in "abc"},
    **{f"/{name}/{n}": page(f"{name}{n}") for name in "abc" for n in (1, 2)},
}


def export(capture):
    return json.dumps(to_json(capture.site, 1, capture.graph, leads=capture.leads, tools=capture.tools), sort_keys=True)


async def run(url, journal, *, stop_after=None):
    stop, done = asyncio.Event(), []

    def on_progress(progress):
        done.append(progress.activations)
        if stop_after is not None and len(done) >= stop_after:
            stop.set()

    return await explore_site(
        url,
        settings=SETTINGS,
        blobs=BLOBS,
        on_progress=on_progress,
        stop=stop,
        journal=journal,
        pool=await BROWSERS.pool(),
    )


BLOBS = MemoryBlobs()


@pytest.mark.timeout(180)
def test_run_stopped_twice_gives_the_map_of_an_uninterrupted_run(tmp_path):
    journal = tmp_path / "journal.sqlite"
    with FixtureServer(PAGES) as site:
        whole = BROWSERS.run(run(site.url, None))
        first = BROWSERS.run(run(site.url, journal, stop_after=3))
        second = BROWSERS.run(run(site.url, journal, stop_after=6))
        last = BROWSERS.run(run(site.url, journal))
    assert first.report.partial
    assert second.report.partial
    assert not last.report.partial
    assert export(last) == export(whole)
    assert len(whole.tools) == len(PAGES)
    assert {node.depth for node in whole.graph.nodes.values()} == {0, 1, 2}
    assert last.report.skips
    assert sorted(last.report.skips, key=str) == sorted(whole.report.skips, key=str)
    # Each worker repeats the one item that it was in the middle of, at each of two stops.
    assert last.report.counters["explore/activations"] <= whole.report.counters["explore/activations"] + 4
    assert all(o.screenshot and o.dom for o in last.observations.values())


def test_changed_settings_start_a_new_run(tmp_path):
    journal = tmp_path / "journal.sqlite"
    with FixtureServer(PAGES) as site:
        BROWSERS.run(run(site.url, journal, stop_after=3))
        other = SETTINGS.model_copy(update={"explore": SETTINGS.explore.model_copy(update={"depth": 0})})
        capture = explore_with(other, site.url, blobs=BLOBS, journal=journal)
    assert len(capture.graph) == 1
    assert "explore/resumed_items" not in capture.report.counters
