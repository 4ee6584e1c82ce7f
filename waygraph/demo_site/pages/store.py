"""Pages of the shop: home, categories, products, cart, search and others."""

from __future__ import annotations

from collections.abc import Iterable

from waygraph.demo_site.art import hero_art, product_art
from waygraph.demo_site.catalogue import (
    CATEGORIES,
    FEATURED,
    NEW_ARRIVALS,
    PRODUCTS,
    PRODUCTS_BY_SLUG,
    SHOP,
    Category,
    Product,
)
from waygraph.demo_site.layout import EXTERNAL, crumbs, document, link, money, store_page
from waygraph.demo_site.markup import Html, html
from waygraph.demo_site.state import ShopState

HOME = ("/", "Home")


def _card(product: Product) -> Html:
    fresh = Html('<span class="tag">New</span>' if product.slug in NEW_ARRIVALS else "")
    return html(
        '<article class="card tint-{category}"><div class="card-art">{art}{fresh}</div>'
        '<h3><a href="/p/{slug}">{name}</a></h3><p class="line">{line}</p><p class="price">{price}</p></article>',
        category=product.category, art=product_art(product.slug), slug=product.slug, name=product.name,
        line=product.line, price=money(product.price), fresh=fresh,
    )  # fmt: skip


def _grid(products: Iterable[Product]) -> Html:
    return html('<div class="grid">{cards}</div>', cards=[_card(product) for product in products])


def _shelf(title: str, line: str, products: Iterable[Product], *extra: Html) -> Html:
    return html(
        '<section class="shelf"><div class="shelf-head"><h1>{title}</h1><p>{line}</p></div>{grid}{extra}</section>',
        title=title, line=line, grid=_grid(products), extra=extra,
    )  # fmt: skip


def home(state: ShopState) -> Html:
    """Return the start page."""
    hero = html(
        '<section class="hero"><div class="hero-text"><p class="eyebrow">Spring collection</p>'
        "<h1>Quiet things, made well, for rooms you live in.</h1>"
        "<p>Lamps, stoneware and wool from eleven small workshops. Every piece is made to be kept, mended and handed "
        "on.</p>"
        '<p><a class="button" href="/shop">Browse the collection</a></p></div><div class="hero-art">{art}</div>'
        "</section>",
        art=hero_art(),
    )
    shelves = html(
        '<section class="tiles">{tiles}</section>',
        tiles=[
            html(
                '<div class="tile tint-{slug}"><div class="tile-art">{art}</div><h2><a href="/c/{slug}">{name}</a></h2>'
                "<p>{line}</p></div>",
                slug=c.slug, name=c.name, line=c.line,
                art=product_art(next(p.slug for p in PRODUCTS if p.category == c.slug)),
            )
            for c in CATEGORIES
        ],
    )  # fmt: skip
    featured = html(
        '<section class="shelf"><div class="shelf-head"><h2>Loved this month</h2><p>What people come back for.</p>'
        "</div>{grid}</section>",
        grid=_grid(PRODUCTS_BY_SLUG[slug] for slug in FEATURED),
    )
    promises = html(
        '<section class="promises"><div><h3>Mended for life</h3><p>Send anything back to its maker, in any year.</p>'
        "</div>"
        "<div><h3>Ten people or fewer</h3><p>We only work with small workshops.</p></div>"
        "<div><h3>Thirty quiet days</h3><p>Live with it for a month before you decide.</p></div></section>"
    )
    return store_page("", "/", hero, shelves, featured, promises, in_cart=state.in_cart, kind="home")


def shop(state: ShopState) -> Html:
    """Return the list of all products."""
    body = _shelf("The whole shop", f"{len(PRODUCTS)} pieces, all in stock.", PRODUCTS)
    return store_page("Shop", "/shop", crumbs(HOME, here="Shop"), body, in_cart=state.in_cart)


def category(state: ShopState, shelf: Category) -> Html:
    """Return the page of a category."""
    body = _shelf(shelf.name, shelf.line, [p for p in PRODUCTS if p.category == shelf.slug])
    return store_page(shelf.name, f"/c/{shelf.slug}", crumbs(HOME, here=shelf.name), body, in_cart=state.in_cart)


def new_arrivals(state: ShopState) -> Html:
    """Return the new arrivals."""
    body = _shelf(
        "New arrivals", "Unpacked this week, hardly a fingerprint on them.", [PRODUCTS_BY_SLUG[s] for s in NEW_ARRIVALS]
    )
    return store_page("New arrivals", "/new", crumbs(HOME, here="New arrivals"), body, in_cart=state.in_cart)


