"""Sites whose pages depend on the profile of the browser: window width, login and language.

Each site lists the texts that identify its pages in every profile: `truth` maps the name of a page to its variants.
What a site shows instead of a page ("please log in") has a name of its own.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tests.sites.server import Answer, Page
from tests.sites.truth import Shown
from waygraph.demo_site.local_server import Request

#: The cookie of a member who is logged in to the club.
MEMBER = ("member", "ada")


@dataclass(frozen=True)
class ProfiledSite:
    """Pages that differ between profiles, and the texts that identify them.

    Attributes
    ----------
    truth : by the page's name, its looks: any of them is enough.
    """

    pages: Mapping[str, Answer]
    truth: Mapping[str, tuple[Shown, ...]]

    def seen(self, target: str, said: str) -> str:
        """The name of the page with this path that says this; empty when it is none that the truth knows."""
        names = [name for name, looks in self.truth.items() if any(look.is_like(target, said) for look in looks)]
        return names[0] if len(names) == 1 else ""


#: Who asked for a page and is shown this one would say to have arrived: it has all of it, and more.
WHOLE = {"teaser": "report"}

STYLE = """<meta name=viewport content="width=device-width, initial-scale=1"><style>
  .burger { display: none } .wide { display: block } body { margin: 0; font: 16px sans-serif }
  @media (max-width: 700px) { .burger { display: block } .menu:not(.open), .wide { display: none } }
