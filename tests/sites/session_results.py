"""Sites whose URLs show what earlier pages left in the browser: one site for each way to leave it and to read it.

Each page has its name as its only heading. `EDGES` says where links lead in a browser that walked there: (page, link,
page that is shown).
"""

from __future__ import annotations

import itertools
import secrets
from collections.abc import Callable, Mapping, Sequence
from http.cookies import SimpleCookie

from tests.sites.server import Answer, Page
from waygraph.demo_site.local_server import Request

#: (page, link, page that is shown)
Edges = frozenset[tuple[str, str, str]]


def _page(name: str, links: Mapping[str, str], *, tag: str = "p", script: str = "", extra: str = "") -> str:
    listed = "".join(f"<li><a href='{url}'>{text}</a></li>" for text, url in links.items())
    head = f"<!doctype html><meta charset=utf-8><title>{name}</title><script>{script}</script>"
    return f"{head}<h1>{name}</h1><ul>{listed}</ul><{tag}>Words of {name}</{tag}>{extra}"


def _cookie(request: Request, name: str) -> str:
    sent = next((value for key, value in request.headers.items() if key.lower() == "cookie"), "")
    morsel = SimpleCookie(sent).get(name)
    return morsel.value if morsel is not None else ""


def _setting(body: str, *cookies: str) -> Page:
    return Page(body, headers={"Set-Cookie": "; ".join(cookies)})


def languages() -> tuple[dict[str, Answer], Edges]:
    """`/ja/` and `/fr/` set a cookie in their response, `/docs/a` redirects by it."""
    links = {"a": "/docs/a", "b": "/docs/b"}
    words = {"en": ("Welcome", "Doc", "pb"), "ja": ("Youkoso", "Bunsho", "iu"), "fr": ("Bienvenue", "Texte", "sq")}

    def docs(letter: str) -> Callable[[Request], Page]:
        return lambda request: Page(redirect=f"/{_cookie(request, 'lang') or 'en'}/docs/{letter}")

    pages: dict[str, Answer] = {
        "/": _page("Welcome", {"Japanese": "/ja/", "French": "/fr/", **links}),
        "/ja/": _setting(_page("Youkoso", links, tag="em"), "lang=ja", "Path=/"),
        "/fr/": _setting(_page("Bienvenue", links, tag="b"), "lang=fr", "Path=/"),
        "/docs/a": docs("a"),
        "/docs/b": docs("b"),
    }
    edges = {("Welcome", "Japanese", "Youkoso"), ("Welcome", "French", "Bienvenue")}
    for language, (home, doc, tags) in words.items():
        for own, other, tag in zip("ab", "ba", tags, strict=True):
            pages[f"/{language}/docs/{own}"] = _page(f"{doc} {own}", {"other": f"/docs/{other}"}, tag=tag)
            edges |= {(home, own, f"{doc} {own}"), (f"{doc} {own}", "other", f"{doc} {other}")}
    return pages, frozenset(edges)


def tabs() -> tuple[dict[str, Answer], Edges]:
    """`/fr` sets a cookie, and so does a click on a link that opens `/help` in a tab."""
    click = "<p><a href='/help' target=_blank onclick=\"document.cookie='lang=ja; path=/'\">In Japanese</a></p>"
    names = {"": ("Help", "b"), "fr": ("Aide", "i"), "ja": ("Tasuke", "u")}

    def shown(request: Request) -> str:
        name, tag = names[_cookie(request, "lang")]
        return _page(name, {}, tag=tag)

    pages: dict[str, Answer] = {
        "/": _page("Start", {"French": "/fr", "Japanese": "/ja", "Help": "/help"}),
        "/fr": _setting(_page("Francais", {"Help": "/help"}, tag="em", extra=click), "lang=fr", "Path=/"),
        "/ja": _setting(_page("Nihongo", {"Help": "/help"}, tag="s"), "lang=ja", "Path=/"),
        "/help": shown,
    }
    return pages, frozenset(
        {
            ("Start", "French", "Francais"),
            ("Start", "Japanese", "Nihongo"),
            ("Start", "Help", "Help"),
            ("Francais", "Help", "Aide"),
            ("Francais", "In Japanese", "Tasuke"),
            ("Nihongo", "Help", "Tasuke"),
        }
    )


