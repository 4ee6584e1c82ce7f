"""The demo shop matches its hand-written ground truth, in a real browser and over plain HTTP.

The browser part is independent of `pipeline`: it walks every edge of the truth with code of its own, and compares the
XPaths of exposed elements, and the actionable elements that the parent does not have, with the truth. It runs when the
shop or its truth changes (`make soak-truth`); that exploring finds this truth is in `test_explore_demo_shop.py`.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from urllib.parse import urlsplit

import httpx
import pytest
from playwright.sync_api import Page, sync_playwright

from tests.ground_truth.demo_shop import SEARCHED, Element, Truth, new_elements, truth, views
from waygraph.demo_site import DemoSite
from waygraph.demo_site.catalogue import ITEMS, PRODUCTS
from waygraph.demo_site.site import PAGES
from waygraph.pipeline.browser.process.find import find_browser

FLAGS = [
    "--no-sandbox", "--disable-background-networking", "--disable-component-update", "--disable-sync", "--disable-quic",
    "--no-first-run", "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
]  # fmt: skip

LOOK = """() => {
  const xpath = (element) => {
    const steps = [];
    for (let e = element; e; e = e.parentElement) {
      const same = [...(e.parentElement?.children ?? [e])].filter((other) => other.tagName === e.tagName);
      steps.unshift(`${e.tagName.toLowerCase()}[${same.indexOf(e) + 1}]`);
    }
    return "/" + steps.join("/");
  };
  const page = document.documentElement;
  const modal = document.querySelector("dialog:modal");
  const exposed = (element) => {
    if (modal && !modal.contains(element)) return false;
    if (!element.checkVisibility({ opacityProperty: true, visibilityProperty: true })) return false;
    if (element.closest("[aria-hidden=true], [inert], svg svg, svg *")) return false;
    const box = element.getBoundingClientRect();
    return box.right + scrollX > 0 && box.bottom + scrollY > 0 && box.left + scrollX < page.scrollWidth;
  };
  document.activeElement?.blur();
  const elements = [...document.body.querySelectorAll("*")].filter(exposed);
  const ROLES = { A: "link", BUTTON: "button", SUMMARY: "button", SPAN: "", INPUT: "searchbox" };
  const kinds = "a[href], button, summary, [data-href], [type=search]";
  const actionable = elements.filter((e) => e.matches(kinds)).map((e) => [
    xpath(e), e.getAttribute("role") ?? ROLES[e.tagName], e.ariaLabel ?? e.textContent.trim(),
    e.tagName !== "A" ? "" : e.origin === location.origin ? e.pathname + e.search : e.href,
  ]);
  return { structure: elements.map(xpath), actionable, title: document.title, text: document.body.innerText };
}"""


@pytest.fixture(scope="module")
def site() -> Iterator[DemoSite]:
    with DemoSite() as running:
        yield running


@pytest.fixture(scope="module")
def page(site: DemoSite) -> Iterator[Page]:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=find_browser().path, args=FLAGS)
        context = browser.new_context(viewport={"width": 1280, "height": 800}, reduced_motion="reduce")
        # Not `context.route`: it would switch the cache off and double the time of every load.
        context.add_init_script(
            "window.stopped = []; window.fetch = (path, { method }) => "
            "{ stopped.push([method, path]); return Promise.reject(new TypeError('stopped')); };"
            "addEventListener('submit', (event) => { const form = event.target;"
            " if (event.defaultPrevented || form.method !== 'post') return;"
            " event.preventDefault(); stopped.push(['POST', new URL(form.action).pathname]); });"
        )
        tab = context.new_page()
        tab.set_default_timeout(10_000)
        yield tab
        browser.close()


class Walker:
    """Reaches states of the truth in a real page, with code independent of `pipeline`."""

    def __init__(self, site: DemoSite, page: Page, answer: Truth) -> None:
        self.site, self.page, self.answer = site, page, answer
        self.xpaths: dict[str, list[str]] = {}  # of the new elements of a state, in document order

    def look(self, page: Page | None = None) -> dict:
        seen = (page or self.page).evaluate(LOOK)
        seen["id"] = (self.path(page), frozenset(seen["structure"]))
        return seen

    def path(self, page: Page | None = None) -> str:
        parts = urlsplit((page or self.page).url)
        return parts.path + (f"?{parts.query}" if parts.query else "")

    def reach(self, key: str) -> None:
        state = self.answer.states[key]
        if state.addressable:
            self.page.goto(self.site.url.rstrip("/") + state.path)
            self.page.mouse.move(0, 0)
            return
        parent = self.answer.parents[key]
        self.reach(parent)
        element = next(e for e in new_elements(parent, self.answer.parents.get(parent)) if key in {e.leads, e.hover})
        self.act(parent, element, "hover" if element.hover == key else "click")

    def act(self, key: str, element: Element, kind: str) -> Page:
        """Click or hover a new element of the state the page is in; returns the page that shows the outcome."""
        at = list(new_elements(key, self.answer.parents.get(key))).index(element)
        target = self.page.locator(f"xpath={self.xpaths[key][at]}")
        if kind == "hover":
            target.hover()
            return self.page
        loads = (element.href and not element.place.startswith("reports/")) or not element.role
        if element.opens_tab:
            with self.page.expect_popup() as popup:
                target.click()
            popup.value.wait_for_load_state()
            return popup.value
        if element.search:
            target.fill(SEARCHED)
            with self.page.expect_navigation():
                target.press("Enter")
        elif element.blocked:
            target.click()
            assert self.page.evaluate("window.stopped") == [list(element.blocked)]
        elif loads:
            with self.page.expect_navigation():
                target.click()
        else:
            target.click()
        self.page.mouse.move(0, 0)
        return self.page


@pytest.mark.extended
@pytest.mark.skipif("WAYGRAPH_TRUTH" not in os.environ, reason="longer than a minute: make soak-truth")
def test_site_matches_its_ground_truth(site: DemoSite, page: Page):
    answer = truth()
    walker = Walker(site, page, answer)
    ids: dict[str, object] = {}
    actionable: dict[str, list[list[str]]] = {}

    # States, in canonical order, so that a state's parent has been seen before it.
    for key, state in answer.states.items():
        walker.reach(key)
        seen = walker.look()
        assert seen["title"] == state.title, key
        assert walker.path() == state.path, key
        assert [text for text in state.shows if text not in seen["text"]] == [], key
        assert [text for text in state.hides if text in seen["text"]] == [], key
        ids[key], actionable[key] = seen["id"], seen["actionable"]
        if not views()[key].elements:
            continue
        parent = answer.parents.get(key)
        old = {tuple(element) for element in actionable[parent]} if parent else set()
        new = [element for element in seen["actionable"] if tuple(element) not in old]
        expected = [[e.role, e.name, e.href] for e in new_elements(key, parent)]
        assert [element[1:] for element in new] == expected, key
        assert len(seen["actionable"]) == len(views()[key].elements), key
        walker.xpaths[key] = [element[0] for element in new]
    assert len(set(ids.values())) == len(answer.states)

    # Edges: performing each leads to the stated state, and nowhere else.
    for source in answer.states:
        if source not in walker.xpaths:
            continue
        for element in new_elements(source, answer.parents.get(source)):
            for kind, target in (("click", element.leads), ("hover", element.hover), ("submit", element.search)):
                if not target:
                    continue
                walker.reach(source)
                outcome = walker.act(source, element, kind)
                assert walker.look(outcome)["id"] == ids[target], (source, kind, element.name)
                if outcome is not page:
                    outcome.close()

    assert site.mutations == 0
    assert not any(target.startswith("/internal/") for _, target in site.requests)


def test_skipped_buttons_would_change_the_shop(page: Page):
    """The buttons that are never activated do change data, so that a request that passes the guard is detected."""
    for path, button, change in (
        ("/p/tide-vase", "Add to cart", lambda s: s.state.cart["tide-vase"] == 2),
        ("/p/tide-vase", "Buy now", lambda s: s.state.purchases == 1),
        ("/p/tide-vase", "Favourite", lambda s: s.state.favourites == {"tide-vase"}),
        ("/cart", "Checkout", lambda s: s.state.in_cart == 0),
        ("/account", "Log out", lambda s: not s.state.signed_in),
        ("/admin/catalogue", "Delete", lambda s: 1 not in s.state.items),
        ("/admin/products/2", "Delete product", lambda s: 2 not in s.state.items),
        ("/admin/orders/NF-1048", "Mark as packed", lambda s: s.state.statuses["NF-1048"] == "Packed"),
        ("/admin/settings", "Holiday mode", lambda s: s.state.holiday),
        ("/admin/settings", "Delete everything", lambda s: not s.state.items),
    ):
        with DemoSite() as site:
            context = page.context.browser.new_context()  # without the guard
            tab = context.new_page()
            tab.goto(site.url.rstrip("/") + path)
            with tab.expect_response(lambda answer: answer.request.method == "POST"):
                tab.get_by_text(button, exact=True).first.click()
            assert change(site), button
            assert site.mutations == 1
            context.close()


# --- Over plain HTTP --------------------------------------------------------------------------------------------------


def test_every_page_is_served_without_cookies_and_identically_each_time(site: DemoSite):
    paths = [*PAGES, *(f"/p/{p.slug}" for p in PRODUCTS), *(f"/admin/products/{i.number}" for i in ITEMS)]
    paths += [
        "/search?q=lamp",
        "/catalogue/print",
        "/admin/reports/sales",
        "/admin/catalogue?page=3",
        "/internal/status",
    ]
    with httpx.Client(base_url=site.url) as client:
        for path in paths:
            answer = client.get(path)
            assert answer.status_code == 200, path
            assert "set-cookie" not in answer.headers
            assert answer.text == client.get(path).text


def test_head_answers_like_get_without_a_body(site: DemoSite):
    with httpx.Client(base_url=site.url) as client:
        head = client.head("/shop")
        assert head.text == ""
        assert head.headers == client.get("/shop").headers
        assert client.head("/nowhere").status_code == 404


@pytest.mark.parametrize(
    "path",
    [
        "/nowhere", "/p/nothing", "/c/nothing", "/admin/orders/NF-1", "/admin/products/99", "/account/orders/NF-1047",
        "/admin/catalogue?page=9", "/admin/catalogue?page=x", pytest.param(f"/admin/products/{'9' * 5000}", id="long"),
        "/static/nothing.css", "/static/../site.py", "/static/%2e%2e/site.py",
    ],
)  # fmt: skip
def test_unknown_paths_are_a_404(site: DemoSite, path: str):
    assert httpx.get(site.url.rstrip("/") + path).status_code == 404


def test_robots_txt_disallows_one_folder(site: DemoSite):
    lines = httpx.get(site.url + "robots.txt").text.splitlines()
    assert [line for line in lines if line.startswith("Disallow")] == ["Disallow: /internal/"]


def test_unknown_methods_are_refused_and_counted(site: DemoSite):
    before = site.mutations
    assert httpx.delete(site.url + "admin/products/3").status_code == 405
    assert httpx.post(site.url + "nowhere").status_code == 404
    assert site.mutations == before + 2


def test_changes_are_visible_afterwards():
    with DemoSite() as site, httpx.Client(base_url=site.url, follow_redirects=True) as client:
        assert "Heather cushion" in client.post("/cart", data={"slug": "heather-cushion", "quantity": "2"}).text
        assert "Heather cushion" not in client.post("/cart/remove", data={"slug": "heather-cushion"}).text
        assert "Barn" in client.post("/account/addresses", data={"label": "Barn", "street": "Road 1"}).text
        assert "Cabin" not in client.post("/account/addresses/1/delete").text
        assert "Hello, Liv" in client.post("/account", data={"name": "Liv Hansen", "email": "liv@post.example"}).text
        assert "You are logged out" in client.post("/logout").text
        assert "Hello, Liv" in client.post("/login").text
        assert "Ember table lamp" not in client.post("/admin/products/1/delete").text
        assert client.post("/admin/products/1/delete").status_code == 404
        client.post("/admin/products/new", data={"name": "Moss stool", "shelf": "Textiles", "price": "90"})
        assert "Moss stool" in client.get("/admin/catalogue?page=3").text
        client.post("/admin/products/2", data={"name": "Halo II", "shelf": "Lighting", "price": "x", "stock": "1"})
        assert "Halo II" in client.get("/admin/catalogue").text
        assert 'value="Southfold"' in client.post("/admin/settings", data={"name": "Southfold"}).text
        client.post("/newsletter", data={"email": "a@b.example"})
        client.post("/help/contact", data={"text": "Hello"})
        assert (site.state.letters, site.state.messages) == (["a@b.example"], ["Hello"])


def test_visitor_input_is_escaped():
    with DemoSite() as site, httpx.Client(base_url=site.url, follow_redirects=True) as client:
        attack = "<script>alert(1)</script>\"'"
        for text in (
            client.get("/search", params={"q": attack}).text,
            client.post("/account/addresses", data={"label": attack, "street": attack}).text,
            client.post("/account", data={"name": attack, "email": attack}).text,
        ):
            assert "<script>alert" not in text
            assert "&lt;script&gt;" in text


def test_demo_site_runs_as_a_program_and_reports_a_port_in_use(site: DemoSite):
    port = urlsplit(site.url).port
    command = [sys.executable, "-W", "error", "-m", "waygraph.demo_site", "--port"]
    taken = subprocess.run([*command, str(port)], capture_output=True, text=True, check=False, timeout=60)
    assert taken.returncode == 1
    assert "Cannot listen" in taken.stderr
    with subprocess.Popen([*command, "0"], stdout=subprocess.PIPE, text=True) as running:
        line = running.stdout.readline()
        url = next(word for word in line.split() if word.startswith("http"))
        assert "Northfold" in httpx.get(url).text
        running.terminate()
        assert running.wait(30) == 0
