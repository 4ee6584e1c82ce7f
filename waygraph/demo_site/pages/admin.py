"""Pages of the back office: orders, customers, catalogue, editor, settings."""

from __future__ import annotations

import math

from waygraph.demo_site.art import product_art
from waygraph.demo_site.catalogue import (
    CATALOGUE_PAGE_ROWS,
    CATEGORIES,
    CUSTOMERS,
    ORDERS,
    PRODUCTS_BY_SLUG,
    RECENT_ORDERS,
    Customer,
    Item,
    Order,
)
from waygraph.demo_site.charts import line_chart, sparkline
from waygraph.demo_site.layout import admin_page, link, money
from waygraph.demo_site.markup import Html, html
from waygraph.demo_site.state import ShopState

WEEK = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
TURNOVER = (820, 940, 780, 1210, 1490, 1880, 1320)


def _status(state: ShopState, order: Order) -> Html:
    return html('<span class="status s-{s}">{s}</span>', s=state.statuses[order.number])


def _order_rows(state: ShopState, orders: tuple[Order, ...]) -> list[Html]:
    return [
        html(
            '<tr><td>{number}</td><td>{who}</td><td>{date}</td><td>{status}</td><td class="amount">{total}</td></tr>',
            number=link(f"/admin/orders/{o.number}", o.number), who=CUSTOMERS[o.customer - 1].name, date=o.date,
            status=_status(state, o), total=money(o.total),
        )
        for o in orders
    ]  # fmt: skip


ORDER_HEAD = Html(
    '<thead><tr><th scope="col">Number</th><th scope="col">Customer</th><th scope="col">Date</th>'
    '<th scope="col">State</th><th scope="col" class="amount">Total</th></tr></thead>'
)


def dashboard(state: ShopState) -> Html:
    """Return the dashboard."""
    waiting = sum(status == "Paid" for status in state.statuses.values())
    figures = (
        ("Turnover this week", money(sum(TURNOVER)), "+12%", TURNOVER),
        ("Orders to pack", str(waiting), "+1", (4, 3, 5, 2, 4, 3, waiting)),
        ("Visitors", "3,204", "+4%", (400, 420, 380, 470, 510, 560, 464)),
        ("Returned", "1.8%", "-0.4%", (30, 28, 26, 27, 22, 20, 18)),
    )
    cards = [
        html(
            '<div class="figure"><p class="figure-name">{name}</p><p class="figure-value">{value}</p>'
            '<div class="figure-foot"><p>{change}</p>{spark}</div></div>',
            name=name, value=value, change=change, spark=sparkline(series),
        )
        for name, value, change, series in figures
    ]  # fmt: skip
    return admin_page(
        "Dashboard", "/admin",
        html(
            '<section class="figures">{cards}</section><section class="split"><div class="box">'
            '<h2>Turnover by day</h2>{chart}</div>'
            '<div class="box"><h2>Running low</h2><ul class="low"><li><span class="thumb tint-lighting">{lamp}</span>'
            '<p><strong>Arc floor lamp</strong><br>6 left</p></li><li><span class="thumb tint-lighting">{halo}</span>'
            "<p><strong>Halo pendant</strong><br>11 left</p></li></ul></div></section>"
            '<section class="box"><h2>Latest orders</h2><table>{head}<tbody>{rows}</tbody></table></section>',
            cards=cards, chart=line_chart(TURNOVER, WEEK, label="Turnover by day"), lamp=product_art("arc-floor-lamp"),
            halo=product_art("halo-pendant"), head=ORDER_HEAD, rows=_order_rows(state, ORDERS[:RECENT_ORDERS]),
        ),
    )  # fmt: skip


def orders(state: ShopState) -> Html:
    """Return the list of orders."""
    return admin_page(
        "Orders", "/admin/orders",
        html(
            '<div class="box"><table class="orders">{head}<tbody>{rows}</tbody></table></div>',
            head=ORDER_HEAD, rows=_order_rows(state, ORDERS),
        ),
    )  # fmt: skip


