"""Snapshots of pages, each with one phenomenon and a known answer."""

import json
import threading
import time
from contextlib import asynccontextmanager

import pytest

from tests.browsers import BROWSERS, LOOPBACK_ONLY
from tests.sites.server import FixtureServer, Page
from waygraph.core.settings import CaptureProfile, ExploreSettings
from waygraph.index.graph import element_hash
from waygraph.pipeline.browser.page.failures import NotActionable
from waygraph.pipeline.browser.page.script import WAYGRAPH
from waygraph.pipeline.browser.page.snapshot import SnapshotOptions
from waygraph.pipeline.browser.session import ContextOptions, GuardedPage


@asynccontextmanager
async def guarded_page(policy=lambda _: None, settings=LOOPBACK_ONLY, **explore):
    page = await GuardedPage.open(
        await BROWSERS.browser(),
        ContextOptions(CaptureProfile(), user_agent="waygraph-test"),
        settings=settings,
        snapshot_options=SnapshotOptions.from_settings(settings, ExploreSettings(**explore)),
        document_policy=policy,
    )
    try:
        yield page
    finally:
        await page.close()


def look(html, **pages):
    """Return the snapshot of a page with this HTML."""

    async def run(site):
        async with guarded_page() as page:
            return (await page.view.goto(site.url)).snapshot

    with FixtureServer({"/": html, **pages}) as site:
        return BROWSERS.run(run(site))


def act(html, *names, pages=None):
    """Return the first snapshot, those after clicking the named elements in turn, and the page itself."""

    async def run(site):
        async with guarded_page() as page:
            first = (await page.view.goto(site.url)).snapshot
            acted = []
            for name in names:
                kind, _, label = name.rpartition(":")
                seen = acted[-1].snapshot if acted else first
                action = next(
                    c.action for c in seen.candidates if c.action.name == label and c.action.kind == (kind or "click")
                )
                acted.append(await page.view.act(action))
            stopped = page.take_stopped()
            return first, acted, (stopped.blocked, stopped.refused)

    with FixtureServer({"/": html, **(pages or {})}) as site:
        return (*BROWSERS.run(run(site)), site)


def names(snapshot, kind="click"):
    return [c.action.name for c in snapshot.candidates if c.action.kind == kind]


def test_element_hashes_are_md5_of_full_xpaths_with_frames_and_shadow_hops():
    seen = look(
        """<title>t</title><main>é<p>a</p><p>b</p></main><x-box></x-box><iframe srcdoc="<h1>In</h1>"></iframe>
        <script>customElements.define("x-box", class extends HTMLElement {
          connectedCallback() { this.attachShadow({mode: "open"}).innerHTML = "<button>Inside</button>"; }
        })</script>"""
    )
    assert set(seen.structure) == {
        element_hash("/html[1]"),
        element_hash("/html[1]/body[1]"),
        element_hash("/html[1]/body[1]/main[1]"),
        element_hash("/html[1]/body[1]/main[1]/p[1]"),
        element_hash("/html[1]/body[1]/main[1]/p[2]"),
        element_hash("/html[1]/body[1]/x-box[1]"),
        element_hash("/html[1]/body[1]/x-box[1] >>> /button[1]"),
        element_hash("/html[1]/body[1]/iframe[1]"),
        element_hash("/html[1]", ["/html[1]/body[1]/iframe[1]"]),
        element_hash("/html[1]/body[1]", ["/html[1]/body[1]/iframe[1]"]),
        element_hash("/html[1]/body[1]/h1[1]", ["/html[1]/body[1]/iframe[1]"]),
    }
    assert names(seen) == ["Inside"]


@pytest.mark.parametrize(
    "hiding",
    [
        "style='display:none'",
        "style='visibility:hidden'",
        "style='opacity:0'",
        "style='opacity:.049'",
        "aria-hidden=true",
        "inert",
        "hidden",
        "style='position:absolute;left:-9999px'",
        "style='max-height:0;overflow:hidden'",
        "style='height:0;width:0;overflow:hidden'",
    ],
)
def test_invisible_elements_are_not_exposed(hiding):
    seen = look(f"<button>Seen</button><div {hiding}><button>Unseen</button></div>")
    assert names(seen) == ["Seen"]


