"""A generated site of 20,000 pages in more than 40 kinds, with menus, lists, prose, forms and dialogs.

The kind of every page follows from its URL (`kind_of`), so that what an exploration found can be counted. The site
resembles administration software: a few pages for each function, thousands of records, and each record in several
views. It is served by `bench.coverage`, or alone: python -m bench.coverage_site
"""

from __future__ import annotations

import random
import re
from dataclasses import dataclass
from functools import lru_cache
from urllib.parse import parse_qsl, urlsplit

from waygraph.demo_site.local_server import LocalServer, Request, Response

RECORDS = {"tickets": 1_500, "customers": 1_200, "products": 900, "orders": 1_500, "projects": 400}
ARTICLES, THREADS, USERS = 800, 500, 150
ROWS = 25
SETTINGS = (
    "mail", "security", "backup", "languages", "plugins", "themes", "webhooks", "licence", "audit-log",
    "queues",
)  # fmt: skip
REPORTS = ("revenue", "workload", "response-times", "satisfaction", "inventory", "churn")
SPECIALS = ("RecentChanges", "AllPages", "OrphanedPages", "Upload", "Categories", "WantedPages")
BOARDS = ("announcements", "support", "ideas", "off-topic")
_WORDS = (
    "amber", "anchor", "arrow", "basin", "beacon", "birch", "bridge", "bronze", "cabin", "canal", "candle",
    "canyon", "cedar", "cliff", "clover", "cobalt", "comet", "copper", "coral", "cotton", "crane", "creek",
    "crystal", "delta", "desert", "ember", "engine", "falcon", "fern", "field", "flint", "forest", "fossil",
    "garden", "glacier", "granite", "grove", "harbor", "hazel", "heron", "hollow", "island", "ivory", "jasper",
    "juniper", "kernel", "lagoon", "lantern", "laurel", "ledger", "lichen", "lily", "linen", "lotus", "maple",
    "marble", "marsh", "meadow", "mesa", "mineral", "mirror", "moss", "needle", "nickel", "oasis", "olive",
    "onyx", "opal", "orchard", "otter", "paper", "pebble", "pepper", "pine", "planet", "plume", "pond",
    "poplar", "prairie", "quartz", "quill", "raven", "reef", "ridge", "river", "robin", "saddle", "sage",
    "salmon", "sandal", "shale", "shell", "silver", "slate", "sparrow", "spruce", "stone", "summit", "swallow",
    "thistle", "timber", "topaz", "trellis", "tundra", "valley", "velvet", "violet", "walnut", "willow",
    "winter",
)  # fmt: skip

_KINDS = (
    (r"/", "home"),
    (rf"/({'|'.join(RECORDS)})", "{0} list"),
    (rf"/({'|'.join(RECORDS)})/new", "{0} new"),
    (rf"/({'|'.join(RECORDS)})/import", "{0} import"),
    (rf"/({'|'.join(RECORDS)})/\d+", "{0} record"),
    (rf"/({'|'.join(RECORDS)})/\d+/(edit|history)", "{0} {1}"),
    (r"/wiki/Special:(\w+)", "wiki special {0}"),
    (r"/wiki/[\w-]+", "wiki article"),
    (r"/forum", "forum boards"),
    (r"/forum/[a-z-]+", "forum board"),
    (r"/forum/[a-z-]+/\d+", "forum thread"),
    (r"/users", "users list"),
    (r"/users/[\w-]+", "user profile"),
    (r"/reports", "reports"),
    (r"/reports/([a-z-]+)", "report {0}"),
    (r"/admin", "admin"),
    (r"/admin/([a-z-]+)", "admin {0}"),
    (r"/account/([a-z-]+)", "account {0}"),
    (r"/calendar", "calendar"),
    (r"/search", "search"),
    (r"/about", "about"),
)


def kind_of(url: str) -> str | None:
    """Return the kind of the page at a URL; None for a URL that is no page of the site."""
    parts = urlsplit(url)
    query = dict(parse_qsl(parts.query))
    for pattern, kind in _KINDS:
        if match := re.fullmatch(pattern, parts.path.rstrip("/") or "/"):
            found = kind.format(*match.groups())
            if found == "wiki article" and (action := query.get("do")):
                return f"wiki {action}" + (" section" if "section" in query else "")
            return found
    return None