def regions() -> tuple[dict[str, Answer], Edges]:
    """A script of `/switzerland` sets a cookie, and `/prices` shows another page at the same URL for it."""
    links = {"Prices": "/prices", "Shipping": "/shipping"}

    def by_region(
        name: str, tag: str, other: str, others_tag: str, more: Mapping[str, str]
    ) -> Callable[[Request], str]:
        return lambda request: (
            _page(f"{name} in Swiss francs", more, tag=others_tag, extra=f"<p>{other}</p>")
            if _cookie(request, "region") == "ch"
            else _page(f"{name} in euros", more, tag=tag)
        )

    pages: dict[str, Answer] = {
        "/": _page("Shop", {**links, "Switzerland": "/switzerland"}),
        "/switzerland": _page("Grüezi", links, tag="em", script="document.cookie = 'region=ch; path=/'"),
        "/prices": by_region("Prices", "b", "Customs are included.", "i", {"Shipping": "/shipping"}),
        "/shipping": by_region("Shipping", "u", "By train.", "s", {"Prices": "/prices"}),
    }
    edges = {("Shop", "Switzerland", "Grüezi")}
    for start, money in (("Shop", "euros"), ("Grüezi", "Swiss francs")):
        prices, shipping = f"Prices in {money}", f"Shipping in {money}"
        edges |= {(start, "Prices", prices), (start, "Shipping", shipping)}
        edges |= {(prices, "Shipping", shipping), (shipping, "Prices", prices)}
    return pages, frozenset(edges)


def storages(area: str) -> tuple[dict[str, Answer], Edges]:
    """A script of `/expert` stores a value, and scripts redirect by it or draw by it. `area` is the kind of storage."""
    leave = f"if ({area}.mode) location.replace(location.pathname + '-for-experts')"
    draw = f"if ({area}.mode) document.write('<h2>Advanced</h2><p><a href=/keys>Keys</a></p>')"
    pages: dict[str, Answer] = {
        "/": _page("Home", {"Expert": "/expert", "Tools": "/tools", "Files": "/files"}),
        "/expert": _page("Experts", {"Tools": "/tools", "Files": "/files"}, tag="em", script=f"{area}.mode = 'expert'"),
        "/tools": _page("Tools", {"Files": "/files"}, tag="b", script=leave),
        "/tools-for-experts": _page("All tools", {"Files": "/files"}, tag="i"),
        "/files": _page("Files", {"Tools": "/tools"}, tag="u", extra=f"<script>{draw}</script>"),
        "/keys": _page("Keys", {"Tools": "/tools"}, tag="s"),
    }
    return pages, frozenset(
        {
            ("Home", "Expert", "Experts"),
            ("Home", "Tools", "Tools"),
            ("Home", "Files", "Files"),
            ("Tools", "Files", "Files"),
            ("Files", "Tools", "Tools"),
            ("Experts", "Tools", "All tools"),
            ("Experts", "Files", "Files+Advanced"),
            ("All tools", "Files", "Files+Advanced"),
            ("Files+Advanced", "Tools", "All tools"),
            ("Files+Advanced", "Keys", "Keys"),
            ("Keys", "Tools", "All tools"),
        }
    )


def views() -> tuple[dict[str, Answer], Edges]:
    """`/set?view=grid` sets a cookie and redirects back to the list, which then is a grid; without any POST."""

    def listed(request: Request) -> str:
        items = {"Lamp": "/lamp", "Chair": "/chair"}
        if _cookie(request, "view") == "grid":
            return _page("Grid", {**items, "As rows": "/set?view=rows"}, extra="<table><tr><td>Lamp<td>Chair</table>")
        return _page("Rows", {**items, "As grid": "/set?view=grid"})

    def thing(name: str, tag: str) -> Callable[[Request], str]:
        def shown(request: Request) -> str:
            is_grid = _cookie(request, "view") == "grid"
            extra = "<table><tr><td>Alike<td>Cheaper</table>" if is_grid else ""
            return _page(name + " beside others" * is_grid, {"Back": "/list"}, tag=tag, extra=extra)

        return shown

    pages: dict[str, Answer] = {
        "/": _page("Furniture", {"Things": "/list"}, tag="em"),
        "/list": listed,
        "/set": lambda request: Page(
            redirect="/list", headers={"Set-Cookie": f"view={request.query.get('view', 'rows')}; Path=/"}
        ),
        "/lamp": thing("Lamp", "b"),
        "/chair": thing("Chair", "i"),
    }
    return pages, frozenset(
        {
            ("Furniture", "Things", "Rows"),
            ("Rows", "Lamp", "Lamp"),
            ("Rows", "Chair", "Chair"),
            ("Rows", "As grid", "Grid"),
            ("Lamp", "Back", "Rows"),
            ("Chair", "Back", "Rows"),
            ("Grid", "Lamp", "Lamp beside others"),
            ("Grid", "Chair", "Chair beside others"),
            ("Grid", "As rows", "Rows"),
            ("Lamp beside others", "Back", "Grid"),
            ("Chair beside others", "Back", "Grid"),
        }
    )


