"""What an agent observes of real pages, and what its actions do there."""

import asyncio
import io
import threading

import pytest
from PIL import Image

from tests.browsers import BROWSERS, LOOPBACK_ONLY
from tests.sites.server import FixtureServer, Page
from waygraph.agents.actions import AgentSession, SessionOptions, make_action, parse_brackets
from waygraph.core.settings import ExploreSettings
from waygraph.pipeline.explore.policies.scope import Scope

RICH = """<!doctype html><title>Rich</title>
<nav><ul role=menubar><li role=none><a role=menuitem href=/one>One</a></li>
<li role=none><a role=menuitem href=/two>Two</a></li></ul></nav>
<main><h1>Orders</h1>
<table><tr><th>No.</th><th>State</th></tr><tr><td><a href=/7>7</a></td><td>new <b>and</b> paid</td></tr></table>
<shop-card></shop-card>
<iframe srcdoc="<button onclick=&quot;parent.document.title='framed'&quot;>In frame</button>" title=Chat></iframe>
<label>Name <input id=name value=Ann></label>
<label>Size <select><option>Small<option>Large</select></label>
<button disabled>Frozen</button>
<div style="display:none"><button>Hidden</button></div>
<div onclick="this.textContent='Opened'" style="cursor:pointer">Open me</div>
</main>
<script>customElements.define("shop-card", class extends HTMLElement {
  constructor() {
    super();
    this.attachShadow({mode: "open"}).innerHTML = "<p>Card <slot></slot></p><button>Details</button>";
  }
})</script>"""
RICH_TEXT = """RootWebArea 'Rich'
  navigation
    menubar [1] One; [2] Two
  main
    heading 'Orders'
    table
      | No. | State |
      | --- | --- |
      | link [3] '7' | new and paid |
    paragraph 'Card'
    button [4] 'Details'
    Iframe 'Chat'
      button [5] 'In frame'
    textbox [6] 'Name' [value: Ann]
    combobox [7] 'Size' [value: Small] [8] Small; [9] Large
    button [10] 'Frozen' [disabled: true]
    generic [11] 'Open me'"""
COVERED = """<!doctype html><title>Covered</title><a href=/x>Behind</a>
<div style="position:fixed;inset:0;background:#fff8"><button onclick="this.parentNode.remove()">Close</button></div>"""
FORM = """<!doctype html><title>Form</title>
<form action=/found><input name=q aria-label=Search><button>Go</button></form>
<form method=post action=/post><input name=who aria-label=Who><button>Send</button></form>
<input type=date aria-label=Day onchange="document.title = this.value">
<input aria-label=Locked readonly>
<textarea aria-label=Text oninput="said.textContent = this.value">old</textarea><p id=said></p>
<select aria-label=Size onchange="said.textContent = this.value"><option>Small<option>Large<option>Extra large
</select>
<div contenteditable aria-label=Rich role=textbox>draft</div>
<button onclick="fetch('/api', {method: 'POST'})">Delete account</button>
<button oncontextmenu="said.textContent='menu'; return false" ondblclick="said.textContent='twice'">Twice</button>"""
EVENTS = """<!doctype html><title>Events</title>
<button>Ask</button>
<a href=/file download>Get file</a>
<a href=/other target=_blank>New tab</a>
<button onclick="window.open('/other')">Script tab</button>
<a href=/missing>Missing</a><a href=/login>Orders</a>
<button onclick="setTimeout(() => window.close(), 0)">Close</button>
<a href="http://127.0.0.2:9/">Elsewhere</a>
<div style="height:3000px">Tall</div><p>End</p>"""
COVERS = "is covered by something in front of the page, which has to be closed first."
REJECTS = "does not accept this value; dates are 2025-01-31, times 13:30, colours #ff8800."
PAGES = {
    "/": "<title>Start</title><a href=/form>Form</a>",
    "/manage": "<select aria-label=Manage><option>Choose<option>Rename<option>Delete my account</select>",
    "/rich": RICH, "/covered": COVERED, "/form": FORM,
    "/events": EVENTS, "/other": "<title>Other</title><p>Other page", "/found": "<title>Found</title><p>Results",
    "/post": "<title>Posted</title>",
    "/file": Page(b"data", headers={"Content-Disposition": "attachment"}, content_type="application/x-a"),
    "/slow": "<title>Slow</title><script src=/held.js></script><p>Here at last",
    "/held.js": Page("0", content_type="text/javascript", hold=threading.Event(), hold_at_most_s=1.4),
    "/login": "<title>Log in</title><label>Password <input type=password></label><a href=/login?again>Again</a>",
    "/missing": Page("<title>Gone</title>", status=404),
}  # fmt: skip