def test_faint_effects_leave_no_trace_and_dim_elements_do():
    """A ripple that was interrupted stays at a random opacity."""

    html = """<style>i, div { opacity: var(--seen, 0) }</style><div>.</div>
        <button onclick="document.body.style.setProperty('--seen', next.shift())">Save<i> ripple</i></button>
        <script>var next = ["0.0065", "0.06"]</script>"""
    clear, (faint, dim), _, _ = act(html, "Save", "Save")
    assert names(clear) == names(faint.snapshot) == ["Save"]
    assert clear.id == faint.snapshot.id != dim.snapshot.id
    assert names(dim.snapshot) == ["Save ripple"]


def test_open_details_and_dialogs_are_exposed_and_closed_ones_are_not():
    seen = look(
        """<details><summary>More</summary><a href=/a>In closed</a></details>
        <details open><summary>Less</summary><a href=/b>In open</a></details>
        <dialog><button>In closed dialog</button></dialog>"""
    )
    assert names(seen) == ["More", "Less", "In open"]


def test_elements_behind_a_modal_dialog_are_not_exposed():
    html = "<button onclick='d.showModal()'>Open</button><dialog id=d><button>Close</button></dialog>"
    _, (opened,), _, _ = act(html, "Open")
    assert names(opened.snapshot) == ["Close"]


OVER = "position:fixed;inset:0;background:#0008"


def test_elements_behind_an_aria_modal_box_that_covers_the_window_are_not_exposed():
    seen = look(
        f"""<a href=/behind>Behind</a><p>Text behind</p><div style="{OVER}"></div>
        <div role=dialog aria-modal=true style="position:fixed;inset:20% 40%;background:white">
        <p>Text in front</p><button>Close</button></div>"""
    )
    assert names(seen) == ["Close"]
    assert [segment.text for segment in seen.segments] == ["Text in front", "Close"]


@pytest.mark.parametrize(
    ("why", "box"),
    [
        (
            "it is hidden",
            f"<div role=dialog aria-modal=true style='{OVER};visibility:hidden'>In</div>",
        ),
        ("it is transparent", f"<div role=dialog aria-modal=true style='{OVER};opacity:0'>In</div>"),
        ("it lies below", f"<div role=dialog aria-modal=true style='{OVER};z-index:-1'>In</div>"),
        ("it covers a corner only", "<div role=dialog aria-modal=true style='position:fixed;left:0;top:0'>In</div>"),
        ("it is no dialog", f"<div aria-modal=true style='{OVER};pointer-events:none'>In</div>"),
    ],
)
def test_aria_modal_box_that_does_not_cover_the_window_hides_nothing(why, box):
    assert "Behind" in names(look(f"<a href=/behind>Behind</a>{box}")), why


def test_scrolled_out_content_of_a_scrolling_box_is_exposed():
    seen = look("<div style='height:50px;overflow:auto'><p style='height:500px'>tall</p><a href=/x>Deep</a></div>")
    assert names(seen) == ["Deep"]


def test_roles_and_names_follow_aria():
    seen = look(
        """<a href=/a><img alt=Logo src=data:,></a><button aria-label=Close>x</button><div role=tab>Tab <b>one</b></div>
        <span id=l>Labelled</span><button aria-labelledby=l>no</button><input type=button value=Press>
        <summary>s</summary><input type=text aria-label=Field><div role="menuitem">Item</div>"""
    )
    found = [(c.action.role, c.action.name) for c in seen.candidates]
    assert ("link", "Logo") in found
    assert ("button", "Close") in found
    assert ("tab", "Tab one") in found
    assert ("button", "Labelled") in found
    assert ("button", "Press") in found
    assert ("menuitem", "Item") in found
    assert not any(role == "textbox" for role, _ in found)


