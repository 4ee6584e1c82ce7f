"""Benchmark of functions among records: a site whose index page lists 120 functions, and 2,000 records with 12 each.

    python -m bench.function_site [--styles path,title] [--states 250]

explores the site in each style of URLs, and counts which functions were visited, and what was visited before them.
Every function has a form of its own. A function of a record has one form for all records. The site is served in several
styles of URLs, so that no order of exploration is fitted to one of them:

    path     /wiki/Amber-Gate, /tools/export-lists, /wiki/Amber-Gate/history, /tools/links-to/Amber-Gate
    title    /index.php?title=Amber_Gate, ?title=Special:ExportLists, ?title=Amber_Gate&action=history,
             ?title=Special:LinksTo/Amber_Gate
    query    /view?item=amber-gate, /do?what=export-lists, /history?item=amber-gate, /do?what=links-to&target=amber-gate
    flat     /amber-gate, /export-lists, /amber-gate/history, /links-to/amber-gate
"""

from __future__ import annotations

import argparse
import asyncio
import random
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import product
from urllib.parse import parse_qsl, urlsplit

from bench.site_walks import BROWSER
from tests.blobs import MemoryBlobs
from waygraph.core.settings import Settings
from waygraph.demo_site.local_server import LocalServer, Request, Response
from waygraph.pipeline.explore.exploration import explore_site

STYLES = ("path", "title", "query", "flat")
FUNCTIONS, RECORDS = 120, 2_000
_VERBS = ("export", "merge", "review", "find", "compare", "import", "lock", "list", "rename", "count", "watch", "tag")
_NOUNS = ("accounts", "uploads", "links", "filters", "themes", "blocks", "imports", "titles", "feeds", "quotas")
#: Functions of a record: the first half hangs on the record's address, the other half takes it as an argument.
OF_RECORD = (
    *("history", "source", "discussion", "permissions", "revisions", "attachments"),
    *("links-to", "changes-near", "cite", "log-of", "move-of", "readers-of"),
)  # fmt: skip
_WORDS = (
    "amber", "basin", "cedar", "delta", "ember", "fern", "gate", "harbor", "island", "jasper", "kernel", "lagoon",
    "maple", "needle", "oasis", "pebble", "quartz", "raven", "saddle", "timber", "umber", "valley", "willow", "yarrow",
)  # fmt: skip
#: Parts of words of which no two pages have many in common, like those of natural texts.
_SYLLABLES = (
    "ba",
    "ce",
    "di",
    "fo",
    "gu",
    "ka",
    "le",
    "mi",
    "no",
    "pu",
    "ra",
    "se",
    "ti",
    "vo",
    "zu",
    "sha",
    "tro",
    "pli",
)
_TAGS = ("p", "li", "dd", "td", "span", "b", "i", "em")


@lru_cache(maxsize=1)
def functions() -> tuple[str, ...]:
    """Return the names of the functions, as in `export-accounts`."""
    return tuple(f"{verb}-{noun}" for noun, verb in product(_NOUNS, _VERBS))


@lru_cache(maxsize=1)
def records(count: int) -> tuple[str, ...]:
    """Return the names of that many records, in an order without a meaning."""
    names = [f"{one}-{other}-{third}" for one, other, third in product(_WORDS, _WORDS, _WORDS[:4])]
    return tuple(random.Random(7).sample(names, count))


@dataclass(frozen=True)
class Place:
    """What a URL names: a function, a function of a record, a record, or with neither a page of the menu."""

    function: str = ""
    record: str = ""


