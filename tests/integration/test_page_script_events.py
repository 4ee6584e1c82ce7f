"""Event listeners become candidates, and actions have the same effects as those of a user."""

import pytest

from tests.browsers import BROWSERS, LOOPBACK_ONLY
from tests.integration.test_page_script import act, guarded_page, look, names
from tests.sites.server import FixtureServer
from waygraph.core.settings import ExploreSettings
from waygraph.pipeline.browser.page.failures import NotActionable
from waygraph.pipeline.browser.page.snapshot import SnapshotOptions
from waygraph.pipeline.browser.page.view import PageView

SAY = "const say = what => { const p = document.createElement('p'); p.textContent = what; document.body.append(p); };"


def kinds(snapshot):
    """Return (kind, value, name) of all candidates."""
    return [(c.action.kind, c.action.value, c.action.name) for c in snapshot.candidates]


def outcome(html):
    """Return each candidate of a page with the texts that performing it in a fresh page adds."""

    async def run(site):
        async with guarded_page() as page:
            first = (await page.view.goto(site.url)).snapshot
            before = [s.text for s in first.segments]
            led = {}
            for candidate in first.candidates:
                await page.view.goto(site.url)
                action = candidate.action
                seen = (await page.view.act(action)).snapshot
                new = [s.text for s in seen.segments if s.text not in before]
                led[action.kind, action.value, action.name] = new
            return led

    with FixtureServer({"/": html}) as site:
        return BROWSERS.run(run(site))


def test_every_kind_of_event_that_a_script_listens_to_can_be_caused():
    events = {
        "dblclick": ("<div id=ID>NAME</div>", ("dblclick", "")),
        "contextmenu": ("<div id=ID>NAME</div>", ("contextmenu", "")),
        "auxclick": ("<div id=ID>NAME</div>", ("contextmenu", "")),
        "mousedown": ("<div id=ID>NAME</div>", ("click", "")),
        "pointerup": ("<div id=ID>NAME</div>", ("click", "")),
        "touchstart": ("<div id=ID>NAME</div>", ("click", "")),
        "mouseover": ("<div id=ID>NAME</div>", ("hover", "")),
        "pointerenter": ("<div id=ID>NAME</div>", ("hover", "")),
        "mouseout": ("<div id=ID>NAME</div>", ("hover", "away")),
        "focus": ("<div id=ID tabindex=0>NAME</div>", ("focus", "")),
        "blur": ("<label>NAME <input id=ID></label>", ("focus", "away")),
        "focusin": ("<label>NAME <input id=ID></label>", ("focus", "")),
        "input": ("<label>NAME <input id=ID></label>", ("input", "a")),
        "keyup": ("<label>NAME <input id=ID></label>", ("input", "a")),
        "change": ("<label><input type=checkbox id=ID> NAME</label>", ("click", "")),
    }
    body, script, wanted = "", SAY, {}
    for number, (event, (html, (kind, value))) in enumerate(events.items()):
        name = f"n{number}"
        body += html.replace("ID", name).replace("NAME", name) + "\n"
        script += f"document.getElementById('{name}').addEventListener('{event}', () => say('{event} came'));"
        wanted[kind, value, name] = [f"{event} came"]
    led = outcome(f"{body}<script>{script}</script>")
    assert led == wanted


def test_keys_are_pressed_on_elements_with_key_listeners_except_fields():
    led = outcome(
        f"""<div tabindex=0 id=d>Box</div><script>{SAY}
        d.addEventListener('keydown', e => say(e.key + ' came'))</script>"""
    )
    assert led == {
        ("press", "Enter", "Box"): ["Enter came"],
        ("press", "Space", "Box"): ["came"],
        ("press", "ArrowDown", "Box"): ["ArrowDown came"],
    }


def test_every_other_option_of_a_select_that_is_listened_to_is_chosen():
    led = outcome(
        f"""<select aria-label=Sort id=s><option>New<option>Cheap<option>Good</select><select aria-label=Plain><option>1
        <option>2</select><script>{SAY} s.onchange = () => say(s.value + ' first')</script>"""
    )
    assert led == {("select", "Cheap", "Sort"): ["Cheap first"], ("select", "Good", "Sort"): ["Good first"]}


def test_suggestions_that_close_on_blur_are_captured_while_open():
    led = outcome(
        """<input role=combobox aria-label=City id=c><div id=l></div><script>
        c.addEventListener('input', () => { l.innerHTML = '<div role=option>Aachen</div>' });
        c.addEventListener('blur', () => { l.innerHTML = '' });</script>"""
    )
    assert led["input", "a", "City"] == ["Aachen"]