def test_an_element_without_a_name_has_titles_and_description_as_its_icon():
    seen = look(
        """<button aria-describedby=d style="width:9px"><img alt="" title=Bin src=data:, class=pic></button>
        <i id=d>Removes it</i><button aria-description=Erases style="width:9px"></button>"""
    )
    assert [c.icon for c in seen.candidates] == ["Bin Removes it pic", "Erases"]


@pytest.mark.parametrize(
    "sheet",
    [
        "<style>@media all { @layer a { button::before { content: 'Delete' } } }</style>",
        "<style>button { color: red; &::before { content: '' / 'Delete' } }</style>",
        "<style>:root { --name: 'Delete' } button::before { content: var(--name) }</style>",
        f"<style>{'i { color: red }' * 400} button::before {{ content: 'Delete' }}</style>",
        "<style>@import url('data:text/css,button::before{content:%22Delete%22}')</style>",
        """<script>document.adoptedStyleSheets = [new CSSStyleSheet()];
        document.adoptedStyleSheets[0].insertRule("button::before { content: 'Delete' }")</script>""",
        """<style>button::before { content: '' }</style>
        <script>document.styleSheets[0].cssRules[0].style.content = "'Delete'"</script>""",
        """<style>button::before { content: '' }</style><script>onload = () => document.querySelector("button").animate(
        {content: ["'Delete'", "'Delete'"]}, {pseudoElement: "::before", duration: 1, fill: "forwards"})</script>""",
    ],
)
def test_generated_content_is_found_wherever_its_rule_stands(sheet):
    assert names(look(f"{sheet}<button></button>")) == ["Delete"]


def test_generated_content_is_found_in_the_sheet_of_a_shadow_root():
    seen = look(
        """<div id=host></div><script>host.attachShadow({mode: "closed"}).innerHTML =
        `<style>button::before { content: "Delete" }</style><button></button>`</script>"""
    )
    assert names(seen) == ["Delete"]


def test_options_are_chosen_by_their_accessible_names():
    html = """<style>select, ::picker(select) { appearance: base-select }</style>
        <select onchange="said.textContent = value"><option>One<option value=two><img alt=Second src=data:,></select>
        <p id=said></p>"""
    first, (chosen,), _, _ = act(html, "select:")
    assert [c.action.value for c in first.candidates if c.action.kind == "select"] == ["Second"]
    assert "two" in [segment.text for segment in chosen.snapshot.segments]


def test_a_custom_element_is_disabled_by_its_form_or_its_internals():
    def box(name, code):
        return f"""<{name}>Go</{name}><script>customElements.define("{name}", class extends HTMLElement {{
            static formAssociated = true; constructor() {{ super(); const internals = this.attachInternals();
            internals.role = "button"; {code} }} }})</script>"""

    disabled = "<fieldset disabled>" + box("x-a", "") + "</fieldset>" + box("x-b", "internals.ariaDisabled = 'true'")
    seen = look(disabled + box("x-c", ""))
    assert [c.disabled for c in seen.candidates] == [True, True, False]


def test_internals_in_a_frame_name_its_elements():
    inner = """<x-a style="display:block;height:9px"></x-a><script>
        customElements.define("x-a", class extends HTMLElement { constructor() {
            super(); Object.assign(this.attachInternals(), {role: "button", ariaLabel: "Inside"}) } })</script>"""
    seen = look("<iframe src=/inner></iframe>", **{"/inner": inner})
    assert [(c.action.role, c.action.name) for c in seen.candidates] == [("button", "Inside")]


def test_names_of_elements_that_own_or_refer_to_each_other_end():
    seen = look(
        """<button id=a aria-owns=b aria-labelledby="b c">A</button>
        <button id=b aria-owns=a aria-labelledby=a>B</button>
        <label id=c for=d><button id=d aria-labelledby=c>D</button></label>"""
    )
    assert len(seen.candidates) == 3


def test_transparent_text_is_not_part_of_a_name():
    clear = "style='opacity:0'"
    seen = look(
        f"""<button>Save<i {clear}>Saved a minute ago</i></button>
        <div onclick="1">Chart <div {clear}><b>26 June: 4</b></div></div>
        <label for=city {clear}><b>City</b></label><input id=city>"""
    )
    assert [c.action.name for c in seen.candidates if c.action.kind == "click"] == ["Save", "Chart"]
    assert "City" in [s.text for s in seen.segments]  # a label that floats in when the field has the focus


