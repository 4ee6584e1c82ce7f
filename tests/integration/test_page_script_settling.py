"""Pages do not change between two snapshots, and digests show it if they do. Timers, dialogs, find."""

import asyncio
import io
import threading

import pytest
from PIL import Image

from tests.browsers import BROWSERS, LOOPBACK_ONLY
from tests.integration.test_page_script import act, guarded_page, names
from tests.sites.server import FixtureServer, Page
from waygraph.core.settings import BrowserSettings, ExploreSettings
from waygraph.pipeline.browser.page.failures import NotActionable
from waygraph.pipeline.browser.page.script import WAYGRAPH, page_script
from waygraph.pipeline.browser.page.snapshot import SnapshotOptions
from waygraph.pipeline.browser.page.view import PageView


def visit(html, work, **pages):
    """Run `work(page, site)` in a guarded page with this HTML; return its result."""

    async def run(site):
        async with guarded_page() as page:
            await page.view.goto(site.url)
            return await work(page, site)

    with FixtureServer({"/": html, **pages}) as site:
        return BROWSERS.run(run(site))


CHANGES = {
    "text": "document.querySelector('p').firstChild.data = 'other'",
    "attribute": "document.querySelector('p').className = 'on'",
    "details": "document.querySelector('details').open = true",
    "field": "document.querySelector('input').value = 'typed'",
    "checkbox": "document.querySelector('[type=checkbox]').checked = true",
    "option": "document.querySelector('select').selectedIndex = 1",
    "shadow": "document.querySelector('x-box').shadowRoot.firstChild.textContent = 'other'",
    "frame": "document.querySelector('iframe').contentDocument.body.append('more')",
    "address": "history.replaceState(0, '', '#there')",
    "storage": "localStorage.setItem('k', 'v')",
    "cookie": "document.cookie = 'k=v'",
    "style sheet": "document.styleSheets[0].insertRule('p { color: red }')",
}
UNDO = {
    "text": "document.querySelector('p').firstChild.data = 'text'",
    "attribute": "document.querySelector('p').removeAttribute('class')",
    "details": "document.querySelector('details').open = false",
    "field": "document.querySelector('input').value = ''",
    "checkbox": "document.querySelector('[type=checkbox]').checked = false",
    "option": "document.querySelector('select').selectedIndex = 0",
    "shadow": "document.querySelector('x-box').shadowRoot.firstChild.textContent = 'in'",
    "frame": "document.querySelector('iframe').contentDocument.body.lastChild.remove()",
    "address": "history.replaceState(0, '', '/')",
    "storage": "localStorage.removeItem('k')",
    "cookie": "document.cookie = 'k=; max-age=0'",
    "style sheet": "document.styleSheets[0].deleteRule(0)",
}


def test_digest_changes_with_page_state_and_is_restored_with_it():
    html = """<style>b { color: blue }</style><p>text</p><details><summary>s</summary>d</details><input>
    <input type=checkbox><select><option>a<option>b</select><iframe srcdoc="<p>in"></iframe>
    <x-box></x-box><script>customElements.define("x-box", class extends HTMLElement {
      connectedCallback() { this.attachShadow({mode: "open"}).innerHTML = "<i>in</i>"; } })</script>"""

    async def work(page, _):
        first = (await page.view.observe()).digest
        assert await page.view.digest() == (await page.view.settle()).digest == first
        unseen = []
        for what, change in CHANGES.items():
            await page.page.evaluate(change)
            if await page.view.digest() == first:
                unseen.append(what)
            await page.page.evaluate(UNDO[what])
            if await page.view.digest() != first:
                unseen.append(f"{what} undone")
        await page.page.evaluate(CHANGES["text"])
        seen = await page.view.observe()
        assert (await page.view.settle(unless_digest=seen.digest)).snapshot is None
        told = await page.view.settle(unless_digest=first)
        assert told.snapshot is not None
        assert (told.digest, told.snapshot.id, told.snapshot.segments) == (seen.digest, seen.id, seen.segments)
        return unseen

    assert visit(html, work) == []


