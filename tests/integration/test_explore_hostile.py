"""Regression tests: pages that made an exploration fail in the past."""

import pytest

from tests.exploring import explore
from tests.sites.server import FixtureServer, Page
from waygraph.core.errors import RobotsForbidden


def edges(capture, base):
    """Walked edges as (source, name, target, opens tab), states named by path and number of elements."""
    graph = capture.graph
    label = {n.id: f"{n.url.removeprefix(base)}:{len(n.structure)}" for n in graph.nodes.values()}
    return {(label[e.source], e.action.name, label[e.target], e.opens_tab) for e in graph.edges if not e.inherited}


def found(pages, depth=1, **settings):
    with FixtureServer(pages) as site:
        capture = explore(site.url, depth=depth, **settings)
        return edges(capture, site.url), capture, site


@pytest.mark.parametrize(
    "opener",
    [
        "<button type=button onclick='f.submit()'>Continue</button>",
        "<button type=button onclick='f.requestSubmit()'>Continue</button>",
    ],
)
def test_a_form_posted_into_a_new_tab_by_a_script_never_reaches_the_server(opener):
    form = f"<form id=f method=post action=/evil target=_blank></form>{opener}"
    _, capture, site = found({"/": form})
    assert site.mutations == 0
    (edge,) = capture.graph.edges
    assert [(b.method, b.url.rpartition("/")[2]) for b in edge.blocked] == [("POST", "evil")]


def test_unparsable_link_is_skipped():
    walked, _, _ = found({"/": "<a href='http://[oops/'>x</a><a href=/a>a</a>", "/a": "<h1>A</h1>"})
    assert {(name, target) for _, name, target, _ in walked} >= {("a", "a:3")}


def test_forms_whose_fields_shadow_their_properties_are_read_correctly():
    html = """<form name=title><input name=children><input type=radio name=method><input name=id><input name=attributes>
    <input name=matches><input name=getAttribute><p>In the form</p><a href=/a>Inside</a>
    <button type=button>Go</button></form>"""
    walked, capture, _ = found({"/": html, "/a": "<h1>A</h1>"})
    assert {name for _, name, _, _ in walked} == {"Inside", "Go"}
    (start,) = (o for o in capture.observations.values() if o.node_id == capture.graph.start)
    assert "In the form" in [segment.text for segment in start.segments]


def test_text_with_a_lone_surrogate_can_be_stored():
    _, capture, _ = found({"/": f"<p>{'a' * 299}\U0001f600</p><script>document.title = '\\ud83d'</script>"})
    for observation in capture.observations.values():
        for segment in observation.segments:
            segment.text.encode()
        observation.title.encode()


def test_start_page_that_redirects_to_a_disallowed_page_is_refused():
    pages = {
        "/": Page(redirect="/private/"),
        "/private/": "<h1>P</h1>",
        "/robots.txt": Page("User-agent: *\nDisallow: /private/", content_type="text/plain"),
    }
    with FixtureServer(pages) as site:
        with pytest.raises(RobotsForbidden):
            explore(site.url, depth=1)
        assert "/private/" not in site.paths


@pytest.mark.parametrize("workers", [1, 2])
def test_script_variables_do_not_leak_into_the_next_item(workers):
    html = "<script>n = 0</script><button onclick='n++'>A</button><button onclick=\"location = '/p' + n\">B</button>"
    walked, _, _ = found({"/": html, "/p0": "<h1>0</h1>", "/p1": "<h1>1</h1>"}, workers=workers)
    assert {(name, target) for _, name, target, _ in walked} == {("A", ":4"), ("B", "p0:3")}