def test_delegated_listener_makes_its_targets_candidates():
    seen = look(
        """<ul id=menu><li id=a>A<li id=b>B</ul><div id=named>Named</div><div class=card data-open=1>Card</div>
        <p>Text</p><div id=box><a href=/x>Link</a><p>Text</p></div><script>
        document.addEventListener('click', e => { if (e.target.id === 'named') n = 1; });
        document.body.addEventListener('click', e => { if (e.target.closest('.card')) n = 2; });
        menu.addEventListener('click', e => { n = e.target.id; });
        box.addEventListener('click', () => {});</script>"""
    )
    assert names(seen) == ["A", "B", "Named", "Card", "Link"]


def test_removed_listeners_and_plain_fields_make_no_candidates():
    seen = look(
        """<div id=d>Was</div><input><select><option>1<option>2</select><input type=checkbox>
        <button>Go</button><div tabindex=0>Focusable</div><script>
        const f = () => {}; d.addEventListener('click', f); d.removeEventListener('click', f);
        document.addEventListener('keydown', () => {}); window.addEventListener('mousemove', () => {});</script>"""
    )
    assert kinds(seen) == [("click", "", "Go")]


def test_closed_shadow_roots_are_captured_and_operated():
    html = f"""<x-box></x-box><script>{SAY} customElements.define("x-box", class extends HTMLElement {{
      connectedCallback() {{
        const root = this.attachShadow({{mode: "closed"}});
        root.innerHTML = "<button>Inside</button>";
        root.firstChild.onclick = () => {{ root.append(document.createElement("hr")); say("Inside came"); }};
      }} }})</script>"""
    first, (acted,), _, _ = act(html, "Inside")
    assert any(c.action.xpath.endswith("/x-box[1] >>> /button[1]") for c in first.candidates)
    assert acted.rung == "exact"
    assert "Inside came" in [s.text for s in acted.snapshot.segments]


def test_declarative_shadow_roots_are_captured():
    seen = look("<div><template shadowrootmode=open><button>Inside</button></template></div>")
    assert names(seen) == ["Inside"]


def test_listeners_inside_an_svg_do_not_change_the_state():
    drawing = "<svg width=200 height=100><rect id=bar width=50 height=50 aria-label=Bar /></svg><button>B</button>"
    heard, plain = (
        look(drawing + script) for script in ("<script>bar.onclick = () => 1</script>", "<script></script>")
    )
    assert [c.action.name for c in heard.candidates] == ["Bar", "B"]
    assert [c.action.name for c in plain.candidates] == ["B"]
    assert heard.structure == plain.structure


def test_svg_elements_with_listeners_are_clicked():
    led = outcome(
        f"""<svg width=200 height=100><rect id=bar width=50 height=50 aria-label=Bar />
        <rect x=60 width=50 height=50 /></svg>
        <script>{SAY} bar.addEventListener('click', () => say('bar came'))</script>"""
    )
    assert led == {("click", "", "Bar"): ["bar came"]}


def test_react_handlers_are_read_from_react_props():
    seen = look(
        """<div id=root><div id=d>Item</div><p>Text</p></div><script>
        for (const type of ['click', 'dblclick', 'keydown', 'mouseover']) root.addEventListener(type, () => {});
        root.__reactContainer$x = {}; d.__reactProps$x = { onClick: () => {}, onDoubleClick: () => {} };</script>"""
    )
    assert kinds(seen) == [("click", "", "Item"), ("dblclick", "", "Item")]


@pytest.mark.parametrize(
    ("break_it"),
    [
        "Map.prototype.get = Set.prototype.has = () => { throw 1 }; window.Map = window.Set = null",
        "Array.prototype.map = Array.prototype.filter = Array.prototype.push = () => 'no'",
        "Element.prototype.getAttribute = Element.prototype.checkVisibility = () => null",
        "String.prototype.trim = String.prototype.split = () => { throw 1 }; RegExp.prototype.test = () => true",
        "Object.keys = Object.entries = Array.from = Promise.race = Promise.prototype.then = null",
        "JSON = null; window.Promise = null; window.requestAnimationFrame = null; document.querySelectorAll = () => []",
    ],
)
def test_page_that_replaces_builtins_is_captured_and_operated(break_it):
    html = f"<button onclick='n = 1'>Go</button><p>Text</p><script>{break_it}</script>"
    first, (acted,), _, _ = act(html, "Go")
    assert names(first) == ["Go"]
    assert acted.rung == "exact"


