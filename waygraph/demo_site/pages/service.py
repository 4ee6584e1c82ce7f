"""The account area and the help centre."""

from __future__ import annotations

from waygraph.demo_site.art import product_art
from waygraph.demo_site.catalogue import ACCOUNT_CUSTOMER, ORDERS, PRODUCTS_BY_SLUG, QUESTIONS, Order
from waygraph.demo_site.layout import ACCOUNT_LINKS, HELP_LINKS, link, money, sectioned_page
from waygraph.demo_site.markup import Html, html
from waygraph.demo_site.state import ShopState

OWN_ORDERS = tuple(order for order in ORDERS if order.customer == ACCOUNT_CUSTOMER)


def _account(state: ShopState, title: str, path: str, *content: Html) -> Html:
    action, label = ("/logout", "Log out") if state.signed_in else ("/login", "Log in")
    below = html(
        '<form method="post" action="{action}"><button class="plain">{label}</button></form>',
        action=action,
        label=label,
    )
    if not state.signed_in:
        content = (html("<h1>See you soon</h1><p>You are logged out.</p>"),)
    return sectioned_page(
        title, path, *content, entries=ACCOUNT_LINKS, label="Account", below=below, in_cart=state.in_cart
    )


def profile(state: ShopState) -> Html:
    """Return the profile page."""
    return _account(
        state, "Profile", "/account",
        html(
            '<h1>Hello, {first}</h1><p class="line">Member since 2021. Your details, as the workshops see them on a '
            'parcel.</p>'
            '<form class="panel form" method="post" action="/account"><label for="name">Full name</label>'
            '<input id="name" name="name" value="{name}"><label for="email">Email</label>'
            '<input id="email" name="email" type="email" value="{email}"><div>'
            '<button class="button">Save changes</button></div></form>'
            '<div class="pair"><div class="panel"><h2>Favourites</h2><p>{favourites} saved</p></div>'
            '<div class="panel"><h2>Mending</h2><p>Nothing at the workshop.</p></div></div>',
            first=state.profile["name"].split()[0], name=state.profile["name"], email=state.profile["email"],
            favourites=len(state.favourites),
        ),
    )  # fmt: skip


def orders(state: ShopState) -> Html:
    """Return the order history."""
    rows = [
        html(
            '<tr><td>{number}</td><td>{date}</td><td><span class="status s-{status}">{status}</span></td>'
            '<td class="amount">{total}</td></tr>',
            number=link(f"/account/orders/{o.number}", o.number), date=o.date,
            status=state.statuses[o.number], total=money(o.total),
        )
        for o in OWN_ORDERS
    ]  # fmt: skip
    return _account(
        state, "Order history", "/account/orders",
        html(
            '<h1>Order history</h1><table class="panel"><thead><tr><th scope="col">Number</th><th scope="col">Date</th>'
            '<th scope="col">State</th><th scope="col" class="amount">Total</th></tr></thead><tbody>{rows}</tbody>'
            '</table>',
            rows=rows,
        ),
    )  # fmt: skip


def own_order(state: ShopState, order: Order) -> Html:
    """Return the page of one of the customer's orders."""
    rows = [
        html(
            '<li><span class="thumb tint-{c}">{art}</span><p><strong>{name}</strong><br>{n} x {price}</p></li>',
            c=PRODUCTS_BY_SLUG[slug].category, art=product_art(slug), name=PRODUCTS_BY_SLUG[slug].name, n=quantity,
            price=money(PRODUCTS_BY_SLUG[slug].price),
        )
        for slug, quantity in order.lines
    ]  # fmt: skip
    return _account(
        state, f"Your parcel {order.number}", f"/account/orders/{order.number}",
        html(
            '<h1>Your parcel {number}</h1><p class="line">Ordered on {date}.</p><ul class="parcel panel">{rows}</ul>'
            '<div class="panel track"><h2>Where it is</h2><ol><li>Paid</li><li>At the workshop</li>'
            '<li>On its way</li></ol>'
            "<p>Right now: {status}.</p></div>",
            number=order.number, date=order.date, rows=rows, status=state.statuses[order.number].lower(),
        ),
    )  # fmt: skip


