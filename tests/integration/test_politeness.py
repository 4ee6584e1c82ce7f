"""Robots.txt is read and obeyed over real sockets; block pages are recognised in a real browser."""

import asyncio
import socket
import threading
import time
from functools import partial
from itertools import pairwise

import pytest

from tests.blobs import MemoryBlobs
from tests.browsers import BROWSERS, LOOPBACK_ONLY, shared_browser
from tests.exploring import explore_with
from tests.sites.blockpages import BLOCKED, PAGES
from tests.sites.server import FixtureServer, Page
from waygraph.core.errors import RobotsForbidden, SiteUnreachable
from waygraph.core.settings import ExploreSettings, Settings
from waygraph.pipeline.browser.page.snapshot import SnapshotOptions
from waygraph.pipeline.browser.page.view import PageView
from waygraph.pipeline.browser.process.launch import launch
from waygraph.pipeline.browser.process.pool import BrowserPool
from waygraph.pipeline.explore.exploration import explore_site
from waygraph.pipeline.explore.policies.block_page import detect_block_page
from waygraph.pipeline.explore.policies.robots import RobotsPolicy
from waygraph.pipeline.explore.policies.robots_file import MAX_BYTES, RobotsFile
from waygraph.pipeline.explore.politeness.pacer import MAX_COOL_DOWNS_IN_A_ROW, Pacer
from waygraph.pipeline.explore.politeness.slots import Slots

#: Pages whose marks a browser might serialise differently; tests/unit covers all pages.
LOOKED_AT = ("/cloudflare/header", "/datadome", "/imperva", "/recaptcha/wall", "/login", "/login/badge", "/article")
CLOSED = "User-agent: *\nDisallow: /private"


def text(body: str | bytes, **options) -> Page:
    return Page(body, content_type="text/plain", **options)


async def fetch(url: str, **options) -> RobotsFile:
    return await RobotsFile.fetch(url, user_agent="Browser/1 waygraph/1 (+mailto:crawl@shop.example)", **options)


@pytest.mark.parametrize(
    "page",
    [
        text(CLOSED),
        text(b"\xef\xbb\xbf" + CLOSED.encode()),
        text(CLOSED.encode("utf-16")),
        text(("# Stühle\n" + CLOSED).encode("latin-1")),
        text(CLOSED.replace("\n", "\r\n")),
        text(CLOSED.replace("*", "Waygraph") + "\n\nUser-agent: *\nDisallow: /open"),
        text(CLOSED + "\n" + "Allow: /open\n" * 1_000_000),
    ],
    ids=["plain", "BOM", "UTF-16", "Latin-1", "CRLF", "our name", "12 MB"],
)
async def test_all_encodings_of_a_robots_txt_are_read(page):
    with FixtureServer({"/robots.txt": page}) as site:
        robots = await fetch(site.at("/somewhere?x=1"))
    assert robots.refuse_url(site_url := "http://127.0.0.1:1/private/1") is not None, site_url
    assert robots.refuse_url("http://127.0.0.1:1/open") is None


async def test_robots_txt_is_truncated_at_half_a_megabyte_between_rules():
    read = "User-agent: *\nDisallow: /read\n"
    cut = "\nDisallow: /"  # what a reader who stops at the limit would see
    file = read + "#" * (MAX_BYTES - len(read) - len(cut)) + cut + "cut\nDisallow: /beyond\n"
    assert file[:MAX_BYTES].endswith(cut)
    with FixtureServer({"/robots.txt": text(file)}) as site:
        robots = await fetch(site.url)
        refused = [robots.refuse_url(site.at(path)) is not None for path in ("/read", "/", "/cut", "/beyond")]
    assert refused == [True, False, False, False]


async def test_missing_robots_txt_allows_everything_and_a_failing_server_nothing():
    with FixtureServer({}) as site:
        assert (await fetch(site.url)).refuse_url(site.at("/x")) is None
    for status in (500, 503):
        with FixtureServer({"/robots.txt": Page(status=status)}) as site, pytest.raises(RobotsForbidden):
            await fetch(site.url)


async def test_robots_txt_follows_five_redirects_and_more_count_as_missing():
    with FixtureServer({"/rules": text(CLOSED)}) as other:
        hops = {f"/{i}": Page(redirect=f"/{i + 1}") for i in range(1, 9)}
        with FixtureServer(
            {"/robots.txt": Page(redirect="/1"), **hops, "/4": Page(redirect=other.at("/rules"))}
        ) as site:
            assert (await fetch(site.url)).refuse_url(site.at("/private")) is not None
        with FixtureServer({"/robots.txt": Page(redirect="/1"), **hops}) as site:
            assert (await fetch(site.url)).refuse_url(site.at("/private")) is None
            assert len(site.requests) == 6


