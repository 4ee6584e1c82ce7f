"""One sitemap or feed: what is read of each format, where the limits are, and that no content does harm."""

import gzip
import zlib

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from waygraph.pipeline.explore.records.listing import ListedPage
from waygraph.pipeline.explore.sitemap.sitemap_file import SitemapFile, read_sitemap

AT = "https://shop.example/maps/sitemap.xml"
URLSET = '<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">{}</urlset>'
TWO = URLSET.format(
    "<url><loc> https://shop.example/a?b=1&amp;c=2 </loc><lastmod>2026-01-02</lastmod></url>"
    "<url><loc>https://shop.example/d</loc><priority>0.5</priority></url>"
)
PAGES = (ListedPage("https://shop.example/a?b=1&c=2", "", "2026-01-02"), ListedPage("https://shop.example/d"))
BOMB = """<?xml version="1.0"?><!DOCTYPE urlset [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;&a;&a;">]>
<urlset><url><loc>https://shop.example/&b;</loc></url></urlset>"""
OUTSIDE = """<?xml version="1.0"?><!DOCTYPE urlset [<!ENTITY a SYSTEM "file:///etc/passwd">]>
<urlset><url><loc>https://shop.example/&a;</loc></url></urlset>"""


def read(text, **limits):
    return read_sitemap(text if isinstance(text, bytes) else text.encode(), AT, **limits)


def urls(found):
    return [page.url for page in found.pages]


@pytest.mark.parametrize(
    "content",
    [
        TWO.encode(),
        b'\n<?xml version="1.0" encoding="UTF-8"?>\n' + TWO.encode(),
        b"\xef\xbb\xbf" + TWO.encode(),
        TWO.encode("utf-16"),
        b'<?xml version="1.0" encoding="windows-1252"?>' + TWO.encode(),
        TWO.replace(' xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"', "").encode(),
        gzip.compress(TWO.encode()),
        gzip.compress(gzip.compress(TWO.encode())),
        gzip.compress(TWO[:90].encode()) + gzip.compress(TWO[90:].encode()),
    ],
    ids=["plain", "late", "bom", "utf-16", "charset", "no-namespace", "gzip", "twice", "members"],
)
def test_the_pages_of_a_sitemap_are_read_in_every_encoding(content):
    assert read(content) == SitemapFile(PAGES)


def test_an_index_names_files_and_the_addresses_of_pictures_and_other_languages_are_no_pages():
    index = read("<sitemapindex><sitemap><loc>/one.xml</loc><lastmod>2026</lastmod></sitemap></sitemapindex>")
    assert index == SitemapFile(files=("https://shop.example/one.xml",))
    page = read(
        """<urlset xmlns:xhtml="http://www.w3.org/1999/xhtml" xmlns:image="http://www.google.com/schemas/sitemap-image/1.1"
        xmlns:news="http://www.google.com/schemas/sitemap-news/0.9"><url>
        <image:image><image:loc>https://shop.example/i.png</image:loc><image:title>A picture</image:title></image:image>
        <news:news><news:title>Shoes &amp; socks</news:title></news:news>
        <xhtml:link rel="alternate" hreflang="de" href="https://shop.example/de/"/>
        <loc>https://shop.example/en/</loc></url></urlset>"""
    )
    assert page == SitemapFile(
        (ListedPage("https://shop.example/en/", "Shoes & socks"),), alternates=("https://shop.example/de/",)
    )


@pytest.mark.parametrize(
    "text",
    [
        """<rss version="2.0" xmlns:atom="http://www.w3.org/2005/Atom"><channel><title>News</title><link>https://x/</link>
        <item><title>&lt;i&gt;Sale&lt;/i&gt;</title>
        <link>https://shop.example/sale</link><atom:link rel="self" href="https://x/feed"/>
        <pubDate>Fri, 02 Jan 2026 13:00:00 +0100</pubDate></item></channel></rss>""",
        """<feed xmlns="http://www.w3.org/2005/Atom"><title>News</title><link href="https://x/"/><entry><title>Sale</title>
        <link rel="edit" href="/e"/><link href="/sale"/><published>2025-01-01T00:00:00Z</published>
        <updated>2026-01-02T12:00:00Z</updated></entry></feed>""",
        """<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns="http://purl.org/rss/1.0/"
        xmlns:dc="http://purl.org/dc/elements/1.1/"><item><title>Sale</title><link>https://shop.example/sale</link>
        <dc:date>2026-01-02T12:00:00Z</dc:date></item></rdf:RDF>""",
    ],
    ids=["rss", "atom", "rdf"],
)
def test_a_feed_lists_pages_with_titles_and_dates(text):
    assert read(text).pages == (ListedPage("https://shop.example/sale", "Sale", "2026-01-02T12:00:00Z"),)


