"""Start pages that cannot be mapped give one clear error; limits, scope and session state of an exploration."""

import pytest

from tests.exploring import explore
from tests.sites.server import FixtureServer, Page, free_port
from waygraph.core.errors import InvalidInput, RobotsForbidden, SiteUnreachable


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
def test_start_page_that_is_not_html_gives_the_reason(page, words):
    with FixtureServer({"/": page}) as site, pytest.raises(SiteUnreachable, match=words):
        explore(site.url, depth=1)


@pytest.mark.parametrize(("header", "seconds"), [("120", 120.0), ("", 5.0), ("86400", 0.0)])
def test_a_busy_start_page_may_be_tried_again_when_its_server_says_unless_that_is_too_late(header, seconds):
    busy = Page("busy", status=429, headers={"Retry-After": header} if header else {})
    with FixtureServer({"/": busy}) as site, pytest.raises(SiteUnreachable) as refused:
        explore(site.url, depth=1)
    assert refused.value.retry_after_s == seconds


def test_unreachable_host_gives_a_clear_error():
    with pytest.raises(SiteUnreachable, match="refuses the connection"):
        explore(f"http://127.0.0.1:{free_port()}/", depth=1)
    with pytest.raises(SiteUnreachable, match="DNS"):
        explore("http://no-such-host.invalid/", depth=1)


@pytest.mark.parametrize("url", ["ftp://x/", "http://", "javascript:alert(1)", "http://[::1", ""])
def test_malformed_url_is_refused_before_a_browser_starts(url):
    with pytest.raises(InvalidInput):
        explore(url, depth=1)


def test_robots_txt_that_disallows_the_start_page_is_obeyed_unless_overridden():
    pages = {"/": "<h1>Hi</h1>", "/robots.txt": Page("User-agent: *\nDisallow: /", content_type="text/plain")}
    with FixtureServer(pages) as site:
        with pytest.raises(RobotsForbidden):
            explore(site.url, depth=1)
        assert site.paths == ["/robots.txt"]
        assert len(explore(site.url, depth=1, robots=False).graph) == 1


def test_robots_txt_with_a_server_error_disallows_everything():
    with (
        FixtureServer({"/": "<h1>Hi</h1>", "/robots.txt": Page("", status=503)}) as site,
        pytest.raises(RobotsForbidden),
    ):
        explore(site.url, depth=1)


def test_failing_pages_are_failures_and_not_states():
    with FixtureServer(
        {"/": "<a href=/gone>Gone</a><a href=/data>Data</a>", "/data": Page("{}", content_type="application/json")}
    ) as site:
        capture = explore(site.url, depth=2)
    assert len(capture.graph) == 1
    assert sorted(failure.reason.split()[0] for failure in capture.report.failures) == ["http_404", "not_html"]


@pytest.mark.parametrize("mark", ["localStorage.seen = 1", "document.cookie = 'seen=1'"])
def test_storage_left_by_an_item_is_cleared_before_the_next_one(mark):
    """The button writes to storage, which changes every later load; only its own state may show that."""
    html = """<div id=out></div><button onclick="MARK; show()">Mark</button><a href=/other>Other</a>
    <script>function show() { if (localStorage.seen || document.cookie) out.innerHTML = '<h2>Seen</h2>' } show();
    addEventListener('pagehide', () => { if (out.innerHTML) MARK })</script>"""
    pages = {"/": html.replace("MARK", mark), "/other": "<h1>Other</h1><a href=/>Home</a>"}
    with FixtureServer(pages) as site:
        capture = explore(site.url, depth=2, workers=1)
    assert len(capture.graph) == 3
    assert capture.report.counters["session/resets"] >= 1
    # Two, and one in which it is tried whether what the button leaves decides what links lead to.
    assert capture.report.counters["browser/contexts"] == 3
    assert capture.report.failures == ()


@pytest.mark.parametrize("mark", ["localStorage.closed = 1", "document.cookie = 'closed=1'"])
def test_storage_left_by_reverting_an_action_is_cleared(mark):
    """Closing the panel writes to storage, which the other button would show."""
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


def test_storage_written_on_load_is_not_attributed_to_an_action():
    """Each page writes its name to storage on load and on unload: no action is repeated because of it."""
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
    # Two, and two in which it is tried whether what the pages leave decides what links lead to.
    assert counters["browser/contexts"] == 4


def test_run_that_exceeds_its_time_limit_keeps_its_states_and_reports_the_limit():
    links = "".join(f"<a href=/{i}>Page {i}</a>" for i in range(200))
    with FixtureServer({"/": links, **{f"/{i}": f"<h1>Page {i}</h1>{'<p>x</p>' * i}" for i in range(200)}}) as site:
        capture = explore(site.url, depth=1, max_seconds=8)
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


def test_other_hosts_are_never_visited():
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
