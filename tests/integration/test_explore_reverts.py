"""Changes within a document are reverted in the way in which a person would leave them, without loading it again."""

from collections import Counter

import pytest

from tests.exploring import explore
from tests.sites.server import FixtureServer

pytestmark = pytest.mark.extended

#: Each page: what it shows, the method that reverts the change, and the text that the change shows.
CHANGES = {
    "a dialog with a button to cancel": (
        """<button onclick="tray.hidden = false">Edit</button>
        <div id=tray hidden><h2>Edit the flow</h2><button onclick="tray.hidden = true">Cancel</button></div>""",
        "close",
        "Edit the flow",
    ),
    "a dialog with a cross": (
        """<button onclick="tray.hidden = false">Edit</button>
        <div id=tray hidden><h2>Edit the flow</h2>
        <button class=btn-close onclick="tray.hidden = true">
        <svg width=9 height=9><path d="M0 0L9 9M9 0L0 9" stroke=red /></svg></button></div>""",
        "close",
        "Edit the flow",
    ),
    "a context menu that a click elsewhere closes": (
        """<p>Some text</p><div id=area style="width: 200px; height: 50px; background: #def">Area</div>
        <ul id=menu hidden><li>Paste here</ul><script>
        area.addEventListener('contextmenu', event => { menu.hidden = false; event.preventDefault(); });
        document.addEventListener('mousedown', event => { if (event.button === 0) menu.hidden = true; });</script>""",
        "outside",
        "Paste here",
    ),
    "a drawer in front of a backdrop": (
        """<style>#back { position: fixed; inset: 0; background: #0003 } [hidden] { display: none }
        #drawer { position: fixed; top: 40px; height: 200px; background: white }</style>
        <button onclick="back.hidden = drawer.hidden = false">More</button>
        <div id=back hidden></div><div id=drawer hidden>What is more</div>
        <script>back.addEventListener('click', () => { back.hidden = drawer.hidden = true; })</script>""",
        "outside",
        "What is more",
    ),
    "a search field that closes on Escape": (
        """<button onclick="finder.hidden = false; word.focus(); this.disabled = true">Find</button>
        <p id=finder hidden>Words to find <input id=word></p><script>word.onkeydown = event => {
        if (event.key === 'Escape') { finder.hidden = true; document.querySelector('button').disabled = false; }
        };</script>""",
        "escape",
        "Words to find",
    ),
    "tabs": (
        """<ul><li><a class=on role=tab onclick="choose(this, 0)">First</a>
        <li><a role=tab onclick="choose(this, 1)">Second</a></ul>
        <p>The first sheet</p><p hidden>The second <b>sheet</b></p>
        <script>function choose(tab, number) {
        for (const one of document.querySelectorAll('a')) one.className = one === tab ? 'on' : '';
        document.querySelectorAll('p').forEach((sheet, i) => { sheet.hidden = i !== number; }); }</script>""",
        "reselect",
        "The second sheet",
    ),
    "a filter": (
        """<label>Filter <input oninput="hint.hidden = !this.value"></label><p id=hint hidden>Nothing fits</p>""",
        "refill",
        "Nothing fits",
    ),
    "a list of choices": (
        """<select onchange="hint.hidden = this.value !== 'All'"><option>Few<option>All</select>
        <p id=hint hidden>All of it</p>""",
        "refill",
        "All of it",
    ),
    "a panel that is remembered": (
        """<button onclick="panel.hidden = !panel.hidden; localStorage.panel = String(panel.hidden)">Panel</button>
        <p id=panel hidden>A panel</p>""",
        "toggle",
        "A panel",
    ),
}
#: A further element of each page, so that the explorer needs the page again.
_AFTER = "<button onclick=\"this.after(document.createElement('hr'))\">Line</button>"


@pytest.fixture(scope="module")
def capture():
    """One exploration of all pages."""
    pages = {
        f"/{number}": f"<h1>{name}</h1>{html}{_AFTER}" for number, (name, (html, _, _)) in enumerate(CHANGES.items())
    }
    links = "".join(f"<p><a href=/{number}>{name}</a>" for number, name in enumerate(CHANGES))
    with FixtureServer({"/": links, **pages}) as site:
        return explore(site.url, depth=2, workers=2)


def test_each_change_is_explored(capture):
    texts = {segment.text for seen in capture.observations.values() for segment in seen.segments}
    assert {shown for _, _, shown in CHANGES.values()} <= texts


def test_each_change_is_reverted_as_a_person_would(capture):
    expected = Counter(f"undo/{method}" for _, method, _ in CHANGES.values())
    assert {
        method: capture.report.counters.get(method, 0) >= count for method, count in expected.items()
    } == dict.fromkeys(expected, True)


def test_no_page_is_loaded_again_to_revert_a_change(capture):
    assert capture.report.counters["reach/replays"] == 1 + len(CHANGES)


def test_an_element_that_a_policy_leaves_alone_reverts_nothing():
    """The only button of the dialog closes it, and deletes the order as well."""
    html = """<button onclick="tray.hidden = false">Edit</button><div id=tray hidden>A dialog
    <button onclick="deleteOrder(); tray.hidden = true">Close</button></div>
    <script>function deleteOrder() { document.title = 'deleted' }</script>"""
    with FixtureServer({"/": html + _AFTER}) as site:
        capture = explore(site.url, depth=1, workers=1)
    assert "undo/close_tried" not in capture.report.counters
    assert "deleted" not in {node.title for node in capture.graph.nodes.values()}


def test_a_menu_that_the_pointer_holds_open_is_opened_again_for_each_of_its_links():
    """Style sheets open the menu and its submenu, so that the document stays the same."""
    items = "".join(f"<li><a href=/{name}>{name}</a>" for name in ("lamps", "bowls", "rugs"))
    html = f"""<style>ul ul {{ display: none }} li:hover > ul {{ display: block }}</style><ul><li><a href=/shop>Shop</a>
    <ul><li><a href=/sale>Sale</a><ul>{items}</ul></ul></ul>"""
    pages = {f"/{name}": f"<h1>{name}</h1>" for name in ("shop", "sale", "lamps", "bowls", "rugs")}
    with FixtureServer({"/": html, **pages}) as site:
        capture = explore(site.url, depth=3, workers=1)
    assert {node.url.rpartition("/")[2] for node in capture.graph.nodes.values()} >= {"lamps", "bowls", "rugs"}
    assert capture.report.counters["undo/reopen"] >= 2
    assert capture.report.counters["reach/replays"] == 3  # the page, the page with its menu, and with its submenu