def test_a_description_of_a_search_names_its_page_without_words():
    found = read(
        """<OpenSearchDescription xmlns="http://a9.com/-/spec/opensearch/1.1/"><ShortName>Shop</ShortName>
        <Url type="application/json" template="/api?q={searchTerms}"/>
        <Url type="text/html" template="/find?q={searchTerms}&amp;p={startPage?}"/></OpenSearchDescription>"""
    )
    assert found.pages == (ListedPage("https://shop.example/find?q=&p=", "Search Shop"),)


def test_a_text_sitemap_has_an_address_in_each_line():
    assert urls(read("https://shop.example/a\r\n\r\nhttps://shop.example/b\nand nothing else")) == [
        "https://shop.example/a", "https://shop.example/b"
    ]  # fmt: skip
    assert urls(read("\ufeffhttps://shop.example/a")) == ["https://shop.example/a"]


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ("<!doctype html><title>Not found</title>", "no_sitemap"),
        ("<html><body>Sign in</body></html>", "no_sitemap"),
        ("Not found", "no_sitemap"),
        (b"\x89PNG\r\n\x1a\n", "no_sitemap"),
        (BOMB, "doctype"),
        (OUTSIDE, "doctype"),
        (b"\x1f\x8b not gzip", "malformed"),
        ("<urlset>" + "<a>" * 1_000, "malformed"),
        ('<?xml version="1.0" encoding="nothing"?><urlset/>', "no_sitemap"),
        ('<?xml version="1.0" encoding="base64"?><urlset/>', "no_sitemap"),
        (gzip.compress(b"") * 2_000, "malformed"),
    ],
)
def test_what_is_no_sitemap_or_harmful_is_not_read(content, problem):
    assert read(content) == SitemapFile(problem=problem)


def test_what_stands_before_a_mistake_counts():
    assert read(TWO.replace("<url><loc>https://shop.example/d", "<url><loc&>")) == SitemapFile(
        PAGES[:1], problem="malformed"
    )
    half = gzip.compress(TWO.encode() * 1)[:-30]
    assert read(half).problem == "malformed"


def test_limits_end_a_file_and_keep_what_was_read():
    assert read(TWO, max_urls=1) == SitemapFile(PAGES[:1], problem="too_many")
    assert read(TWO, max_urls=2) == SitemapFile(PAGES)
    assert read(TWO, max_bytes=len(TWO)) == SitemapFile(PAGES)
    assert read(TWO + " " * 9, max_bytes=len(TWO)) == SitemapFile(PAGES, problem="too_large")
    assert urls(read("https://x/a\nhttps://x/b", max_urls=1)) == ["https://x/a"]
    assert read("<sitemapindex>" + "<sitemap><loc>/a</loc></sitemap>" * 3, max_urls=2).files == (
        "https://shop.example/a",
    ) * 2  # fmt: skip


@pytest.mark.parametrize("layers", [1, 2])
def test_a_file_that_expands_without_end_is_read_up_to_the_limit(layers):
    packer = zlib.compressobj(9, zlib.DEFLATED, 31)
    content = packer.compress(b"<urlset><url><loc>https://shop.example/a</loc></url><!--")
    for _ in range(64):
        content += packer.compress(b" " * 2**20)
    content += packer.flush()
    for _ in range(layers - 1):
        content = gzip.compress(content)
    assert len(content) < 100_000
    found = read(content, max_bytes=2**20)
    assert (urls(found), found.problem) == (["https://shop.example/a"], "too_large")


def test_addresses_that_no_request_could_have_are_left_out():
    lines = [
        "javascript:alert(1)",
        "ftp://x/",
        "mailto:a@b.example",
        "http://[",
        "https://shop.example/" + "a" * 9_000,
        "",
    ]
    found = read(URLSET.format("".join(f"<url><loc>{line}</loc></url>" for line in lines)))
    assert found == SitemapFile()


@given(st.binary(max_size=400), st.booleans())
@example(TWO.encode(), True)
def test_any_bytes_are_read_without_an_exception(content, compressed):
    assert isinstance(read(gzip.compress(content) if compressed else content, max_urls=3, max_bytes=300), SitemapFile)


TAGS = [
    "<urlset>", "</urlset>", "<url>", "</url>", "<loc>", "</loc>", "http://x/", "<lastmod>", "2026-13-41T", "&amp;",
    "&x;", "<sitemap>", "<rss>", "<item>", "<link href='/x'/>", "<title>", "\x00", "\ud7ff", "<![CDATA[", "]]>", "<!--",
    "-->", "<?xml version='1.0'?>", "<Url type='text/html' template='/{a}'/>", "<ShortName>", "<OpenSearchDescription>",
]  # fmt: skip


@given(st.lists(st.sampled_from(TAGS), max_size=12))
def test_any_mixture_of_tags_is_read_without_an_exception(parts):
    found = read("".join(parts), max_urls=5)
    assert len(found.pages) <= 6
    assert all(page.url.startswith(("http://", "https://")) for page in found.pages)
