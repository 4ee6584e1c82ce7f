"""Crawler traps: areas without end, and legitimate areas that resemble them, beside ordinary pages.

Each area has a path of its own and is linked from the start page. `ENDLESS` areas may cost a few states each;
`LEGITIMATE` ones must be found completely; `HEAVY` ones are single expensive pages. The ordinary pages are the rest.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import count

from tests.sites.noise import random_hex
from tests.sites.server import Answer, Page
from tests.sites.truth import Shown, TrueGraph
from waygraph.demo_site.local_server import Request

ADJECTIVES = ("amber", "brass", "cotton", "dusky", "early", "fresh", "grand", "hollow", "ivory", "jolly")
NOUNS = ("anchor", "basket", "candle", "drum", "easel", "flute", "goblet", "hammer", "inkwell", "jacket")


@dataclass(frozen=True)
class Area:
    """One area of a site.

    Attributes
    ----------
    start : path of its first page.
    pages : makes its pages; every server gets its own, with its own memory.
    real : its pages that are no trap, by name; all must be found.
    depth : actions from the start page that its real pages need.
    """

    name: str
    start: str
    pages: Callable[[], Mapping[str, Answer]]
    real: Mapping[str, Shown]
    depth: int = 3


def html(title: str, body: str) -> str:
    """A page with the navigation bar that all pages of the site have."""
    bar = "<nav><a href='/'>Home</a> <a href='/about'>About</a> <a href='/help'>Help</a></nav>"
    return f"<!doctype html><html lang=en><title>{title}</title><body>{bar}<h1>{title}</h1>{body}</body></html>"


# ---- endless -----------------------------------------------------------------------------------------------------

MONTHS = (
    "January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November",
    "December",
)  # fmt: skip


def _month(year: int, month: int) -> tuple[int, int]:
    return year + (month - 1) // 12, (month - 1) % 12 + 1


def _calendar() -> Mapping[str, Answer]:
    """Months with the next and the one before, for ever; every day has a page, with the next day."""

    def month(year: int, number: int) -> str:
        days = "".join(
            f"{'<tr>' if day % 7 == 1 else ''}<td><a href='/calendar/{year}/{number:02}/{day:02}'>{day}</a></td>"
            for day in range(1, 29 + number % 3)
        )
        before, after = _month(year, number - 1), _month(year, number + 1)
        return html(
            f"{MONTHS[number - 1]} {year}",
            f"<a href='/calendar/{before[0]}/{before[1]:02}'>Earlier</a> "
            f"<a href='/calendar/{after[0]}/{after[1]:02}'>Later</a><table>{days}</table>",
        )

    def answer(request: Request) -> str | Page:
        parts = request.path.strip("/").split("/")
        if parts[0] != "calendar" or not all(part.isdigit() for part in parts[1:]):
            return Page(status=404)
        if len(parts) == 4:
            year, number, day = map(int, parts[1:])
            later = f"/calendar/{year}/{number:02}/{day + 1:02}"
            text = f"<p>No events on this day.</p><a href='{later}'>Next day</a>"
            return html(f"{day} {MONTHS[number - 1]} {year}", text)
        return month(*(map(int, parts[1:]) if len(parts) == 3 else (2026, 5)))

    return {"/calendar": answer, "*": answer}


def _agenda() -> Mapping[str, Answer]:
    """The same with queries; days are pages of another path that lead nowhere."""

    def months(request: Request) -> str:
        year, number = map(int, request.query.get("month", "2026-05").split("-"))
        before, after = _month(year, number - 1), _month(year, number + 1)
        days = "".join(f"<li><a href='/agenda/day?date={year}-{number:02}-{day:02}'>{day}</a>" for day in range(1, 29))
        return html(
            f"Agenda of {MONTHS[number - 1]} {year}",
            f"<a href='/agenda?month={before[0]}-{before[1]:02}'>Before</a>"
            f"<a href='/agenda?month={after[0]}-{after[1]:02}'>After</a><ul>{days}</ul>",
        )

    return {
        "/agenda": months,
        "/agenda/day": lambda request: html(f"Day {request.query.get('date', '')}", "<p>Nothing is planned.</p>"),
    }


GOODS = tuple(f"{adjective}-{noun}" for adjective, noun in zip(ADJECTIVES, NOUNS, strict=True))
FACETS = {
    "color": ("red", "green", "blue", "black"),
    "size": ("small", "medium", "large"),
    "make": ("acme", "globex", "initech"),
    "sort": ("price", "name", "age"),
}


def _good(request: Request) -> str | Page:
    name = request.path.rpartition("/")[2]
    if name not in GOODS:
        return Page(status=404)
    first, second = name.split("-")
    return html(f"{first} {second}", f"<p>A {first} {second}, made by hand for people who like a {second}.</p>")


def _facets() -> Mapping[str, Answer]:
    """A shelf that can be filtered by four properties in any combination: 320 pages that show the same ten goods."""

    def shelf(request: Request) -> str:
        chosen = {key: value for key, value in request.query.items() if key in FACETS}
        shown = [good for i, good in enumerate(GOODS) if not chosen or (i + sum(map(len, chosen.values()))) % 3]
        links = "".join(
            f"<li><a href='/shelf?{'&'.join(f'{k}={v}' for k, v in {**chosen, key: value}.items())}'>{value}</a>"
            for key, values in FACETS.items()
            for value in values
            if chosen.get(key) != value
        )
        goods = "".join(f"<li><a href='/goods/{good}'>{good}</a>" for good in shown)
        return html("Shelf", f"<aside><ul>{links}</ul></aside><ul id=goods>{goods}</ul>")

    return {"/shelf": shelf} | {f"/goods/{good}": _good for good in GOODS}


def _filters() -> Mapping[str, Answer]:
    """The same with the filters as segments of the path."""
    words = [value for values in FACETS.values() for value in values]

    def answer(request: Request) -> str | Page:
        first, *chosen = request.path.strip("/").split("/")
        if first != "stock" or not set(chosen) <= set(words):
            return Page(status=404)
        base = request.path.rstrip("/")
        links = "".join(f"<li><a href='{base}/{word}'>{word}</a>" for word in words if word not in chosen)
        return html("Stock", f"<ul>{links}</ul><p>{len(chosen)} filters</p>")

    return {"/stock": answer, "*": answer}


def _concatenation() -> Mapping[str, Answer]:
    """A relative link without its slash: /manual/ -> /manual/pages/ -> /manual/pages/pages/ -> ..."""

    def answer(request: Request) -> str | Page:
        first, *rest = request.path.strip("/").split("/")
        if first == "manual" and set(rest) <= {"pages", "more"}:
            return html("Manual", "<a href='pages/'>Pages</a> <a href='more/'>More</a><p>How to use it.</p>")
        return Page(status=404)

    return {"/manual/": answer, "*": answer}


def _ignored_rest(start: str, title: str, links: tuple[str, ...]) -> Callable[[], Mapping[str, Answer]]:
    """A server that answers every path below one with the same page, whose relative links grow without end."""

    def answer(request: Request) -> str | Page:
        if not request.path.startswith(start.rstrip("/")):
            return Page(status=404)
        offered = "".join(f"<li><a href='{link}'>To {link}</a>" for link in links)
        return html(title, f"<ul>{offered}</ul><p>All that there is of {title.lower()}.</p>")

    return lambda: {start: answer, "*": answer}


def _tree() -> Mapping[str, Answer]:
    """Folders of folders with equal names, all different."""
    folders = {"/tree/": "roots", "/tree/old/": "bark", "/tree/old/old/": "leaves", "/tree/new/": "twigs"}

    def page(path: str, what: str) -> str:
        below = [other for other in folders if other.startswith(path) and other.count("/") == path.count("/") + 1]
        links = "".join(f"<li><a href='{other.removeprefix(path)}'>{other.split('/')[-2]}</a>" for other in below)
        return html("Folder", f"<ul>{links}</ul><p>Here are {what}.</p>")

    return {path: page(path, what) for path, what in folders.items()}


def _session_in_query() -> Mapping[str, Answer]:
    """Three pages whose links carry a session id that is new with every load."""
    loads = count()

    def answer(name: str) -> Callable[[Request], str]:
        def page(_: Request) -> str:
            sid = random_hex(next(loads), 24)
            links = "".join(f"<li><a href='/club/{other}?zid={sid}'>Club {other}</a>" for other in ("a", "b", "c"))
            return html(f"Club room {name}", f"<ul>{links}</ul>")

        return page

    return {f"/club/{name}": answer(name) for name in ("a", "b", "c")}


def _session_in_path() -> Mapping[str, Answer]:
    """The same with the session id in the path."""
    loads = count(1000)

    def answer(request: Request) -> str | Page:
        parts = request.path.strip("/").split("/")
        sid, name = random_hex(next(loads), 24), parts[-1]
        if parts == ["gym"]:
            return Page(redirect=f"/gym/{sid}/x")
        links = "".join(f"<li><a href='/gym/{sid}/{other}'>Gym {other}</a>" for other in ("x", "y", "z"))
        return html(f"Gym hall {name}", f"<ul>{links}</ul>") if parts[0] == "gym" else Page(status=404)

    return {"/gym": answer, "*": answer}


FEED = """<ul id=feed></ul><script>
  let pages = 0;
  const more = () => {
    document.querySelector('#more')?.remove();
    pages += 1;
    for (let i = 0; i < 5; i++) feed.insertAdjacentHTML('beforeend', `<li>Item ${pages * 5 + i} of the feed</li>`);
    feed.insertAdjacentHTML('afterend', `<button id=more onclick='more()'>Load page ${pages + 1}</button>`);
  };
  more();
