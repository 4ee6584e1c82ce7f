"""Static files are requested once in a run, by whichever page needs them first; the map is the same without that."""

import json
from collections import Counter

import pytest

from tests.browsers import BROWSERS, LOOPBACK_ONLY
from tests.exploring import explore
from tests.sites.server import FixtureServer, Page
from waygraph.core.settings import CaptureProfile, ExploreSettings
from waygraph.index.graph.export import to_json
from waygraph.pipeline.browser.guard.static_files import StaticFiles
from waygraph.pipeline.browser.page.snapshot import SnapshotOptions
from waygraph.pipeline.browser.session import ContextOptions, GuardedPage

pytestmark = pytest.mark.extended

SCRIPT, STYLE, SVG = "text/javascript", "text/css", "image/svg+xml"
PICTURE = "<svg xmlns='http://www.w3.org/2000/svg' width='9' height='9'><rect width='9' height='9'/></svg>"
HEAD = """<link rel=stylesheet href=/style.css><script src=/app.js></script><script src=/fresh.js></script>
    <script type=module src=/module.js></script>"""
LINKS = "".join(f"<a href=/{name}>Page {name}</a>" for name in "abcd")


def page(name):
    return f"""{HEAD}<title>{name}</title><nav>{LINKS}</nav><h1>{name}</h1><img src=/picture.svg><p id=shown></p>
    <button onclick="more('{name}')">More of {name}</button>"""


PAGES = {
    "/": page("home"),
    **{f"/{name}": page(name) for name in "abcd"},
    "/style.css": Page("@import '/imported.css'; h1 { color: navy }", content_type=STYLE),
    "/imported.css": Page("h1 { margin: 0 }", content_type=STYLE),
    "/app.js": Page("function more(name) { shown.innerHTML = `<a href=/${name}?more>More</a>` }", content_type=SCRIPT),
    "/module.js": Page("import '/part.js'", content_type=SCRIPT),
    "/part.js": Page("document.title += ' (ready)'", content_type=SCRIPT),
    "/fresh.js": Page("let fresh;", content_type=SCRIPT, headers={"Cache-Control": "no-store"}),
    "/picture.svg": Page(PICTURE, content_type=SVG),
}
STATIC = {"/style.css", "/imported.css", "/app.js", "/module.js", "/part.js", "/picture.svg"}


def export(capture):
    return json.dumps(to_json(capture.site, 1, capture.graph, leads=capture.leads), sort_keys=True)


@pytest.fixture(scope="module")
def site():
    with FixtureServer(PAGES) as server:
        yield server


@pytest.fixture(scope="module")
def explored(site):
    """Two explorations by (workers, bytes for stored files): the capture, and how often each target was requested."""

    def run(workers, stored_bytes):
        before = len(site.paths)
        capture = explore(site.url, depth=2, workers=workers, static_files_bytes=stored_bytes)
        return capture, Counter(site.paths[before:])

    return {"stored": run(4, 1 << 20), "one worker": run(1, 1 << 20), "requested": run(4, 0)}


@pytest.mark.parametrize("run", ["stored", "one worker"])
def test_each_static_file_is_requested_once(explored, run):
    _, asked = explored[run]
    assert {path: asked[path] for path in STATIC} == dict.fromkeys(STATIC, 1)


def test_file_with_no_store_is_requested_by_every_document(explored):
    _, asked = explored["stored"]
    documents = sum(count for path, count in asked.items() if path.partition("?")[0] not in {*STATIC, "/fresh.js"})
    assert asked["/fresh.js"] >= 7
    assert asked["/fresh.js"] <= documents


def test_without_the_store_pages_request_files_again(explored):
    _, asked = explored["requested"]
    assert max(asked[path] for path in STATIC) > 1


def test_the_map_does_not_depend_on_stored_files_or_workers(explored):
    first, *others = (export(capture) for capture, _ in explored.values())
    assert all(other == first for other in others)


def test_requests_and_bytes_are_counted(explored):
    capture, asked = explored["one worker"]
    counters = capture.report.counters
    assert counters["requests/static"] == sum(asked[path] for path in {*STATIC, "/fresh.js"})
    assert counters["requests/static_reused"] > 0
    assert counters["requests/document"] >= sum(asked[f"/{name}"] for name in ("", *"abcd"))
    assert counters["egress/bytes"] > 5_000


async def open_page(files):
    return await GuardedPage.open(
        await BROWSERS.browser(),
        ContextOptions(CaptureProfile(), user_agent="waygraph-test"),
        settings=LOOPBACK_ONLY,
        snapshot_options=SnapshotOptions.from_settings(LOOPBACK_ONLY, ExploreSettings()),
        document_policy=lambda _: None,
        static_files=files,
    )


def test_script_that_varies_by_cookie_follows_the_cookies_of_its_page():
    def language(request):
        word = "Willkommen" if "lang=de" in request.headers.get("Cookie", "") else "Welcome"
        return Page(f"document.write('<h1>{word}</h1>')", content_type=SCRIPT, headers={"Vary": "Cookie"})

    async def run(url):
        page = await open_page(StaticFiles(1 << 20, Counter()))
        shown = []
        for cookie in ("lang=en", "lang=de", "lang=en"):
            await page.view.goto(url)
            await page.page.evaluate("cookie => { document.cookie = cookie }", cookie)
            shown.append((await page.view.goto(url)).snapshot.segments[0].text)
        await page.close()
        return shown

    with FixtureServer({"/": "<script src=/language.js></script>", "/language.js": language}) as site:
        assert BROWSERS.run(run(site.url)) == ["Welcome", "Willkommen", "Welcome"]
        assert site.paths.count("/language.js") == 3  # without a cookie, and with each of two


@pytest.mark.parametrize(
    "code", ["fetch('/greeting')", "document.head.append(Object.assign(new Image(), {src: '/greeting'}))"]
)
def test_answer_that_sets_a_cookie_is_requested_by_every_context(code):
    sets_cookie = {"Cache-Control": "max-age=600", "Set-Cookie": "greeted=1; HttpOnly; Path=/greeting"}
    greeting = Page("{}", content_type="application/json", headers=sets_cookie)

    async def run(url):
        shared = StaticFiles(1 << 20, Counter())
        for _ in range(2):
            page = await open_page(shared)
            await page.view.goto(url)
            await page.close()

    with FixtureServer({"/": f"<script>{code}</script>", "/greeting": greeting}) as site:
        BROWSERS.run(run(site.url))
        assert site.paths.count("/greeting") == 2
