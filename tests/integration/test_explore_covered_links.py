"""Links that take no pointer where they were found: their addresses are loaded."""

import json

from tests.blobs import MemoryBlobs
from tests.exploring import explore
from tests.sites.server import FixtureServer
from waygraph.index.graph.export import to_json
from waygraph.index.store.element_outcomes import read_element_outcomes

#: A menu whose lower entries lie behind a box, and that stands on no other page.
MENU = """<!doctype html><title>Start</title><style>
    nav { position: absolute; top: 40px } nav a { display: block; height: 40px } nav:not(.open) { display: none }
    #box { position: absolute; top: 80px; z-index: 1; width: 400px; height: 400px; background: #ccc }
</style><button onclick="document.querySelector('nav').classList.toggle('open')">Menu</button>
<nav><a href=/free>Free</a> <a href=/behind>Behind</a> <a href=/gone>Gone</a> <a href=#box>Box</a>
<a href=/kept role=button>Save</a> <a href=/handled onclick="box.hidden = true; return false">Handled</a></nav>
<div id=box>Box</div>"""
PAGES = {
    "/": MENU,
    "/free": "<title>Free</title><h1>Free</h1>",
    "/behind": "<title>Behind</title><h1>Behind</h1><a href=/further>Further</a>",
    "/further": "<title>Further</title><h1>Further</h1>",
}


def test_pages_behind_covered_links_are_visited_by_their_addresses():
    blobs = MemoryBlobs()
    with FixtureServer(PAGES) as site:
        captures = [explore(site.url, depth=3, workers=workers, blobs=blobs) for workers in (1, 2)]
    capture = captures[0]
    nodes = capture.graph.nodes
    assert {node.title for node in nodes.values()} == {"Start", "Free", "Behind", "Further"}
    into = {nodes[edge.target].title: edge for edge in reversed(list(capture.graph.edges))}
    assert not into["Free"].inherited
    assert into["Behind"].inherited
    assert into["Behind"].action.kind == "click"
    assert not into["Further"].inherited
    assert all(node.addressable for node in nodes.values() if node.title != "Start")
    assert capture.report.counters["explore/loaded_by_address"] == 2
    failed = {failure.action: failure.reason.partition(" ")[0] for failure in capture.report.failures}
    assert failed.pop('click link "Gone"') == "http_404"
    assert set(failed) == {'click link "Box"', 'click button "Save"', 'click link "Handled"'}
    assert not {"/kept", "/handled"} & set(site.paths)
    rows = read_element_outcomes(blobs.get(capture.report.fates))
    done = {row["element"]: row["reason"] for row in rows if row["status"] == "done"}
    assert done['click link "Behind"'] == "by_address"
    assert not done['click link "Free"']
    exports = [json.dumps(to_json(each.site, 1, each.graph, leads=each.leads)) for each in captures]
    assert exports[0] == exports[1]
