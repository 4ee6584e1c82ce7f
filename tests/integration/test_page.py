"""The page of the service in a real browser, under a path prefix and behind an API key.

Screenshots of the views are left in the temporary folder of the tests.
"""

from __future__ import annotations

import io
import socket
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import uvicorn
from PIL import Image, ImageDraw
from playwright.sync_api import Browser, BrowserContext, Page, expect, sync_playwright
from starlette.types import ASGIApp, Receive, Scope, Send

from tests.small_map import SmallMap
from waygraph.core.settings import Settings
from waygraph.index.graph import InteractionGraph, Lead, lead_id
from waygraph.index.store import Store
from waygraph.index.store.element_outcomes import write_element_outcomes
from waygraph.pipeline.browser.process.find import find_browser
from waygraph.pipeline.encode.registry import create_encoder
from waygraph.serve.http.api import create_api
from waygraph.serve.query.maps import Maps

KEY = "a long secret"
PREFIX = "/maps"
TEA, ODD = SmallMap("tea.example"), SmallMap("odd.example:8080")
HOME, CARDS, ACCOUNT, RETURNS = (TEA.id(name) for name in ("home", "cards", "account", "returns"))
NEWS = "http://tea.example/news"
#: Titles of `ODD`: markup, direction marks, and more text than anybody reads.
HOSTILE = {
    "home": "<script>document.title = 'run'</script><img src=x onerror=\"document.title='run'\">",
    "returns": "\u202egnp.exe \u2066 \u05e9\u05dc\u05d5\u05dd \u0000 \u0007",
    "account": "long " * 2_000,
    "cards": "{{7*7}} ${7*7} javascript:alert(1)",
}
AXE = Path(__file__).parents[2] / "serve" / "ui" / "node_modules" / "axe-core" / "axe.min.js"
WIDE, NARROW = {"width": 1280, "height": 800}, {"width": 390, "height": 844}


def screenshot_of(name: str) -> bytes:
    image = Image.new("RGB", (1280, 800), "white")
    draw = ImageDraw.Draw(image)
    draw.rectangle((0, 0, 1280, 36), fill="darkslategray")
    draw.text((20, 8), name, fill="white", font_size=20)
    written = io.BytesIO()
    image.save(written, "JPEG")
    return written.getvalue()


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> str:
    opened = Store.open(str(tmp_path_factory.mktemp("page") / "maps"), create=True)
    encoder = create_encoder(Settings().encode)
    draft = TEA.draft(encoder, opened.blobs)
    skipped = {"state": HOME, "element": 'click link "Sign out"', "status": "skipped", "reason": "hazard"}
    rows = [{**skipped, "detail": "Sign out", "rule": "the lexicon of names"}]
    lead = Lead(lead_id(NEWS), NEWS, ("News",), "", "", HOME, TEA.edges[0].action, 1)
    seen = {
        node_id: replace(each, screenshot=opened.blobs.put(screenshot_of(each.title)) if each.screenshot else "")
        for node_id, each in draft.observations.items()
    }
    report = {"seconds": 61.5, "skips": rows, "fates": opened.blobs.put(write_element_outcomes(rows))}
    opened.publish(replace(draft, observations=seen, report=report, leads={lead.id: lead}))
    odd = ODD.draft(encoder, opened.blobs)
    titles = {ODD.id(name): title for name, title in HOSTILE.items()}
    nodes = [replace(node, title=titles[node.id]) for node in odd.graph.nodes.values()]
    edges = [replace(e, action=replace_name(e.action, titles[e.target])) for e in odd.graph.edges]
    seen = {node_id: replace(each, title=titles[node_id]) for node_id, each in odd.observations.items()}
    opened.publish(replace(odd, graph=InteractionGraph(nodes, edges), observations=seen))
    return opened.location


def replace_name(action, name: str):
    return type(action).from_json({**action.to_json(), "name": name})


