"""Nothing that a page sends may change anything: in strict and guard mode no server sees a mutation."""

import asyncio
from contextlib import asynccontextmanager

import pytest

from pipeline.browser.egress import EgressProxy
from pipeline.browser.guard import GuardRules, Judge, advice
from pipeline.browser.launch import launch
from pipeline.browser.session import GuardedPage
from pipeline.browser.snapshot import Lens
from tests.conftest import explore
from tests.sites.hostile import LEAVING, SENDERS, WITHOUT_EFFECT, HostileSite
from tests.sites.server import FixtureServer, Page
from waygraph.settings import BrowserSettings, CaptureProfile, ExploreSettings


@asynccontextmanager
async def guarded(*sites, mode="guard", rules=None, arguments=(), on_blocked=None):
    """A guarded page in a browser whose traffic goes through the egress proxy, which knows nothing but these sites."""
    settings = BrowserSettings(extra_args=arguments)
    judge = Judge(mode, rules or GuardRules())
    allowed = frozenset(f"{host}:{site.url.split(':')[2].strip('/')}" for site in sites for host in HOSTS)
    async with (
        EgressProxy(allowed=allowed, judge=judge, on_blocked=on_blocked) as proxy,
        launch(settings, guarded=True, proxy=proxy.url) as browser,
    ):
        page = await GuardedPage.open(
            browser,
            lens=Lens.of(settings, ExploreSettings()),
            settings=settings,
            profile=CaptureProfile(),
            user_agent="waygraph-test",
            storage_state=None,
            policy=lambda _: None,
            guard_mode=mode,
            guard_rules=rules,
        )
        try:
            yield page
        finally:
            await page.close()


HOSTS = ("127.0.0.1", "localhost")


async def send_everything(hostile, page):
    """Use every sender; what the guard said."""
    await page.view.goto(hostile.url)
    together = [name for name in SENDERS if name not in LEAVING]
    await page.page.evaluate("names => { for (const name of names) try { run(name) } catch {} }", together)
    await page.view.observe()
    said = [page.take_stopped()]
    for name in LEAVING:
        await page.view.goto(f"{hostile.url}one/{name}")
        await page.page.click("button")
        await page.view.observe()
        await page.view.goto(f"{hostile.url}left")
        said.append(page.take_stopped())
    return said


def told(said, what):
    return {request.url.rsplit("/", 1)[1] for stopped in said for request in getattr(stopped, what)}


@pytest.mark.parametrize(("mode", "arguments"), [("guard", ()), ("strict", ("--site-per-process",))])
def test_no_way_of_sending_something_changes_anything(mode, arguments):
    walled = []

    async def run():
        sites = (hostile.site, hostile.other, hostile.sink)
        async with guarded(*sites, mode=mode, arguments=arguments, on_blocked=walled.append) as page:
            return await send_everything(hostile, page)

    with HostileSite() as hostile:
        said = asyncio.run(run())
        assert hostile.changes == []
    stopped = told(said, "blocked") | {request.url.rsplit("/", 1)[1] for request in walled}
    # The beacon of a page that goes away is stopped, and by then nobody asks any more.
    assert set(SENDERS) - stopped - WITHOUT_EFFECT <= {"form-new-tab", "unload-beacon"}
    kinds = {request.kind for stop in said for request in stop.blocked}
    assert {"xhr", "document", "ping", "worker", "websocket"} <= kinds


def test_observing_lets_everything_pass_and_tells_what_it_would_have_stopped():
    async def run():
        async with guarded(hostile.site, hostile.other, hostile.sink, mode="observe") as page:
            return await send_everything(hostile, page)

    with HostileSite() as hostile:
        said = asyncio.run(run())
        assert set(SENDERS) - set(hostile.changes) - WITHOUT_EFFECT <= {"form-new-tab"}
    assert told(said, "observed") >= {"fetch", "form", "beacon", "socket", "worker", "frame-other"}
    assert told(said, "blocked") == set()


GRAPHQL = """<h1>Shop</h1><div id=list></div><script>
  fetch('/graphql', {method: 'POST', headers: {'Content-Type': 'application/json'},
    body: JSON.stringify({query: 'query All { items { name } }'})})
  .then(r => r.json()).then(d => { list.innerHTML = d.data.map(n => `<p>${n}</p>`).join('') });
</script>"""
ITEMS = Page('{"data": ["Kettle", "Lamp"]}', content_type="application/json")


@pytest.mark.parametrize(("mode", "shown"), [("guard", {"Shop", "Kettle", "Lamp"}), ("strict", {"Shop"})])
def test_a_page_that_reads_by_post_shows_what_it_read_unless_the_guard_is_strict(mode, shown):
    async def run():
        async with guarded(site, mode=mode) as page:
            seen = (await page.view.goto(site.url)).snapshot
            return seen, page.take_stopped()

    with FixtureServer({"/": GRAPHQL, "/graphql": ITEMS}) as site:
        seen, stopped = asyncio.run(run())
    assert {segment.text for segment in seen.segments} == shown
    told = advice(stopped.blocked, None, seen)
    if mode == "strict":
        assert [b.method for b in stopped.blocked] == ["POST"]
        assert told is not None
        assert "/graphql" in told
        assert "reads:" in told
    else:
        assert stopped.blocked == ()
        assert told is None


def test_messages_over_websockets_that_subscribe_arrive_in_order_and_others_never():
    page_html = """<h1>Live</h1><script>
      const s = new WebSocket('SOCKET');
      s.onopen = () => {
        s.send('{"type":"connection_init"}');
        s.send(new Uint8Array([1, 2]));
        s.send('{"type":"subscribe","id":"1","payload":{"query":"subscription { prices }"}}');
        s.send('{"type":"subscribe","id":"2","payload":{"query":"mutation { buy }"}}');
        s.send('ping');
      };
      s.onmessage = (e) => { document.body.insertAdjacentHTML('beforeend', `<p>${e.data.length}</p>`) };
    </script>"""

    async def run():
        async with guarded(hostile.site, hostile.sink) as page:
            await page.view.goto(hostile.site.at("/live"))
            await page.page.wait_for_function("document.querySelectorAll('p').length === 4")
            return page.take_stopped()

    with HostileSite() as hostile:
        hostile.site.pages["/live"] = page_html.replace("SOCKET", hostile.sink.url)
        stopped = asyncio.run(run())
        texts = [text for _, text in hostile.sink.messages]
    assert [text[:28] for text in texts] == ['{"type":"connection_init"}', '{"type":"subscribe","id":"1"', "ping"]
    assert [(b.method, b.kind) for b in stopped.blocked] == [("SEND", "websocket")] * 2


def test_exploring_the_hostile_site_changes_nothing_and_says_what_was_stopped():
    with HostileSite(other_host="127.0.0.1") as hostile:
        hostile.site.pages["/start"] = "<a href='/elements'>Elements</a><a href='/some'>Some</a>"
        hostile.site.pages["/some"] = hostile.page("fetch", "form", "socket", "worker", "frame-form", "form-native-tab")
        # Named, so that the egress proxy lets its WebSockets through and their messages are what is stopped.
        sink = hostile.sink.url.removeprefix("ws://").strip("/")
        capture = explore(f"{hostile.url}start", depth=2, scope_hosts=(sink,))
        assert hostile.changes == []
        fetched = hostile.site.paths
    assert "/left" in fetched
    assert "/picture.svg" in fetched
    blocked = {request.url.rsplit("/", 1)[1] for edge in capture.graph.edges for request in edge.blocked}
    assert blocked >= {"pinged-link", "fetch", "form", "socket", "worker", "frame-form"}