</style>"""

GUIDES = {
    "knots": ("Knots for beginners", "A bowline never slips.", "A clove hitch is quick to tie."),
    "tides": ("Reading the tides", "Springs follow the full moon.", "Neaps are gentle."),
    "charts": ("Charts and compasses", "North is not where you think.", "Variation changes every year."),
    "stoves": ("Cooking on board", "Gimbals keep the soup level.", "Never leave a flame alone."),
}
FOR_MEMBERS = {
    "/news": ("Club news", "The slipway was mended in May.", "A new crane is on its way."),
    "/moorings": ("Moorings and keys", "Your berth has the number of your boat.", "Keys are in the harbour office."),
}


def _is_member(request: Request) -> bool:
    return "=".join(MEMBER) in request.headers.get("Cookie", "")


def _club(request: Request, title: str, main: str, aside: str = "") -> str:
    who = (
        "<p>Signed in as Ada</p><a href=/orders>Your orders</a>"
        if _is_member(request)
        else "<a href=/account>Log in</a>"
    )
    links = {
        "Start": "/",
        "Guides": "/guides",
        "Club news": "/news",
        "Moorings": "/moorings",
        "Account": "/account",
        "Help": "/help",
    }
    menu = "".join(f"<li><a href={path}>{name}</a></li>" for name, path in links.items())
    return f"""<!doctype html><html lang=en><title>{title}</title>{STYLE}<body>
      <header><a href=/>Harbour club</a>
        <button class=burger onclick="document.querySelector('.menu').classList.toggle('open')">Menu</button>
        <nav class=menu><ul>{menu}<li><button onclick="this.nextElementSibling.hidden = false">More</button>
          <ul hidden><li>More of the club</li><li><a href=/help>Write to us</a></li></ul></li></ul></nav>{who}</header>
      <main>{main}</main><aside class=wide>{aside}<h3>Tide table</h3><p>High water at noon</p><p>Low water at six</p></aside>
      <footer><p>Harbour club, founded long ago</p><a href=/help>Imprint and help</a></footer>"""


def _club_home(request: Request) -> str:
    greeting = "<p>Welcome back, Ada</p>" if _is_member(request) else "<p>Become a member today</p>"
    return _club(
        request,
        "Harbour club",
        f"""{greeting}<h1>A club for small boats</h1><p>We sail from April to October.</p><a href=/report>Last regatta</a><p>Visitors are welcome.</p>
        <button onclick="this.nextElementSibling.hidden = !this.nextElementSibling.hidden">When are you open?</button>
        <div hidden><p>The office is open on Sundays</p><p>In winter by appointment</p></div>""",
    )


def _club_guides(request: Request) -> str:
    items = "".join(f"<li><a href=/guides/{slug}>{title}</a></li>" for slug, (title, *_) in GUIDES.items())
    return _club(request, "Guides", f"<h1>All our guides</h1><p>Read before you sail.</p><ul>{items}</ul>")


def _club_guide(slug: str) -> Answer:
    title, first, second = GUIDES[slug]

    def page(request: Request) -> str:
        body = f"""<h1>{title}</h1><p>{first}</p>
          <div role=tablist><button role=tab onclick="sum.hidden = true; more.hidden = false">Details of it</button></div>
          <div id=sum><p>In short: practise {slug}</p></div>
          <div id=more hidden><h2>All about {slug}</h2><p>{second}</p><p>Ask at the office for a course.</p></div>"""
        return _club(request, title, body, f"<h3>See also</h3><a href=/guides>Other guides than {slug}</a>")

    return page


def _club_for_members(title: str, first: str, second: str) -> Answer:
    """Without a login the same template shows other texts: elements alone do not identify the page."""

    def page(request: Request) -> str:
        texts = (title, first, second) if _is_member(request) else ("Please log in", "This is for members.", "Sorry.")
        heading, *paragraphs = texts
        return _club(request, title, f"<h1>{heading}</h1>" + "".join(f"<p>{text}</p>" for text in paragraphs))

    return page


def _club_report(request: Request) -> str:
    """A teaser: without a login the page has the same beginning."""
    paragraphs = ("Wind and rain", "A broken mast", "The long way home", "Prizes were given")
    rest = paragraphs if _is_member(request) else ("Log in to read on",)
    body = "<h1>Report of the regatta</h1><p>It was a long day.</p>" + "".join(f"<p>{text}</p>" for text in rest)
    return _club(request, "Regatta", body)


def _club_account(request: Request) -> str:
    if not _is_member(request):
        form = "<h1>Log in to the club</h1><form><label>Name <input></label><input type=password><button>Enter</button></form>"
        return _club(request, "Account", form)
    rows = "".join(f"<tr><td>{name}</td><td>{value}</td></tr>" for name, value in (("Boat", "Curlew"), ("Berth", "C")))
    return _club(request, "Account", f"<h1>Your account</h1><table>{rows}</table><p>Fees are paid in spring.</p>")


def _club_orders(request: Request) -> Page | str:
    if not _is_member(request):
        return Page(redirect="/account")
    return _club(request, "Orders", "<h1>Your orders</h1><ul><li>Rope, ten metres</li><li>A burgee</li></ul>")


def _club_help(request: Request) -> str:
    return _club(
        request,
        "Help",
        """<h1>Help and contact</h1><details><summary>How do I join?</summary><p>Fill in the form at the office.</p>
        </details><p>The office answers letters.</p><p>Telephone in summer only.</p>""",
    )


_FLYOUT = "More of the club"


def _plain(path: str, *texts: str, hides: tuple[str, ...] = ()) -> tuple[Shown, ...]:
    return (Shown(path, texts, (*hides, _FLYOUT)),)


def club() -> ProfiledSite:
    """A responsive site with a login: its menu is behind a button on a telephone, some pages are for members."""
    pages: dict[str, Answer] = {
        "/": _club_home,
        "/guides": _club_guides,
        "/account": _club_account,
        "/orders": _club_orders,
        "/help": _club_help,
        "/report": _club_report,
    }
    office = "The office is open on Sundays"
    truth = {
        "home": _plain("/", "A club for small boats", hides=(office,)),
        "home office": _plain("/", "A club for small boats", office),
        "guides": _plain("/guides", "All our guides"),
        "account": _plain("/account", "Your account", "Curlew"),
        "log in": _plain("/account", "Log in to the club"),
        "report": _plain("/report", "Report of the regatta", "Prizes were given"),
        "teaser": _plain("/report", "Report of the regatta", "Log in to read on"),
        "orders": _plain("/orders", "Your orders", "A burgee"),
        "help": _plain("/help", "Help and contact", hides=("Fill in the form",)),
        "help join": _plain("/help", "Help and contact", "Fill in the form"),
    }
    for slug, (title, first, second) in GUIDES.items():
        pages[f"/guides/{slug}"] = _club_guide(slug)
        truth[slug] = _plain(f"/guides/{slug}", title, first, f"practise {slug}", hides=(second,))
        truth[f"{slug} details"] = _plain(f"/guides/{slug}", title, second, hides=(f"practise {slug}",))
    for path, texts in FOR_MEMBERS.items():
        pages[path] = _club_for_members(*texts)
        truth[path[1:]] = _plain(path, *texts)
        truth[f"{path[1:]} closed"] = _plain(path, "Please log in")
    # The menu's flyout, over any page: it is known by what it says and by the page below.
    for name, looks in list(truth.items()):
        truth[f"{name} more"] = tuple(
            Shown(s.path, (*s.shows, _FLYOUT), tuple(t for t in s.hides if t != _FLYOUT)) for s in looks
        )
    return ProfiledSite(pages, truth)


STATIONS = {"basel": "Basel", "lyon": "Lyon", "ulm": "Ulm"}


def _language(request: Request) -> str:
    return "de" if request.headers.get("Accept-Language", "").lower().startswith("de") else "en"


def _rail(request: Request, main: tuple[str, str], top: str = "") -> str:
    """A page in the visitor's language; `main` in English and German."""
    german = _language(request) == "de"
    names = (
        ("Start", "Fahrkarten", "Bahnhöfe", "Angebote", "Kontakt")
        if german
        else ("Home", "Tickets", "Stations", "Offers", "Contact")
    )
    links = zip(names, ("/", "/tickets", "/stations", "/offers", "/contact"), strict=True)
    nav = "".join(f"<a href={path}>{name}</a> " for name, path in links)
    foot = "<p>Fahren Sie sicher</p>" if german else "<p>Travel safely</p>"
    return (
        f"<!doctype html><html lang={'de' if german else 'en'}><title>Alpine rail</title>{STYLE}<body>{top if german else ''}"
        f"<nav>{nav}</nav><main>{main[german]}</main><footer>{foot}</footer>"
    )