@dataclass(frozen=True)
class FunctionSite:
    """The site in one style of URLs.

    Attributes
    ----------
    style
        One of `STYLES`.
    records_first
        Whether pages show records before the menu and the tools.
    size
        Number of records.
    """

    style: str
    records_first: bool = False
    size: int = RECORDS

    def url(self, place: Place) -> str:
        """Return the path and query of a function, a record, or a function of a record."""
        function, record = place.function, place.record
        takes_record = function in OF_RECORD[len(OF_RECORD) // 2 :]
        if self.style == "path":
            name = record.title()
            if takes_record:
                return f"/tools/{function}/{name}"
            return (
                f"/wiki/{name}/{function}" if function and record else f"/wiki/{name}" if name else f"/tools/{function}"
            )
        if self.style == "flat":
            return "/" + "/".join(filter(None, (function, record) if takes_record else (record, function)))
        if self.style == "title":
            name, special = record.title().replace("-", "_"), f"Special:{function.title().replace('-', '')}"
            if takes_record:
                return f"/index.php?title={special}/{name}"
            title = f"/index.php?title={name or special}"
            return f"{title}&action={function}" if function and record else title
        if takes_record:
            return f"/do?what={function}&target={record}"
        if record:
            return f"/{function or 'view'}?item={record}"
        return f"/do?what={function}"

    def place(self, target: str) -> Place | None:
        """Return what a path and query names; None if there is no such page."""
        return _places(self).get(_canonical(target))

    def page(self, target: str) -> str | None:
        """Return the HTML of a path and query; None if there is no such page."""
        place = self.place(target)
        if place is not None:
            return self._page(place)
        parts = urlsplit(target)
        path, query = parts.path, dict(parse_qsl(parts.query))
        if path == "/":
            return self._html("Start", self._links(records(self.size)[:40]))
        if path == "/all-tools":
            groups = (
                f"<h2>{noun.title()}</h2><ul>"
                + "".join(f"<li>{self._link(Place(f'{verb}-{noun}'))}</li>" for verb in _VERBS)
                + "</ul>"
                for noun in _NOUNS
            )
            return self._html("All tools", "".join(groups))
        if path == "/all-pages":
            first = 100 * int(query.get("from", "0"))
            following = f"<a href='/all-pages?from={first // 100 + 1}'>Next</a>" if first + 100 < self.size else ""
            return self._html("All pages", self._links(records(self.size)[first : first + 100]) + following)
        return None

    def _page(self, place: Place) -> str:
        title = " ".join(filter(None, (place.function, place.record))).replace("-", " ").title()
        if not place.function:
            return self._html(title, self._prose(place.record), self._tools(place.record))
        drawn = random.Random(place.function)
        tag, words = drawn.choice(_TAGS), drawn.sample(_WORDS, 8)
        fields = "".join(
            f"<div><{tag}><label>{place.function} {word}<input></label></{tag}></div>"
            for word in words[: drawn.randint(3, 8)]
        )
        button = f"<button type=button>{place.function.title()}</button>"
        form = f"<p>{_text(place.function, 12)}</p><form><fieldset>{fields}{button}</fieldset></form>"
        if place.record:
            return self._html(title, form + self._prose(place.record)[:200], self._tools(place.record))
        # Every third function lists what it found: records, each with a function of it.
        found = drawn.sample(records(self.size), 20) if functions().index(place.function) % 3 == 0 else []
        rows = "".join(
            f"<li>{self._link(Place(record=name))} ({self._link(Place('history', name))})</li>" for name in found
        )
        return self._html(title, f"{form}<ol>{rows}</ol>")

    def _prose(self, record: str) -> str:
        drawn = random.Random(record)
        others = drawn.sample(records(self.size), drawn.randint(8, 30))
        return "".join(f"<p>{_text(record + other, 12)} {self._link(Place(record=other))}</p>" for other in others)

    def _links(self, names: Iterable[str]) -> str:
        return "<ul>" + "".join(f"<li>{self._link(Place(record=name))}</li>" for name in names) + "</ul>"

    def _link(self, place: Place) -> str:
        name = (place.record if not place.function else place.function).replace("-", " ").capitalize()
        return f'<a href="{self.url(place).replace("&", "&amp;")}">{name}</a>'

    def _tools(self, record: str) -> str:
        return "<ul>" + "".join(f"<li>{self._link(Place(name, record))}</li>" for name in OF_RECORD) + "</ul>"

    def _html(self, title: str, main: str, tools: str = "") -> str:
        menu = (
            '<ul><li><a href="/">Start</a></li><li><a href="/all-pages">All pages</a></li>'
            '<li><a href="/all-tools">All tools</a></li></ul>'
        )
        side = f"<div class=side>{menu}<div>{tools}</div></div>"
        body = f"<div class=main><h1>{title}</h1>{main}</div>"
        parts = body + side if self.records_first else side + body
        return f"<!doctype html><html lang=en><title>{title}</title><body>{parts}</body></html>"


def _text(seed: str, count: int) -> str:
    drawn = random.Random(seed)
    return " ".join("".join(drawn.choices(_SYLLABLES, k=drawn.randint(2, 3))) for _ in range(count))


def _canonical(target: str) -> tuple[str, tuple[tuple[str, str], ...]]:
    parts = urlsplit(target)
    return parts.path, tuple(sorted(parse_qsl(parts.query)))


@lru_cache(maxsize=len(STYLES))
def _places(site: FunctionSite) -> dict[tuple[str, tuple[tuple[str, str], ...]], Place]:
    places = [Place(name) for name in functions()]
    places += [Place(function, record) for record in records(site.size) for function in ("", *OF_RECORD)]
    return {_canonical(site.url(place)): place for place in places}


@dataclass(frozen=True)
class Visited:
    """What the states of a map are, in the order in which they were found.

    Attributes
    ----------
    functions
        Number of functions among them.
    records
        Number of records.
    of_records
        Number of functions of records.
    too_early
        Third and further visits of one function of a record that came before the last function.
    """

    functions: int
    records: int
    of_records: int
    too_early: int


def count_visited(site: FunctionSite, targets: Sequence[str]) -> Visited:
    """Count what the paths and queries of a map's states are, given in the order in which they were found."""
    found = [place for place in map(site.place, dict.fromkeys(targets)) if place is not None]
    is_function = [bool(place.function and not place.record) for place in found]
    last = max((number for number, yes in enumerate(is_function) if yes), default=-1)
    times = Counter[str]()
    too_early = 0
    for place in found[:last]:
        if place.function and place.record:
            times[place.function] += 1
            too_early += times[place.function] > 2
    return Visited(
        functions=sum(is_function),
        records=sum(not place.function for place in found),
        of_records=sum(bool(place.function and place.record) for place in found),
        too_early=too_early,
    )


class FunctionServer(LocalServer):
    """Serve the site on loopback."""

    def __init__(self, site: FunctionSite, *, port: int = 0) -> None:
        super().__init__(lambda request: _answer(site, request), port=port)


def _answer(site: FunctionSite, request: Request) -> Response:
    html = site.page(request.target)
    return Response(html) if html is not None else Response("<h1>Not found</h1>", status=404)


def explore(site: FunctionSite, states: int) -> Visited:
    """Explore the site with a browser, and count what was visited."""
    settings = Settings(browser=BROWSER, explore={"depth": 3, "max_states": states, "robots": False})
    with FunctionServer(site) as server:
        capture = asyncio.run(explore_site(server.url, settings=settings, blobs=MemoryBlobs()))
        urls = [node.url.removeprefix(server.url.rstrip("/")) for node in capture.graph.nodes.values()]
    return count_visited(site, urls)


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--styles", default=",".join(STYLES), help="comma-separated; all by default")
    parser.add_argument("--states", type=int, default=250, help="limit of states of each exploration")
    arguments = parser.parse_args()
    print("| URLs | pages begin with | functions | records | functions of records | too early |\n|" + " --- |" * 6)
    for style, records_first in product(arguments.styles.split(","), (False, True)):
        found = explore(FunctionSite(style, records_first), arguments.states)
        begin = "records" if records_first else "the menu"
        counts = (f"{found.functions} of {FUNCTIONS}", found.records, found.of_records, found.too_early)
        print(f"| {style} | {begin} | " + " | ".join(map(str, counts)) + " |", flush=True)


if __name__ == "__main__":
    main()