def test_page_of_a_hundred_thousand_elements_is_truncated_with_a_note():
    seen = look("<main></main><script>document.querySelector('main').innerHTML = '<p>x</p>'.repeat(100000)</script>")
    assert seen.cut
    assert len(seen.structure) == 20_000


def searches(html, **settings):
    """Return the searches that a page offers, as (word, name of the field), and the addresses they lead to."""

    async def run(site):
        async with guarded_page(**settings) as page:
            seen = (await page.view.goto(site.url)).snapshot
            actions = [candidate.action for candidate in seen.candidates if candidate.action.kind == "submit"]
            urls = [(await page.view.act(action)).snapshot.raw_url for action in actions]
            return [(action.value, action.name) for action in actions], [url.rpartition("/")[2] for url in urls]

    with FixtureServer({"/": html, "/find": "<p>Found</p>"}) as site:
        return BROWSERS.run(run(site))


FORM = "<form action=/find><input type=search name=q aria-label=Find></form>"


def test_search_form_is_submitted_unless_that_is_disabled():
    html = f"<title>Tiny shop</title>{FORM}"
    assert searches(html) == ([("tiny", "Find")], ["find?q=tiny"])
    assert searches(html, submit_search=False) == ([], [])


@pytest.mark.parametrize(
    ("headings", "word"),
    [
        ("<h1>Tiny shop</h1><h2>Our <em>stoneware</em> bowls</h2>", "stoneware"),
        ("<h1>Quiet things</h1><h2>Mended</h2><h3><a href=/c>Lighting</a></h3>", "lighting"),
        ("<h1>Quiet things</h1><a href=/c><h3>Lamps</h3></a>", "lamps"),
        ("<h1>Shop</h1>", "shop"),
        ("<h2 hidden>Secret</h2><h2>Küchenmöbel</h2>", "küchenmöbel"),
        ("<p>Bowls</p>", "tiny"),
        ("<h2>A-1</h2>", "tiny"),
    ],
)
def test_word_to_search_for_comes_from_a_visible_heading_and_not_from_the_title(headings, word):
    assert searches(f"<title>Tiny shop</title>{headings}{FORM}")[0] == [(word, "Find")]


@pytest.mark.parametrize(
    "form",
    [
        "<form action=/find><input name=isbn required aria-label=Book><button>Search</button></form>",
        "<form action=/find><input name=isbn required aria-label=Book><button title='本を検索'></button></form>",
        "<form action=/find role=search><input name=words aria-label=Book></form>",
    ],
)
def test_field_that_a_search_waits_for_is_filled(form):
    asked, urls = searches(f"<h1>Atlas</h1>{form}")
    assert asked == [("atlas", "Book")]
    assert urls[0].endswith("=atlas")


@pytest.mark.parametrize(
    "form",
    [
        "<form action=/find method=post><input type=search name=q></form>",
        "<form action=/find><input name=mail required><button>Subscribe</button></form>",
        "<form action=/find><input name=from required><input name=to required><button>Search</button></form>",
        "<form action=/find><input name=q><input type=password name=p></form>",
    ],
)
def test_other_forms_are_not_submitted(form):
    assert searches(f"<h1>Atlas</h1>{form}") == ([], [])


def test_infinite_list_grows_twice_at_most():
    seen = look(
        """<ul id=l></ul><script>const more = () => { for (let i = 0; i < 30; i++) {
          const li = document.createElement('li'); li.textContent = 'row'; li.style.height = '100px'; l.append(li); }
          new IntersectionObserver((all, o) => { if (all[0].isIntersecting) { o.disconnect(); more(); } })
            .observe(l.lastChild); }; more();</script>"""
    )
    assert not seen.capped
    assert 60 <= sum(s.text == "row" for s in seen.segments) <= 120


def test_closed_declarative_shadow_roots_are_captured_and_operated():
    html = f"""<div class=plain>Text</div><div class=empty></div><div class=filled style="height:9px"></div>
    <div class=deep><template shadowrootmode=open><section><template shadowrootmode=closed>
      <p>Closed in open</p></template></section></template></div>
    <div class=left-out><template shadowrootmode=closed><p>Without a slot</p></template><i>Not shown</i></div>
    <x-late><template shadowrootmode=closed><button onclick="{SAY} say('Inside came')">Inside</button><slot></slot>
      </template>Slotted</x-late>
    <x-own><template shadowrootmode=closed><b>By internals</b></template></x-own>
    <iframe srcdoc="<div><template shadowrootmode=closed><a href=/a>In a frame</a></template></div>"></iframe>
    <iframe srcdoc="<p id=p></p><script>p.attachShadow({{mode: 'closed'}}).innerHTML = '<b>By a script</b>'</script>">
    </iframe><script>customElements.define("x-own", class extends HTMLElement {{
      constructor() {{ super(); this.attachInternals(); }} }})</script>"""
    first, (acted,), _, _ = act(html, "Inside")
    said = {s.text for s in first.segments}
    assert said >= {"Text", "Closed in open", "Without a slot", "Inside", "Slotted", "By internals"}
    assert said >= {"In a frame", "By a script"}
    assert "Not shown" not in said
    assert acted.rung == "exact"
    assert "Inside came" in [s.text for s in acted.snapshot.segments]


