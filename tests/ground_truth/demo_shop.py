"""Ground truth of the demo shop: its states up to three actions from the start page, and the edges between them.

Written by hand from the site's own definition (`waygraph/demo_site`), never from an explorer's output: where the
two disagree, the site and the rules below decide. Product, order and customer names come from the site's catalogue,
so that regular parts (all cards of a shelf, all rows of a table) are written once.

The rules, with the words of docs/architecture.md:

1. A state is a URL plus the set of positional XPaths of its exposed elements. Hidden panels, closed dialogs and
   details, the closed drawer and the closed flyout are not exposed.
2. An element is actionable when it is exposed and its role is link, button, tab, switch (`summary` counts as
   button), or when it has no role (here: "") but a pointer cursor of its own. A click is tried on each;
   a hover on the one element with `aria-haspopup` whose list item hides links. Text fields and selects are not
   actionable, but for the field of the search form, which is submitted once, where it is seen first: on the start
   page, with the first word of the first linked heading there.
3. Never activated, but reported as skipped: targets outside the site ("external"), other URL schemes ("scheme"),
   URLs that robots.txt disallows ("robots"), names of the hazard lexicon ("hazard"), submit buttons of GET forms
   ("submit"). Where two reasons hold, either is right. Submit buttons of POST forms with harmless or generic names
   ("Save changes") are pressed.
4. An element is *new* in a state when the state's parent has no actionable element with the same (XPath, role,
   name, target). Only new elements are activated or reported as skipped. The start state has no parent. `place`
   stands for the XPath: two elements have the same place exactly when the page templates put them at the same
   XPath. The element whose click showed a state at its parent's path is new in that state once more, unless it is a
   tab, when a pointer can still reach it: a person tries what the button does now. Here all of them are toggles that
   lead back.
5. The parent of a state is its first discoverer: breadth first, states of one level in order of their discovery,
   the elements of a state in document order, click before hover (no state depends on
   the last).
6. States at the last depth are recorded and not expanded.
7. An activation that changes nothing, or whose request the network guard stops, gives an edge from the state to
   itself.
8. A state is addressable when loading its URL gives the same state.

Keys are for people: the path without its first slash, `+view` for what a click or hover opened at the same URL.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cache

from waygraph.demo_site.catalogue import (
    CATEGORIES,
    CUSTOMERS,
    FEATURED,
    ITEMS,
    NEW_ARRIVALS,
    ORDERS,
    PRODUCTS,
    PRODUCTS_BY_SLUG,
    QUESTIONS,
    Order,
    Product,
)

DEPTH = 3
EXTERNAL = "https://example.com/makers"


@dataclass(frozen=True, slots=True)
class TrueState:
    """A state: its depth, and the URL, title and texts that identify it."""

    key: str
    path: str
    title: str
    depth: int
    addressable: bool
    shows: tuple[str, ...]
    hides: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class TrueEdge:
    """An action and where it leads. `blocked` is the (method, path) that the network guard must stop."""

    source: str
    kind: str
    role: str
    name: str
    target: str
    opens_tab: bool = False
    blocked: tuple[str, str] | None = None


@dataclass(frozen=True, slots=True)
class TrueSkip:
    """An element that is reported as skipped, for any of `reasons`."""

    state: str
    role: str
    name: str
    reasons: frozenset[str]


@dataclass(frozen=True, slots=True)
class Truth:
    """The complete ground truth; `parents` maps every state but the first to its first discoverer."""

    states: Mapping[str, TrueState]
    edges: tuple[TrueEdge, ...]
    skips: tuple[TrueSkip, ...]
    parents: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Element:
    """An actionable element: its place and role, and either the target of a click or the reason to skip it."""

    place: str
    role: str
    name: str
    leads: str = ""
    href: str = ""
    hover: str = ""
    search: str = ""
    skip: frozenset[str] = frozenset()
    opens_tab: bool = False
    blocked: tuple[str, str] | None = None

    @property
    def identity(self) -> tuple[str, str, str, str]:
        """Return what differencing compares (rule 4)."""
        return (self.place, self.role, self.name, self.href)


@dataclass(frozen=True, slots=True)
class View:
    """A state with its actionable elements in document order; none are listed for states of the last depth."""

    state: TrueState
    elements: tuple[Element, ...] = field(default=())


def _page(path: str) -> str:
    """Return the key of the state of a loaded `path`."""
    return "home" if path == "/" else path.removeprefix("/")


def _link(place: str, name: str, path: str) -> Element:
    return Element(place, "link", name, leads=_page(path), href=path)


def _button(place: str, name: str, leads: str, role: str = "button") -> Element:
    return Element(place, role, name, leads=leads)


def _never(place: str, role: str, name: str, *reasons: str, href: str = "") -> Element:
    return Element(place, role, name, href=href, skip=frozenset(reasons))


def _posts(place: str, name: str, here: str, path: str, role: str = "button") -> Element:
    return Element(place, role, name, leads=here, blocked=("POST", path))


# --- Regions ----------------------------------------------------------------------------------------------------------

#: The search for the first word of the first heading with a link on the start page: the name of the first shelf.
SEARCHED = CATEGORIES[0].name.split()[0].lower()
RESULTS = f"search?q={SEARCHED}"
SHELF_NAMES = {category.slug: category.name for category in CATEGORIES}

# Only the start state has new elements in the header: everywhere else they are at the same place as in the parent.
HEADER = (
    _button("header/menu", "Menu", "home+menu"),
    _link("header/brand", "Northfold", "/"),
    Element("header/shop", "link", "Shop", leads="shop", href="/shop", hover="home+flyout"),
    _link("header/help", "Help", "/help"),
    Element("header/find", "searchbox", "Search the shop", search=RESULTS),
    _never("header/search", "button", "Search", "submit"),
    _link("header/account", "Account", "/account"),
    _link("header/cart", "Cart", "/cart"),
)
FOOTER = (
    _link("footer/service/1", "Shipping", "/help/shipping"),
    _link("footer/service/2", "Returns", "/help/returns"),
    _link("footer/service/3", "Contact", "/help/contact"),
    Element(
        "footer/company/1",
        "link",
        "Printable catalogue",
        leads="catalogue/print",
        href="/catalogue/print",
        opens_tab=True,
    ),
    _never("footer/company/2", "link", "Maker directory", "external", href=EXTERNAL),
    _link("footer/company/3", "Back office", "/admin"),
    _never("footer/company/4", "link", "System status", "robots", href="/internal/status"),
    _never("footer/letter", "button", "Subscribe", "hazard", "submit"),
    _never("footer/mail", "link", "hello@northfold.example", "scheme", href="mailto:hello@northfold.example"),
)
RAIL = (
    _link("rail/1", "Dashboard", "/admin"),
    _link("rail/2", "Orders", "/admin/orders"),
    _link("rail/3", "Customers", "/admin/customers"),
    _link("rail/4", "Catalogue", "/admin/catalogue"),
    _link("rail/5", "Reports", "/admin/reports"),
    _link("rail/6", "Settings", "/admin/settings"),
    _link("rail/store", "View store", "/"),
    _never("rail/out", "button", "Sign out", "hazard", "submit"),
)
HELP_SIDE = (
    _link("side/1", "Questions", "/help"),
    _link("side/2", "Shipping", "/help/shipping"),
    _link("side/3", "Returns", "/help/returns"),
    _link("side/4", "Contact", "/help/contact"),
)
ACCOUNT_SIDE = (
    _link("side/1", "Profile", "/account"),
    _link("side/2", "Order history", "/account/orders"),
    _link("side/3", "Addresses", "/account/addresses"),
    _never("side/out", "button", "Log out", "hazard", "submit"),
)
CRUMB_HOME = _link("crumbs/1", "Home", "/")


def _shop_frame(*main: Element, flyout: Iterable[Element] = (), drawer: Iterable[Element] = ()) -> tuple[Element, ...]:
    after_shop = 1 + [element.name for element in HEADER].index("Shop")
    return (*HEADER[:after_shop], *flyout, *HEADER[after_shop:], *drawer, *main, *FOOTER)


def _office_frame(*main: Element) -> tuple[Element, ...]:
    return (*RAIL, *main)


def _cards(region: str, slugs: Iterable[str]) -> tuple[Element, ...]:
    return tuple(_link(f"{region}/card{i}", PRODUCTS_BY_SLUG[s].name, f"/p/{s}") for i, s in enumerate(slugs, 1))


# --- The shop ---------------------------------------------------------------------------------------------------------


def _shop_state(
    key: str, title: str, depth: int, *, shows: Iterable[str], hides: Iterable[str] = (), path: str = ""
) -> TrueState:
    """A state of a shop page; `path` is given for views that a click or hover opened, which are not addressable."""
    full_title = f"{title} · Northfold" if title else "Northfold · Considered things for small homes"
    return TrueState(key, path or f"/{key}", full_title, depth, not path, tuple(shows), tuple(hides))


def _home() -> list[View]:
    main = (
        _link("hero/browse", "Browse the collection", "/shop"),
        *(_link(f"tiles/{i}", c.name, f"/c/{c.slug}") for i, c in enumerate(CATEGORIES, 1)),
        *_cards("featured", FEATURED),
    )
    flyout = (
        *(_link(f"flyout/{i}", c.name, f"/c/{c.slug}") for i, c in enumerate(CATEGORIES, 1)),
        _link("flyout/4", "New arrivals", "/new"),
    )
    drawer = (
        _button("drawer/close", "Close menu", "home"),
        *(_link(f"drawer/{i}", c.name, f"/c/{c.slug}") for i, c in enumerate(CATEGORIES, 1)),
        _link("drawer/about", "Our story", "/about"),
    )
    return [
        View(
            TrueState(
                "home", "/", "Northfold · Considered things for small homes", 0, addressable=True,
                shows=("Loved this month",), hides=("Close menu", "New arrivals"),
            ),
            _shop_frame(*main),
        ),
        View(
            _shop_state("home+menu", "", 1, path="/", shows=("Close menu", "Our story"), hides=("New arrivals",)),
            _shop_frame(*main, drawer=drawer),
        ),
        View(
            _shop_state("home+flyout", "", 1, path="/", shows=("New arrivals",), hides=("Close menu",)),
            _shop_frame(*main, flyout=flyout),
        ),
        View(
            _shop_state("about", "Our story", 2, shows=("What we promise",)),
            _shop_frame(_never("about/makers", "link", "map of our makers", "external", href=EXTERNAL)),
        ),
        View(
            _shop_state("new", "New arrivals", 2, shows=("Unpacked this week",)),
            _shop_frame(CRUMB_HOME, *_cards("shelf", NEW_ARRIVALS)),
        ),
        View(
            _shop_state("catalogue/print", "Printable catalogue", 1, shows=("Catalogue, spring",)),
            (_link("print/back", "Return to the shop", "/"),),
        ),
    ]  # fmt: skip


def _shelves() -> list[View]:
    everything = View(
        _shop_state("shop", "Shop", 1, shows=("The whole shop",)),
        _shop_frame(CRUMB_HOME, *_cards("shelf", (p.slug for p in PRODUCTS))),
    )
    shelves = [
        View(
            _shop_state(f"c/{c.slug}", c.name, 1, shows=(c.line,)),
            _shop_frame(CRUMB_HOME, *_cards("shelf", (p.slug for p in PRODUCTS if p.category == c.slug))),
        )
        for c in CATEGORIES
    ]
    # Search is for words in name, shelf, line and story.
    hits = [p for p in PRODUCTS if SEARCHED in f"{p.name} {p.category} {p.line} {p.story}".lower()]
    results = View(
        _shop_state(RESULTS, f"Results for {SEARCHED}", 1, shows=(f"{len(hits)} found.",)),
        _shop_frame(CRUMB_HOME, *_cards("shelf", (p.slug for p in hits))),
    )
    return [everything, *shelves, results]


def _product(product: Product) -> list[View]:
    key = f"p/{product.slug}"
    depth = 1 if product.slug in FEATURED else 2
    story, specification = product.story, product.specification[-1][0]  # its last row
    opinion = product.reviews[0].text if product.reviews else "No such tab"
    elements = [
        CRUMB_HOME,
        _link("crumbs/2", SHELF_NAMES[product.category], f"/c/{product.category}"),
        _never("product/add", "button", "Add to cart", "hazard", "submit"),
        _never("product/buy", "button", "Buy now", "hazard", "submit"),
        _posts("product/heart", "Favourite", key, f"/{key}/favourite"),
        *([_button("product/sizes", "Size guide", f"{key}+sizes")] if product.sizes else []),
        _button("tabs/1", "Description", key, role="tab"),
        _button("tabs/2", "Specification", f"{key}+specification", role="tab"),
        *([_button("tabs/3", "Reviews", f"{key}+reviews", role="tab")] if product.reviews else []),
    ]
    page = _shop_frame(*elements)
    sizes = "Find your size"

    def view(part: str, shows: str, *hides: str, elements: tuple[Element, ...] = page) -> View:
        return View(
            _shop_state(f"{key}+{part}", product.name, depth + 1, path=f"/{key}", shows=(shows,), hides=hides), elements
        )

    views = [
        View(_shop_state(key, product.name, depth, shows=(story,), hides=(specification, opinion, sizes)), page),
        view("specification", specification, story, opinion, sizes),
    ]
    if product.reviews:
        views.append(view("reviews", opinion, story, specification, sizes))
    if product.sizes:
        close = _button("dialog/close", "Close", key)
        views.append(view("sizes", sizes, specification, opinion, elements=(close,)))  # it is modal
    return views


def _cart() -> list[View]:
    main = (
        _link("cart/1", "Pebble mug", "/p/pebble-mug"),
        _never("cart/1/remove", "button", "Remove", "hazard", "submit"),
        _link("cart/2", "Tide vase", "/p/tide-vase"),
        _never("cart/2/remove", "button", "Remove", "hazard", "submit"),
        _button("cart/wrap", "Gift wrap", "cart+gift", role="switch"),
        _never("cart/checkout", "button", "Checkout", "hazard", "submit"),
        _link("cart/back", "Keep looking around", "/shop"),
    )
    note = "A few words for the card"
    return [
        View(_shop_state("cart", "Cart", 1, shows=("Your cart",), hides=(note,)), _shop_frame(*main)),
        View(_shop_state("cart+gift", "Cart", 2, path="/cart", shows=(note,)), _shop_frame(*main)),
    ]


def _account() -> list[View]:
    own = [order for order in ORDERS if order.customer == 1]
    addresses = _shop_frame(
        *ACCOUNT_SIDE,
        _button("addresses/new", "New address", "account/addresses+new"),
        _never("addresses/1/delete", "button", "Delete", "hazard", "submit"),
        _never("addresses/2/delete", "button", "Delete", "hazard", "submit"),
    )
    return [
        View(
            _shop_state("account", "Profile", 1, shows=("Hello, Ingrid",)),
            _shop_frame(*ACCOUNT_SIDE, _posts("profile/save", "Save changes", "account", "/account")),
        ),
        View(
            _shop_state("account/orders", "Order history", 2, shows=tuple(order.number for order in own)),
            _shop_frame(
                *ACCOUNT_SIDE,
                *(_link(f"history/{i}", o.number, f"/account/orders/{o.number}") for i, o in enumerate(own, 1)),
            ),
        ),
        *(
            View(_shop_state(f"account/orders/{o.number}", f"Your parcel {o.number}", 3, shows=("Where it is",)))
            for o in own
        ),
        View(
            _shop_state("account/addresses", "Addresses", 2, shows=("Cabin",), hides=("Where else?",)), addresses
        ),
        View(_shop_state("account/addresses+new", "Addresses", 3, path="/account/addresses", shows=("Where else?",))),
    ]  # fmt: skip


def _help() -> list[View]:
    answers = ("Two days at the workshop", "Oak and ash from one forest", "We pay the way back.", "Three weeks")
    questions = _shop_frame(
        *HELP_SIDE, *(_button(f"faq/{i}", question, f"help+answer{i}") for i, question in enumerate(QUESTIONS, 1))
    )
    shipping = _shop_frame(
        *HELP_SIDE, _button("shipping/details", "Islands and mountain huts", "help/shipping+islands")
    )
    boat = "The mail boat sails once a week"
    return [
        View(_shop_state("help", "Questions and answers", 1, shows=QUESTIONS, hides=answers), questions),
        *(
            View(
                _shop_state(
                    f"help+answer{i}", "Questions and answers", 2, path="/help", shows=(answer,),
                    hides=[other for other in answers if other != answer],
                ),
                questions,
            )
            for i, answer in enumerate(answers, 1)
        ),
        View(_shop_state("help/shipping", "Shipping", 1, shows=("Parcels leave",), hides=(boat,)), shipping),
        View(_shop_state("help/shipping+islands", "Shipping", 2, path="/help/shipping", shows=(boat,)), shipping),
        View(_shop_state("help/returns", "Returns", 1, shows=("Thirty days, no questions.",)), _shop_frame(*HELP_SIDE)),
        View(
            _shop_state("help/contact", "Contact", 1, shows=("Liv and Anders",)),
            _shop_frame(*HELP_SIDE, _posts("contact/send", "Send message", "help/contact", "/help/contact")),
        ),
    ]  # fmt: skip


# --- The back office --------------------------------------------------------------------------------------------------


def _office_state(
    key: str, title: str, depth: int, *, shows: Iterable[str], hides: Iterable[str] = (), path: str = "", url: str = ""
) -> TrueState:
    """A state of the back office; `path` as in `_shop_state`, `url` where the key is not the path."""
    full_title = f"{title} · Back office · Northfold"
    return TrueState(key, path or url or f"/{key}", full_title, depth, not path, tuple(shows), tuple(hides))


def _order_rows(region: str, orders: Iterable[Order]) -> tuple[Element, ...]:
    return tuple(_link(f"{region}/{i}", o.number, f"/admin/orders/{o.number}") for i, o in enumerate(orders, 1))


def _customer(number: int) -> str:
    return f"admin/customers/{number}"


def _orders() -> list[View]:
    views = [
        View(
            _office_state("admin", "Dashboard", 1, shows=("Latest orders",)),
            _office_frame(*_order_rows("latest", ORDERS[:3])),
        ),
        View(
            _office_state("admin/orders", "Orders", 2, shows=("NF-1044",)), _office_frame(*_order_rows("all", ORDERS))
        ),
    ]
    for i, order in enumerate(ORDERS):
        key, who = f"admin/orders/{order.number}", CUSTOMERS[order.customer - 1]
        state = _office_state(key, f"Order {order.number}", 2 if i < 3 else 3, shows=("Goes to", who.name))
        elements = (
            _link("order/customer", who.name, f"/{_customer(who.number)}"),
            _posts("order/packed", "Mark as packed", key, f"/{key}/packed"),
        )
        views.append(View(state, _office_frame(*elements) if i < 3 else ()))
    return views


def _customers() -> list[View]:
    rows = (Element(f"people/{c.number}", "", c.name, leads=_customer(c.number)) for c in CUSTOMERS)
    return [
        View(_office_state("admin/customers", "Customers", 2, shows=("Turku",)), _office_frame(*rows)),
        *(View(_office_state(_customer(c.number), c.name, 3, shows=(c.note,))) for c in CUSTOMERS),
    ]


def _catalogue() -> list[View]:
    first = ITEMS[:4]
    rows = [
        element
        for i, item in enumerate(first, 1)
        for element in (
            _link(f"items/{i}", item.name, f"/admin/products/{item.number}"),
            _never(f"items/{i}/delete", "button", "Delete", "hazard"),
        )
    ]
    pages = {2: "admin/catalogue?page=2", 3: "admin/catalogue?page=3"}
    main = (
        _link("items/new", "New product", "/admin/products/new"),
        *rows,
        _link("pages/2", "2", f"/{pages[2]}"),
        _link("pages/3", "3", f"/{pages[3]}"),
        _link("pages/next", "Next", f"/{pages[2]}"),
    )
    return [
        View(_office_state("admin/catalogue", "Catalogue", 2, shows=("page 1 of 3",)), _office_frame(*main)),
        *(View(_office_state(key, "Catalogue", 3, shows=(f"page {n} of 3",))) for n, key in pages.items()),
        *(
            View(_office_state(f"admin/products/{item.number}", f"Edit {item.name}", 3, shows=("Delete product",)))
            for item in first
        ),
        View(_office_state("admin/products/new", "New product", 3, shows=("Publish product",))),
    ]


def _reports() -> list[View]:
    views = ("Sales", "Traffic", "Inventory")
    main = (
        _link("reports/1", "Overview", "/admin/reports"),
        *(_link(f"reports/{i}", name, f"/admin/reports/{name.lower()}") for i, name in enumerate(views, 2)),
        _button("reports/compare", "Compare with last year", "admin/reports+compare"),
    )
    shows = ("Pieces sold by shelf", "Where visitors come from", "In the store room")
    return [
        View(
            _office_state(
                "admin/reports", "Overview report", 2, shows=("Half a year at a glance.",), hides=("A year before",)
            ),
            _office_frame(*main),
        ),
        *(
            View(_office_state(f"admin/reports/{name.lower()}", f"{name} report", 3, shows=(text,)))
            for name, text in zip(views, shows, strict=True)
        ),
        View(
            _office_state(
                "admin/reports+compare", "Overview report", 3, path="/admin/reports", shows=("A year before",)
            )
        ),
    ]


def _settings() -> list[View]:
    general, taxes, notifications = "Pause the shop", "Country", "Who hears about what"
    main = (
        _button("tabs/1", "General", "admin/settings", role="tab"),
        _button("tabs/2", "Taxes", "admin/settings+taxes", role="tab"),
        _button("tabs/3", "Notifications", "admin/settings+notifications", role="tab"),
        _posts("settings/save", "Save settings", "admin/settings", "/admin/settings"),
        _posts("settings/holiday", "Holiday mode", "admin/settings", "/admin/settings/holiday", role="switch"),
        _never("settings/erase", "button", "Delete everything", "hazard"),
    )

    def view(part: str, text: str, *hides: str) -> View:
        key = f"admin/settings+{part}"
        return View(_office_state(key, "Settings", 3, path="/admin/settings", shows=(text,), hides=hides))

    return [
        View(
            _office_state("admin/settings", "Settings", 2, shows=(general,), hides=(taxes, notifications)),
            _office_frame(*main),
        ),
        view("taxes", taxes, general, notifications),
        view("notifications", notifications, general, taxes),
    ]


# --- The answer -------------------------------------------------------------------------------------------------------


@cache
def views() -> Mapping[str, View]:
    """Every state of the definition by key, with its actionable elements."""
    parts = [_home(), _shelves(), *map(_product, PRODUCTS), _cart(), _account(), _help()]
    parts += [_orders(), _customers(), _catalogue(), _reports(), _settings()]
    everything = [view for part in parts for view in part]
    by_key = {view.state.key: view for view in everything}
    if len(by_key) != len(everything):
        raise ValueError("Two states of the ground truth have the same key.")
    return by_key


#: Lie below what they have opened: the drawer covers its button.
COVERED = frozenset({"header/menu"})


def new_elements(key: str, parent: str | None, made_by: Element | None = None) -> tuple[Element, ...]:
    """Elements of a state that its parent does not have, and the toggle that showed it (rule 4), in document order."""
    old = {element.identity for element in views()[parent].elements} if parent is not None else set()
    again = {}
    if (
        parent is not None
        and made_by is not None
        and made_by.role != "tab"
        and made_by.place not in COVERED
        and made_by.leads == key
        and views()[key].state.path == views()[parent].state.path
    ):
        again[made_by.identity] = parent
    return tuple(
        replace(element, leads=again[element.identity], hover="") if element.identity in again else element
        for element in views()[key].elements
        if element.identity not in old or element.identity in again
    )


def _edges(source: str, element: Element) -> list[TrueEdge]:
    click = TrueEdge(
        source, "click", element.role, element.name, element.leads, opens_tab=element.opens_tab, blocked=element.blocked
    )
    if element.search:
        return [TrueEdge(source, "submit", element.role, element.name, element.search)]
    hover = TrueEdge(source, "hover", element.role, element.name, element.hover)
    return [click, hover] if element.hover else [click]


@cache
def truth(depth: int = DEPTH) -> Truth:
    """States, edges and skipped elements up to `depth` actions from the start page, in canonical order (rule 5)."""
    level, known, parents = ["home"], ["home"], dict[str, str]()
    made_by = dict[str, Element]()
    edges: list[TrueEdge] = []
    skips: list[TrueSkip] = []
    for _ in range(depth):
        discovered: list[str] = []
        for source in level:
            for element in new_elements(source, parents.get(source), made_by.get(source)):
                if element.skip:
                    skips.append(TrueSkip(source, element.role, element.name, element.skip))
                    continue
                for edge in _edges(source, element):
                    edges.append(edge)
                    if edge.target not in known:
                        known.append(edge.target)
                        discovered.append(edge.target)
                        parents[edge.target] = source
                        if edge.kind == "click":
                            made_by[edge.target] = element
        level = discovered
    return Truth({key: views()[key].state for key in known}, tuple(edges), tuple(skips), parents)
