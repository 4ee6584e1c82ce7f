"""Browser contexts that start with the session of a file, and the session that a context holds."""

import asyncio
import json

import pytest

from tests.browsers import BROWSERS
from tests.sites.server import FixtureServer, Page
from waygraph.agents.runner.network_recording import NetworkRecording
from waygraph.core.errors import InvalidInput
from waygraph.core.settings import BrowserSettings
from waygraph.pipeline.browser.process.launch import launch
from waygraph.pipeline.browser.storage.contexts import open_context, read_session
from waygraph.pipeline.browser.storage.session_file import read_session_file

ORIGIN = "http://127.0.0.1:9"


def on_browser(use):
    async def run():
        return await use(await BROWSERS.browser())

    return BROWSERS.run(run())


def cookie(**more):
    about = {"domain": "127.0.0.1", "path": "/", "expires": -1, "httpOnly": False, "secure": False, "sameSite": "Lax"}
    return {"name": "sid", "value": "hunter22", **about, **more}


def database(*records, **more):
    store = {"name": "s", "autoIncrement": False, "indexes": [], "records": list(records), **more}
    return {"name": "users", "version": 1, "stores": [store]}


def stored(*databases, local=()):
    return {"origin": ORIGIN, "localStorage": list(local), "indexedDB": list(databases)}


@pytest.mark.parametrize(
    ("cookies", "origins", "place", "name"),
    [
        ([cookie(), cookie(name="a b;")], [], "cookies.1", "the cookie 'a b;'"),
        ([cookie(name="__Host-x")], [], "cookies.0", "the cookie '__Host-x'"),
        ([cookie(), cookie(name="dropped", sameSite="None")], [], "cookies.1", "the cookie 'dropped'"),
        ([], [stored(local=[{"name": "a", "value": "hunter22" * 999_999}])], "origins.0", f"what {ORIGIN} stores"),
        (
            [],
            [stored(), stored(database({"key": "a", "value": 1}, {"key": True, "value": 2}))],
            "origins.1.indexedDB.0.stores.0.records.1",
            f"the database 'users' of {ORIGIN}",
        ),
        ([], [stored(database(keyPath="a b"))], "origins.0.indexedDB.0", f"the database 'users' of {ORIGIN}"),
        (
            [],
            [stored(database({"key": "a", "valueEncoded": {"future": "hunter22"}}))],
            "origins.0.indexedDB.0.stores.0.records.0",
            f"the database 'users' of {ORIGIN}",
        ),
    ],
)
def test_an_entry_that_the_browser_does_not_take_is_named(tmp_path, cookies, origins, place, name):
    file = tmp_path / "state.json"
    file.write_text(json.dumps({"cookies": cookies, "origins": origins}))

    async def run(browser):
        await open_context(browser, read_session_file(file))

    with pytest.raises(InvalidInput) as raised:
        on_browser(run)
    assert f"'{place}'" in str(raised.value)
    assert name in str(raised.value)
    assert "hunter22" not in str(raised.value)


@pytest.mark.parametrize(
    ("part", "place"),
    [
        ({"sessionStorage": [{"name": "a"}]}, "origins.0.sessionStorage.0.value"),
        ({"indexedDB": [{"name": "a", "version": 0, "stores": []}]}, "origins.0.indexedDB.0.version"),
        ({"indexedDB": [{"name": "a", "version": 1, "stores": [{}]}]}, "origins.0.indexedDB.0.stores.0.name"),
    ],
)
def test_a_malformed_entry_is_named_before_a_browser_starts(tmp_path, part, place):
    file = tmp_path / "state.json"
    file.write_text(json.dumps({"origins": [{"origin": ORIGIN, "localStorage": [], **part}]}))
    with pytest.raises(InvalidInput, match=f"at '{place}'"):
        read_session_file(file)


OPEN = """const opened = new Promise((ok) => {
  const request = indexedDB.open("app", 3);
  request.onupgradeneeded = () => request.result.createObjectStore("s");
  request.onsuccess = () => ok(request.result);
});
const use = async (call) => {
  const request = call((await opened).transaction("s", "readwrite").objectStore("s"));
  return new Promise((ok) => request.onsuccess = () => ok(request.result));
};"""


