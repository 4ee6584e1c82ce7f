"""All files of a site together: what they name is followed once, within the limits, and dates that say nothing go."""

import asyncio
from datetime import UTC, datetime

from waygraph.pipeline.explore.records.listing import ListedPage, SiteListing
from waygraph.pipeline.explore.sitemap.listing import ListingLimits, ListingReader
from waygraph.pipeline.explore.sitemap.site_files import NotLoaded

NOW = datetime(2026, 1, 31, 12, tzinfo=UTC)
SITE = "https://shop.example"


def index(*files):
    return f"<sitemapindex>{''.join(f'<sitemap><loc>{file}</loc></sitemap>' for file in files)}</sitemapindex>"


def urlset(*entries):
    rows = (
        f"<url><loc>{path}</loc><lastmod>{date}</lastmod></url>"
        for path, _, date in (e.partition("@") for e in entries)
    )
    return f"<urlset>{''.join(rows)}</urlset>"


def read(files, *sources, guessed=(), limits=None, requested=None):
    """Read a site of these files, by path."""

    async def load(url):
        path = url.removeprefix(SITE)
        if requested is not None:
            requested.append(path)
        if isinstance(answer := files.get(path, NotLoaded("unread")), NotLoaded):
            raise answer
        return answer.encode()

    reader = ListingReader(load, lambda url: url.startswith(f"{SITE}/"), limits or ListingLimits(), NOW)
    asyncio.run(reader.read((f"{SITE}{path}" for path in sources), {f"{SITE}{path}" for path in guessed}))
    return reader.listing()


def counts(listing):
    return {name.removeprefix("sitemap/"): count for name, count in listing.counters.items()}


def listed(listing):
    return [page.url.removeprefix(SITE) + (f"@{page.lastmod}" if page.lastmod else "") for page in listing.pages]


def test_files_that_name_each_other_are_requested_once():
    requested = []
    files = {"/a": index("/b", "/a", "/c"), "/b": index("/a", "/c"), "/c": urlset("/page")}
    found = read(files, "/a", "/a", requested=requested)
    assert (requested, listed(found)) == (["/a", "/b", "/c"], ["/page"])
    assert counts(found) == {"files": 3, "pages": 1, "repeated": 4}
    assert found.advice == ""


def test_a_page_that_several_files_list_has_the_name_and_the_latest_date_of_any():
    feed = "<feed><entry><title>Shoes</title><link href='/a'/><updated>2026-01-02</updated></entry></feed>"
    found = read({"/map": urlset("/a@2026-01-03", "/b@2026-01-01"), "/feed": feed}, "/map", "/feed")
    assert found.pages[0] == ListedPage(f"{SITE}/a", "Shoes", "2026-01-03")


def test_limits_of_a_site_are_said():
    files = {"/a": index(*(f"/{n}" for n in range(9))), **{f"/{n}": urlset(f"/p{n}", f"/q{n}") for n in range(9)}}
    few = read(files, "/a", limits=ListingLimits(files=4))
    assert counts(few) == {"files": 4, "pages": 6, "left_out": 6}
    assert "left_out 6" in few.advice
    pages = read(files, "/a", limits=ListingLimits(pages=3))
    assert counts(pages) == {"files": 3, "pages": 3, "too_many": 1, "left_out": 7}
    assert counts(read(files, "/a", limits=ListingLimits(total_bytes=1)))["left_out"] == 9


def test_reading_ends_in_time():
    async def load(_):
        await asyncio.Event().wait()

    reader = ListingReader(load, lambda _: True, ListingLimits(seconds=0), NOW)
    asyncio.run(reader.read([f"{SITE}/a", f"{SITE}/b"]))
    assert counts(reader.listing())["left_out"] == 2


def test_a_host_that_asks_to_come_again_later_is_asked_nothing_more():
    requested = []
    found = read({"/a": NotLoaded("unread", ends=True)}, "/a", "/b", requested=requested)
    assert (requested, counts(found)) == (["/a"], {"unread": 1, "left_out": 1})


def test_a_guessed_file_that_is_missing_or_a_page_is_no_problem():
    assert read({}, "/map", guessed=["/map"]) == SiteListing("2026-01-31T12:00:00Z")
    assert counts(read({"/map": "<!doctype html>"}, "/map", guessed=["/map"])) == {}
    assert counts(read({}, "/map")) == {"unread": 1}
    assert counts(read({"/map": "<!doctype html>"}, "/map")) == {"files": 1, "no_sitemap": 1}


def test_pages_of_other_sites_are_counted():
    found = read({"/map": urlset("/a", "https://other.example/a", "https://shop.example.evil.example/")}, "/map")
    assert (listed(found), counts(found)["foreign"]) == (["/a"], 2)


def test_alternates_in_other_languages_come_after_all_pages():
    page = "<url><loc>/en</loc>{}</url>".format("<link rel='alternate' hreflang='de' href='/de'/>" * 2)
    found = read({"/a": f"<urlset>{page}</urlset>", "/b": urlset("/z")}, "/a", "/b")
    assert listed(found) == ["/en", "/z", "/de"]


def test_dates_in_the_future_and_dates_of_one_day_are_dropped():
    future = read({"/map": urlset("/a@2026-01-01", "/b@2026-01-02", "/c@2031-01-01")}, "/map")
    assert (listed(future), counts(future)["undated"]) == (["/a@2026-01-01", "/b@2026-01-02", "/c"], 1)
    stamped = read({"/map": urlset("/a@2026-01-31T08:00:00Z", "/b@2026-01-31T08:00:01Z")}, "/map")
    assert (listed(stamped), counts(stamped)["undated"]) == (["/a", "/b"], 2)