def switches(remove: str, instead: str) -> tuple[dict[str, Answer], Edges]:
    """A link on every page sets a cookie and redirects back; the page is then the same, with `instead` for the link."""

    def page(name: str, links: Mapping[str, str], tag: str, path: str) -> Callable[[Request], str]:
        def shown(request: Request) -> str:
            part = instead if _cookie(request, "set") else remove
            return _page(name, links, tag=tag, extra=part.replace("BACK", path))

        return shown

    links = {"Bread": "/bread", "Cakes": "/cakes"}
    pages: dict[str, Answer] = {
        "/": page("Bakery", links, "em", "/"),
        "/bread": page("Bread", {"Cakes": "/cakes", "Roll": "/roll"}, "b", "/bread"),
        "/cakes": page("Cakes", {"Bread": "/bread"}, "i", "/cakes"),
        "/roll": page("Roll", {"Cakes": "/cakes"}, "u", "/roll"),
        "/set": lambda request: Page(
            redirect=request.query.get("back", "/"),
            headers={"Set-Cookie": f"set={request.query.get('to', '')}; Path=/"},
        ),
    }
    return pages, frozenset(
        {
            ("Bakery", "Bread", "Bread"),
            ("Bakery", "Cakes", "Cakes"),
            ("Bread", "Cakes", "Cakes"),
            ("Bread", "Roll", "Roll"),
            ("Cakes", "Bread", "Bread"),
            ("Roll", "Cakes", "Cakes"),
        }
    )


def dismissals() -> tuple[dict[str, Answer], Edges]:
    """A notice on every page, whose link tells the server that it was read."""
    notice = "<div><p>We bake until six on Sundays, and on Mondays from nine.</p>"
    return switches(f"{notice}<a href='/set?to=read&amp;back=BACK'>Dismiss</a></div>", "")


def themes() -> tuple[dict[str, Answer], Edges]:
    """A link to the other theme on every page, which the server remembers."""
    to_dark, to_light = (
        "<a href='/set?to={}&amp;back=BACK'>{}</a>".format(*each) for each in (("dark", "Dark"), ("", "Light"))
    )
    return switches(to_dark, f"<style>body {{ background: black }}</style><div>{to_light}</div>")


def consent() -> tuple[dict[str, Answer], Edges]:
    """A notice on every page until a button sets a cookie; with it, the pages show what they embed."""

    def page(name: str, links: Mapping[str, str], tag: str) -> Callable[[Request], str]:
        def shown(request: Request) -> str:
            if _cookie(request, "videos"):
                return _page(f"{name} with video", links, tag=tag, extra="<figure>A film about it</figure>")
            show = "document.cookie='videos=1; path=/'; location.reload()"
            return _page(name, links, tag=tag, extra=f'<div><button onclick="{show}">Play videos</button></div>')

        return shown

    pages: dict[str, Answer] = {
        "/": page("Museum", {"Rome": "/rome", "Athens": "/athens"}, "em"),
        "/rome": page("Rome", {"Athens": "/athens"}, "b"),
        "/athens": page("Athens", {"Rome": "/rome"}, "i"),
    }
    # The button of the other pages is the same element as on the start page, and is not tried again.
    edges = {("Museum", "Play videos", "Museum with video")}
    for more in ("", " with video"):
        edges |= {(f"Museum{more}", "Rome", f"Rome{more}"), (f"Museum{more}", "Athens", f"Athens{more}")}
        edges |= {(f"Rome{more}", "Athens", f"Athens{more}"), (f"Athens{more}", "Rome", f"Rome{more}")}
    return pages, frozenset(edges)


def marks(count: int = 6) -> tuple[dict[str, Answer], Edges]:
    """Cookies on every page that decide nothing: one new with each load, one that names the page, one always equal."""
    numbers = itertools.count()

    def marked(body: str, name: str) -> Callable[[Request], Page]:
        def shown(_: Request) -> Page:
            script = (
                f"<script>document.cookie = 'page={name}; path=/'; document.cookie = 'seen=yes; path=/';"
                f"document.cookie = 'at={next(numbers)}; path=/'</script>"
            )
            return _setting(body + script, f"id={secrets.token_hex(8)}", "Path=/", "HttpOnly")

        return shown

    links = {f"Post {n}": f"/post/{n}" for n in range(count)}
    pages: dict[str, Answer] = {"/": _page("Blog", links)}
    edges = set()
    for n in range(count):
        following = {"Next": f"/post/{n + 1}"} if n + 1 < count else {"First": "/post/0"}
        target = (n + 1) % count
        pages[f"/post/{n}"] = marked(_page(f"Entry {n}", following, tag=_TAGS[n]), str(n))
        edges |= {("Blog", f"Post {n}", f"Entry {n}"), (f"Entry {n}", next(iter(following)), f"Entry {target}")}
    return pages, frozenset(edges)


_TAGS: Sequence[str] = ("b", "i", "u", "s", "em", "q", "strong", "small", "big", "tt", "cite", "code")

SITES: Mapping[str, Callable[..., tuple[dict[str, Answer], Edges]]] = {
    "languages": languages,
    "tabs": tabs,
    "regions": regions,
    "local storage": lambda: storages("localStorage"),
    "session storage": lambda: storages("sessionStorage"),
    "views": views,
    "dismissals": dismissals,
    "themes": themes,
    "consent": consent,
    "marks": marks,
}