def search(state: ShopState, query: str) -> Html:
    """Return the products whose words contain the query."""
    words = query.lower().split()
    hits = [
        p for p in PRODUCTS if words and all(w in f"{p.name} {p.category} {p.line} {p.story}".lower() for w in words)
    ]
    body = _shelf(f"Results for “{query}”", f"{len(hits)} found.", hits)
    return store_page(f"Results for {query}", "/search", crumbs(HOME, here="Search"), body, in_cart=state.in_cart)


def _tabs(product: Product) -> Html:
    names = ["Description", "Specification", *(["Reviews"] if product.reviews else [])]
    tabs = [
        html(
            '<button type="button" role="tab" aria-selected="{on}" aria-controls="panel-{i}">{name}</button>',
            on="false" if i else "true", i=i, name=name,
        )
        for i, name in enumerate(names)
    ]  # fmt: skip
    specification = html(
        '<div role="tabpanel" id="panel-1" hidden><table><tbody>{rows}</tbody></table></div>',
        rows=[
            html('<tr><th scope="row">{k}</th><td>{v}</td></tr>', k=key, v=value)
            for key, value in product.specification
        ],
    )
    reviews = html(
        '<div role="tabpanel" id="panel-2" hidden><ul class="reviews">{rows}</ul></div>',
        rows=[
            html(
                '<li><p class="stars">{stars}</p><blockquote>{text}</blockquote><p class="by">{author}</p></li>',
                stars="★" * review.stars + "☆" * (5 - review.stars), text=review.text, author=review.author,
            )
            for review in product.reviews
        ],
    )  # fmt: skip
    return html(
        '<section class="tabs"><div role="tablist" aria-label="About this piece">{tabs}</div>'
        '<div role="tabpanel" id="panel-0"><p>{story}</p></div>{specification}{reviews}</section>',
        tabs=tabs, story=product.story, specification=specification, reviews=reviews if product.reviews else None,
    )  # fmt: skip


def _size_guide(product: Product) -> Html:
    return html(
        '<dialog id="size-guide" aria-labelledby="size-title"><div class="dialog-head">'
        '<h2 id="size-title">Find your size</h2></div>'
        '<table><thead><tr><th scope="col">Size</th><th scope="col">Measures</th><th scope="col">Good for</th></tr>'
        "</thead>"
        "<tbody>{rows}</tbody></table>"
        '<div class="dialog-foot"><button type="button" class="button" data-close-dialog>Close</button></div></dialog>',
        rows=[html("<tr><td>{a}</td><td>{b}</td><td>{c}</td></tr>", a=a, b=b, c=c) for a, b, c in product.sizes],
    )


def product_page(state: ShopState, product: Product) -> Html:
    """Return the page of a product."""
    shelf = next(c for c in CATEGORIES if c.slug == product.category)
    stars = round(sum(r.stars for r in product.reviews) / len(product.reviews)) if product.reviews else 0
    sizes = Html(
        '<div class="pick"><label for="size">Size</label><select id="size" name="size">{}</select></div>'.format(
            "".join(html("<option>{s}</option>", s=size) for size, _, _ in product.sizes)
        )
        if product.sizes
        else ""
    )
    guide = Html('<div><button type="button" class="plain" data-dialog="size-guide">Size guide</button></div>')
    body = html(
        '<section class="product"><div class="product-art tint-{category}">{art}</div><div class="product-text">'
        '<p class="eyebrow">{shelf}</p><h1>{name}</h1><p class="line">{line}</p><p class="price">{price}</p>'
        '<p class="rating">{rating}</p>'
        '<form method="post" action="/cart"><input type="hidden" name="slug" value="{slug}">{sizes}'
        '<div class="pick"><label for="quantity">Quantity</label><select id="quantity" name="quantity">'
        '<option>1</option>'
        '<option>2</option><option>3</option></select></div><div class="buy">'
        '<button class="button">Add to cart</button>'
        '<button class="button quiet" formaction="/buy">Buy now</button></div></form>'
        '<div class="asides"><div><button type="button" class="plain heart" data-post="/p/{slug}/favourite" '
        'aria-pressed="{liked}">Favourite</button></div>{guide}</div>'
        '<ul class="facts"><li>{stock} in stock, leaves the workshop in two days</li>'
        '<li>Mended free of charge, for life</li>'
        "</ul></div></section>",
        category=product.category, art=product_art(product.slug, product.name), shelf=shelf.name, name=product.name,
        line=product.line, price=money(product.price), slug=product.slug, sizes=sizes, stock=product.stock,
        rating="★" * stars + "☆" * (5 - stars) if stars else "Not rated yet", guide=guide if product.sizes else None,
        liked="true" if product.slug in state.favourites else "false",
    )  # fmt: skip
    dialog = html("<div>{d}</div>", d=_size_guide(product)) if product.sizes else Html()
    way = crumbs(HOME, (f"/c/{shelf.slug}", shelf.name), here=product.name)
    parts = (way, body, _tabs(product), dialog)
    return store_page(product.name, f"/p/{product.slug}", *parts, in_cart=state.in_cart, kind="product-page")


