"""Applications with hash routes that are entered from another document."""

import pytest

from tests.exploring import explore
from tests.sites.server import FixtureServer

APP = """<!doctype html><title>App</title><h1 id="title"></h1><ul id="list"></ul><script>
  const pages = { "#/users": ["Ann", "Bob"], "#/settings": ["Language"], "#/reports": ["March", "April", "May"] };
  const draw = () => {
    title.textContent = location.hash.slice(2) || "start";
    list.innerHTML = (pages[location.hash] ?? []).map(name => `<li><button>${name}</button></li>`).join("");
  };
  addEventListener("hashchange", draw);
  draw();
</script>"""
HOME = """<!doctype html><title>Home</title><h1>Home</h1>
<a href="/app.html#/users">Users</a> <a href="/app.html#/settings">Settings</a>
<button onclick="location.href = '/app.html#/reports'">Reports</button>"""
ROUTES = ["users", "settings", "reports"]


@pytest.fixture(scope="module")
def capture():
    with FixtureServer({"/": HOME, "/app.html": APP}) as site:
        yield explore(site.url, depth=1)


@pytest.mark.parametrize("route", ROUTES)
def test_each_route_is_a_state_with_an_edge_from_the_other_document(capture, route):
    (node,) = [node for node in capture.graph.nodes.values() if node.url.endswith(f"/app.html#/{route}")]
    texts = {segment.text for segment in capture.observations[node.id].segments}
    assert route in texts
    (edge,) = [edge for edge in capture.graph.edges if edge.target == node.id and not edge.inherited]
    assert edge.action.name == route.capitalize()
    assert node.addressable