#: Changes that a cache of the markup easily misses, applied one after the other.
TRICKY = (
    "b.firstChild.firstChild.data = 'deep'",
    "b.remove()",
    "b.firstChild.title = 'while it was nowhere'; document.querySelector('body').append(b)",
    "document.querySelector('template').content.firstChild.title = 'in a template'",
    "document.querySelector('form').title = 'a form'",
    "document.documentElement.lang = document.querySelector('body').className = 'en'",
    "document.querySelector('body').append('text', document.createComment('comment'))",
    "host.remove(); host.shadowRoot.firstChild.title = 'in a host that is nowhere'; b.after(host)",
    "document.querySelector('iframe').contentDocument.body.title = 'in a frame'",
    "page = document.querySelector('body'); page.remove()",
    "page.firstElementChild.title = 'in a body that was nowhere'; document.documentElement.append(page)",
    "page.replaceWith(Object.assign(document.createElement('body'), { innerHTML: '<p>another</p>' }))",
    "document.querySelector('p').append('more'); document.head.append(document.createElement('meta'))",
)


def test_cached_markup_gives_the_same_digest_as_a_fresh_load():
    html = """<template><i></i></template><div id=b><p>text</p></div><x-host id=host></x-host><iframe></iframe>
    <form name=body><input name=parentNode><input name=nextSibling><input name=outerHTML></form>
    <script>var page, b = document.getElementById("b"), host = document.getElementById("host");
    host.attachShadow({mode: "open"}).innerHTML = "<i>in</i>";</script>"""

    async def work(page, site):
        kept = [await page.view.digest()]
        for change in TRICKY:
            await page.page.evaluate(change)
            kept.append(await page.view.digest())
        fresh = []
        for count in range(len(TRICKY) + 1):
            await page.view.goto(site.url, digest=False)
            await page.page.evaluate(";".join(TRICKY[:count]) or "0")
            fresh.append(await page.view.digest())
        return kept, fresh

    kept, fresh = visit(html, work)
    assert kept == fresh
    assert [kept.index(each) for each in kept] == list(range(len(kept)))


def test_reaching_an_element_in_a_scrolled_box_leaves_no_trace():
    html = """<div style='height:50px;overflow:auto'><p style='height:500px'>tall</p>
    <button type=button onclick='1'>Deep</button></div>"""

    async def work(page, _):
        seen = await page.view.observe()
        acted = await page.view.act(seen.candidates[0].action)
        return seen.digest, acted.snapshot.digest

    before, after = visit(html, work)
    assert before == after


TICKING = """<p id=p>0</p><p id=late></p><script>
let n = 0;
const tick = () => { p.textContent = ++n; };
setInterval(tick, 1000);
setInterval(tick, 600);
const chain = () => { tick(); setTimeout(chain, 700); };
setTimeout(chain, 700);
setTimeout(() => { late.innerHTML = '<button>Newsletter</button>'; }, 1300);
</script><button onclick="setTimeout(() => { late.innerHTML = '<button>Wanted</button>'; }, 900)">Go</button>"""


def test_clocks_carousels_and_late_popups_do_not_change_a_page_between_snapshots():
    async def work(page, _):
        first = await page.view.observe()
        await page.page.evaluate("new Promise(r => requestAnimationFrame(r))")
        # Timers of ours are not the page's: this one is set from another world than its scripts'.
        await asyncio.sleep(2.2)
        later = await page.view.observe()
        acted = await page.view.act(later.candidates[0].action)
        return first, later, acted.snapshot

    first, later, acted = visit(TICKING, work)
    assert first.digest == later.digest
    assert "Newsletter" not in names(acted)
    assert "Wanted" in names(acted)