class RestartableService:
    """The service behind a proxy that removes a path prefix; it can be stopped, and started at the same address."""

    def __init__(self, store: str) -> None:
        self._settings = Settings(store=store, serve={"api_keys": [KEY]})
        self._port = 0
        self.start()

    def start(self) -> None:
        self._maps = Maps(self._settings)
        self._maps.open()
        self._listening = socket.create_server(("127.0.0.1", self._port))
        self._port = self._listening.getsockname()[1]
        config = uvicorn.Config(without_prefix(create_api(self._settings, self._maps)), log_level="error")
        self._server = uvicorn.Server(config)
        self._thread = threading.Thread(target=self._server.run, kwargs={"sockets": [self._listening]})
        self._thread.start()

    def stop(self) -> None:
        self._server.should_exit = True
        self._thread.join()
        self._listening.close()
        self._maps.close()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._port}{PREFIX}/"


def without_prefix(app: ASGIApp) -> ASGIApp:
    async def proxy(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            assert scope["path"].startswith(f"{PREFIX}/"), scope["path"]
            path = scope["path"].removeprefix(PREFIX)
            scope = {**scope, "path": path, "raw_path": scope["raw_path"].removeprefix(PREFIX.encode())}
        await app(scope, receive, send)

    return proxy


@pytest.fixture(scope="module")
def service(store: str) -> Iterator[RestartableService]:
    running = RestartableService(store)
    try:
        yield running
    finally:
        running.stop()


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with sync_playwright() as driver:
        flags = ["--disable-background-networking", "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1"]
        started = driver.chromium.launch(executable_path=str(find_browser().path), args=flags)
        yield started
        started.close()


@pytest.fixture(scope="module")
def pictures(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("pictures")


@pytest.fixture
def problems() -> list[str]:
    """What went wrong in the browser: script errors, violations of the policy, requests to other hosts."""
    return []


@pytest.fixture
def context(browser: Browser, service: RestartableService, problems: list[str]) -> Iterator[BrowserContext]:
    made = browser.new_context(viewport=WIDE)  # type: ignore[arg-type]
    made.on("weberror", lambda error: problems.append(str(error.error)))
    made.on("console", lambda message: problems.append(message.text) if "Content Security" in message.text else None)
    own = ("blob:", service.url)
    made.on("request", lambda request: None if request.url.startswith(own) else problems.append(request.url))
    yield made
    made.close()


@pytest.fixture
def page(context: BrowserContext, service: RestartableService, problems: list[str]) -> Iterator[Page]:
    """A page in which the key was entered."""
    opened = context.new_page()
    opened.goto(service.url)
    opened.get_by_label("API key", exact=True).fill(KEY)
    opened.keyboard.press("Enter")
    expect(opened.get_by_role("heading", name="Sites")).to_be_visible()
    yield opened
    assert problems == []


def open_view(page: Page, service: RestartableService, view: str) -> None:
    page.goto(f"{service.url}#{view}")


def test_a_key_is_asked_for_once_and_a_wrong_one_again(context, service, problems):
    page = context.new_page()
    page.goto(service.url)
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text("needs an API key")
    page.get_by_label("API key", exact=True).fill("wrong")
    page.keyboard.press("Enter")
    expect(dialog).to_contain_text("was not accepted")
    page.get_by_label("API key", exact=True).fill(KEY)
    page.get_by_role("button", name="Continue").click()
    expect(page.get_by_role("link", name="tea.example")).to_be_visible()
    page.reload()
    expect(page.get_by_role("link", name="tea.example")).to_be_visible()
    expect(dialog).to_have_count(0)
    page.get_by_role("button", name="Forget the key").click()
    expect(dialog).to_contain_text("needs an API key")
    assert problems == []


def test_sites_are_cards_with_image_size_and_outcome(page, pictures):
    card = page.get_by_role("link", name="tea.example")
    expect(card).to_contain_text("4 states")
    expect(card).to_contain_text("1 page not visited")
    expect(card).to_contain_text("Complete: 1 element skipped")
    expect(card.locator("img")).to_be_visible()
    expect(page.get_by_role("link", name="odd.example:8080")).to_contain_text("No screenshot")
    take_pictures(page, pictures, "sites")
    card.click()
    expect(page.get_by_role("application", name="Map of tea.example")).to_be_visible()


def test_a_state_is_found_selected_and_shows_its_elements(page, service, pictures):
    open_view(page, service, "/sites/tea.example")
    expect(page.get_by_role("application")).to_be_visible()
    page.keyboard.press("/")
    page.keyboard.type("refunds")
    listed = page.get_by_role("list", name="States")
    expect(listed.get_by_role("link")).to_have_count(1)
    assert "find=refunds" in page.url
    page.get_by_label("Find a state").fill("tea & coffee")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    state = page.get_by_role("region", name="State", exact=True)
    expect(state.get_by_role("heading")).to_have_text("Tea & Coffee")
    expect(state).to_contain_text(HOME)
    expect(state.get_by_alt_text("Screenshot of Tea & Coffee")).to_be_visible()
    expect(state.locator(".box")).to_have_count(2)
    state.locator(".box").first.hover()
    expect(state.locator(".row-pointed")).to_contain_text("Account")
    take_pictures(page, pictures, "state")
    state.get_by_role("button", name="Left out").click()
    expect(state).to_contain_text("hazard")
    expect(state).to_contain_text("decided by: the lexicon of names")
    state.get_by_role("button", name="Texts").click()
    expect(state).to_contain_text("Welcome to our shop")
    state.get_by_role("button", name="Not visited").click()
    state.get_by_role("link", name="News").click()
    expect(state).to_contain_text("known from links only")


def test_every_view_has_an_address_and_the_back_button_leads_through_them(page, service):
    open_view(page, service, f"/sites/tea.example/states/{CARDS[:10]}")
    state = page.get_by_role("region", name="State", exact=True)
    expect(state).to_contain_text("reached by actions only")
    expect(state).to_contain_text("No screenshot")
    state.get_by_role("link", name="click tab “Details”").click()
    expect(state.get_by_role("heading")).to_have_text("Your account")
    expect(state).to_contain_text(ACCOUNT)
    page.go_back()
    expect(state).to_contain_text(CARDS)
    page.keyboard.press("Escape")
    expect(state).to_have_count(0)
    page.go_back()
    expect(state).to_contain_text(CARDS)


def test_the_map_is_driven_by_keyboard_and_pointer(page, service):
    open_view(page, service, "/sites/tea.example")
    canvas = page.get_by_role("application")
    canvas.focus()
    page.keyboard.press("ArrowRight")  # the start
    state = page.get_by_role("region", name="State", exact=True)
    expect(state).to_contain_text(HOME)
    canvas.focus()
    page.keyboard.press("ArrowRight")
    expect(state).to_contain_text("1 action from the start page")
    page.keyboard.press("Escape")
    expect(state).to_have_count(0)
    page.keyboard.press("0")
    box = canvas.bounding_box()
    for key in ("+", "-", "Shift+ArrowLeft", "Shift+ArrowRight", "0"):
        page.keyboard.press(key)
    page.wait_for_timeout(400)  # the movement of the view
    page.mouse.click(box["x"] + box["width"] / 2, box["y"] + box["height"] - 8)
    expect(state).to_have_count(0)


def test_a_search_shows_hits_and_the_path_step_by_step(page, service, pictures):
    open_view(page, service, "/sites/tea.example")
    page.get_by_role("link", name="Search", exact=True).click()
    page.get_by_label("What do you look for?").fill("pay with a credit card")
    page.keyboard.press("Enter")
    hits = page.get_by_role("list", name="Hits")
    expect(hits.get_by_role("button").first).to_contain_text("Your account")
    expect(page.get_by_role("region", name="Search")).to_contain_text(" ms")
    hits.get_by_role("button").first.click()
    path = page.locator(".path")
    expect(path).to_contain_text("2 steps")
    expect(path.get_by_role("link").first).to_contain_text("load http://tea.example/account")
    page.get_by_label("Path starts").select_option(label="at the start page")
    expect(path.get_by_role("link").first).to_contain_text("click link “Account”")
    expect(path.get_by_role("link").nth(1)).to_contain_text("click tab “Cards”")
    take_pictures(page, pictures, "search")
    path.get_by_text("Copy this search and path").click()
    for form, part in (("curl", f"{PREFIX}/v1/sites/tea.example/path"), ("Python", "maps.path("), ("JSON", '"steps"')):
        path.get_by_role("button", name=form, exact=True).click()
        expect(path.locator("pre")).to_contain_text(part)
        expect(path.locator("pre")).not_to_contain_text(KEY)
    page.reload()
    expect(path.get_by_role("link").nth(1)).to_contain_text("click tab “Cards”")
    page.go_back()
    expect(path.get_by_role("link").first).to_contain_text("load http://tea.example/account")


def test_a_path_that_does_not_exist_is_explained(page, service):
    open_view(page, service, f"/sites/tea.example/search?q=welcome&from=ffffffff&to={HOME}")
    expect(page.get_by_role("alert")).to_contain_text("no state 'ffffffff'")


def test_hostile_texts_are_texts(page, service):
    open_view(page, service, "/sites/odd.example:8080")
    listed = page.get_by_role("list", name="States")
    expect(listed).to_contain_text("<script>document.title = 'run'</script>")
    for name in HOSTILE:
        open_view(page, service, f"/sites/odd.example%3A8080/states/{ODD.id(name)}")
        state = page.get_by_role("region", name="State", exact=True)
        expect(state).to_contain_text(ODD.id(name))
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    open_view(page, service, "/sites/odd.example:8080/search?q=<script>alert(1)</script>")
    expect(page.get_by_role("list", name="Hits")).to_be_visible()
    assert page.title() == "odd.example:8080 · waygraph"
    assert page.locator("main script, main [onerror]").count() == 0


@pytest.mark.parametrize(
    ("view", "shown"),
    [
        ("/sites/nowhere.example", "'nowhere.example'"),
        ("/sites/tea.example/states/ffffffff", "has no state ffffffff"),
        ("/nowhere", "There is no such page"),
    ],
)
def test_what_is_not_there_is_explained(page, service, view, shown):
    open_view(page, service, view)
    expect(page.get_by_text(shown).first).to_be_visible()
    page.get_by_role("link", name="all sites").first.click()
    expect(page.get_by_role("heading", name="Sites")).to_be_visible()


def test_a_service_that_goes_away_is_noticed_and_its_return_too(page, service):
    open_view(page, service, "/sites/tea.example")
    expect(page.get_by_role("application")).to_be_visible()
    service.stop()
    try:
        open_view(page, service, f"/sites/tea.example/states/{RETURNS}")
        expect(page.locator(".banner")).to_contain_text("does not answer")
        expect(page.get_by_role("application")).to_be_visible()
    finally:
        service.start()
    expect(page.locator(".banner")).to_have_count(0)
    expect(page.get_by_role("region", name="State", exact=True)).to_contain_text("Returns and refunds")


@pytest.mark.parametrize("colours", ["light", "dark"])
def test_axe_finds_nothing_serious(page, service, colours):
    if not AXE.is_file():
        pytest.skip("axe-core is not installed: npm ci in serve/ui")
    page.emulate_media(color_scheme=colours)
    views = (
        "/",
        "/sites/tea.example",
        f"/sites/tea.example/states/{HOME}",
        f"/sites/tea.example/search?q=credit+card&to={CARDS}",
        "/sites/nowhere.example",
    )
    for size in (WIDE, NARROW):
        page.set_viewport_size(size)
        for view in views:
            open_view(page, service, view)
            expect(page.locator(".loading")).to_have_count(0)
            page.evaluate(AXE.read_text(encoding="utf-8"))
            found = page.evaluate("axe.run(document)")
            assert len(found["passes"]) > 10
            assert [
                (view, size["width"], each["id"], node["html"])
                for each in found["violations"]
                if each["impact"] in {"serious", "critical"}
                for node in each["nodes"]
            ] == []


def take_pictures(page: Page, folder: Path, name: str) -> None:
    """Leave pictures of a view in both sizes and colours."""
    for size in (NARROW, WIDE):
        page.set_viewport_size(size)  # type: ignore[arg-type]
        for colours in ("dark", "light"):
            page.emulate_media(color_scheme=colours)  # type: ignore[arg-type]
            page.screenshot(path=folder / f"{name}-{size['width']}-{colours}.png")