def test_closed_shadow_roots_written_later_by_a_script_are_captured():
    html = """<button onclick="box.setHTMLUnsafe('<p><template shadowrootmode=closed><b>Late</b></template></p>')">
    Write</button><div id=box></div>"""
    _, (acted,), _, _ = act(html, "Write")
    assert "Late" in [s.text for s in acted.snapshot.segments]


def test_boxes_sized_by_styles_do_not_trigger_a_search_for_closed_shadow_roots(monkeypatch):
    asked = []

    async def count(devtools):
        asked.append(devtools)
        return 0

    monkeypatch.setattr("waygraph.pipeline.browser.page.evaluate.disclose", count)
    seen = look(
        """<style>.dot::before { content: "x" } .row { display: flex; height: 20px }</style>
        <div style="height:20px"></div><span style="display:inline-block;width:9px;height:9px"></span>
        <div class=dot></div><div class=row><span></span><div style="flex:1"></div></div><p></p><x-box>Text</x-box>
        <div style="position:fixed;inset:0;pointer-events:none"></div><div style="min-height:9px"></div>
        <script>customElements.define("x-box", class extends HTMLElement {})</script><button>Go</button>"""
    )
    assert names(seen) == ["Go"]
    assert asked == []


VIRTUAL = """<div id=view style="height:200px;overflow-y:auto">
<div id=rows style="position:relative;height:800px"></div></div><script>const draw = () => {
  const first = Math.floor(view.scrollTop / 40);
  rows.innerHTML = '';
  for (let i = first; i < Math.min(first + 5, 20); i++) rows.insertAdjacentHTML('beforeend',
    `<div style="position:absolute;height:40px;top:${i * 40}px" onclick="say('got ${i}')">Row ${i}</div>`);
};
view.addEventListener('scroll', () => requestAnimationFrame(draw)); draw();"""


def test_rows_of_a_virtual_list_are_operated_at_their_scroll_position():
    html = f"{VIRTUAL}{SAY}</script>"
    first, (acted,), *_ = act(html, "Row 12")
    assert names(first) == [f"Row {n}" for n in range(20)]
    assert [s.text for s in first.segments] == [f"Row {n}" for n in range(5)]
    (row,) = (c.action for c in first.candidates if c.action.name == "Row 12")
    assert row.xpath == "/html[1]/body[1]/div[1] ~~~ 400/div[1]/div[3]"
    assert acted.rung == "exact"
    assert [s.text for s in acted.snapshot.segments] == [*(f"Row {n}" for n in range(5)), "got 12"]


def test_moved_row_is_found_by_scrolling_and_missing_row_is_not_replaced_by_another():
    async def run(site):
        async with guarded_page() as page, guarded_page() as other:
            first = (await page.view.goto(site.url)).snapshot
            actions = {c.action.name: c.action for c in first.candidates}
            stranger = PageView(
                other.page, SnapshotOptions.from_settings(LOOPBACK_ONLY, ExploreSettings()), LOOPBACK_ONLY, owned=False
            )
            await stranger.goto(site.at("/shorter"))
            moved = await stranger.act(actions["Row 12"])
            with pytest.raises(NotActionable):
                await stranger.act(actions["Row 19"])
            return moved

    higher = VIRTUAL.replace("40", "48").replace("20)", "15)")
    pages = {"/": f"{VIRTUAL}{SAY}</script>", "/shorter": f"{higher}{SAY}</script>"}
    with FixtureServer(pages) as site:
        moved = BROWSERS.run(run(site))
    assert moved.rung == "role"
    assert "got 12" in [s.text for s in moved.snapshot.segments]


def test_box_with_scroll_listener_and_all_rows_is_not_scrolled():
    rows = "".join(f"<p><a href=/{n}>Row {n}</a>" for n in range(20))
    html = f"""<div id=view style="height:200px;overflow-y:auto">{rows}</div><p id=n>0 times</p><script>
      let times = 0; view.onscroll = () => {{ n.textContent = ++times + ' times'; }}</script>"""
    assert "0 times" in [s.text for s in look(html).segments]