def cart(state: ShopState) -> Html:
    """Return the cart."""
    lines = [(PRODUCTS_BY_SLUG[slug], quantity) for slug, quantity in state.cart.items()]
    rows = [
        html(
            '<tr><td><span class="thumb tint-{category}">{art}</span></td><td>{name}<br>'
            '<span class="line">{line}</span></td>'
            '<td>{quantity}</td><td class="amount">{sum}</td><td><form method="post" action="/cart/remove">'
            '<input type="hidden" name="slug" value="{slug}"><button class="plain">Remove</button></form></td></tr>',
            category=p.category, art=product_art(p.slug), name=link(f"/p/{p.slug}", p.name), line=p.line,
            quantity=quantity,
            sum=money(p.price * quantity), slug=p.slug,
        )
        for p, quantity in lines
    ]  # fmt: skip
    table = html(
        '<table class="lines"><thead><tr><th></th><th scope="col">Piece</th><th scope="col">Quantity</th>'
        '<th scope="col" class="amount">Sum</th><th></th></tr></thead><tbody>{rows}</tbody></table>',
        rows=rows,
    )
    total = sum(p.price * quantity for p, quantity in lines)
    body = html(
        '<section class="cart"><div><h1>Your cart</h1>{table}'
        '<div class="wrap"><div><p><strong>Make it a present</strong></p><p class="line">Wrapped in paper made from '
        'our own offcuts.</p></div>'
        '<div><button type="button" role="switch" aria-checked="false" data-switch="gift-note">Gift wrap</button>'
        '</div></div>'
        '<div id="gift-note" class="panel" hidden><label for="gift-text">A few words for the card</label>'
        '<textarea id="gift-text" rows="3"></textarea></div></div>'
        '<div class="summary"><h2>Summary</h2><dl><dt>Pieces</dt><dd>{total}</dd><dt>Delivery</dt><dd>Free</dd>'
        "<dt>Total</dt><dd><strong>{total}</strong></dd></dl>"
        '<form method="post" action="/checkout"><button class="button">Checkout</button></form>'
        '<p><a href="/shop">Keep looking around</a></p></div></section>',
        table=table if lines else html('<p class="line">Nothing in here yet.</p>'), total=money(total),
    )  # fmt: skip
    return store_page("Cart", "/cart", body, in_cart=state.in_cart)


def about(state: ShopState) -> Html:
    """Return the page about the shop."""
    body = html(
        '<section class="letterpage"><h1>Our story</h1><p class="lead">{shop} began in a boathouse, with one kiln '
        'and a borrowed loom.</p>'
        "<p>Today eleven workshops make what we sell. None has more than ten people, and each signs its pieces.</p>"
        '<p>Visit them through the <a href="{external}" rel="noreferrer">map of our makers</a>.</p>'
        "<h2>What we promise</h2><ol><li>We say who made it.</li><li>We mend it.</li><li>We take it back.</li></ol>"
        "</section>",
        shop=SHOP, external=EXTERNAL,
    )  # fmt: skip
    return store_page("Our story", "/about", body, in_cart=state.in_cart)


def printable() -> Html:
    """Return the printable catalogue, which opens in a new tab with a plain layout."""
    rows = [
        html('<tr><td>{name}</td><td>{shelf}</td><td>{line}</td><td class="amount">{price}</td></tr>',
             name=p.name, shelf=p.category.title(), line=p.line, price=money(p.price))
        for p in PRODUCTS
    ]  # fmt: skip
    body = html(
        '<main class="sheet"><p class="brand">{shop}</p><h1>Catalogue, spring</h1><table><thead><tr>'
        '<th scope="col">Piece</th>'
        '<th scope="col">Shelf</th><th scope="col">In a line</th><th scope="col" class="amount">Price</th></tr>'
        '</thead><tbody>{rows}</tbody></table>'
        '<p><a href="/">Return to the shop</a></p></main>',
        shop=SHOP, rows=rows,
    )  # fmt: skip
    return document("Printable catalogue", body, kind="paper")


def not_found(state: ShopState) -> Html:
    """Return the page of status 404."""
    body = html(
        '<section class="letterpage"><h1>Nothing on this shelf</h1><p>The page you asked for does not exist.</p>'
        '<p><a href="/">To the start page</a></p></section>'
    )
    return store_page("Not found", "", body, in_cart=state.in_cart)