@lru_cache(maxsize=1)
def all_kinds() -> frozenset[str]:
    """Return all kinds of pages."""
    return frozenset({
        "home", "wiki article", "wiki edit", "wiki edit section", "wiki history", "forum boards", "forum board",
        "forum thread", "users list", "user profile", "reports", "admin", "account profile", "account notifications",
        "account tokens", "calendar", "search", "about",
        *(f"{name} {view}" for name in RECORDS for view in ("list", "new", "import", "record", "edit", "history")),
        *(f"wiki special {name}" for name in SPECIALS),
        *(f"report {name}" for name in REPORTS),
        *(f"admin {name}" for name in SETTINGS),
    })  # fmt: skip


def title_of(kind: str, number: int) -> str:
    """Return two words that name a record."""
    drawn = random.Random(f"{kind} {number}")
    return f"{drawn.choice(_WORDS).title()} {drawn.choice(_WORDS)}"


@dataclass(frozen=True, slots=True)
class _Html:
    title: str
    main: str
    side: str = ""

    def render(self) -> str:
        top = [(name.title(), f"/{name}") for name in RECORDS]
        top += [("Wiki", "/wiki/Start"), ("Forum", "/forum"), ("Reports", "/reports"), ("People", "/users")]
        top += [("Calendar", "/calendar?month=2026-11")]
        links = "".join(f'<li><a href="{url}">{name}</a></li>' for name, url in top)
        return (
            f"<!doctype html><html lang=en><title>{self.title}</title><body>"
            f"<div class=top><ul>{links}</ul><button id=me aria-expanded=false>Account</button>"
            '<ul id=menu hidden><li><a href="/account/profile">My profile</a></li>'
            '<li><a href="/account/notifications">Notifications</a></li>'
            '<li><a href="/account/tokens">API tokens</a></li>'
            '<li><a href="/admin">Administration</a></li></ul>'
            '<form action="/search"><input name=q aria-label=Search></form></div>'
            f"<div class=body><div class=side>{self.side}</div>"
            f"<div class=main><h1>{self.title}</h1>{self.main}</div></div>"
            '<div class=foot><a href="/about">About</a> <a href="/search?q=">Advanced search</a></div>'
            "<script>me.onclick=()=>{menu.hidden=!menu.hidden;me.setAttribute('aria-expanded',!menu.hidden)}</script>"
            "</body></html>"
        )


def page(target: str) -> str | None:
    """Return the HTML of a target (path and query); None if there is no such page."""
    kind = kind_of(target)
    parts = urlsplit(target)
    query = dict(parse_qsl(parts.query))
    segments = parts.path.strip("/").split("/")
    if kind is None:
        return None
    if segments[0] in RECORDS:
        made = _record_page(segments, query)
    elif segments[0] == "wiki":
        made = _wiki_page(segments[1] if len(segments) > 1 else "Start", query)
    elif segments[0] == "forum":
        made = _forum_page(segments)
    elif segments[0] in {"admin", "reports", "account"}:
        made = _function_page(segments)
    elif segments[0] == "users":
        made = _user_page(segments)
    elif segments[0] == "calendar":
        made = _calendar_page(query.get("month", "2026-11"))
    elif segments[0] == "search":
        made = _Html(
            "Search",
            '<form><input name=q aria-label="Search for"><select aria-label=In><option>All<option>Wiki</select></form>',
        )
    elif segments[0] == "about":
        made = _Html("About", "<p>Version 4.2 of a program that does not exist.</p>")
    else:
        made = _home_page()
    return made.render()


def _record_link(name: str, number: int) -> str:
    return f'<a href="/{name}/{number}">{title_of(name, number)}</a>'


def _home_page() -> _Html:
    recent = "".join(f"<li>{_record_link(name, n)}</li>" for name in RECORDS for n in range(1, 9))
    return _Html("Dashboard", f"<h2>Recently changed</h2><ul>{recent}</ul>")


