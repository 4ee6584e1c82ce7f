"""Skeleton mode: one page represents all pages that differ in their content only; nothing else is lost."""

import json

import pytest

from tests.sites.static_pages import BASE, Walk, look
from tests.sites.traps import LARGE_CATALOGUE, LEGITIMATE, html, product_pages, trap_pages
from waygraph.core.urls import UrlPolicy
from waygraph.pipeline.explore.identity import Skeleton


def test_five_hundred_products_become_one_state_that_counts_them():
    found = Walk(trap_pages((LARGE_CATALOGUE,)), depth=12, is_skeleton=True).run()
    assert found.paths("/products/") == ["/products/0"]
    (product,) = (state for state in found.states.values() if state.url == f"{BASE}/products/0")
    counts = found.recogniser.skeleton.counts()
    assert counts == {product.id: 500}
    assert len(found.paths("/products?")) == 9  # the listings that list them
    assert found.loads < 20


def test_a_list_is_followed_to_its_end_although_its_items_are_only_counted():
    found = Walk(
        {**trap_pages((LARGE_CATALOGUE,)), **product_pages(60, 6, named=False)}, depth=14, is_skeleton=True
    ).run()
    assert len(found.paths("/products?")) == 9
    assert list(found.recogniser.skeleton.counts().values()) == [60]


def test_full_mode_keeps_every_product():
    found = Walk({**trap_pages((LARGE_CATALOGUE,)), **product_pages(60, 6)}, depth=14).run()
    assert len(found.paths("/products/")) == 60


def slugs(names):
    items = "".join(f"<li><a href='/shop/{name}'>{name}</a>" for name in names)
    item = html("An item", "<table><tr><td>Price</td><td>9</td></tr></table><p>Fine.</p><p>Really.</p>")
    return {"/shop": html("Shop", f"<ul id=items>{items}</ul>")} | {
        f"/shop/{name}": item.replace("An item", name) for name in names
    }


def test_words_in_the_same_place_of_one_list_vary_like_numbers():
    names = ("lamp", "chair", "table", "shelf", "mirror", "carpet")
    pages = {"/": html("Start", "<a href='/shop'>Shop</a>"), "/about": html("About", "<h2>Us</h2>"), **slugs(names)}
    found = Walk(pages, is_skeleton=True).run()
    assert found.paths("/shop") == ["/shop", "/shop/lamp"]
    assert list(found.recogniser.skeleton.counts().values()) == [6]
    assert any(why.startswith("skeleton") for why in found.refused.values())


def test_pages_of_a_navigation_bar_are_never_merged():
    names = ("first", "second", "third", "fourth", "fifth")
    bar = "".join(f"<a href='/{name}'>{name}</a>" for name in names)
    pages = {f"/{name}": f"<nav>{bar}</nav><h1>{name}</h1><p>Text of {name}.</p>" for name in names}
    found = Walk({"/": f"<nav>{bar}</nav><h1>Home</h1><p>Text</p>", **pages}, is_skeleton=True).run()
    assert len(found.states) == 6


def test_rooms_behind_one_path_stay_while_their_orders_collapse():
    router = next(area for area in LEGITIMATE if area.name == "router")
    found = Walk(trap_pages((router,)), is_skeleton=True).run()
    assert len([path for path in found.paths("/index.php") if "id=" not in path]) == 6
    assert len([path for path in found.paths("/index.php") if "id=" in path]) == 1


@pytest.mark.parametrize("identity", ["exact", "tolerant"])
def test_pages_of_one_template_and_another_structure_are_kept(identity):
    pages = {
        "/": html("Start", "".join(f"<a href='/item/{i}'>{i}</a>" for i in range(6))),
        **{f"/item/{i}": html("Text", "<p>x</p>" * 12) for i in range(0, 6, 2)},
        **{
            f"/item/{i}": html("Table", "<table><tr><td>x<td>y<td>z</table><form><input><input></form>" * 3)
            for i in (1, 3, 5)
        },
    }
    found = Walk(pages, is_skeleton=True, identity=identity).run()
    assert len(found.paths("/item/")) == 2


def test_a_checkpoint_restores_the_counts():
    start = look("<a href='/p/1'>1</a><a href='/p/2'>2</a>", f"{BASE}/")
    first = look("<h1>1</h1>", f"{BASE}/p/1")
    looks = {seen.id: seen for seen in (start, first)}
    one, other = (Skeleton(UrlPolicy(), looks.__getitem__) for _ in range(2))
    one.add(start)
    one.add(first)
    for n in (2, 3):
        assert one.place(look(f"<h1>{n}</h1>", f"{BASE}/p/{n}"), None).kept == first.id
    assert one.refuse_link(f"{BASE}/p/4").detail == first.id
    one.count_unvisited(f"{BASE}/p/4")
    other.load_checkpoint(json.loads(json.dumps(one.to_checkpoint())))
    assert other.to_checkpoint() == one.to_checkpoint()
    assert other.counts() == one.counts() == {first.id: 4}
    assert other.refuse_link(f"{BASE}/p/5").detail == first.id
    assert other.counts() == {first.id: 4}
    other.count_unvisited(f"{BASE}/p/5")
    assert other.counts() == {first.id: 5}


def test_a_refusal_is_never_revoked():
    links = "".join(f"<a href='/p/{n}'>{n}</a>" for n in range(1, 9))
    looks = {seen.id: seen for seen in (look(links, f"{BASE}/"), look("<h1>1</h1>", f"{BASE}/p/1"))}
    skeleton = Skeleton(UrlPolicy(), looks.__getitem__)
    for seen in looks.values():
        skeleton.add(seen)
    for n in (2, 3):
        skeleton.place(look(f"<h1>{n}</h1>", f"{BASE}/p/{n}"), None)
    assert [n for n in range(1, 6) if skeleton.refuse_link(f"{BASE}/p/{n}")] == [4, 5]
    # Buttons and redirects lead to pages whose links are refused; one of the pages is of the same kind, one is not.
    assert skeleton.place(look("<h1>4</h1>", f"{BASE}/p/4"), None)
    skeleton.add(look("<table><tr><td>a<td>b</table><form><input></form>", f"{BASE}/p/5"))
    assert [n for n in range(1, 6) if skeleton.refuse_link(f"{BASE}/p/{n}")] == [4, 5]