@pytest.mark.parametrize("delay_ms", [50, 700])
def test_settling_waits_for_a_tip_that_stays_for_a_moment_after_the_pointer_has_left(delay_ms):
    html = f"""<a id=word style="cursor: help">SVG</a><p id=tip hidden>Scalable vector graphics</p><script>
      word.onmouseenter = () => {{ tip.hidden = false; }};
      word.onmouseleave = () => setTimeout(() => {{ tip.hidden = true; }}, {delay_ms});</script>"""

    async def work(page, _):
        before = await page.view.observe()
        await page.view.perform(before.candidates[0].action)
        shown = await page.view.observe()
        await asyncio.sleep(1.6)  # the explorer captures what it sees; the time of the document has ended then
        await page.view.ways_back.leave_element()
        after = await page.view.settle(unless_digest=before.digest)
        return texts(shown), after.digest == before.digest

    assert visit(html, work) == (["SVG", "Scalable vector graphics"], True)


def test_timers_run_in_pages_of_callers():
    async def work(page, site):
        await page.page.evaluate("window['\\0waygraph'].guarded = false")
        await page.page.evaluate("new Promise(r => setTimeout(r, 1200))")
        return True

    assert visit("<p>x</p>", work)


def test_an_endless_alert_loop_ends_and_is_recorded():
    _, (acted,), _, _ = act("<button onclick='while (true) alert(1)'>Ask</button>", "Ask")
    assert set(acted.dialogs) == {"alert: 1"}
    assert not acted.snapshot.capped


def test_moved_element_is_found_by_role_and_unmoved_element_by_path():
    html = """<main><a href=/a>A</a><iframe srcdoc="<button onclick=1>In</button>"></iframe><x-box></x-box></main>
    <script>customElements.define("x-box", class extends HTMLElement {
      connectedCallback() { this.attachShadow({mode: "open"}).innerHTML = "<button onclick=1>Shadow</button>"; } })
    </script>"""

    async def work(page, _):
        seen = await page.view.observe()
        rungs = [(await page.view.perform(c.action)).rung for c in seen.candidates if c.action.role == "button"]
        await page.page.evaluate("document.querySelector('main').prepend(document.createElement('div'))")
        link = next(c.action for c in seen.candidates if c.action.role == "link")
        await page.page.evaluate("document.querySelector('main').prepend(document.createElement('a'))")
        rungs.append((await page.view.perform(link)).rung)
        return names(seen), rungs

    assert visit(html, work) == (["A", "In", "Shadow"], ["exact", "exact", "role"])


def test_element_no_longer_exposed_at_its_path_is_not_found():
    async def work(page, _):
        seen = await page.view.observe()
        await page.page.evaluate("document.querySelector('div').style.display = 'none'")
        await page.view.perform(seen.candidates[0].action)

    with pytest.raises(NotActionable):
        visit("<div><button onclick=1>Go</button></div>", work)


def texts(snapshot):
    return [segment.text for segment in snapshot.segments]


def slow(script, seconds):
    return Page(script, content_type="text/javascript", hold=threading.Event(), hold_at_most_s=seconds)


def test_settling_waits_for_dynamic_imports_as_long_as_they_take():
    """A script cannot observe `import()`, and how long other scripts took says little."""

    async def work(page, site):
        seen = (await page.view.goto(site.url)).snapshot
        opened = await page.view.act(next(c.action for c in seen.candidates if c.action.name == "More"))
        return texts(seen), texts(opened.snapshot)

    html = "<h1>Page</h1><button>More</button><p></p><script type=module src=/main.js></script>"
    main = """document.querySelector('button').onclick = () => import('/more.js');
    import('/first.js');"""
    scripts = {
        "/main.js": Page(main, content_type="text/javascript"),
        "/first.js": slow("import('/second.js')", 0.45),
        "/second.js": slow("document.querySelector('h1').textContent = 'Second'", 0.45),
        "/more.js": slow("document.querySelector('p').textContent = 'Details'", 0.45),
    }
    seen, opened = visit(html, work, **scripts)
    assert "Second" in seen
    assert "Details" in opened