def _record_page(segments: list[str], query: dict[str, str]) -> _Html:
    name, count = segments[0], RECORDS[segments[0]]
    one = name[:-1].title()
    if len(segments) == 1:
        number = int(query.get("page", "1"))
        rows = "".join(
            f'<tr><td>{_record_link(name, n)}<td>{_WORDS[n % 40]}<td><a href="/{name}/{n}/edit">Edit</a>'
            for n in range((number - 1) * ROWS + 1, min(count, number * ROWS) + 1)
        )
        heads = "".join(
            f'<th><a href="/{name}?sort={field}">{field.title()}</a>' for field in ("name", "state", "date")
        )
        filters = "".join(
            f'<li><a href="/{name}?state={word}">{word.title()}</a></li>' for word in ("open", "closed", "waiting")
        )
        pages = "".join(f'<a href="/{name}?page={n}">{n}</a> ' for n in range(1, min(10, count // ROWS) + 1))
        tools = f'<a href="/{name}/new">New {one.lower()}</a> <a href="/{name}/import">Import {name}</a>'
        return _Html(
            name.title(), f"<p>{tools}</p><table><tr>{heads}</tr>{rows}</table><p>{pages}</p>", f"<ul>{filters}</ul>"
        )
    if segments[1] in {"new", "import"}:
        field = "File" if segments[1] == "import" else "Name"
        extra = (
            f"<input aria-label='{field} of the {one.lower()}'><input aria-label='Owner'>"
            "<button type=button>Save</button>"
        )
        return _Html(f"{segments[1].title()} {one.lower()}", f"<div class={segments[1]}>{extra}</div>")
    number = int(segments[1])
    drawn = random.Random(number)
    tabs = f'<p><a href="/{name}/{number}/edit">Edit</a> <a href="/{name}/{number}/history">History</a></p>'
    if len(segments) == 3:
        body = "".join(f"<li>{_WORDS[drawn.randrange(99)]} changed</li>" for _ in range(9))
        form = (
            f"<form class=edit><input aria-label='Title of the {one.lower()}'>"
            "<textarea aria-label=Notes></textarea></form>"
        )
        return _Html(
            f"{segments[2].title()} {title_of(name, number)}",
            tabs + (form if segments[2] == "edit" else f"<ol>{body}</ol>"),
        )
    others = "".join(
        f"<li>{_record_link(other, drawn.randrange(1, RECORDS[other]))}</li>" for other in RECORDS for _ in range(2)
    )
    user = drawn.randrange(USERS)
    owner = f'<a href="{_user_url(user)}">{title_of("user", user)}</a>'
    text = " ".join(drawn.choice(_WORDS) for _ in range(40))
    return _Html(
        title_of(name, number),
        f"{tabs}<p>{text}</p><p>Owner: {owner}</p>"
        f"<h2>Related</h2><ul>{others}</ul><button class=more>Show details</button>",
    )


def _slug(number: int) -> str:
    return (
        title_of("wiki", number).replace(" ", "-")
        + f"-{_WORDS[number % len(_WORDS)]}{_WORDS[number // len(_WORDS) % len(_WORDS)]}"
    )


def _wiki_page(name: str, query: dict[str, str]) -> _Html:
    tools = "".join(f'<li><a href="/wiki/Special:{special}">{special}</a></li>' for special in SPECIALS)
    drawn = random.Random(name)
    linked = [_slug(drawn.randrange(ARTICLES)) for _ in range(30)]
    if name.startswith("Special:"):
        special = name.partition(":")[2]
        items = "".join(f'<li><a href="/wiki/{slug}">{slug}</a></li>' for slug in linked)
        return _Html(
            special, f"<div class={special}><p>{special} of the wiki</p><ul>{items}</ul></div>", f"<ul>{tools}</ul>"
        )
    tabs = f'<p><a href="/wiki/{name}?do=edit">Edit</a> <a href="/wiki/{name}?do=history">History</a></p>'
    action = query.get("do")
    if action == "edit":
        part = f" section {query['section']}" if "section" in query else ""
        return _Html(
            f"Edit {name}{part}",
            f"{tabs}<form class=source{'2' if part else ''}><textarea aria-label=Source></textarea></form>",
            f"<ul>{tools}</ul>",
        )
    if action == "history":
        return _Html(
            f"History of {name}",
            f"{tabs}<ol>{''.join(f'<li>{_WORDS[drawn.randrange(99)]}</li>' for _ in range(12))}</ol>",
        )
    sections = "".join(
        f'<h2>{drawn.choice(_WORDS).title()} <a href="/wiki/{name}?do=edit&amp;section={n}">edit</a></h2><p>'
        + " ".join(drawn.choice(_WORDS) for _ in range(25))
        + "".join(f' <a href="/wiki/{slug}">{slug}</a>' for slug in linked[5 * n : 5 * n + 5])
        for n in range(6)
    )
    return _Html(name, tabs + sections, f"<ul>{tools}</ul>")


def _forum_page(segments: list[str]) -> _Html:
    if len(segments) == 1:
        return _Html(
            "Forum", "<dl>" + "".join(f'<dt><a href="/forum/{b}">{b.title()}</a><dd>threads' for b in BOARDS) + "</dl>"
        )
    if len(segments) == 2:
        items = "".join(
            f'<li><a href="/forum/{segments[1]}/{n}">{title_of("thread", n)}</a></li>' for n in range(1, 60)
        )
        return _Html(segments[1].title(), f"<ol>{items}</ol>")
    posts = "".join(f"<article><b>{_WORDS[n * 7]}</b><p>{' '.join(_WORDS[n : n + 12])}</article>" for n in range(6))
    return _Html(title_of("thread", int(segments[2])), f"{posts}<button>Quote</button>")


def _function_page(segments: list[str]) -> _Html:
    area = segments[0]
    names = {"admin": SETTINGS, "reports": REPORTS, "account": ("profile", "notifications", "tokens")}[area]
    side = "".join(f'<li><a href="/{area}/{name}">{name.replace("-", " ").title()}</a></li>' for name in names)
    if len(segments) == 1:
        return _Html(area.title(), f"<p>Choose one of {len(names)}.</p>", f"<ul>{side}</ul>")
    drawn = random.Random(segments[1])
    words = drawn.sample(_WORDS, 6)
    if area == "reports":
        main = (
            f"<table class={segments[1]}>"
            + "".join(f"<tr><td>{word}<td>{drawn.randrange(900)}" for word in words)
            + "</table><button>Export</button>"
        )
    else:
        main = (
            "<form>"
            + "".join(f"<p><label>{segments[1]} {word}<input></label></p>" for word in words)
            + "<button type=button>Apply</button></form>"
        )
    return _Html(segments[1].replace("-", " ").title(), main, f"<ul>{side}</ul>")


def _user_url(number: int) -> str:
    return f"/users/{title_of('user', number).lower().replace(' ', '-')}-{number}"


def _user_page(segments: list[str]) -> _Html:
    if len(segments) == 1:
        items = "".join(f'<li><a href="{_user_url(n)}">{title_of("user", n)}</a></li>' for n in range(USERS))
        return _Html("People", f"<ul>{items}</ul>")
    return _Html(segments[1].replace("-", " ").title(), "<dl><dt>Joined<dd>2024</dl><button>Send message</button>")


def _calendar_page(month: str) -> _Html:
    year, number = int(month[:4]), int(month[5:7])
    following = f"{year + number // 12}-{number % 12 + 1:02}"
    days = "".join(f'<td><a href="/calendar?month={month}&amp;day={day}">{day}</a>' for day in range(1, 29))
    return _Html(f"Calendar {month}", f'<table><tr>{days}</table><a href="/calendar?month={following}">Next month</a>')


class CoverageSite(LocalServer):
    """Serve the site on loopback."""

    def __init__(self, *, port: int = 0) -> None:
        super().__init__(_answer, port=port)


def _answer(request: Request) -> Response:
    html = page(request.target)
    return Response(html) if html is not None else Response("<h1>Not found</h1>", status=404)
