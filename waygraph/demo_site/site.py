"""The demo shop as a web application: routes, and the changes that requests make."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from importlib.resources import files

from waygraph.demo_site.catalogue import CATEGORIES, CUSTOMERS, ORDERS, PRODUCTS_BY_SLUG, Item
from waygraph.demo_site.local_server import LocalServer, Request, Response
from waygraph.demo_site.markup import Html
from waygraph.demo_site.pages import admin, reports, service, store
from waygraph.demo_site.state import ShopState

ROBOTS = "User-agent: *\nDisallow: /internal/\nAllow: /\n"
STATIC_TYPES = {"css": "text/css; charset=utf-8", "js": "text/javascript; charset=utf-8"}

SHELVES = {category.slug: category for category in CATEGORIES}
ALL_ORDERS = {order.number: order for order in ORDERS}
ALL_CUSTOMERS = {str(customer.number): customer for customer in CUSTOMERS}
OWN_ORDERS = {order.number: order for order in service.OWN_ORDERS}


def _report(path: str, _: ShopState) -> Html:
    return reports.reports(path)


PAGES: dict[str, Callable[[ShopState], Html]] = {
    "/": store.home,
    "/shop": store.shop,
    "/new": store.new_arrivals,
    "/cart": store.cart,
    "/about": store.about,
    "/help": service.questions,
    "/help/shipping": service.shipping,
    "/help/returns": service.returns,
    "/help/contact": service.contact,
    "/account": service.profile,
    "/account/orders": service.orders,
    "/account/addresses": service.addresses,
    "/admin": admin.dashboard,
    "/admin/orders": admin.orders,
    "/admin/settings": admin.settings,
    "/admin/customers": lambda _: admin.customers(),
    "/admin/products/new": lambda _: admin.editor(None),
    "/catalogue/print": lambda _: store.printable(),
    "/internal/status": lambda _: Html("<!doctype html><title>System status</title><p>All systems are calm.</p>"),
    **{path: partial(_report, path) for path, _ in reports.VIEWS},
}


class DemoSite(LocalServer):
    """The demo shop on a loopback port, inside a `with` block.

    Pages do not change between requests until a request with a state-changing method arrives. `mutations` counts those,
    `requests` lists all requests, and `state` is what they may change.

    >>> with DemoSite() as site:
    ...     site.mutations
    0
    """

    def __init__(self, *, port: int = 0, host: str = "127.0.0.1") -> None:
        super().__init__(self._respond, port=port, host=host)
        self.state = ShopState()
        self._state_lock = threading.Lock()

    def _respond(self, request: Request) -> Response:
        if request.path.startswith("/static/"):
            return _static(request.path.removeprefix("/static/"))
        if request.path == "/robots.txt":
            return Response(ROBOTS, content_type="text/plain; charset=utf-8")
        with self._state_lock:
            if request.method in {"GET", "HEAD"}:
                page = _page(self.state, request)
                return Response(page) if page else Response(store.not_found(self.state), status=404)
            if request.method == "POST":
                return _change(self.state, request)
        return Response(
            "Method not allowed.", status=405, content_type="text/plain", headers={"Allow": "GET, HEAD, POST"}
        )


def _static(name: str) -> Response:
    kind = STATIC_TYPES.get(name.rpartition(".")[2])
    source = files("waygraph.demo_site") / "static" / name
    if kind is None or "/" in name or not source.is_file():
        return Response("Not found.", status=404, content_type="text/plain")
    return Response(source.read_bytes(), content_type=kind, headers={"Cache-Control": "public, max-age=3600"})


def _page(state: ShopState, request: Request) -> Html | None:
    path = request.path
    if path in PAGES:
        return PAGES[path](state)
    if path == "/search":
        return store.search(state, request.query.get("q", ""))
    if path == "/admin/catalogue":
        page = _number(request.query.get("page", "1"))
        return admin.catalogue(state, page) if 0 < page <= admin.page_count(state) else None
    return _record(state, path)


def _record(state: ShopState, path: str) -> Html | None:
    """Return the page of a product, order, customer or catalogue row."""
    area, _, key = path.rpartition("/")
    page: Html | None = None
    if area == "/c" and key in SHELVES:
        page = store.category(state, SHELVES[key])
    elif area == "/p" and key in PRODUCTS_BY_SLUG:
        page = store.product_page(state, PRODUCTS_BY_SLUG[key])
    elif area == "/account/orders" and key in OWN_ORDERS:
        page = service.own_order(state, OWN_ORDERS[key])
    elif area == "/admin/orders" and key in ALL_ORDERS:
        page = admin.order_page(state, ALL_ORDERS[key])
    elif area == "/admin/customers" and key in ALL_CUSTOMERS:
        page = admin.customer_page(ALL_CUSTOMERS[key])
    elif area == "/admin/products" and _number(key) in state.items:
        page = admin.editor(state.items[_number(key)])
    return page


def _number(text: str) -> int:
    return int(text) if text.isdecimal() and len(text) < 9 else 0


def _see(path: str) -> Response:
    return Response(status=303, headers={"Location": path})


DONE = Response(status=204)
UNKNOWN = Response("Not found.", status=404, content_type="text/plain")


def _change(state: ShopState, request: Request) -> Response:
    for pattern, change in CHANGES:
        if match := re.fullmatch(pattern, request.path):
            return change(state, request.form, *match.groups())
    return UNKNOWN


def _add_to_cart(state: ShopState, form: dict[str, str]) -> Response:
    slug = form.get("slug", "")
    if slug not in PRODUCTS_BY_SLUG:
        return UNKNOWN
    state.cart[slug] = state.cart.get(slug, 0) + max(1, _number(form.get("quantity", "1")))
    return _see("/cart")


def _remove_from_cart(state: ShopState, form: dict[str, str]) -> Response:
    state.cart.pop(form.get("slug", ""), None)
    return _see("/cart")


def _checkout(state: ShopState, form: dict[str, str]) -> Response:  # noqa: ARG001 - all changes have one signature
    state.cart.clear()
    state.purchases += 1
    return _see("/account/orders")


def _buy(state: ShopState, form: dict[str, str]) -> Response:
    state.purchases += form.get("slug") in PRODUCTS_BY_SLUG
    return _see("/account/orders")


def _favourite(state: ShopState, form: dict[str, str], slug: str) -> Response:  # noqa: ARG001
    state.favourites ^= {slug}
    return DONE


def _sign(state: ShopState, form: dict[str, str], way: str) -> Response:  # noqa: ARG001
    state.signed_in = way == "in"
    return _see("/account")


def _save_profile(state: ShopState, form: dict[str, str]) -> Response:
    state.profile.update({key: form[key] for key in ("name", "email") if form.get(key, "").strip()})
    return _see("/account")


def _save_address(state: ShopState, form: dict[str, str]) -> Response:
    state.addresses.append((form.get("label", "") or "Address", form.get("street", "")))
    return _see("/account/addresses")


def _delete_address(state: ShopState, form: dict[str, str], index: str) -> Response:  # noqa: ARG001
    if not 0 <= int(index) < len(state.addresses):
        return UNKNOWN
    del state.addresses[int(index)]
    return _see("/account/addresses")


def _subscribe(state: ShopState, form: dict[str, str]) -> Response:
    state.letters.append(form.get("email", ""))
    return _see("/")


def _message(state: ShopState, form: dict[str, str]) -> Response:
    state.messages.append(form.get("text", ""))
    return _see("/help/contact")


def _pack(state: ShopState, form: dict[str, str], number: str) -> Response:  # noqa: ARG001
    if number not in state.statuses:
        return UNKNOWN
    state.statuses[number] = "Packed"
    return DONE


def _delete_item(state: ShopState, form: dict[str, str], number: str) -> Response:  # noqa: ARG001
    if state.items.pop(int(number), None) is None:
        return UNKNOWN
    return _see("/admin/catalogue")


def _save_item(state: ShopState, form: dict[str, str], number: str) -> Response:
    known = state.items.get(_number(number))
    if known is None and number != "new":
        return UNKNOWN
    item = known or Item(max(state.items, default=0) + 1, "", "", 0, 0, "Draft", "")
    state.items[item.number] = replace(
        item,
        name=form.get("name", "") or "Unnamed",
        line=form.get("line", ""),
        category=form.get("shelf", "").lower(),
        price=_number(form.get("price", "")),
        stock=_number(form.get("stock", "")),
    )
    return _see("/admin/catalogue")


def _save_settings(state: ShopState, form: dict[str, str]) -> Response:
    state.settings.update({key: form[key] for key in ("name", "currency") if form.get(key)})
    return _see("/admin/settings")


def _holiday(state: ShopState, form: dict[str, str]) -> Response:  # noqa: ARG001
    state.holiday = not state.holiday
    return DONE


def _erase(state: ShopState, form: dict[str, str]) -> Response:  # noqa: ARG001
    state.items.clear()
    return DONE


CHANGES: tuple[tuple[str, Callable[..., Response]], ...] = (
    (r"/cart", _add_to_cart),
    (r"/cart/remove", _remove_from_cart),
    (r"/checkout", _checkout),
    (r"/buy", _buy),
    (rf"/p/({'|'.join(PRODUCTS_BY_SLUG)})/favourite", _favourite),
    (r"/log(in|out)", _sign),
    (r"/account", _save_profile),
    (r"/account/addresses", _save_address),
    (r"/account/addresses/(\d{1,6})/delete", _delete_address),
    (r"/newsletter", _subscribe),
    (r"/help/contact", _message),
    (r"/admin/orders/([\w-]+)/packed", _pack),
    (r"/admin/products/(\d{1,6})/delete", _delete_item),
    (r"/admin/products/(\d{1,6}|new)", _save_item),
    (r"/admin/settings", _save_settings),
    (r"/admin/settings/holiday", _holiday),
    (r"/admin/settings/erase", _erase),
)