async def test_host_that_accepts_and_never_answers_gives_one_message():
    with FixtureServer({"/robots.txt": Page(hold=threading.Event())}) as site:
        with pytest.raises(SiteUnreachable, match=r"/robots\.txt gave no answer for 0\.2 s") as caught:
            await fetch(site.url.replace("//", "//user:secret@"), timeout_s=0.2)
        assert "secret" not in str(caught.value)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        with pytest.raises(SiteUnreachable):
            await fetch(f"http://127.0.0.1:{port}/", timeout_s=0.2)


async def test_an_unreachable_host_is_reported_by_the_browser():
    with FixtureServer({}) as site:
        url = site.url
    assert (await fetch(url)).refuse_url(url) is None
    with FixtureServer({"/robots.txt": Page(drop=True)}) as site:
        assert (await fetch(site.url)).refuse_url(site.url) is None


async def test_robots_txt_is_requested_through_the_proxy_with_the_user_agent():
    agents = []

    def answer(request):
        agents.append(request.headers["User-Agent"])
        return text(CLOSED)

    with FixtureServer({"/robots.txt": answer}) as proxy:
        robots = await fetch("http://shop.invalid/x", proxy=proxy.url)
        assert proxy.requests == [("GET", "http://shop.invalid/robots.txt")]
    assert robots.refuse_url("http://shop.invalid/private") is not None
    assert agents == ["Browser/1 waygraph/1 (+mailto:crawl@shop.example)"]


async def test_each_host_in_scope_is_refused_until_its_robots_txt_was_read():
    asks = text(CLOSED + "\nCrawl-delay: 7\nRequest-rate: 1/9")
    with (
        FixtureServer({"/robots.txt": asks}) as first,
        FixtureServer({}) as second,
        FixtureServer({"/robots.txt": Page(status=500)}) as broken,
    ):
        time, pacer = [0.0], Pacer(delay_seconds=0.0)
        robots = RobotsPolicy(user_agent="waygraph", pacer=pacer, clock=lambda: time[0])
        await robots.start(first.url)
        assert robots.refuse_url(first.at("/private")).reason == "robots"
        assert robots.refuse_url(first.at("/open")) is None
        assert [pacer.delay(site.url.split("/")[2]) for site in (first, second)] == [9.0, 0.0]

        assert "not read yet" in robots.refuse_url(second.at("/private")).detail
        await robots.prefetch()  # what was refused for that reason
        await robots.prefetch([second.at("/a"), second.at("/b"), broken.at("/"), "mailto:x@y.example"])
        assert robots.refuse_url(second.at("/private")) is None
        assert "could not be read" in robots.refuse_url(broken.at("/")).detail
        assert [len(site.requests) for site in (first, second, broken)] == [1, 1, 1]

        time[0] += 3_600
        broken.pages["/robots.txt"] = text(CLOSED)
        await robots.prefetch([second.at("/"), broken.at("/")])
        assert robots.refuse_url(broken.at("/")) is None
        assert [len(site.requests) for site in (first, second, broken)] == [1, 1, 2]
        time[0] += 24 * 3_600
        await robots.prefetch([second.at("/")])
        assert len(second.requests) == 2


async def look_at(site):
    """Return what is recognised on each page."""
    lens = SnapshotOptions.from_settings(LOOPBACK_ONLY, ExploreSettings())
    async with shared_browser() as browser:
        page = await browser.new_page()
        view = PageView(page, lens, LOOPBACK_ONLY)
        found = {}
        for path in LOOKED_AT:
            response = await page.goto(site.at(path), wait_until="commit")
            seen = await view.observe()
            found[path] = detect_block_page(
                seen,
                html=await page.content(),
                frames=[frame.url for frame in page.frames],
                headers=response.headers,
            )
        return found


def test_block_pages_are_recognised_in_a_browser_and_content_is_not():
    with FixtureServer(PAGES) as site:
        found = BROWSERS.run(look_at(site))
    assert found == {path: BLOCKED.get(path) for path in LOOKED_AT}


class Clocked(FixtureServer):
    """A server that records when each document was requested."""

    def __init__(self, pages):
        super().__init__(pages)
        self.arrivals = []

    def respond(self, request):
        if request.path != "/favicon.ico":
            self.arrivals.append((time.monotonic(), request.target))
        return super().respond(request)