def order_page(state: ShopState, order: Order) -> Html:
    """Return the page of an order."""
    who = CUSTOMERS[order.customer - 1]
    lines = [
        html(
            '<tr><td><span class="thumb tint-{c}">{art}</span></td><td>{name}</td><td>{n}</td>'
            '<td class="amount">{sum}</td></tr>',
            c=PRODUCTS_BY_SLUG[slug].category, art=product_art(slug), name=PRODUCTS_BY_SLUG[slug].name, n=n,
            sum=money(PRODUCTS_BY_SLUG[slug].price * n),
        )
        for slug, n in order.lines
    ]  # fmt: skip
    return admin_page(
        f"Order {order.number}", f"/admin/orders/{order.number}",
        html(
            '<section class="split order"><div class="box"><h2>Pieces</h2><table><tbody>{lines}</tbody></table>'
            '<p class="sum">Together {total}</p></div><div class="box"><h2>Goes to</h2><p>{who}</p>'
            '<p class="line">{town}</p>'
            '<h2>State</h2><p>{status}</p><div><button type="button" class="button" '
            'data-post="/admin/orders/{number}/packed">'
            "Mark as packed</button></div></div></section>",
            lines=lines, total=money(order.total), who=link(f"/admin/customers/{who.number}", who.name), town=who.town,
            status=_status(state, order), number=order.number,
        ),
        section="/admin/orders",
    )  # fmt: skip


def customers() -> Html:
    """Return the list of customers. A script, not a link, makes the names clickable."""
    rows = [
        html(
            '<tr><td><span class="opens" data-href="/admin/customers/{n}">{name}</span></td><td>{town}</td>'
            '<td>{since}</td>'
            '<td class="amount">{count}</td></tr>',
            n=c.number, name=c.name, town=c.town, since=c.since, count=sum(o.customer == c.number for o in ORDERS),
        )
        for c in CUSTOMERS
    ]  # fmt: skip
    return admin_page(
        "Customers", "/admin/customers",
        html(
            '<div class="box"><table class="people"><thead><tr><th scope="col">Name</th><th scope="col">Town</th>'
            '<th scope="col">Since</th>'
            '<th scope="col" class="amount">Orders</th></tr></thead><tbody>{rows}</tbody></table></div>',
            rows=rows,
        ),
    )  # fmt: skip


def customer_page(customer: Customer) -> Html:
    """Return the page of a customer."""
    spent = sum(o.total for o in ORDERS if o.customer == customer.number)
    return admin_page(
        customer.name, f"/admin/customers/{customer.number}",
        html(
            '<section class="split person"><div class="box"><h2>Bought so far</h2><p class="figure-value">{spent}</p>'
            '<p>{note}</p></div>'
            '<div class="box"><h2>Reach</h2><dl><dt>Email</dt><dd>{email}</dd><dt>Town</dt><dd>{town}</dd>'
            '<dt>Customer since</dt><dd>{since}</dd></dl></div></section>',
            spent=money(spent), note=customer.note, email=customer.email, town=customer.town, since=customer.since,
        ),
        section="/admin/customers",
    )  # fmt: skip


def page_count(state: ShopState) -> int:
    """Return the number of catalogue pages."""
    return max(1, math.ceil(len(state.items) / CATALOGUE_PAGE_ROWS))


def catalogue(state: ShopState, page: int) -> Html:
    """Return one page of the catalogue."""
    shown = list(state.items.values())[(page - 1) * CATALOGUE_PAGE_ROWS : page * CATALOGUE_PAGE_ROWS]
    rows = [
        html(
            '<tr><td><span class="thumb tint-{c}">{art}</span></td><td>{name}</td><td>{shelf}</td>'
            '<td class="amount">{price}</td>'
            '<td class="amount">{stock}</td><td><span class="status s-{status}">{status}</span></td>'
            '<td><button type="button" class="plain" data-post="/admin/products/{n}/delete" '
            'data-then="reload">Delete</button></td></tr>',
            c=i.category, art=product_art(i.slug), name=link(f"/admin/products/{i.number}", i.name),
            shelf=i.category.title(),
            price=money(i.price), stock=i.stock, status=i.status, n=i.number,
        )
        for i in shown
    ]  # fmt: skip
    last = page_count(state)
    numbers = [
        html("<li><span>{n}</span></li>", n=n) if n == page else html("<li>{a}</li>", a=link(_page_url(n), str(n)))
        for n in range(1, last + 1)
    ]
    after = html("<li>{a}</li>", a=link(_page_url(page + 1), "Next")) if page < last else None
    return admin_page(
        "Catalogue", "/admin/catalogue",
        html(
            '<div class="box"><div class="row-head"><p class="line">{total} pieces, page {page} of {last}</p>'
            '<p><a class="button" href="/admin/products/new">New product</a></p></div>'
            '<table class="items"><thead><tr><th></th><th scope="col">Piece</th><th scope="col">Shelf</th>'
            '<th scope="col" class="amount">Price</th>'
            '<th scope="col" class="amount">Stock</th><th scope="col">State</th><th></th></tr></thead>'
            '<tbody>{rows}</tbody></table>'
            '<nav class="pages" aria-label="Pages"><ol>{numbers}{after}</ol></nav></div>',
            total=len(state.items), page=page, last=last, rows=rows, numbers=numbers, after=after,
        ),
    )  # fmt: skip