def test_elements_that_are_clickable_without_a_role_are_candidates_once():
    seen = look(
        """<div onclick="1">Handler</div><div style="cursor:pointer"><span>Pointer</span></div>
        <a href=/x style="cursor:pointer"><span>Link</span></a>"""
    )
    assert [(c.action.role, c.action.name) for c in seen.candidates] == [
        ("", "Handler"),
        ("", "Pointer"),
        ("link", "Link"),
    ]


def test_equal_elements_are_numbered_in_document_order():
    seen = look("<button>Edit</button><button>Edit</button><button>Other</button><button>Edit</button>")
    assert [(c.action.name, c.action.nth) for c in seen.candidates] == [
        ("Edit", 0),
        ("Edit", 1),
        ("Other", 0),
        ("Edit", 2),
    ]


def test_segments_are_the_visible_texts_with_role_and_box():
    seen = look("<h1>Title <em>of it</em></h1><p>Text with <a href=/l>link</a></p><p hidden>Secret</p>")
    assert [(s.role, s.text) for s in seen.segments] == [
        ("heading", "Title of it"),
        ("text", "Text with"),
        ("link", "link"),
    ]
    assert all(s.box.width > 0 and s.box.height > 0 for s in seen.segments)


HOVER_MENU = """<style>.sub{display:none} li:hover > .sub{display:block}</style>
<ul><li><a href=/shop>Shop</a><ul class=sub><li><a href=/shoes>Shoes</a></li></ul></li></ul><p>below</p>"""


def test_hover_menu_is_opened_by_a_hover_and_stays_open_during_the_snapshot():
    first, (hovered,), _, _ = act(HOVER_MENU, "hover:Shop")
    assert names(first, "hover") == ["Shop"]
    assert "Shoes" not in names(first)
    assert "Shoes" in names(hovered.snapshot)


def test_pointer_leaves_the_clicked_element():
    html = "<style>b{display:none} button:hover + b{display:inline}</style><button>Go</button><b>tip</b>"
    first, (clicked,), _, _ = act(html, "Go")
    assert clicked.snapshot.id == first.id


def test_content_that_arrives_800_ms_after_the_click_is_waited_for():
    html = """<button onclick="setTimeout(() => { out.innerHTML = '<p>late</p>' }, 800)">Later</button>
    <button onclick="fetch('/slow').then(r => r.text()).then(t => { out.innerHTML = t })">Fetch</button>
    <div id=out></div>"""

    async def run(site):
        async with guarded_page() as page:
            texts = []
            for label in ("Later", "Fetch"):
                seen = (await page.view.goto(site.url)).snapshot
                action = next(c.action for c in seen.candidates if c.action.name == label)
                texts.append([s.text for s in (await page.view.act(action)).snapshot.segments])
            return texts

    with FixtureServer({"/": html, "/slow": "<p>fetched</p>"}) as site:
        later, fetched = BROWSERS.run(run(site))
    assert "late" in later
    assert "fetched" in fetched


def test_page_that_never_settles_is_captured_at_the_settle_cap():
    seen = look("<p id=p></p><script>setInterval(() => { p.append(Math.random()) }, 5)</script>")
    assert seen.capped


def test_interval_that_is_overdue_when_settling_begins_is_waited_for():
    html = "<p id=p></p><script>setInterval(() => { p.append(Math.random()) }, 5)</script>"
    blocked = """async options => {
      await new Promise(done => setTimeout(done, 50));
      for (const end = performance.now() + 500; performance.now() < end;);
      return JSON.parse(await SCRIPT.settle(options)).settled;
    }""".replace("SCRIPT", WAYGRAPH)

    short = LOOPBACK_ONLY.model_copy(update={"settle_cap_ms": 1_500})

    async def run(site):
        async with guarded_page(settings=short) as page:
            await page.view.goto(site.url)
            options = SnapshotOptions.from_settings(short, ExploreSettings()).to_js(hovering=False)
            return await page.page.evaluate(blocked, options)

    with FixtureServer({"/": html}) as site:
        settled = BROWSERS.run(run(site))
    assert settled["waited"]
    assert settled["capped"]


