"""The explorer triggers every kind of event handler, and none of them changes anything at the server."""

import pytest

from tests.exploring import explore
from tests.sites.answers import Result, judge, site_pages, table
from tests.sites.handlers import AREAS
from tests.sites.server import FixtureServer

#: What the explorer does not find yet, and why. Strict: an entry that starts to work must be removed.
GAPS = {
    "touchstart | shows | touchstart-property | property touchstart": "no such property without a touch screen",
}

EXPECTED = [str(expect) for area in AREAS for expect in area.expected]


@pytest.fixture(scope="module")
def results() -> dict[str, Result]:
    """Every answer, judged by one exploration of all areas."""
    with FixtureServer({}) as site:
        site.pages.update(site_pages(AREAS, "Handlers"))
        judged = judge(AREAS, explore(site.url, depth=4), site)
        assert site.mutations == 0
    print(table(judged))  # noqa: T201 - pytest shows it with the first failure
    return {str(result.expect): result for result in judged}


def test_every_known_gap_is_one_of_the_answers():
    assert set(GAPS) <= set(EXPECTED)


@pytest.mark.extended
@pytest.mark.parametrize(
    "expect",
    [
        pytest.param(key, marks=[pytest.mark.xfail(strict=True, reason=GAPS[key])] if key in GAPS else [])
        for key in EXPECTED
    ],
)
def test_exploring_finds_the_answer(results, expect):
    assert results[expect].seen, results[expect].instead


def test_an_element_whose_first_click_only_replaces_its_handler_is_clicked_twice():
    """The way to both results is a double click, which the explorer itself performs again to act on what is shown."""
    html = """<button onclick="this.onclick = () => { shown.hidden = false }">Armed by a property</button>
    <button id=listens>Armed by a listener</button><button id=inert>Without effect</button>
    <div id=shown hidden>Shown by the second click <button onclick="more.hidden = false">More</button>
    <p id=more hidden>And more</p></div><script>
    const leave = () => { location = '/second' };
    listens.addEventListener('click', () => listens.addEventListener('click', leave), { once: true });
    inert.addEventListener('click', () => {});</script>"""
    with FixtureServer({"/": html, "/second": "<h1>Second page</h1>"}) as site:
        capture = explore(site.url, depth=3, workers=1)
    nodes, start = capture.graph.nodes, next(iter(capture.graph.nodes))
    edges = {edge.action.name: edge for edge in capture.graph.edges if edge.source == start and not edge.inherited}
    assert {name: edge.action.kind for name, edge in edges.items()} == {
        "Armed by a property": "dblclick", "Armed by a listener": "dblclick", "Without effect": "click",
    }  # fmt: skip
    assert nodes[edges["Armed by a listener"].target].url.endswith("/second")
    texts = {segment.text for seen in capture.observations.values() for segment in seen.segments}
    assert any("And more" in text for text in texts)
    assert not capture.report.failures