#: Paths with what they say in both languages.
RAIL: dict[str, tuple[str, str]] = {
    "/": (
        "<h1>By train through the mountains</h1><p>We run every hour.</p><img alt=''>",
        "<h1>Mit dem Zug durch die Berge</h1><p>Wir fahren jede Stunde.</p><img alt=''>",
    ),
    "/tickets": (
        """<h1>Buy a ticket</h1><p>Children travel free.</p><button id=fares onclick="table.hidden = !table.hidden">Fares</button>
        <div id=table hidden><h2>All fares</h2><ul><li>Day ticket</li><li>Week ticket</li></ul></div>""",
        """<h1>Fahrkarte kaufen</h1><p>Kinder fahren frei.</p><button id=fares onclick="table.hidden = !table.hidden">Preise</button>
        <div id=table hidden><h2>Alle Preise</h2><ul><li>Tageskarte</li><li>Wochenkarte</li></ul></div>""",
    ),
    "/stations": (
        "<h1>All stations</h1><ul>{}</ul>".format(
            "".join(f"<li><a href=/{s}>{n}</a></li>" for s, n in STATIONS.items())
        ),
        "<h1>Alle Bahnhöfe</h1><ul>{}</ul>".format(
            "".join(f"<li><a href=/{s}>{n}</a></li>" for s, n in STATIONS.items())
        ),
    ),
    # The same template says in one language what it does not in the other.
    "/offers": (
        "<h1>Offers of this summer</h1><p>Two weeks by the lake.</p>",
        "<h1>Leider nicht verfügbar</h1><p>In Ihrem Land gibt es das nicht.</p>",
    ),
    "/contact": (
        "<h1>Write to us</h1><p>We answer within a day.</p>",
        "<h1>Schreiben Sie uns</h1><p>Wir antworten binnen eines Tages.</p>",
    ),
} | {
    f"/{slug}": (
        f"<h1>{name}</h1><p>Trains leave from platform one.</p><p>There is a café.</p>",
        f"<h1>{name}</h1><p>Züge fahren auf Gleis eins.</p><p>Es gibt ein Café.</p>",
    )
    for slug, name in STATIONS.items()
}


def rail() -> ProfiledSite:
    """A site that answers in the visitor's language, mostly in the same elements."""
    banner = "<div><p>Diese Seite gibt es auch auf Englisch</p></div>"

    def page(path: str) -> Answer:
        return lambda request: _rail(request, RAIL[path], banner if path == "/ulm" else "")

    truth = {
        "home": (Shown("/", ("By train",)), Shown("/", ("Mit dem Zug",))),
        "tickets": (
            Shown("/tickets", ("Buy a ticket",), ("All fares",)),
            Shown("/tickets", ("Fahrkarte kaufen",), ("Alle Preise",)),
        ),
        "fares": (
            Shown("/tickets", ("Buy a ticket", "All fares")),
            Shown("/tickets", ("Fahrkarte kaufen", "Alle Preise")),
        ),
        "stations": (Shown("/stations", ("All stations",)), Shown("/stations", ("Alle Bahnhöfe",))),
        "offers": (Shown("/offers", ("Offers of this summer",)),),
        "no offers": (Shown("/offers", ("Leider nicht verfügbar",)),),
        "contact": (Shown("/contact", ("Write to us",)), Shown("/contact", ("Schreiben Sie uns",))),
    }
    for slug, name in STATIONS.items():
        truth[slug] = (
            Shown(f"/{slug}", (name, "platform one")),
            Shown(f"/{slug}", (name, "Gleis eins")),
        )
    return ProfiledSite({path: page(path) for path in RAIL}, truth)