def test_page_still_loading_at_the_settle_cap_is_waited_for():
    html = """<script>(async () => {
      for (let i = 0; i < 6; i++) await fetch(`/part${i}`);
      document.body.innerHTML = "<button>Ready</button>";
    })()</script>"""
    parts = {f"/part{i}": Page("", hold=threading.Event(), hold_at_most_s=0.4) for i in range(6)}

    async def run(site):
        async with guarded_page(settings=LOOPBACK_ONLY.model_copy(update={"settle_cap_ms": 1_500})) as page:
            return (await page.view.goto(site.url)).snapshot

    with FixtureServer({"/": html, **parts}) as site:
        seen = BROWSERS.run(run(site))
    assert names(seen) == ["Ready"]
    assert not seen.capped


def test_request_of_a_page_without_actionable_elements_is_not_a_long_poll():
    html = "<p>Loading</p><script>fetch('/slow').then(() => { document.body.innerHTML = '<a href=/>In</a>' })</script>"
    with FixtureServer({"/": html, "/slow": Page("", hold=threading.Event(), hold_at_most_s=3.5)}) as site:

        async def run():
            async with guarded_page() as page:
                return (await page.view.goto(site.url)).snapshot

        assert names(BROWSERS.run(run())) == ["In"]


def test_settling_waits_for_the_response_body_not_only_its_headers():
    html = """<div id=out></div><script>
    let steps = 12;  // timers that timers set are not waited for
    const body = new ReadableStream({ start(to) {
      const step = () => {
        if (--steps) return setTimeout(step, 40);
        to.enqueue(new TextEncoder().encode("whole"));
        to.close();
      };
      step();
    } });
    new Response(body).text().then((text) => { out.textContent = text });
    </script>"""
    assert "whole" in [s.text for s in look(html).segments]


def test_content_of_a_scrolling_box_below_the_end_of_the_page_is_exposed():
    shell = "<body style='margin:0;height:100vh;overflow:hidden'><div style='height:100vh;overflow:{}'>{}</div>"
    items = "".join(f"<p style='height:200px'><a href=/{i}>Item {i}</a></p>" for i in range(12))
    assert names(look(shell.format("auto", items))) == [f"Item {i}" for i in range(12)]
    assert "Item 11" not in names(look(shell.format("hidden", items)))


SHIELD = "<div id=shade style='position:fixed;inset:0;background:#0008'></div>"
FRONT = "<div style='position:fixed;{where};background:#fff'><button onclick='x()'>Close</button></div>"


@pytest.mark.parametrize(
    "where", ["left:200px;top:200px", "inset:0 0 0 60%", "inset:0 60% 0 0", "inset:70% 0 0 0", "inset:0 0 60% 60%"],
    ids=["tour", "drawer on the right", "drawer on the left", "sheet at the bottom", "in a corner"],
)  # fmt: skip
def test_elements_behind_an_overlay_are_covered(where):
    app = "<div><a href=/a>Top</a><p style='height:3000px'></p><a href=/b>Bottom</a></div>"
    seen = look(f"{app}<div>{SHIELD}{FRONT.format(where=where)}</div>")
    assert {c.action.name: c.covered for c in seen.candidates} == {"Top": True, "Bottom": True, "Close": False}


@pytest.mark.parametrize(
    "html",
    [
        f"<a href=/a>A</a>{SHIELD.replace('fixed', 'fixed;pointer-events:none')}",
        f"<div style='position:relative;z-index:1'><a href=/a>A</a></div>{SHIELD}",
        SHIELD.replace("</div>", "<a href=/a style='position:absolute;left:50%;top:50%'>A</a></div>"),
        "<a href=/a>A</a><div style='position:fixed;inset:0 0 50% 0'></div>",
    ],
    ids=["lets the pointer through", "below", "a page of its own", "half of it"],
)
def test_overlay_without_pointer_events_covers_nothing(html):
    assert not any(c.covered for c in look(f"<p style='height:2000px'></p>{html}").candidates)


