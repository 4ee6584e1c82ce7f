"""Pages that people ask for by what they do: 40 questions and the right page of each, for each of several sites.

The lists in bench/function_pages.json are written from the documentation, the routes and the menus of the applications,
not from what an exploration finds. This command tells whether each page exists, and within how many clicks:

    python -m bench.function_pages --check [--sites fossil,wagtail]

It follows links by plain HTTP requests, breadth first, and then requests each page of the list.
"""

from __future__ import annotations

import argparse
import json
import re
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import urljoin, urlsplit

import httpx

from bench.real_sites import NotAvailable, Served
from bench.sites import SITES
from waygraph.core.urls import normalize_url, site_key

LISTS = Path(__file__).with_suffix(".json")
#: Links that a check does not follow: they end the session, or change what the site holds.
_UNSAFE = re.compile(
    r"log-?out|delete|remove|purge|unsubscribe|unpublish|disable|/test-|do=export|takeitprivate", re.IGNORECASE
)
#: Addresses in data from which a script draws a menu.
_IN_DATA = re.compile(r'"(?:url|href)": ?"(/[^"#]*)"')


@dataclass(frozen=True)
class FunctionPage:
    """A question and the page that answers it.

    Attributes
    ----------
    site
        Name of the site, as in `bench.sites`.
    id
        Name of the entry, unique among all sites.
    question
        What somebody wants, in everyday words.
    url
        Regular expression of the page's path and query, as `normalize_url` writes them.
    """

    site: str
    id: str
    question: str
    url: str

    def is_at(self, url: str) -> bool:
        """Tell whether a URL is the one of this page."""
        return re.fullmatch(self.url, path_of(url)) is not None


@dataclass
class Checked:
    """What a crawl of one site tells about its list.

    Attributes
    ----------
    clicks
        Clicks from the start page to each page found, by the id of its entry.
    problems
        What is wrong with the other entries, by their ids.
    requests
        Number of pages requested to follow links.
    """

    clicks: dict[str, int] = field(default_factory=dict)
    problems: dict[str, str] = field(default_factory=dict)
    requests: int = 0


def load(site: str = "") -> list[FunctionPage]:
    """Read the lists of all sites, or of one."""
    lists = json.loads(LISTS.read_text(encoding="utf-8"))
    return [
        FunctionPage(name, row["id"], row["question"], row["url"])
        for name, rows in lists.items()
        if site in ("", name)
        for row in rows
    ]


def path_of(url: str) -> str:
    """Return path and query of a URL in its canonical form."""
    parts = urlsplit(normalize_url(url))
    return f"{parts.path}?{parts.query}" if parts.query else parts.path


class _Links(HTMLParser):
    """Link targets of a document, and the addresses in its data."""

    def __init__(self) -> None:
        super().__init__()
        self.targets: list[str] = []
        self.drawn: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if tag in ("a", "area") and name == "href":
                self.targets.append(value or "")
            elif name.startswith("data-"):
                self.handle_data(value or "")

    def handle_data(self, data: str) -> None:
        self.drawn += _IN_DATA.findall(data)


def links(url: str, text: str) -> Iterator[tuple[str, int]]:
    """Yield the links of a page and the clicks that each takes; two where a script draws the menu from data."""
    parser = _Links()
    parser.feed(text)
    for target, clicks in [(t, 1) for t in parser.targets] + [(t, 2) for t in parser.drawn]:
        found = urljoin(url, target.partition("#")[0])
        if site_key(found) == site_key(url):
            yield found, clicks