@pytest.mark.parametrize(
    "link",
    [
        "<base target=_blank><a href=/a>To</a>",
        "<a href=/a target=_blank onclick='event.stopPropagation()'>To</a>",
        "<a href=/a target=shop>To</a>",
        "<button onclick=\"window.open('/a')\">To</button>",
        "<iframe srcdoc='<a target=_blank href=/a>To</a>' ></iframe>",
    ],
)
def test_links_into_new_tabs_lead_to_the_page_in_the_tab(link):
    walked, _, _ = found({"/": link, "/a": "<h1>A</h1>"})
    assert {(name, target, opens) for _, name, target, opens in walked} == {("To", "a:3", True)}


def test_window_opened_in_place_and_named_frame_are_not_new_tabs():
    walked, _, _ = found({"/": "<button onclick=\"window.open('/a', '_self')\">To</button>", "/a": "<h1>A</h1>"})
    assert {(name, target, opens) for _, name, target, opens in walked} == {("To", "a:3", False)}
    frames = "<iframe name=content srcdoc='<p>empty</p>'></iframe><a href=/a target=content>Fill</a>"
    walked, capture, _ = found({"/": frames, "/a": "<h1>A</h1><p>x</p>"})
    assert {(name, opens) for _, name, _, opens in walked} == {("Fill", False)}
    assert len(capture.graph) == 2


def test_a_second_tab_of_one_click_is_recorded_as_skipped():
    _, capture, _ = found(
        {"/": "<button onclick=\"window.open('/a'); window.open('/b')\">Both</button>", "/a": "<p>a", "/b": "<p>b"}
    )
    assert [(s.reason, s.detail.rpartition("/")[2]) for s in capture.report.skips] == [("second_tab", "b")]


def test_button_without_effect_is_not_inherited_as_a_route_back():
    html = "<button>Noop</button><button onclick=\"o.innerHTML = '<p>open</p>'\">Open</button><div id=o></div>"
    _, capture, _ = found({"/": html}, depth=2)
    assert [e.action.name for e in capture.graph.edges if e.inherited and e.source != e.target] == []


def test_a_beacon_is_blocked_and_the_pages_behind_its_edge_are_reached():
    html = """<button onclick="navigator.sendBeacon('/track', 'x'); o.innerHTML = '<a href=/a>Deep</a>'">Menu</button>
    <div id=o></div>"""
    walked, capture, site = found({"/": html, "/a": "<h1>A</h1>"}, depth=2)
    assert site.mutations == 0
    assert "Deep" in {name for _, name, _, _ in walked}
    menu = next(e for e in capture.graph.edges if e.action.name == "Menu")
    assert [b.kind for b in menu.blocked] == ["ping"]
    assert not menu.is_state_changing


@pytest.mark.extended
@pytest.mark.timeout(120)
def test_pages_that_hang_or_have_no_body_fail_their_own_items_only():
    pages = {
        "/": """<a href=/busy>Busy</a><a href=/hidden>Hidden</a><a href=/frames>Frames</a><a href=/bye>Bye</a>
        <a href=/fine>Fine</a>""",
        "/busy": "<h1>Busy</h1><script>addEventListener('load', () => setTimeout(() => { for (;;); }, 10))</script>",
        "/hidden": "<h1>Hidden</h1><script>Symbol.for = () => Symbol()</script>",
        "/frames": "<frameset cols='50%,50%'><frame src=/fine><frame src=/fine></frameset>",
        "/bye": "<h1>Bye</h1><script>window.close()</script>",
        "/fine": "<h1>Fine</h1>",
    }
    with FixtureServer(pages) as site:
        capture = explore(site.url, depth=1, browser={"navigation_timeout_ms": 2_000, "settle_cap_ms": 1_000})
    names = {edge.action.name for edge in capture.graph.edges}
    assert {"Frames", "Fine"} <= names
    assert "Busy" in {failure.action.split('"')[1] for failure in capture.report.failures}


def test_every_state_of_a_run_has_its_captures():
    _, capture, _ = found({"/": "<a href=/a>a</a>", "/a": "<h1>A</h1>"})
    assert all(o.screenshot and o.dom and o.aria for o in capture.observations.values())