def test_web_component_is_clicked_inside_its_shadow_root():
    html = """<style>x-button { cursor: pointer }</style><x-button>Save</x-button><script>
    customElements.define("x-button", class extends HTMLElement {
      connectedCallback() { this.attachShadow({mode: "open"}).innerHTML = "<button><slot></slot></button>"; }
    })</script>"""
    seen = look(html)
    assert [(c.action.kind, c.tag) for c in seen.candidates] == [("click", "button")]


@pytest.mark.parametrize(("then", "later"), [("Just now", "1 minute ago"), ("README 27s ago", "README 1m ago")])
def test_element_with_a_relative_time_in_its_name_is_found_after_the_time_changed(then, later):
    html = f"""<button onclick="age.textContent = '{later}'">Wait</button>
    <button id=age onclick="out.textContent = 'opened'">{then}</button><p id=out></p>"""

    async def run(site):
        async with guarded_page() as page:
            seen = (await page.view.goto(site.url)).snapshot
            wait, age = (c.action for c in seen.candidates)
            await page.view.act(wait)
            return (await page.view.act(age)).snapshot

    with FixtureServer({"/": html}) as site:
        assert "opened" in [s.text for s in BROWSERS.run(run(site)).segments]


def test_list_with_a_double_click_handler_makes_its_items_candidates():
    html = """<div id=files><ul><li>notes.txt</li><li>data.csv</li></ul></div><script>
    files.addEventListener("dblclick", { handleEvent(event) { open(event.target.closest("li")) } });
    </script>"""
    assert names(look(html), "dblclick") == ["notes.txt", "data.csv"]


def test_element_with_enter_and_leave_handlers_gets_one_hover_candidate():
    html = """<b id=both>Tip</b><b id=left>Leave</b><script>
    for (const type of ["mouseenter", "mouseleave"]) both.addEventListener(type, () => {});
    left.addEventListener("mouseleave", () => {});
    </script>"""
    hovers = [(c.action.name, c.action.value) for c in look(html).candidates if c.action.kind == "hover"]
    assert hovers == [("Tip", ""), ("Leave", "away")]


def test_finite_animations_are_finished():
    html = """<style>@keyframes in { from { visibility: hidden } to { visibility: visible } }
    .in { animation: in 30s steps(1, end) both }</style><button onclick="x.className='in'">Go</button>
    <div id=x style="visibility:hidden"><a href=/x>Shown</a></div>"""
    _, (acted,), _, _ = act(html, "Go")
    assert "Shown" in names(acted.snapshot)
    assert not acted.snapshot.capped


def test_state_changing_requests_are_blocked_and_reported():
    html = """<button onclick="fetch('/api', {method: 'POST', body: 'x'}).catch(() => 0)">Fetch</button>
    <button onclick="navigator.sendBeacon('/beacon', 'x')">Beacon</button>
    <button onclick="let x = new XMLHttpRequest(); x.open('DELETE', '/thing'); x.send()">Xhr</button>
    <form method=post action=/form><button>Form</button></form>
    <form method=post action=/tab target=_blank><button>Tab</button></form>"""
    first, acted, (blocked, refused), site = act(html, "Fetch", "Beacon", "Xhr", "Form", "Tab")
    assert [(b.method, b.url.rpartition("/")[2]) for b in blocked] == [
        ("POST", "api"),
        ("POST", "beacon"),
        ("DELETE", "thing"),
        ("POST", "form"),
    ]
    assert refused == ()
    assert site.mutations == 0
    assert {a.snapshot.id for a in acted} == {first.id}
    assert not any(a.snapshot.capped for a in acted)


def test_documents_refused_by_policy_are_not_loaded_and_the_page_stays():
    async def run(site):
        async with guarded_page(lambda url: "robots" if url.endswith("/secret") else None) as page:
            seen = (await page.view.goto(site.url)).snapshot
            acted = await page.view.act(seen.candidates[0].action)
            return seen, acted, page.take_stopped().refused

    with FixtureServer({"/": "<button onclick=\"location='/secret'\">Go</button>"}) as site:
        seen, acted, refused = BROWSERS.run(run(site))
        assert acted.snapshot.id == seen.id
        assert [(url.rpartition("/")[2], reason) for url, reason in refused] == [("secret", "robots")]
        assert "/secret" not in site.paths


