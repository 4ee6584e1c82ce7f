"""Layout of the demo shop's pages: document, header, drawer and footer of the shop, frame of the back office.

Two rules make the site a reliable fixture. A region has the same position on every page. No clickable element shares
its parent with hidden links, except the entry of the flyout menu.
"""

from __future__ import annotations

from collections.abc import Iterable

from waygraph.demo_site.catalogue import CATEGORIES, SHOP
from waygraph.demo_site.markup import Html, html

EXTERNAL = "https://example.com/makers"

_ICON = (
    "data:image/svg+xml,%3Csvg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 32 32'%3E%3Crect width='32' height='32' "
    "rx='8' fill='%232f4a3d'/%3E%3Cpath d='M9 23V9l14 14V9' fill='none' stroke='%23f3e9d6' "
    "stroke-width='3'/%3E%3C/svg%3E"
)


def document(title: str, body: Html, *, kind: str) -> Html:
    """Return a whole document. `kind` is the class of `body`."""
    return html(
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{title}</title>'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        '<link rel="icon" href="{icon}"><link rel="stylesheet" href="/static/site.css">'
        '<script src="/static/site.js" defer></script></head><body class="{kind}">\n{body}\n</body></html>\n',
        title=f"{title} · {SHOP}" if title else f"{SHOP} · Considered things for small homes",
        icon=_ICON, kind=kind, body=body,
    )  # fmt: skip


def link(href: str, text: str, *, current: bool = False) -> Html:
    """Return a link, marked if it leads to the current page."""
    return html(
        '<a href="{href}"{mark}>{text}</a>', href=href, text=text, mark=Html(' aria-current="page"' if current else "")
    )


def links(entries: Iterable[tuple[str, str]], *, current: str = "") -> Html:
    """Return a list of links."""
    return html(
        "<ul>{rows}</ul>",
        rows=[html("<li>{a}</li>", a=link(href, text, current=href == current)) for href, text in entries],
    )


CATEGORY_LINKS = [(f"/c/{category.slug}", category.name) for category in CATEGORIES]
HELP_LINKS = [
    ("/help", "Questions"),
    ("/help/shipping", "Shipping"),
    ("/help/returns", "Returns"),
    ("/help/contact", "Contact"),
]
ACCOUNT_LINKS = [("/account", "Profile"), ("/account/orders", "Order history"), ("/account/addresses", "Addresses")]
ADMIN_LINKS = [
    ("/admin", "Dashboard"),
    ("/admin/orders", "Orders"),
    ("/admin/customers", "Customers"),
    ("/admin/catalogue", "Catalogue"),
    ("/admin/reports", "Reports"),
    ("/admin/settings", "Settings"),
]


def _header(path: str, in_cart: int) -> Html:
    return html(
        '<header class="top"><div class="note"><p>Free delivery from 80 euros, everywhere in the Nordics</p></div>'
        '<div class="bar"><div><button type="button" class="menu-button" data-drawer>Menu</button></div>'
        '<div><a class="brand" href="/">{shop}</a></div>'
        '<nav class="main-nav" aria-label="Main"><ul>'
        '<li class="has-flyout"><a href="/shop" aria-haspopup="true">Shop</a><div class="flyout">{flyout}'
        '<p class="flyout-note">Made in workshops of fewer than ten people.</p></div></li>'
        "<li>{help}</li></ul></nav>"
        '<form class="find" role="search" action="/search" toolname="search_products" toolautosubmit '
        'tooldescription="Find products by words of their names."><input type="search" name="q" '
        'aria-label="Search the shop" toolparamdescription="Words to find" '
        'placeholder="Lamps, mugs, wool"><button>Search</button></form>'
        '<nav class="own-nav" aria-label="Yours"><ul><li>{account}</li><li>{cart}<span class="badge" '
        'aria-hidden="true">'
        "{in_cart}</span></li></ul></nav></div></header>",
        shop=SHOP, flyout=links([*CATEGORY_LINKS, ("/new", "New arrivals")]),
        help=link("/help", "Help", current=path == "/help"),
        account=link("/account", "Account", current=path == "/account"),
        cart=link("/cart", "Cart", current=path == "/cart"),
        in_cart=in_cart,
    )  # fmt: skip