def addresses(state: ShopState) -> Html:
    """Return the address book."""
    cards = [
        html(
            '<div class="panel"><h2>{name}</h2><p>{where}</p><form method="post" '
            'action="/account/addresses/{i}/delete">'
            '<button class="plain">Delete</button></form></div>',
            name=name, where=where, i=i,
        )
        for i, (name, where) in enumerate(state.addresses)
    ]  # fmt: skip
    return _account(
        state, "Addresses", "/account/addresses",
        html(
            '<div class="row-head"><h1>Addresses</h1><button type="button" class="button quiet" '
            'data-reveal="new-address">New address</button></div>'
            '<div class="pair">{cards}</div>'
            '<form id="new-address" class="panel form" method="post" action="/account/addresses" hidden>'
            '<h2>Where else?</h2>'
            '<label for="label">Call it</label><input id="label" name="label">'
            '<label for="street">Street and town</label>'
            '<input id="street" name="street"><div><button class="button">Save address</button></div></form>',
            cards=cards,
        ),
    )  # fmt: skip


def _help(state: ShopState, title: str, path: str, *content: Html) -> Html:
    return sectioned_page(title, path, *content, entries=HELP_LINKS, label="Help topics", in_cart=state.in_cart)


def questions(state: ShopState) -> Html:
    """Return frequently asked questions: an accordion with one open item."""
    answers = (
        html("<p>Two days at the workshop, then two to five on the road.</p>"),
        html(
            "<p>We name them all:</p><ul><li>Oak and ash from one forest</li>"
            "<li>Ash glaze, tin white, copper green</li></ul>"
        ),
        html("<p>Yes, for thirty days. Use the label in the box.</p><p><strong>We pay the way back.</strong></p>"),
        html(
            '<table><thead><tr><th scope="col">Piece</th><th scope="col">Time</th></tr></thead><tbody>'
            "<tr><td>Lamps</td><td>One week</td></tr><tr><td>Wool</td><td>Three weeks</td></tr></tbody></table>"
        ),
    )
    items = [
        html(
            '<div class="item"><h2><button type="button" aria-expanded="false" aria-controls="answer-{i}" '
            'data-accordion>{q}</button></h2>'
            '<div id="answer-{i}" class="answer" hidden>{answer}</div></div>',
            i=i, q=question, answer=answer,
        )
        for i, (question, answer) in enumerate(zip(QUESTIONS, answers, strict=True))
    ]  # fmt: skip
    return _help(
        state, "Questions and answers", "/help",
        html(
            '<h1>Questions and answers</h1><p class="line">The ones we hear most. Open one.</p>'
            '<div class="accordion">{items}</div>',
            items=items,
        ),
    )  # fmt: skip


def shipping(state: ShopState) -> Html:
    """Return the shipping costs."""
    return _help(
        state, "Shipping", "/help/shipping",
        html(
            '<h1>Shipping</h1><p class="line">Parcels leave on Tuesdays and Fridays.</p><table class="panel"><thead>'
            '<tr>'
            '<th scope="col">To</th><th scope="col">Days</th><th scope="col" class="amount">Cost</th></tr></thead>'
            '<tbody>'
            '<tr><td>Nordics</td><td>2 to 3</td><td class="amount">€6, free from €80</td></tr>'
            '<tr><td>Europe</td><td>4 to 6</td><td class="amount">€14</td></tr></tbody></table>'
            '<div class="panel"><details><summary>Islands and mountain huts</summary>'
            '<p>The mail boat sails once a week; '
            "allow ten days and add €9.</p><p>Huts: by snow scooter, from December.</p></details></div>"
        ),
    )  # fmt: skip


def returns(state: ShopState) -> Html:
    """Return the returns policy."""
    return _help(
        state, "Returns", "/help/returns",
        html(
            '<h1>Returns</h1><p class="line">Thirty days, no questions.</p><ol class="panel steps"><li>'
            '<strong>Pack it</strong> in the box it came in.</li>'
            "<li><strong>Stick on the label</strong> that lies at the bottom.</li><li>"
            "<strong>Hand it over</strong> at any post office.</li></ol>"
            "<p>The money is back within five days of its arrival.</p>"
        ),
    )  # fmt: skip


def contact(state: ShopState) -> Html:
    """Return the contact page."""
    return _help(
        state, "Contact", "/help/contact",
        html(
            '<h1>Contact</h1><p class="line">Liv and Anders read everything, on weekdays before noon.</p>'
            '<form class="panel form" method="post" action="/help/contact" toolname="write_to_the_shop" '
            'tooldescription="Send a message to the people of the shop."><label for="from">Your email</label>'
            '<input id="from" name="from" type="email"><label for="text">What is it about?</label>'
            '<textarea id="text" name="text" rows="4"></textarea><div><button class="button">Send message</button>'
            '</div></form>'
            '<address class="panel">Boathouse 3, Skuteviken<br>Bergen</address>'
        ),
    )  # fmt: skip
