"""What happens when the start page cannot be mapped? One clear error, and nothing else."""

import socket

import pytest

from tests.conftest import explore
from tests.sites.server import FixtureServer, Page
from waygraph.errors import InvalidInput, RobotsForbidden, SiteUnreachable


def free_port():
    """A port that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@pytest.mark.parametrize(
    ("page", "words"),
    [
        (Page("gone", status=404), "404"),
        (Page("broken", status=500), "500"),
        (Page("{}", content_type="application/json"), "not an HTML page"),
        (Page("x", content_type="application/zip"), "download"),
        (Page(redirect="/"), "circle"),
        (Page(drop=True), "without an answer"),
    ],
)
def test_a_start_page_that_is_no_page_says_why(page, words):
    with FixtureServer({"/": page}) as site, pytest.raises(SiteUnreachable, match=words):
        explore(site.url, depth=1)


def test_a_host_that_is_not_there_says_so():
    with pytest.raises(SiteUnreachable, match="refuses the connection"):
        explore(f"http://127.0.0.1:{free_port()}/", depth=1)
    with pytest.raises(SiteUnreachable, match="DNS"):
        explore("http://no-such-host.invalid/", depth=1)


@pytest.mark.parametrize("url", ["ftp://x/", "http://", "javascript:alert(1)", "http://[::1", ""])
def test_a_malformed_url_is_refused_before_a_browser_looks(url):
    with pytest.raises(InvalidInput):
        explore(url, depth=1)


def test_robots_that_forbid_the_start_page_are_obeyed_and_can_be_overridden():
    pages = {"/": "<h1>Hi</h1>", "/robots.txt": Page("User-agent: *\nDisallow: /", content_type="text/plain")}
    with FixtureServer(pages) as site:
        with pytest.raises(RobotsForbidden):
            explore(site.url, depth=1)
        assert site.paths == ["/robots.txt"]
        assert len(explore(site.url, depth=1, robots=False).graph) == 1


def test_robots_that_cannot_be_read_forbid_everything():
    with (
        FixtureServer({"/": "<h1>Hi</h1>", "/robots.txt": Page("", status=503)}) as site,
        pytest.raises(RobotsForbidden),
    ):
        explore(site.url, depth=1)


def test_pages_that_fail_are_failures_and_no_states():
    with FixtureServer(
        {"/": "<a href=/gone>Gone</a><a href=/data>Data</a>", "/data": Page("{}", content_type="application/json")}
    ) as site:
        capture = explore(site.url, depth=2)
    assert len(capture.graph) == 1
    assert sorted(failure.reason.split()[0] for failure in capture.report.failures) == ["http_404", "not_html"]


def test_state_that_an_item_leaves_in_the_browser_is_gone_before_the_next_one():
    """The button stores something that makes every later load another page; only its own state may show that."""
    html = """<div id=out></div><button onclick="localStorage.seen = 1; show()">Mark</button><a href=/other>Other</a>
    <script>function show() { if (localStorage.seen) out.innerHTML = '<h2>Seen</h2>' } show()</script>"""
    with FixtureServer({"/": html, "/other": "<h1>Other</h1><a href=/>Home</a>"}) as site:
        capture = explore(site.url, depth=2, workers=1)
    assert len(capture.graph) == 3
    assert capture.report.counters["session/resets"] >= 1
    assert capture.report.failures == ()


@pytest.mark.parametrize("mark", ["localStorage.closed = 1", "document.cookie = 'closed=1'"])
def test_what_taking_an_action_back_leaves_in_the_browser_is_gone_too(mark):
    """Closing the panel stores something, which the other button would tell of."""
    html = """<button onclick="if (!panel.hidden) MARK; panel.hidden = !panel.hidden">Panel</button>
    <p id=panel hidden>A panel</p>
    <button onclick="const was = localStorage.closed || document.cookie;
      out.innerHTML = '<h2>' + (was ? 'Was closed' : 'Untouched') + '</h2>'">Ask</button>
    <div id=out></div>"""
    with FixtureServer({"/": html.replace("MARK", mark)}) as site:
        capture = explore(site.url, depth=1, workers=1)
    shown = {segment.text for seen in capture.observations.values() for segment in seen.segments}
    assert {"A panel", "Untouched"} <= shown
    assert "Was closed" not in shown


def test_what_pages_store_when_they_are_loaded_is_no_change_of_an_action():
    """Each page writes its name down, and once more when it is left: no reason to do anything twice, or anew."""
    html = """<h1>{0}</h1><a href=/>Home</a><a href=/one>One</a><a href=/two>Two</a>
    <button onclick="more.hidden = false">More</button><p id=more hidden>More of {0}</p>
    <script>document.title = localStorage.left || 'new'; localStorage.setItem('page', '{0}');
    addEventListener('pagehide', () => localStorage.setItem('left', '{0}'))</script>"""
    with FixtureServer({f"/{name}": html.format(name) for name in ("", "one", "two")}) as site:
        capture = explore(site.url, depth=2, workers=1, diff="off")
    assert len(capture.graph) == 6
    assert {node.title for node in capture.graph.nodes.values()} == {"new"}
    counters = capture.report.counters
    assert counters.get("session/renewals", 0) == 0
    assert counters["explore/activations"] == 16
    assert counters["browser/contexts"] == 2


def test_a_run_that_is_out_of_time_keeps_what_it_found_and_says_so():
    links = "".join(f"<a href=/{i}>Page {i}</a>" for i in range(200))
    with FixtureServer({"/": links, **{f"/{i}": f"<h1>Page {i}</h1>{'<p>x</p>' * i}" for i in range(200)}}) as site:
        capture = explore(site.url, depth=1, max_seconds=4)
    assert capture.report.partial
    assert capture.report.stopped_by == "max_seconds"
    assert 1 < len(capture.graph) < 201
    assert all(observation.screenshot for observation in capture.observations.values())


def test_activations_are_capped_in_canonical_order():
    links = "".join(f"<a href=/{i}>Page {i}</a>" for i in range(9))
    with FixtureServer({"/": links, **{f"/{i}": f"<h1>Page {i}</h1>{'<p>x</p>' * i}" for i in range(9)}}) as site:
        capture = explore(site.url, depth=1, max_activations=4)
    assert [edge.action.name for edge in capture.graph.edges] == [f"Page {i}" for i in range(4)]
    assert capture.report.counters["skip/max_activations"] == 5


def test_another_host_is_never_visited_however_it_is_linked():
    with FixtureServer({}) as other:
        pages = {
            "/": f"""<a href="{other.url}">Plain</a><a href="{other.url}" target=_blank>Tab</a><a href=/out>Redirect</a>
            <button onclick="location = '{other.url}'">Script</button>
            <button onclick="window.open('{other.url}')">Window</button>
            <a href=/hop target=_blank>Redirected tab</a>""",
            "/out": Page(redirect=other.url),
            "/hop": Page(redirect="/out"),
        }
        with FixtureServer(pages) as site:
            capture = explore(site.url, depth=2)
        assert other.requests == []
    assert {node.url for node in capture.graph.nodes.values()} == {site_url(capture)}
    assert capture.report.counters["skip/external"] >= 4


def site_url(capture):
    return f"http://{capture.site}/"