def test_a_file_that_playwright_wrote_is_read(tmp_path):
    file = tmp_path / "state.json"

    async def run(browser):
        context = await browser.new_context()
        page = await context.new_page()
        await page.goto(site.url)
        await page.evaluate("localStorage.a = 'b'")
        await page.evaluate("use((s) => s.put({ plain: [1, null, { a: 'x' }] }, 'plain'))")
        await page.evaluate("use((s) => s.put(new Map([[new Date(5), 7n]]), [1, new Date(6)]))")
        await context.storage_state(path=file, indexed_db=True)
        await context.close()
        again = await open_context(browser, read_session_file(file))
        page = await again.new_page()
        await page.goto(site.url)
        plain = await page.evaluate("use((s) => s.get('plain'))")
        read = "(map) => [...map].map(([k, v]) => `${k.getTime()} ${typeof v} ${v}`)"
        typed = await page.evaluate(f"use((s) => s.get([1, new Date(6)])).then({read})")
        kept = await page.evaluate("localStorage.a")
        await again.close()
        return plain, typed, kept

    with FixtureServer({"/": f"<script>{OPEN}</script>"}) as site:
        assert on_browser(run) == ({"plain": [1, None, {"a": "x"}]}, ["5 bigint 7"], "b")


def test_what_cannot_leave_the_browser_is_named():
    async def run(browser):
        context = await browser.new_context()
        page = await context.new_page()
        await page.goto(site.url)
        key = "await crypto.subtle.generateKey({ name: 'AES-GCM', length: 256 }, false, ['encrypt'])"
        await page.evaluate(f"(async () => {{ const key = {key}; await use((s) => s.put({{ key }}, 'k')) }})()")
        await page.evaluate("use((s) => s.put('kept', 'other'))")
        held = await read_session(context, {site.url.rstrip("/")}, {})
        await context.close()
        return held

    with FixtureServer({"/": f"<script>{OPEN}</script>"}) as site:
        held = on_browser(run)
        assert held.lost == (f"{site.url.rstrip('/')}: app / s: a CryptoKey that must not be exported",)
    (store,) = held.state["origins"][0]["indexedDB"][0]["stores"]
    assert store["records"] == [{"keyEncoded": "other", "valueEncoded": "kept"}]


def test_a_partitioned_cookie_of_an_embedded_site_keeps_its_partition():
    def embedded(request):
        cookie = "__Host-part=embedded; Path=/; Secure; HttpOnly; SameSite=None; Partitioned"
        return Page(f"<p>{request.headers.get('Cookie', 'nobody')}</p>", headers={"Set-Cookie": cookie})

    async def with_localhost(use):
        rules = "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1, EXCLUDE localhost"
        async with launch(BrowserSettings(extra_args=(rules,))) as browser:
            return await use(browser)

    async def run(browser):
        first = await browser.new_context()
        await (await first.new_page()).goto(site.url)
        held = await read_session(first, (), {})
        await first.close()
        context = await open_context(browser, held.state)
        page = await context.new_page()
        await page.goto(site.url)
        within = await page.frames[1].inner_text("p")
        await page.goto(frame)
        alone = await page.inner_text("p")
        await context.close()
        return within, alone

    with FixtureServer({"/frame": embedded}) as site:
        frame = site.at("/frame").replace("127.0.0.1", "localhost")
        site.pages["/"] = f"<iframe src={frame}></iframe>"
        assert asyncio.run(with_localhost(run)) == ("__Host-part=embedded", "nobody")


def test_restoring_a_session_leaves_no_request_in_the_recording_of_an_agent(tmp_path):
    async def run(browser):
        state = {"cookies": [], "origins": [{**stored(database()), "origin": site.url.rstrip("/")}]}
        with NetworkRecording() as network:
            context = await open_context(browser, state, **network.context_options)
            await (await context.new_page()).goto(site.at("/shown"))
            await context.close()
            return json.loads((tmp_path / network.store(tmp_path)).read_text())["log"]

    with FixtureServer({"/shown": "<h1>Shown</h1>"}) as site:
        log = on_browser(run)
        assert {entry["request"]["url"] for entry in log["entries"]} <= {site.at("/shown"), site.at("/favicon.ico")}
        assert len(log["pages"]) == 1