def test_settling_waits_for_an_import_that_never_arrives_until_the_cap():
    async def work(site):
        async with guarded_page(settings=LOOPBACK_ONLY.model_copy(update={"settle_cap_ms": 300})) as page:
            return (await page.view.goto(site.url)).snapshot

    html = "<h1>Page</h1><script type=module>import('/never.js')</script>"
    never = slow("document.querySelector('h1').textContent = 'Late'", 2.0)
    with FixtureServer({"/": html, "/never.js": never}) as site:
        assert texts(BROWSERS.run(work(site))) == ["Page"]


def test_screenshot_is_taken_after_a_canvas_animation_has_finished():
    """The chart grows for 600 ms without a mutation; green in the end."""
    html = """<canvas width=1200 height=700></canvas><script>
      const brush = document.querySelector('canvas').getContext('2d'), start = performance.now();
      const draw = () => {
        const share = Math.min((performance.now() - start) / 600, 1);
        brush.fillStyle = share < 1 ? 'red' : 'lime';
        brush.fillRect(0, 0, 1200 * share, 700);
        if (share < 1) requestAnimationFrame(draw);
      };
      draw();</script>"""

    async def work(page, site):
        await page.view.goto(site.url)
        return await page.capture()

    picture = Image.open(io.BytesIO(visit(html, work).screenshot))
    red, green, _ = picture.getpixel((1000, 400))
    assert (red < 50, green > 200) == (True, True)


def test_page_is_loaded_with_the_pointer_outside_the_viewport():
    """The pointer of an agent's page may keep something open; the next loaded page must not show it."""
    html = """<button style="width: 400px; height: 400px">Tip</button><p hidden>Tip is open</p><script>
      const say = (open) => { document.querySelector('p').hidden = !open; };
      document.querySelector('button').onmouseover = () => say(true);
      document.querySelector('button').onmouseout = () => say(false);</script>"""

    async def work(page, site):
        seen = (await page.view.goto(site.url)).snapshot
        hovered = await page.view.act(next(c.action for c in seen.candidates if c.action.kind == "hover"))
        other = PageView(
            page.page,
            SnapshotOptions.from_settings(BrowserSettings(), ExploreSettings()),
            BrowserSettings(),
            owned=False,
        )
        again = (await other.goto(site.url)).snapshot
        return texts(hovered.snapshot), texts(again)

    hovered, again = visit(html, work)
    assert "Tip is open" in hovered
    assert "Tip is open" not in again


def test_page_of_a_caller_is_observed_after_it_attached_a_closed_shadow_root():
    """Its content stays unknown, and the rest of the page is still observed."""
    html = "<!doctype html><h1>Open</h1><div id=host></div>"
    close = "host.attachShadow({mode: 'closed'}).innerHTML = '<button>inside</button>'"

    async def run(site):
        context = await (await BROWSERS.browser()).new_context()
        try:
            options = SnapshotOptions.from_settings(LOOPBACK_ONLY, ExploreSettings())
            view = PageView(await context.new_page(), options, LOOPBACK_ONLY, owned=False)
            before = (await view.goto(site.url)).snapshot
            await view.page.evaluate(close)
            return before, await view.observe()
        finally:
            await context.close()

    with FixtureServer({"/": html}) as site:
        before, after = BROWSERS.run(run(site))
    assert texts(before) == texts(after) == ["Open"]
    assert names(after) == []


def test_hover_on_a_canvas_waits_until_it_is_drawn():
    """The response to a hover depends on what is drawn under the pointer: nothing before 600 ms have passed."""
    html = """<canvas width=1200 height=700></canvas><p></p><script>
      const canvas = document.querySelector('canvas'), brush = canvas.getContext('2d'), start = performance.now();
      const share = () => Math.min((performance.now() - start) / 600, 1);
      const draw = () => { brush.fillRect(0, 0, 1200 * share(), 700); if (share() < 1) requestAnimationFrame(draw); };
      draw();
      canvas.onclick = () => document.querySelector('p').textContent = share() < 1 ? 'Nothing' : 'Bar';</script>"""

    async def work(page, site):
        seen = (await page.view.goto(site.url)).snapshot
        clicked = await page.view.act(next(c.action for c in seen.candidates if c.action.kind == "click"))
        return texts(clicked.snapshot)

    assert "Bar" in visit(html, work)


