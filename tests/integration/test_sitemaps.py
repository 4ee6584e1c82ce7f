"""Pages that a site lists in sitemaps and feeds become leads at no page load; what lies or has no end does no harm."""

import asyncio
import gzip
import json
from datetime import datetime, timedelta
from functools import partial

import pytest

from tests.blobs import MemoryBlobs
from tests.browsers import LOOPBACK_ONLY
from tests.exploring import explore
from tests.sites.server import FixtureServer, Page
from waygraph.core.settings import Settings
from waygraph.index.graph.export import to_json
from waygraph.pipeline.explore.exploration import explore_site
from waygraph.pipeline.explore.refresh.exploration_record import ExplorationRecord
from waygraph.pipeline.explore.refresh.prior_exploration import PriorExploration
from waygraph.pipeline.explore.refresh.sample import plan_refresh

FEED_LINK = (
    '<link rel="alternate" type="application/atom+xml" href="/feed"><link rel="alternate" hreflang="de" href="/de">'
)
HOME = (
    f"<head><title>Shop</title>{FEED_LINK}</head><h1>Shop</h1><nav><a href=/help>Help</a><a href=/terms>Terms</a></nav>"
)


def urlset(*entries):
    rows = (f"<url><loc>{loc}</loc>{f'<lastmod>{date}</lastmod>' * bool(date)}</url>" for loc, date in entries)
    return Page(f"<urlset>{''.join(rows)}</urlset>", content_type="application/xml")


def index(*files):
    rows = (f"<sitemap><loc>{file}</loc></sitemap>" for file in files)
    return Page(f"<sitemapindex>{''.join(rows)}</sitemapindex>", content_type="application/xml")


def robots(*lines):
    return Page("\n".join(lines), content_type="text/plain")


PAGES = {
    "/": HOME,
    "/help": "<title>Help</title><h1>Help</h1><a href=/terms>Terms</a>",
    "/terms": "<title>Terms</title><h1>Terms</h1>",
}


def leads(capture):
    """Paths, names and dates of the leads that no link leads to."""
    return {
        lead.url.removeprefix(capture.start_url.rstrip("/")): (*lead.names, lead.lastmod)
        for lead in capture.leads.values()
        if not lead.is_linked and not lead.hidden
    }


def export(capture):
    return json.dumps(to_json(capture.site, 1, capture.graph, leads=capture.leads), sort_keys=True)


def sitemap_counts(capture):
    counts = capture.report.counters
    return {name.removeprefix("sitemap/"): n for name, n in counts.items() if name.startswith("sitemap/")}


def test_the_pages_of_all_files_that_a_site_names_are_leads_and_none_is_loaded():
    pages = PAGES | {
        "/robots.txt": robots("User-agent: *", "Disallow: /private", "Sitemap: /maps/index", "Sitemap: /list.txt"),
        "/maps/index": index("/maps/a.xml.gz", "/maps/inner"),
        "/maps/a.xml.gz": Page(gzip.compress(urlset(("/help", ""), ("/new?a=1", "2026-01-02")).body.encode())),
        "/maps/inner": index("/maps/index", "/maps/b", "https://elsewhere.invalid/sitemap.xml", "/private/map"),
        "/maps/b": urlset(
            ("/b", "2025-01-01"), ("/private/b", ""), ("https://elsewhere.invalid/b", ""), ("/logout", "")
        ),
        "/list.txt": lambda request: Page(f"http://{request.headers['Host']}/c\n", content_type="text/plain"),
        "/feed": "<feed><entry><title>Shoes</title><link href='/sale'/><updated>2026-01-03</updated></entry></feed>",
    }
    with FixtureServer(pages) as site:
        capture = explore(site.url, depth=1)
        assert leads(capture) == {
            "/new?a=1": ("2026-01-02",), "/b": ("2025-01-01",), "/c": ("",), "/sale": ("Shoes", "2026-01-03")
        }  # fmt: skip
        requested = set(site.paths)
    assert requested == set(pages) - {"/private/map"}
    # Out of scope: one file and one page. Refused: one file by robots.txt; a page by that, and one since it logs out.
    assert sitemap_counts(capture) == {"files": 6, "pages": 7, "foreign": 2, "refused": 3, "repeated": 1}
    assert all(lead.state == capture.graph.start for lead in capture.leads.values() if not lead.is_linked)