def crowded(*, refusals):
    """A site with a crawl delay of 0.4 s, a first answer of 503 and a forbidden page."""
    busy = iter([Page("busy", status=429, headers={"Retry-After": "1"})] * refusals)
    links = "".join(f"<p><a href='/{name}'>{name}</a></p>" for name in ("one", "two", "busy", "wall", "private"))
    pages = {f"/{name}": f"<title>{name}</title><h1>{name}</h1><p>{'Words. ' * 20}</p>" for name in ("one", "two")}
    return pages | {
        "/robots.txt": text("User-agent: *\nCrawl-delay: 0.4\nDisallow: /private"),
        "/": f"<h1>Crowded</h1>{links}<button onclick=\"location = '/private/too'\">Also private</button>",
        "/busy": lambda _: next(busy, "<title>busy</title><h1>Not busy any more</h1>"),
        "/wall": PAGES["/cloudflare/challenge"],
        "/private": "<h1>Private</h1>",
        "/private/too": "<h1>Private</h1>",
    }


@pytest.mark.extended
async def test_explorations_that_share_a_browser_obey_the_delays_of_each_host(monkeypatch):
    monkeypatch.setattr("waygraph.pipeline.explore.politeness.pacer.FIRST_COOL_DOWN_S", 0.5)
    settings = Settings(browser=LOOPBACK_ONLY, explore={"depth": 1, "delay_seconds": 0.1, "workers": 2})
    pacer, slots = Pacer(delay_seconds=0.1), Slots()
    with Clocked(crowded(refusals=1)) as first, Clocked(crowded(refusals=9)) as second:
        async with BrowserPool(partial(launch, LOOPBACK_ONLY, guarded=True)) as pool:

            async def explore(site):
                return await explore_site(
                    site.url, settings=settings, blobs=MemoryBlobs(), pool=pool, pacer=pacer, slots=slots
                )

            captures = await asyncio.gather(explore(first), explore(second))
    for site, capture, found in zip((first, second), captures, ({"one", "two", "busy"}, {"one", "two"}), strict=True):
        gaps = [later - earlier for (earlier, _), (later, _) in pairwise(site.arrivals)]
        assert min(gaps) >= 0.4
        targets = [target for _, target in site.arrivals]
        assert not any(target.startswith("/private") for target in targets)
        assert targets.count("/wall") == 3
        assert {node.title for node in capture.graph.nodes.values()} - {""} == found
        counters = capture.report.counters
        assert counters["block/pages"] == 3 + targets.count("/busy") - ("busy" in found)
        assert counters["skip/robots"] == 2
        assert counters["pace/turns"] >= len(found) + 1
        reasons = {failure.reason for failure in capture.report.failures}
        assert any("shows a block page (cloudflare)" in reason for reason in reasons)
    busy = [when for when, target in first.arrivals if target == "/busy"]
    assert len(busy) == 2
    assert busy[1] - busy[0] >= 1.0  # as its Retry-After said
    assert [target for _, target in second.arrivals].count("/busy") == 3
    assert any("(rate-limit)" in failure.reason for failure in captures[1].report.failures)


def test_a_host_that_shows_a_block_page_for_everything_is_given_up_whatever_the_status(monkeypatch):
    monkeypatch.setattr("waygraph.pipeline.explore.politeness.pacer.FIRST_COOL_DOWN_S", 0.01)
    names = [f"wall{number}" for number in range(20)]
    wall = PAGES["/cloudflare/challenge"]
    pages = {"/": "".join(f"<p><a href='/{name}'>{name}</a></p>" for name in names)}
    pages |= {f"/{name}": Page(wall.body, status=200 if number % 2 else 403) for number, name in enumerate(names)}
    settings = Settings(browser=LOOPBACK_ONLY, explore={"depth": 1, "workers": 1})
    with Clocked(pages) as site:
        capture = explore_with(settings, site.url, blobs=MemoryBlobs())
    asked = {target for _, target in site.arrivals if target.startswith("/wall")}
    assert len(asked) == MAX_COOL_DOWNS_IN_A_ROW + 1
    assert capture.report.partial


def test_a_page_whose_headers_say_that_it_is_a_challenge_is_none_of_the_site(monkeypatch):
    monkeypatch.setattr("waygraph.pipeline.explore.politeness.pacer.FIRST_COOL_DOWN_S", 0.01)
    content = "<h1>Just like other pages</h1>" + "<p>A page with many words and links.</p>" * 200
    pages = {"/": "<a href='/one'>one</a>", "/one": Page(content, headers={"cf-mitigated": "challenge"})}
    settings = Settings(browser=LOOPBACK_ONLY, explore={"depth": 1, "workers": 1})
    with Clocked(pages) as site:
        capture = explore_with(settings, site.url, blobs=MemoryBlobs())
    assert len(capture.graph) == 1
    assert ["cloudflare" in failure.reason for failure in capture.report.failures] == [True]