@pytest.mark.parametrize("turn", ["AnimationFrame", "IdleCallback"])
def test_settling_waits_for_animation_frame_and_idle_callbacks_also_late_ones(turn):
    late = f"""{{ const later = setTimeout, no = clearTimeout;
      window.request{turn} = (work) => later(() => work(performance.now()), 150);
      window.cancel{turn} = (id) => no(id); }}"""
    html = f"""<h1>Page</h1><script>
      let steps = 3;
      const step = () => {{ document.querySelector('h1').textContent = --steps ? `${{steps}} to go` : 'Done';
        if (steps) request{turn}(step); }};
      request{turn}(step);</script>"""

    async def run(site):
        context = await (await BROWSERS.browser()).new_context()
        try:
            await context.add_init_script(late)
            await context.add_init_script(f"{page_script()}\n{WAYGRAPH}.guarded = true;")
            view = PageView(
                await context.new_page(), SnapshotOptions.from_settings(LOOPBACK_ONLY, ExploreSettings()), LOOPBACK_ONLY
            )
            return (await view.goto(site.url)).snapshot
        finally:
            await context.close()

    with FixtureServer({"/": html}) as site:
        assert texts(BROWSERS.run(run(site))) == ["Done"]


def test_page_with_endless_or_starved_animation_frame_and_idle_callbacks_settles():
    """A game, a poller, and a frame that is not drawn."""
    html = """<h1>Page</h1><script>const tick = () => requestAnimationFrame(tick); tick();
    const poll = () => requestIdleCallback(poll); poll();</script>
    <iframe style="display:none" srcdoc="<script>requestAnimationFrame(() => 1)</script>"></iframe>"""

    async def work(page, site):
        return await page.view.observe()

    assert not visit(html, work).capped


def test_lazy_content_is_scrolled_to_also_when_the_page_was_already_settled():
    html = """<div style="height:3000px">Top</div><p id=end>Unseen</p><script>
      new IntersectionObserver(([seen]) => { if (seen.isIntersecting) end.textContent = 'Seen'; }).observe(end);
      </script>"""

    async def run(site):
        async with guarded_page() as page:
            await page.page.goto(site.url)
            await page.page.wait_for_function(f"{WAYGRAPH}.isQuiet(50, Infinity)")
            return texts(await page.view.observe())

    with FixtureServer({"/": html}) as site:
        assert BROWSERS.run(run(site)) == ["Top", "Seen"]


def test_settling_waits_for_timers_set_during_a_slow_start():
    html = """<h1>Booting</h1><script>
      fetch('/first').then(() => fetch('/second')).then(() => setTimeout(() => {
        document.querySelector('h1').textContent = 'Up'; }, 600));</script>"""

    async def work(page, site):
        return texts((await page.view.goto(site.url)).snapshot)

    slow = {f"/{name}": Page("x", hold=threading.Event(), hold_at_most_s=0.7) for name in ("first", "second")}
    assert visit(html, work, **slow) == ["Up"]


def test_settling_waits_for_worker_messages_but_not_for_an_endless_worker():
    html = """<h1>Loading</h1><script>
      new Worker('/loads.js').onmessage = ({ data }) => { document.querySelector('h1').textContent = data; };
      new Worker('/talks.js');</script>"""
    scripts = {
        "/loads.js": "fetch('/slow').then(() => postMessage('Ready'));",
        "/talks.js": "setInterval(() => postMessage('still here'), 20);",
    }
    pages = {path: Page(script, content_type="text/javascript") for path, script in scripts.items()}

    async def work(page, site):
        seen = (await page.view.goto(site.url)).snapshot
        return texts(seen), seen.capped

    slow = Page("x", hold=threading.Event(), hold_at_most_s=0.3)
    assert visit(html, work, **pages, **{"/slow": slow}) == (["Ready"], False)