</script>"""

HASH_COUNTER = """<div id=view></div><script>
  const show = () => {
    const n = Number(location.hash.slice(4) || 0);
    view.innerHTML = `<p>Number ${n}</p>${'<i>|</i>'.repeat(n)}<a href='#/n/${n + 1}'>Next number</a>`;
  };
  addEventListener('hashchange', show); show();
</script>"""

COUNTER = """<div id=view></div><script>
  let n = 0;
  const show = () => {
    view.innerHTML = `<p>Count ${n}</p>${'<b>|</b>'.repeat(n)}<button onclick='n += 1; show()'>Count to ${n + 1}</button>`;
  };
  show();
</script>"""

ENDLESS = (
    Area("calendar", "/calendar", _calendar, {"calendar": Shown("/calendar", ("May 2026",))}),
    Area("agenda", "/agenda", _agenda, {"agenda": Shown("/agenda", ("Agenda of May 2026",))}),
    Area(
        "facets",
        "/shelf",
        _facets,
        {"shelf": Shown("/shelf", ("Shelf",))}
        | {good: Shown(f"/goods/{good}", (good.replace("-", " "),)) for good in GOODS},
    ),
    Area("filters", "/stock", _filters, {"stock": Shown("/stock", ("0 filters",))}),
    Area("concatenation", "/manual/", _concatenation, {"manual": Shown("/manual/", ("How to use it.",))}),
    Area(
        "session in query",
        "/club/a",
        _session_in_query,
        {f"club {name}": Shown(rf"/club/{name}(\?.*)?", (f"Club room {name}",)) for name in "abc"},
    ),
    Area(
        "session in path",
        "/gym",
        _session_in_path,
        {f"gym {name}": Shown(r"/gym.*", (f"Gym hall {name}",)) for name in "xyz"},
    ),
)
#: Endless since the server ignores the rest of a path. They cost no state at all.
IGNORED_RESTS = (
    Area(
        "partners",
        "/partners/",
        _ignored_rest(
            "/partners/", "Partners", ("www.partner.example/x/", "other.example/shop/", "www2.third.example")
        ),
        {"partners": Shown("/partners/", ("of partners",))},
    ),
    Area(
        "notes",
        "/notes/",
        _ignored_rest("/notes/", "Notes", ("alpha/", "beta/", "gamma/delta/")),
        {"notes": Shown("/notes/", ("of notes",))},
    ),
    Area(
        "script",
        "/desk.php",
        _ignored_rest("/desk.php", "Desk", ("desk.php/help/", "desk.php/about/")),
        {"desk": Shown("/desk.php", ("of desk",))},
    ),
)
#: Folders that only look like it.
TREE = Area(
    "tree",
    "/tree/",
    _tree,
    {what: Shown(f"/tree/{path}", (what,)) for path, what in (("", "roots"), ("old/", "bark"), ("old/old/", "leaves"))}
    | {"twigs": Shown("/tree/new/", ("twigs",))},
    depth=4,
)
#: Endless by script: a browser is needed.
#: A chart whose points say numbers, and buttons without names, each of which opens something of its own.
CHART = (
    "<svg width=700 height=20>"
    + "".join(f"<circle cx={10 + 11 * i} cy=10 r=4></circle>" for i in range(60))
    + "</svg><p id=tip hidden></p>"
    + "".join("<button class=icon onclick='open_(this)'></button>" for _ in ADJECTIVES)
    + "".join(f"<p class=panel hidden>The {adjective} panel.</p>" for adjective in ADJECTIVES)
    + """<style>.icon { width: 20px; height: 20px }</style><script>
    for (const [i, point] of document.querySelectorAll("circle").entries()) {
      point.onmouseenter = () => { tip.textContent = `${7 * i} sold`; tip.hidden = false; };
      point.onmouseleave = () => { tip.hidden = true; };
      point.onclick = () => console.log(i);
    }
    const icons = [...document.querySelectorAll(".icon")], panels = document.querySelectorAll(".panel");
    function open_(icon) {
      const panel = panels[icons.indexOf(icon)];
      panel.hidden = !panel.hidden;
    }</script>"""
)

ENDLESS_SCRIPTS = (
    Area(
        "chart",
        "/chart",
        lambda: {"/chart": html("Sales", CHART)},
        {"chart": Shown("/chart", ("Sales",), ("panel", "sold"))}
        | {f"panel {each}": Shown("/chart", (f"The {each} panel",)) for each in ADJECTIVES},
    ),
    Area("feed", "/feed", lambda: {"/feed": html("Feed", FEED)}, {"feed": Shown("/feed", ("Load page 2",))}),
    Area(
        "hash counter",
        "/numbers",
        lambda: {"/numbers": html("Numbers", HASH_COUNTER)},
        {"numbers": Shown("/numbers", ("Number 0",))},
    ),
    Area("counter", "/count", lambda: {"/count": html("Count", COUNTER)}, {"count": Shown("/count", ("Count 0",))}),
    Area(
        "redirect loop",
        "/round",
        lambda: {"/round": Page(redirect="/about/round"), "/about/round": Page(redirect="/round")},
        {},
    ),
)

# ---- heavy -------------------------------------------------------------------------------------------------------


def _huge() -> Iterator[bytes]:
    yield html("Huge", "<p>The beginning of fifty megabytes.</p>").encode()
    yield b"<!--" + b"x" * (50 << 20) + b"-->"


HEAVY = (
    Area(
        "restless",
        "/restless",
        lambda: {
            "/restless": html(
                "Restless",
                "<p id=p>0</p><script>setInterval(() => { p.textContent = Math.random(); }, 30)</script>",
            )
        },
        {"restless": Shown("/restless", ("Restless",))},
    ),
    Area(
        "restless elements",
        "/restless/elements",
        lambda: {
            "/restless/elements": html(
                "Growing and shrinking",
                "<p id=p></p><script>let n = 0; setInterval(() => { n = (n + 1) % 9; p.innerHTML = '<i>.</i>'.repeat(n); }, 30)"
                "</script>",
            )
        },
        {"restless elements": Shown("/restless/elements", ("Growing and shrinking",))},
    ),
    Area(
        "many elements",
        "/many",
        lambda: {"/many": html("Many", "<ul>" + "<li>x</li>" * 100_000 + "</ul>")},
        {"many": Shown("/many", ("Many",))},
    ),
    Area(
        "huge page",
        "/huge",
        lambda: {"/huge": Page(b"".join(_huge()))},
        {"huge": Shown("/huge", ("The beginning of fifty megabytes.",))},
    ),
    Area(
        "alerts",
        "/alerts",
        lambda: {"/alerts": html("Alerts", "<script>for (;;) alert('Again')</script><p>After all alerts.</p>")},
        {"alerts": Shown("/alerts", ("After all alerts.",))},
    ),
)

# ---- legitimate --------------------------------------------------------------------------------------------------


def product_pages(products: int, per_list: int, *, named: bool = True) -> Mapping[str, Answer]:
    """A catalogue in listings that know the next one alone; each product has a page of its own.

    Without names, products differ by their number alone.
    """

    def name(i: int) -> str:
        if not named:
            return f"Product {i}"
        return f"{ADJECTIVES[i % 10]} {NOUNS[i // 10 % 10]} model {'abcdefghij'[i // 100 % 10]}{'klmnopqrst'[i % 7]}"

    def listing(request: Request) -> str:
        page = int(request.query.get("page", "1"))
        first = (page - 1) * per_list
        items = "".join(
            f"<li><a href='/products/{i}'>{name(i)}</a>" for i in range(first, min(first + per_list, products))
        )
        following = f"<a href='/products?page={page + 1}'>Next page</a>" if first + per_list < products else ""
        return html("Products", f"<ul>{items}</ul>{following}")

    def product(request: Request) -> str:
        i = int(request.path.rpartition("/")[2])
        return html(
            name(i), f"<p>The best there is for {3 + i * 7 % 90} euros.</p><dl><dt>Stock</dt><dd>{i % 5}</dd></dl>"
        )

    return {"/products": listing} | {f"/products/{i}": product for i in range(products)}


def _product_area(products: int, per_list: int, *, named: bool = True) -> Area:
    listings = -(-products // per_list)
    real = {"list 1": Shown("/products")} | {
        f"list {n}": Shown(rf"/products\?page={n}") for n in range(2, listings + 1)
    }
    real |= {f"product {i}": Shown(f"/products/{i}") for i in range(products)}
    return Area("products", "/products", lambda: product_pages(products, per_list, named=named), real, listings + 2)


def _router() -> Mapping[str, Answer]:
    """All pages behind one path, chosen by a parameter, as old applications do it."""
    rooms = {
        "home": "Welcome to the office of records.",
        "orders": "Orders are shipped within three working days.",
        "invoices": "Invoices can be downloaded as documents.",
        "staff": "Our people answer the telephone at any time.",
        "imprint": "Responsible for the contents is the board.",
        "jobs": "We look for carpenters and smiths.",
    }

    def answer(request: Request) -> str:
        name = request.query.get("page", "home")
        links = "".join(f"<li><a href='/index.php?page={room}'>{room}</a>" for room in rooms)
        order = "".join(f"<li><a href='/index.php?page=order&id={i}'>Order {i}</a>" for i in range(1, 13))
        if name == "order":
            i = request.query.get("id", "0")
            return html(f"Order {i}", f"<ul>{links}</ul><p>Shipped.</p>")
        return html(name, f"<ul>{links}</ul><p>{rooms[name]}</p>" + (f"<ol>{order}</ol>" if name == "orders" else ""))

    return {"/index.php": answer}


def _blog() -> Mapping[str, Answer]:
    """Twelve pages of a blog, each of which knows the older one, with two posts each."""

    def words(i: int) -> str:
        return f"{ADJECTIVES[i % 10]} {NOUNS[i * 3 % 10]} {'bcdfghjklmnpqrstvwxz'[i % 20]}{'aeiou'[i % 5]}{'mnrstvz'[i // 5]}o"

    def page(request: Request) -> str:
        number = int(request.query.get("p", "1"))
        posts = "".join(
            f"<article><h2><a href='/blog/{words(i).replace(' ', '-')}'>{words(i)}</a></h2>"
            f"<p>On the {words(i + 5)} and the {words(i + 7)}.</p></article>"
            for i in (2 * number - 2, 2 * number - 1)
        )
        older = f"<a href='/blog?p={number + 1}'>Older posts</a>" if number < 12 else ""
        return html("Blog", posts + older)

    posts = {
        f"/blog/{words(i).replace(' ', '-')}": html(words(i), f"<p>Today about a {words(i + 3)}.</p>")
        for i in range(24)
    }
    return {"/blog": page} | posts


def _wiki() -> Mapping[str, Answer]:
    """Forty articles that link to one another, each with words of its own."""
    titles = [f"{adjective.title()}_{noun}" for adjective in ADJECTIVES[:8] for noun in NOUNS[:5]]

    def article(i: int) -> str:
        near = "".join(
            f"<p>See <a href='/wiki/{titles[(i + step) % 40]}'>{titles[(i + step) % 40]}</a>.</p>" for step in (1, 7)
        )
        return html(titles[i].replace("_", " "), f"<p>{' '.join(random_words(i))}</p>{near}")

    return {f"/wiki/{title}": article(i) for i, title in enumerate(titles)}


def random_words(seed: int, length: int = 20) -> list[str]:
    """Words that no other seed has."""
    digest = random_hex(seed, 64).translate(str.maketrans("0123456789", "ghijklmnop"))
    return [digest[i : i + 5] for i in range(0, min(len(digest), 3 * length), 3)]


def _tool() -> Mapping[str, Answer]:
    """Twelve notes that each link to one tool with their own name; the tool has three tabs."""
    tabs = {"files": "All pictures", "upload": "Choose a picture to send", "search": "Name of the picture"}
    names = (*ADJECTIVES, "kettle", "lantern")

    def index(_: Request) -> str:
        return html("Notes", "".join(f"<li><a href='/notes/{name}'>{name}</a>" for name in names))

    def note(name: str) -> str:
        return html(name, f"<p>A note.</p><p><a href='/tool?do=media&id={name}'>Pictures</a></p>")

    def tool(request: Request) -> str:
        chosen, name = request.query.get("tab", "files"), request.query.get("id", "")
        bar = "".join(f"<a href='/tool?do=media&id={name}&tab={tab}'>{tab}</a> " for tab in tabs)
        return html("Pictures", f"<p>{bar}</p><p>{tabs.get(chosen, '')} of {name}</p>")

    return {"/notes": index, "/tool": tool} | {f"/notes/{name}": note(name) for name in names}


#: A tool whose address every page completes with its own name: the name is more of the same, its tabs are not.
TOOL = Area(
    "tool",
    "/notes",
    _tool,
    {
        tab: Shown(rf"/tool\?do=media&id=[a-z]+&tab={tab}", (said,))
        for tab, said in (("upload", "Choose a picture to send"), ("search", "Name of the picture"))
    },
    depth=4,
)

LEGITIMATE = (
    _product_area(60, 6),
    Area(
        "router",
        "/index.php?page=home",
        _router,
        {
            f"room {name}": Shown(rf"/index\.php\?page={name}")
            for name in ("home", "orders", "invoices", "staff", "imprint", "jobs")
        }
        | {f"order {i}": Shown(rf"/index\.php\?id={i}&page=order") for i in range(1, 13)},
    ),
    Area(
        "blog",
        "/blog",
        _blog,
        {"blog 1": Shown("/blog")}
        | {f"blog {n}": Shown(rf"/blog\?p={n}") for n in range(2, 13)}
        | {path: Shown(path) for path in _blog() if path != "/blog"},
        depth=13,
    ),
    Area("wiki", "/wiki/Amber_anchor", _wiki, {path: Shown(path) for path in _wiki()}, depth=14),
)

#: The catalogue of the requirement: 500 products in listings of 50.
LARGE_CATALOGUE = _product_area(500, 50)
NUMBERED_CATALOGUE = _product_area(500, 50, named=False)

# ---- the site ----------------------------------------------------------------------------------------------------

REST = TrueGraph(
    {
        "home": Shown("/", ("Everything",)),
        "about": Shown("/about", ("About this site",)),
        "help": Shown("/help", ("How can we help",), ("The answer is yes",)),
        "help open": Shown("/help", ("How can we help", "The answer is yes")),
        "team": Shown("/about/team", ("Our people",)),
    },
    frozenset(
        {
            ("home", "About", "about"),
            ("home", "Help", "help"),
            ("about", "The team", "team"),
            ("help", "Answer", "help open"),
        }
    ),
)


def trap_pages(areas: tuple[Area, ...]) -> dict[str, Answer]:
    """A site with some of the areas, and the rest of it."""
    links = "".join(f"<li><a href='{area.start}'>Area {area.name}</a>" for area in areas)
    pages: dict[str, Answer] = {
        "/": html("Everything", f"<ul>{links}</ul>"),
        "/about": html("About this site", "<p>It has many areas.</p><a href='/about/team'>The team</a>"),
        "/about/team": html("Our people", "<p>They are all kind.</p>"),
        "/help": html(
            "How can we help",
            "<button onclick='a.hidden = !a.hidden'>Answer</button><p id=a hidden>The answer is yes.</p>",
        ),
    }
    anywhere = []
    for area in areas:
        made = dict(area.pages())
        if "*" in made:
            anywhere.append(made.pop("*"))
        pages |= made

    def elsewhere(request: Request) -> str | bytes | Page:
        for answer in anywhere:
            page = answer(request) if callable(answer) else answer
            if not (isinstance(page, Page) and page.status == 404):
                return page  # type: ignore[return-value]
        return Page("<!doctype html><title>Not found</title>", status=404)

    return pages | {"*": elsewhere}


def trap_truth(areas: tuple[Area, ...], *, scripts: bool = True) -> TrueGraph:
    """The rest and the real pages of the areas; without scripts, what a button shows is left out."""
    real = {f"{area.name}: {name}": shown for area in areas for name, shown in area.real.items()}
    rest = REST.states if scripts else {name: shown for name, shown in REST.states.items() if name != "help open"}
    starts = frozenset(
        ("home", f"Area {area.name}", f"{area.name}: {next(iter(area.real))}") for area in areas if area.real
    )
    edges = REST.edges if scripts else frozenset(edge for edge in REST.edges if edge[2] != "help open")
    return TrueGraph({**rest, **real}, edges | starts)