@pytest.fixture(scope="module")
def site():
    with FixtureServer(PAGES) as server:
        yield server


def run(site, path, steps, browser_settings=LOOPBACK_ONLY, **options):
    """Run `steps(session, page)` at a path of the site."""

    async def work():
        browser = await BROWSERS.browser()
        context = await browser.new_context(viewport={"width": 800, "height": 600})
        try:
            page = await context.new_page()
            await page.goto(site.at(path))
            async with AgentSession(page, SessionOptions(browser=browser_settings, **options)) as session:
                return await steps(session, page)
        finally:
            await context.close()

    return BROWSERS.run(work())


def ref(observation, name):
    """Return the id of the element with a name."""
    return next(each.ref for each in observation.elements if each.name == name)


async def do(session, written, name=""):
    """Observe, then perform an action; `{}` in it is the id of the element with the name."""
    observation = await session.observe()
    return await session.act(parse_brackets(written.format(ref(observation, name)) if name else written))


def kinds(report):
    return {event.kind for event in report.events}


def test_frames_shadow_roots_tables_and_menus_are_one_text(site):
    async def steps(session, page):
        observation = await session.observe()
        again = await session.observe()
        assert observation.text == again.text
        assert "button [10] 'Frozen' [disabled: true]" in observation.raw_text
        return observation.text, (await session.screenshot(marks=True)), (await session.screenshot())

    text, marked, plain = run(site, "/rich", steps)
    assert text.expandtabs(2) == RICH_TEXT
    images = [Image.open(io.BytesIO(image)) for image in (marked, plain)]
    assert images[0].size == images[1].size == (800, 600)
    assert marked != plain


def test_elements_in_frames_and_shadow_roots_are_clicked(site):
    async def steps(session, page):
        framed = await do(session, "click [{}]", "In frame")
        assert framed.observation.title == "framed"
        return await do(session, "click [{}]", "Open me")

    opened = run(site, "/rich", steps)
    assert (opened.status, opened.rung, kinds(opened)) == ("done", "exact", {"changed"})
    assert "'Opened'" in opened.observation.text


def test_frames_of_other_origins_of_the_site_are_part_of_the_text():
    inner = "<title>Inner</title><h2>Chat</h2><button onclick=\"this.textContent = 'Shown'\">Show it</button>"
    with FixtureServer({"/": inner}) as other, FixtureServer({"/": ""}) as outer:
        outer.pages["/"] = (
            f"<title>Outer</title><button>First</button><iframe src={other.url}></iframe><button>Last</button>"
        )
        hosts = tuple(server.url.split("/")[2] for server in (outer, other))
        scope = Scope.of(hosts[0], ExploreSettings(scope_hosts=hosts[1:]))

        async def steps(session, page):
            before = await session.observe()
            return before, await session.act(parse_brackets(f"click [{ref(before, 'Show it')}]"))

        before, report = run(outer, "/", steps, scope=scope)
    assert [each.name for each in before.elements] == ["First", "Show it", "Last"]
    assert "Iframe\n\t\theading 'Chat'\n\t\tbutton [2] 'Show it'\n\tbutton [3] 'Last'" in before.text
    assert (report.status, kinds(report)) == ("done", {"changed"})
    assert "button [2] 'Shown'" in report.observation.text


def test_everything_behind_an_open_dialog_is_left_out(site):
    async def steps(session, page):
        await page.evaluate("""document.body.insertAdjacentHTML('beforeend',
            '<dialog aria-label=Sure><button>Yes</button></dialog>'); document.querySelector('dialog').showModal()""")
        return await session.observe()

    text = run(site, "/events", steps).text.expandtabs(2)
    assert text == "RootWebArea 'Events'\n  dialog 'Sure' [modal: true]\n    button [1] 'Yes'"