class Crawl:
    """Plain requests to a site, and what is known from them.

    Parameters
    ----------
    start
        URL of the start page.
    client
        Client in the session of the site.

    Attributes
    ----------
    clicks
        Clicks from the start page to each URL that a link names.
    requested
        The URLs of which the links were followed.
    """

    def __init__(self, start: str, client: httpx.Client) -> None:
        self.clicks = {normalize_url(start): 0}
        self.requested = set[str]()
        self._client = client

    def page(self, url: str) -> tuple[str, str]:
        """Return the address in the end and the HTML of a page; no HTML when it is no page."""
        try:
            answer = self._client.get(url)
        except httpx.HTTPError:
            return url, ""
        is_page = answer.is_success and "html" in answer.headers.get("content-type", "")
        return str(answer.url), answer.text if is_page else ""

    def follow(self, level: int, most: int) -> None:
        """Follow the links of all pages that lie `level` clicks from the start, by at most `most` requests in all."""
        for url in sorted(url for url, clicks in self.clicks.items() if clicks == level):
            if len(self.requested) >= most or (level and _UNSAFE.search(path_of(url))):
                continue
            self.requested.add(url)
            for found, more in links(*self.page(url)):
                name = normalize_url(found)
                self.clicks[name] = min(self.clicks.get(name, level + more), level + more)

    def nearest(self, page: FunctionPage, depth: int) -> str | None:
        """Return the URL of a page, the one with the fewest clicks if there are several; None beyond `depth`."""
        matching = [(clicks, url) for url, clicks in self.clicks.items() if clicks <= depth and page.is_at(url)]
        return min(matching)[1] if matching else None


def client_of(served: Served) -> httpx.Client:
    """Return a client in the session of a site; it keeps the session where the site redirects."""
    state = json.loads(served.storage_state.read_text()) if served.storage_state else {"cookies": []}
    cookies = {cookie["name"]: cookie["value"] for cookie in state["cookies"]}
    return httpx.Client(cookies=cookies, follow_redirects=True, timeout=20)


def check(pages: Sequence[FunctionPage], served: Served, *, depth: int = 3, most: int = 400) -> Checked:
    """Tell for each page of a site whether a link within `depth` clicks leads to it, and whether it opens.

    Parameters
    ----------
    pages
        The list of the site.
    served
        The site.
    depth
        Limit of clicks.
    most
        Limit of requests by which links are followed.

    Returns
    -------
    Checked
        The clicks to each page, or what is wrong with it.
    """
    result = Checked()
    with client_of(served) as client:
        crawl = Crawl(served.start, client)
        for level in range(depth):
            if all(crawl.nearest(page, level) for page in pages):
                break
            crawl.follow(level, most)
        for page in pages:
            url = crawl.nearest(page, depth)
            if url is None:
                result.problems[page.id] = f"no link within {depth} clicks matches {page.url}"
                continue
            final, text = crawl.page(url)
            if not text:
                result.problems[page.id] = f"{path_of(url)} is no page"
            elif not page.is_at(final):
                result.problems[page.id] = f"{path_of(url)} leads to {path_of(final)}"
            else:
                result.clicks[page.id] = crawl.clicks[url]
    result.requests = len(crawl.requested)
    return result


def main() -> None:
    """Check the lists."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    names = list(dict.fromkeys(page.site for page in load()))
    parser.add_argument("--check", action="store_true", required=True, help="look for each page on the site")
    parser.add_argument("--sites", default=",".join(names), help="comma-separated; all by default")
    parser.add_argument("--scratch", type=Path, default=Path(tempfile.gettempdir()) / "waygraph-sites")
    arguments = parser.parse_args()
    arguments.scratch.mkdir(parents=True, exist_ok=True)
    sources = {site.name: site.get for site in SITES}
    for name in arguments.sites.split(","):
        pages = load(name)
        try:
            with sources[name](arguments.scratch) as served:
                found = check(pages, served)
        except NotAvailable as error:
            print(f"{name} could not be installed: {error}")
            continue
        spread = ", ".join(f"{count} at {n}" for n, count in sorted(Counter(found.clicks.values()).items()))
        print(f"{name}: {len(found.clicks)} of {len(pages)} found by {found.requests} requests; clicks: {spread}")
        for entry, problem in found.problems.items():
            print(f"  {entry}: {problem}")


if __name__ == "__main__":
    main()