def _drawer() -> Html:
    return html(
        '<aside class="drawer" aria-label="Menu"><div class="drawer-head"><p class="brand">{shop}</p>'
        '<button type="button" data-drawer>Close menu</button></div>{shelves}'
        '<p class="drawer-title">About</p>{about}</aside>',
        shop=SHOP, shelves=links(CATEGORY_LINKS), about=links([("/about", "Our story")]),
    )  # fmt: skip


def _footer() -> Html:
    return html(
        '<footer class="foot"><div class="foot-grid">'
        '<div class="foot-brand"><p class="brand">{shop}</p><p>Considered things for small homes, from eleven '
        'workshops '
        "around the North Sea.</p></div>"
        '<nav aria-label="Service"><h2>Service</h2>{service}</nav>'
        '<nav aria-label="Company"><h2>{shop}</h2><ul><li><a href="/catalogue/print" target="_blank">Printable '
        'catalogue</a></li>'
        '<li><a href="{external}" rel="noreferrer">Maker directory</a></li><li><a href="/admin">Back office</a></li>'
        '<li><a href="/internal/status">System status</a></li></ul></nav>'
        '<div class="letter"><h2>Letter from the workshop</h2><p>Four times a year, never more.</p>'
        '<form method="post" action="/newsletter"><input type="email" name="email" aria-label="Your email" '
        'placeholder="you@home.example" required><button>Subscribe</button></form>'
        '<p>Write to <a href="mailto:hello@northfold.example">hello@northfold.example</a></p></div>'
        '</div><p class="small">A demonstration shop that comes with waygraph. Nothing here is for sale.</p></footer>',
        shop=SHOP, service=links(HELP_LINKS[1:]), external=EXTERNAL,
    )  # fmt: skip


def store_page(title: str, path: str, *main: Html, in_cart: int, kind: str = "") -> Html:
    """Return a page of the shop."""
    body = html(
        '{header}{drawer}<main class="{kind}">{main}</main>{footer}',
        header=_header(path, in_cart), drawer=_drawer(), main=main, footer=_footer(), kind=kind,
    )  # fmt: skip
    return document(title, body, kind="store")


def crumbs(*entries: tuple[str, str], here: str) -> Html:
    """Return breadcrumbs: links to parent pages, then the name of this page."""
    steps = [html("<li>{a}</li>", a=link(href, text)) for href, text in entries]
    return html(
        '<nav class="crumbs" aria-label="Breadcrumb"><ol>{steps}<li><span>{here}</span></li></ol></nav>',
        steps=steps, here=here,
    )  # fmt: skip


def sectioned_page(
    title: str,
    path: str,
    *content: Html,
    entries: list[tuple[str, str]],
    label: str,
    in_cart: int,
    below: Html | None = None,
) -> Html:
    """Return a shop page with side navigation, for account and help."""
    side = html(
        '<div class="with-side"><div class="side"><nav aria-label="{label}">{links}</nav>{below}</div>'
        '<div class="content">{content}</div></div>',
        label=label, links=links(entries, current=path), below=below, content=content,
    )  # fmt: skip
    return store_page(title, path, side, in_cart=in_cart)


def admin_page(title: str, path: str, *content: Html, section: str = "") -> Html:
    """Return a page of the back office. `section` is its entry in the side bar."""
    body = html(
        '<aside class="rail"><p class="brand">{shop}</p><p class="rail-note">Back office</p>'
        '<nav aria-label="Back office">{links}</nav>'
        '<div class="rail-foot"><p><a href="/">View store</a></p>'
        '<form method="post" action="/logout"><button>Sign out</button></form></div></aside>'
        '<main><div class="admin-head"><h1>{title}</h1><p class="who"><span class="face" '
        'aria-hidden="true">IS</span>Ingrid Solberg</p></div>'
        "{content}</main>",
        shop=SHOP, links=links(ADMIN_LINKS, current=section or path), title=title, content=content,
    )  # fmt: skip
    return document(f"{title} · Back office", body, kind="admin")


def money(euros: int) -> str:
    """Format a price.

    >>> money(1234)
    '€1,234'
    """
    return f"€{euros:,}"