def test_long_texts_and_values_end_in_an_ellipsis_and_are_shown_on_demand(site):
    wall = " ".join(f"word{number}" for number in range(300))

    async def steps(session, page):
        await page.evaluate(
            """(wall) => { document.body.innerHTML =
            `<p>${wall}<p>Short<textarea aria-label=Note>${wall}</textarea>`; }""",
            wall,
        )
        before = await session.observe()
        text = await session.act(parse_brackets("show [p1]"))
        return before.text, text.observation.text, (await session.act(parse_brackets("show [1]"))).observation.text

    cut, text, both = run(site, "/rich", steps)
    assert "paragraph [p1] 'word0 word1" in cut
    assert cut.count(" …") == 2
    assert "word299" not in cut
    assert f"paragraph '{wall}'" in text
    assert f"[value: {wall}]" in both
    assert "'Short'" in cut


def test_an_id_survives_a_page_that_moved_under_it(site):
    async def steps(session, page):
        observation = await session.observe()
        await page.evaluate("document.querySelector('main').prepend(document.createElement('label'))")
        return await session.act(parse_brackets(f"type [{ref(observation, 'Name')}] [Bea] [0]"))

    report = run(site, "/rich", steps)
    assert (report.status, report.rung) == ("done", "role")
    assert "'Name' [value: Bea]" in report.observation.text


@pytest.mark.parametrize(
    ("path", "written", "says"),
    [
        ("/rich", "click [99]", "There is no element [99]; the ids of this page go from 1 to 11."),
        ("/rich", "click [10]", "[10] button 'Frozen' is disabled; something else has to be done first."),
        ("/rich", "type [4] [x]", "[4] button 'Details' is no field, so nothing can be typed into it."),
        ("/rich", "select [7] [Huge]", "[7] combobox 'Size' has no option 'Huge'; its options are 'Small', 'Large'."),
        ("/rich", "type [7] [Huge]", "[7] combobox 'Size' has no option 'Huge'; its options are 'Small', 'Large'."),
        ("/rich", "show [7]", "Nothing is left out behind [7]; the page shows it already."),
        ("/rich", "scroll [up]", "Nothing can be scrolled further up here."),
        ("/rich", "tab_focus [3]", "There is no tab 3; the tabs go from 0 to 0."),
        ("/rich", "close_tab", "The only tab cannot be closed."),
        ("/rich", "navigate [x] [y]", "There are no maps here; use the links and the search of the site."),
        ("/covered", "click [1]", f"[1] link 'Behind' {COVERS}"),
        ("/form", "type [6] [x]", "[6] textbox 'Locked' is read-only; clicking it may open something."),
        ("/form", "type [5] [tomorrow] [0]", f"[5] textbox 'Day' {REJECTS}"),
    ],
)  # fmt: skip
def test_what_cannot_be_done_is_one_sentence(site, path, written, says):
    async def steps(session, page):
        await session.observe()
        return await session.act(parse_brackets(written))

    report = run(site, path, steps)
    assert (report.status, report.message, report.events) == ("invalid", says, ())


def test_an_element_that_is_gone_or_froze_since_is_one_sentence(site):
    async def steps(session, page):
        observation = await session.observe()
        await page.evaluate("document.querySelector('shop-card').remove()")
        gone = await session.act(parse_brackets(f"click [{ref(observation, 'Details')}]"))
        await page.evaluate("document.querySelector('#name').disabled = true")
        frozen = await session.act(parse_brackets(f"type [{ref(observation, 'Name')}] [x]"))
        return gone, frozen

    gone, frozen = run(site, "/rich", steps)
    assert gone.message == "[4] button 'Details' is no longer on the page; it has changed since it was observed."
    assert frozen.message == "[6] textbox 'Name' is disabled."


def test_fields_are_filled_cleared_and_submitted(site):
    async def steps(session, page):
        texts = []
        for written, name in [
            ("type [{}] [new [text]] [0]", "Text"), ("type [{}] [] [0]", "Text"), ("type [{}] [2025-01-31] [0]", "Day"),
            ("select [{}] [extra LARGE]", "Size"), ("type [{}] [fresh] [0]", "Rich"),
        ]:  # fmt: skip
            report = await do(session, written, name)
            assert report.status == "done", report
            texts.append(report.observation.text)
        for action in ({"double": True}, {"button": "right"}):
            element = ref(await session.observe(), "Twice")
            texts.append((await session.act(make_action("click", {"element": element, **action}))).observation.text)
        await page.evaluate("document.querySelector('[name=q]').form.insertAdjacentHTML('beforeend', "
                            "'<input type=date name=d aria-label=From>')")  # fmt: skip
        dated = await do(session, "type [{}] [2025-02-01] [1]", "From")
        assert dated.observation.url.endswith("/found?q=&d=2025-02-01")
        await session.act(parse_brackets("go_back"))
        found = await do(session, "type [{}] [lamp] [1]", "Search")
        return texts, found

    texts, found = run(site, "/form", steps)
    assert "'Text' [value: new [text]]" in texts[0]
    assert "textbox [7] 'Text'\n" in texts[1]
    assert texts[2].startswith("RootWebArea '2025-01-31'")
    assert "'Extra large'" in texts[3]
    assert "'Rich' [value: fresh]" in texts[4]
    assert "'twice'" in texts[5]
    assert "'menu'" in texts[6]
    assert (found.status, kinds(found)) == ("done", {"navigated"})
    assert found.observation.url.endswith("/found?q=lamp")