def test_without_a_named_sitemap_the_usual_place_is_tried_and_links_get_the_dates():
    pages = PAGES | {"/sitemap.xml": urlset(("/help", "2026-01-02"), ("/terms", "2026-01-03"), ("/more", ""))}
    with FixtureServer(pages) as site:
        capture = explore(site.url, depth=0)
        assert {lead.title.rpartition("/")[2]: lead.lastmod for lead in capture.leads.values() if not lead.hidden} == {
            "Help": "2026-01-02", "Terms": "2026-01-03", "more": ""
        }  # fmt: skip
        assert set(leads(explore(site.url, depth=0, robots=False))) == {"/more"}
        del site.pages["/sitemap.xml"]
        assert sitemap_counts(explore(site.url, depth=0)) == {"unread": 1}  # the feed; nothing named the sitemap


def test_a_sitemap_can_be_named_or_switched_off():
    pages = PAGES | {"/sitemap.xml": urlset(("/usual", "")), "/other.xml": urlset(("/other", ""))}
    with FixtureServer(pages) as site:
        assert set(leads(explore(site.url, depth=0, sitemap=site.at("/other.xml")))) == {"/other"}
        assert set(leads(explore(site.url, depth=0, sitemap="https://elsewhere.invalid/map.xml"))) == {"/usual"}
        site.log_cleared = len(site.paths)
        off = explore(site.url, depth=0, sitemap="off")
        assert leads(off) == sitemap_counts(off) == {}
        assert not {"/sitemap.xml", "/feed"} & set(site.paths[site.log_cleared :])


def test_the_session_and_headers_are_sent_to_the_site_alone():
    seen = {}

    def listing(request):
        seen.update(request.headers)
        return urlset(("/a", ""))

    with (
        FixtureServer({"/sitemap.xml": listing}) as other,
        FixtureServer(PAGES | {"/one.xml": listing, "/sitemap.xml": Page(redirect="/one.xml")}) as site,
    ):
        site.pages["/"] = Page(HOME, headers={"Set-Cookie": "visit=17; Path=/"})
        explore(site.url, depth=0, headers={"X-Key": "secret"}, basic_auth="ann:pass")
        assert (seen["Cookie"], seen["X-Key"], seen["Authorization"]) == ("visit=17", "secret", "Basic YW5uOnBhc3M=")
        site.pages["/sitemap.xml"] = Page(redirect=other.at("/sitemap.xml"))
        capture = explore(site.url, depth=0, headers={"X-Key": "secret"})
        assert (leads(capture), other.paths, sitemap_counts(capture)["foreign"]) == ({}, [], 1)


@pytest.mark.parametrize(
    ("answer", "counted"),
    [
        (Page('<!DOCTYPE a [<!ENTITY b "c">]><urlset><url><loc>/&b;</loc></url></urlset>'), "doctype"),
        (Page(gzip.compress(b"<urlset>" + b" " * (51 * 2**20))), "too_large"),
        (Page(b"\x1f\x8bnot gzip"), "malformed"),
        (Page("x", status=503), "unread"),
        (Page(drop=True), "unread"),
        (Page(redirect="/sitemap.xml"), "unread"),
    ],
    ids=["entities", "bomb", "broken", "busy", "no-answer", "circle"],
)
def test_a_hostile_or_broken_sitemap_is_counted_and_the_map_is_complete(answer, counted):
    pages = PAGES | {"/robots.txt": robots("Sitemap: /sitemap.xml"), "/sitemap.xml": answer}
    with FixtureServer(pages) as site:
        site.pages["/"] = HOME.replace(FEED_LINK, "")
        capture = explore(site.url, depth=1)
    assert (len(capture.graph), capture.report.partial) == (3, False)
    assert sitemap_counts(capture)[counted] == 1
    is_said = any("not read in full" in advice for advice in capture.report.advice)
    assert is_said == (counted != "unread")