def test_dialogs_downloads_and_new_tabs_have_defined_outcomes():
    html = """<button onclick="alert('hi')">Alert</button><a href=/tab target=_blank>Tab</a>
    <button onclick="window.open('/tab')">Window</button><button onclick="window.open('https://example.com/')">Outside</button>"""
    first, (alert,), _, _ = act(html, "Alert")
    assert alert.dialogs == ("alert: hi",)
    assert alert.snapshot.id == first.id
    for opener in ("Tab", "Window"):
        _, (tab,), _, _ = act(html, opener, pages={"/tab": "<h1>Tab</h1>"})
        assert tab.opens_tab
        assert tab.snapshot.url.endswith("/tab")
    first, (outside,), _, _ = act(html, "Outside")
    assert outside.popup is None  # nothing but this machine can be reached
    assert outside.snapshot.id == first.id


def test_the_end_of_a_download_does_not_end_the_navigation_that_follows_it():
    html = """<button onclick="const a = document.createElement('a'); a.href = 'data:text/plain,x'; a.download = 'x';
    a.click(); setTimeout(() => { location = '/slow' }, 100)">Go</button>"""

    def slow(_):
        time.sleep(2.5)
        return "<h1>Slow</h1>"

    _, (gone,), _, _ = act(html, "Go", pages={"/slow": slow})
    assert gone.snapshot.url.endswith("/slow")


def test_a_page_without_a_root_element_that_watches_what_comes_into_view_is_read():
    html = """<div style="height: 4000px">Tall</div><script>
    new IntersectionObserver(() => {}).observe(document.querySelector('div'));
    addEventListener('load', () => document.documentElement.remove());</script>"""
    assert look(html).candidates == ()


def test_a_covered_element_is_not_clicked_through():
    over = '<div style="position:fixed;inset:0">over'
    # The report is truncated inside a character.
    html = f"<meta charset='utf-8'><button>Under</button>{over.ljust(119, '.')}\N{SMILING FACE WITH OPEN MOUTH}</div>"

    async def run(site):
        async with guarded_page() as page:
            seen = (await page.view.goto(site.url)).snapshot
            await page.view.act(seen.candidates[0].action)

    with FixtureServer({"/": html}) as site, pytest.raises(NotActionable, match="takes no pointer") as covered:
        BROWSERS.run(run(site))
    assert "over...." in str(covered.value)
    assert "\N{REPLACEMENT CHARACTER}" not in str(covered.value)


def count_round_trips(monkeypatch, elements):
    """Return the messages to the browser driver for one snapshot of a page with that many exposed elements."""
    sent = []

    async def run(site):
        async with guarded_page() as page:
            await page.view.goto(site.url)
            driver = page.page._impl_obj._connection  # of this browser alone
            send = driver.onmessage
            with monkeypatch.context() as patch:
                patch.setattr(driver, "onmessage", lambda message: (sent.append(message["method"]), send(message)))
                return await page.view.observe()

    rows = "".join(f"<p><a href=/{i}>Link {i}</a></p>" for i in range(elements // 2))
    with FixtureServer({"/": rows}) as site:
        snapshot = BROWSERS.run(run(site))
    assert len(snapshot.structure) >= elements
    return sent


def test_snapshot_costs_one_round_trip_for_any_page_size(monkeypatch):
    assert len(count_round_trips(monkeypatch, 20)) == 1
    assert len(count_round_trips(monkeypatch, 4_000)) == 1


def test_pages_that_replace_builtins_are_captured():
    seen = look(
        """<button>Go</button><script>JSON.stringify = () => 'no'; window.setTimeout = () => 0;
        Array.prototype.toJSON = () => 'no';</script>"""
    )
    assert json.dumps(names(seen)) == '["Go"]'