@pytest.mark.parametrize("text", ["slowly " * 10, "inserted " * 50])
def test_a_long_text_is_typed_to_its_end_into_a_field_with_a_slow_handler(site, text):
    async def steps(session, page):
        await session.observe()
        await page.evaluate("""document.querySelector('textarea').addEventListener('input', event => {
            const until = performance.now() + 20; while (performance.now() < until);
            document.title = `${event.target.value.length} characters`; })""")
        return await do(session, f"type [{{}}] [{text}] [0]", "Text")

    report = run(site, "/form", steps, LOOPBACK_ONLY.model_copy(update={"action_timeout_ms": 500}))
    assert report.observation.title == f"{len(text)} characters"


def test_actions_that_change_data_are_refused_confirmed_or_allowed(site):
    asked = []

    async def confirm(action, element, refusal):
        asked.append((action.action, element.name, refusal.reason))
        return element.name != "Delete account"

    async def steps(session, page):
        return [
            await do(session, "type [{}] [me] [0]", "Who"),
            await do(session, "click [{}]", "Delete account"),
            await do(session, "type [{}] [me] [1]", "Who"),
        ]

    before = site.mutations
    refused = run(site, "/form", steps)
    assert [report.status for report in refused] == ["done", "refused", "refused"]
    says = "[13] button 'Delete account' was left alone, because it would change data at the site (delete)."
    assert refused[1].message == says
    assert site.mutations == before
    confirmed = run(site, "/form", steps, destructive="confirm", confirm=confirm)
    assert [report.status for report in confirmed] == ["done", "refused", "done"]
    assert asked == [("click", "Delete account", "hazard"), ("type", "Who", "form_post")]
    assert confirmed[2].observation.title == "Posted"
    assert site.mutations == before + 1
    allowed = run(site, "/form", lambda session, _: do(session, "click [{}]", "Delete account"), destructive="allow")
    assert allowed.done
    assert site.mutations == before + 2


def test_an_option_is_gated_by_its_whole_name(site):
    async def steps(session, page):
        return [
            await do(session, "select [{}] [account]", "Manage"),
            await do(session, "select [{}] [rename]", "Manage"),
        ]

    refused, done = run(site, "/manage", steps)
    assert (refused.status, done.status) == ("refused", "done")


def test_enter_in_a_focused_field_is_gated_too(site):
    async def steps(session, page):
        await do(session, "type [{}] [me] [0]", "Who")
        return await session.act(parse_brackets("press [Enter]"))

    before = site.mutations
    assert run(site, "/form", steps).status == "refused"
    assert site.mutations == before


def test_a_download_is_an_event(site):
    report = run(site, "/events", lambda session, _: do(session, "click [{}]", "Get file"))
    assert report.done
    assert [(event.kind, event.detail) for event in report.events] == [("download", site.at("/file"))]
    loaded = run(site, "/events", lambda session, _: do(session, f"goto [{site.at('/file')}]"))
    assert loaded.done
    assert "download" in kinds(loaded)


@pytest.mark.parametrize("name", ["New tab", "Script tab"])
def test_a_new_tab_is_an_event_and_can_be_left(site, name):
    async def steps(session, page):
        opened = await do(session, "click [{}]", name)
        back = await session.act(parse_brackets("tab_focus [0]"))
        closed = [await session.act(parse_brackets(text)) for text in ("tab_focus [1]", "close_tab")]
        return opened, back, closed

    opened, back, closed = run(site, "/events", steps)
    assert kinds(opened) == {"new_tab"}
    assert opened.observation.text.startswith("Tab 0: Events\nTab 1 (current): Other\nRootWebArea 'Other'")
    assert back.observation.title == "Events"
    assert [report.status for report in closed] == ["done", "done"]
    assert closed[1].observation.text.startswith("RootWebArea 'Events'")