def test_pages_that_json_ld_of_visited_pages_names_are_leads():
    crumbs = '{"@type": "BreadcrumbList", "itemListElement": [{"item": {"@id": "/garden", "name": "Garden"}}]}'
    search = (
        '{"@type": "WebSite", "name": "Shop", "potentialAction": {"@type": "SearchAction", "target": "/find?q={q}"}}'
    )
    pages = {
        "/": f'<script type="application/ld+json">{search}</script><h1>Shop</h1><a href=/rake>Rake</a>',
        "/rake": f'<script type="application/ld+json">{crumbs}</script><h1>Rake</h1>',
        "/sitemap.xml": urlset(("/garden", "2026-01-02"), ("/rake", "2026-01-03")),
    }
    with FixtureServer(pages) as site:
        capture = explore(site.url, depth=1)
    assert leads(capture) == {"/find?q=": ("Search Shop", ""), "/garden": ("Garden", "2026-01-02")}


def test_a_refresh_asks_first_for_what_the_site_says_has_changed():
    names = [f"/p{number}" for number in range(12)]
    links = "".join(f"<a href={name}>Page {name}</a>" for name in names)
    pages = {"/": f"<title>Shop</title><h1>Shop</h1><nav>{links}</nav>"}
    pages |= {name: f"<title>{name}</title><h1>{name}</h1>" for name in names}
    old = [(name, f"2025-01-{number + 1:02}") for number, name in enumerate(names)]
    blobs, policy = MemoryBlobs(), Settings().explore.url_policy
    with FixtureServer(pages | {"/sitemap.xml": urlset(*old)}) as site:
        first = explore(site.url, blobs=blobs, depth=1, workers=1)
        record = ExplorationRecord.parse(blobs[first.report.record])
        later = datetime.fromisoformat(record.about["at"]) + timedelta(hours=1)
        site.pages["/p7"] = "<title>/p7</title><h1>/p7</h1><p>New</p>"
        site.pages["/sitemap.xml"] = urlset(*old[:7], ("/p7", later.isoformat()), *old[8:])
        plan = partial(plan_refresh, record, share=0.05, budget_ms=1e9, seed="1")
        assert site.at("/p7") not in plan().loads
        before = len(site.paths)
        prior = PriorExploration(record, plan(), url_policy=policy, replan=plan)
        again = explore(site.url, blobs=blobs, depth=1, workers=1, prior=prior)
        asked = [path for path in site.paths[before:] if path in names]
    assert again.report.counters["refresh/listed_as_changed"] == 1
    assert asked[0] == "/p7"
    assert len(set(asked)) <= 2
    assert any("New" in [text.text for text in each.segments] for each in again.observations.values())


@pytest.mark.extended
def test_the_map_is_the_same_for_any_number_of_workers_and_after_an_interruption(tmp_path):
    listed = [(f"/p{n}/{m}", "") for n in range(40) for m in range(40)]
    pages = PAGES | {"/sitemap.xml": index("/1", "/2"), "/1": urlset(*listed[:800]), "/2": urlset(*listed[800:])}
    with FixtureServer(pages) as site:
        maps = [export(explore(site.url, depth=1, workers=workers)) for workers in (1, 2, 4)]
        before = len(site.paths)

        async def run(stop_after=None):
            stop, done = asyncio.Event(), []

            def on_progress(progress):
                done.append(progress)
                if len(done) == stop_after:
                    stop.set()

            settings = Settings(browser=LOOPBACK_ONLY, explore={"depth": 1, "workers": 2})
            return await explore_site(
                site.url,
                settings=settings,
                blobs=MemoryBlobs(),
                on_progress=on_progress,
                stop=stop,
                journal=tmp_path / "j",
            )

        assert asyncio.run(run(stop_after=1)).report.partial
        site.pages["/2"] = urlset(("/another", ""))
        maps.append(export(asyncio.run(run())))
        assert site.paths[before:].count("/2") == 1
    assert len(set(maps)) == 1