def _page_url(page: int) -> str:
    return "/admin/catalogue" if page == 1 else f"/admin/catalogue?page={page}"


def editor(item: Item | None) -> Html:
    """Return the editor of an existing or a new product."""
    number, shelf = (str(item.number), item.category) if item else ("new", "")
    options = [
        html("<option{on}>{name}</option>", name=c.name, on=Html(" selected" if c.slug == shelf else ""))
        for c in CATEGORIES
    ]  # fmt: skip
    form = html(
        '<form class="form" method="post" action="/admin/products/{number}"><label for="name">Name</label>'
        '<input id="name" name="name" value="{name}">'
        '<label for="line">In a line</label><input id="line" name="line" value="{line}">'
        '<label for="shelf">Shelf</label>'
        '<select id="shelf" name="shelf">{options}</select><div class="pair"><div>'
        '<label for="price">Price in euros</label>'
        '<input id="price" name="price" inputmode="numeric" value="{price}"></div><div><label for="stock">Stock</label>'
        '<input id="stock" name="stock" inputmode="numeric" value="{stock}"></div></div>'
        '<div><button class="button">{save}</button></div></form>',
        number=number, name=item.name if item else "", line=item.line if item else "", options=options,
        price=item.price if item else "", stock=item.stock if item else "",
        save="Save product" if item else "Publish product",
    )  # fmt: skip
    if item is None:
        return admin_page(
            "New product",
            "/admin/products/new",
            html('<div class="box">{form}</div>', form=form),
            section="/admin/catalogue",
        )
    aside = html(
        '<div class="box"><div class="preview tint-{c}">{art}</div><form method="post" '
        'action="/admin/products/{number}/delete">'
        '<button class="button danger">Delete product</button></form></div>',
        c=item.category,
        art=product_art(item.slug, item.name),
        number=number,
    )
    return admin_page(
        f"Edit {item.name}", f"/admin/products/{number}",
        html('<section class="split"><div class="box">{form}</div>{aside}</section>', form=form, aside=aside),
        section="/admin/catalogue",
    )  # fmt: skip


def settings(state: ShopState) -> Html:
    """Return the settings, in three tabs."""
    names = ("General", "Taxes", "Notifications")
    tabs = [
        html(
            '<button type="button" role="tab" aria-selected="{on}" aria-controls="panel-{i}">{name}</button>',
            on="false" if i else "true", i=i, name=name,
        )
        for i, name in enumerate(names)
    ]  # fmt: skip
    general = html(
        '<div role="tabpanel" id="panel-0"><form class="form" method="post" action="/admin/settings">'
        '<label for="name">Shop name</label>'
        '<input id="name" name="name" value="{name}"><label for="currency">Currency</label>'
        '<input id="currency" name="currency" value="{currency}">'
        '<div><button class="button">Save settings</button></div></form>'
        '<div class="wrap"><div><p><strong>Pause the shop</strong></p><p class="line">Visitors can look, but not '
        'order.</p></div>'
        '<div><button type="button" role="switch" aria-checked="{holiday}" '
        'data-post="/admin/settings/holiday">Holiday mode</button></div></div>'
        '<div class="wrap danger-zone"><div><p><strong>Start over</strong></p>'
        '<p class="line">Empties the catalogue for good.</p></div>'
        '<div><button type="button" class="button danger" data-post="/admin/settings/erase" '
        'data-then="reload">Delete everything</button></div></div></div>',
        name=state.settings["name"], currency=state.settings["currency"], holiday="true" if state.holiday else "false",
    )  # fmt: skip
    taxes = html(
        '<div role="tabpanel" id="panel-1" hidden><table><thead><tr><th scope="col">Country</th>'
        '<th scope="col" class="amount">Rate</th></tr></thead>'
        '<tbody><tr><td>Norway</td><td class="amount">25%</td></tr><tr><td>Sweden</td><td class="amount">25%</td></tr>'
        '<tr><td>Finland</td><td class="amount">25.5%</td></tr></tbody></table></div>'
    )
    notifications = html(
        '<div role="tabpanel" id="panel-2" hidden><p class="line">Who hears about what, and how.</p><dl>'
        "<dt>Order came in</dt><dd>Email to the workshop</dd>"
        "<dt>Stock runs low</dt><dd>Email every Monday</dd></dl></div>"
    )
    return admin_page(
        "Settings", "/admin/settings",
        html(
            '<section class="box tabs"><div role="tablist" '
            'aria-label="Settings">{tabs}</div>{general}{taxes}{notifications}</section>',
            tabs=tabs, general=general, taxes=taxes, notifications=notifications,
        ),
    )  # fmt: skip