def test_a_page_that_shows_nothing_yet_is_looked_at_again(site):
    async def steps(session, page):
        await session.observe()
        await page.evaluate("document.body.insertAdjacentHTML('beforeend', '<a href=/slow>Slow</a>')")
        clicked = await do(session, "click [{}]", "Slow")
        await session.act(parse_brackets("go_home"))
        return clicked, await session.act(parse_brackets("go_back"))

    reports = run(site, "/", steps, LOOPBACK_ONLY.model_copy(update={"settle_cap_ms": 300}))
    assert ["Here at last" in report.observation.text for report in reports] == [True, True]


def test_history_home_tabs_and_errors(site):
    async def steps(session, page):
        await session.observe()
        steps = ["go_forward", f"goto [{site.at('/events')}]", "go_back",
"go_forward", "go_home", f"goto [{site.at('/missing')}]",
                 "goto [http://127.0.0.1:9/]", "new_tab"]  # fmt: skip
        return [await session.act(parse_brackets(step)) for step in steps]

    nothing, events, back, forward, home, missing, refused, tab = run(site, "/", steps)
    assert (nothing.status, nothing.message) == ("failed", "There is no page to go forward to.")
    assert [each.observation.title for each in (events, back, forward, home)] == ["Events", "Start", "Events", "Start"]
    assert {"navigated", "http_error"} == kinds(missing)
    assert refused.status == "failed"
    assert "ERR_" in refused.message
    assert tab.observation.url == "about:blank"
    assert len(tab.observation.tabs) == 2


def test_a_page_that_asks_for_a_password_where_another_was_expected_is_an_event(site):
    async def steps(session, page):
        return [await do(session, "click [{}]", "Orders"), await do(session, "click [{}]", "Again")]

    ended, again = run(site, "/events", steps)
    assert kinds(ended) == {"navigated", "asks_password"}
    assert "This page asks for a password." in str(ended)
    assert "asks_password" not in kinds(again)


def test_scrolling_moves_the_window_and_stays(site):
    async def steps(session, page):
        report = await do(session, "scroll [down]")
        await session.observe()
        return report, await page.evaluate("scrollY"), await do(session, "hover [{}]", "Ask")

    report, position, hovered = run(site, "/events", steps)
    assert (report.status, report.observation.snapshot.view.scroll_y, position) == ("done", 480, 480)
    assert hovered.done


def test_what_leads_out_of_the_scope_is_left_alone(site):
    async def steps(session, page):
        return [
            await do(session, "click [{}]", "Elsewhere"), await do(session, "goto [http://127.0.0.2:9/]"),
            await do(session, "click [{}]", "Missing"),
        ]  # fmt: skip

    host = site.url.split("/")[2]
    link, goto, inside = run(site, "/events", steps, scope=Scope.of(host, ExploreSettings()))
    assert (link.status, goto.status, inside.status) == ("refused", "refused", "done")
    assert "leads out of the site" in link.message


def test_a_page_that_closes_or_crashes_is_replaced(site):
    async def steps(session, page):
        await do(session, "click [{}]", "Script tab")
        await session.tabs.current.page.close()
        after = await session.observe()
        await page.close()
        return after, await session.observe()

    after, last = run(site, "/events", steps)
    assert after.title == "Events"
    assert last.url == "about:blank"


def test_actions_for_the_agent_alone_leave_the_page_alone(site):
    async def steps(session, page):
        return [
            await session.act(parse_brackets(each)) for each in ("note [x]", "stop [42]", "branch [0] [a]", "click [1]")
        ]

    reports = run(site, "/", steps, allowed=["note", "stop", "branch"])
    assert [report.status for report in reports] == ["kept", "kept", "kept", "invalid"]
    assert reports[3].message == "The action click is not available; there are note, stop, branch."


def test_an_endless_page_is_lost_not_an_exception(site):
    async def steps(session, page):
        observation = await session.observe()
        assert observation.title == "Start"
        await page.evaluate("setTimeout(() => { for (;;); }, 0)")
        await asyncio.sleep(0)
        return await session.act(parse_brackets("click [1]"))

    short = LOOPBACK_ONLY.model_copy(
        update={"navigation_timeout_ms": 800, "settle_cap_ms": 300, "action_timeout_ms": 300}
    )

    report = run(site, "/", steps, short)
    assert report.status == "page_lost"
    assert report.observation.url == "about:blank"
