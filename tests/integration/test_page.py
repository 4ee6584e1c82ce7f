"""The page of the service in a real browser, under a path prefix and behind an API key.

Screenshots of the views are left in the temporary folder of the tests.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, Route, expect

from tests.agent_run import FOUND, make_agent_run
from tests.page_service import KEY, PREFIX, RestartableService, screenshot_of
from tests.page_store import (
    ACCOUNT,
    CARDS,
    DOM,
    HOME,
    HOSTILE,
    ODD,
    RETURNS,
    TEA,
    VISUAL,
    make_store,
    make_visual_store,
)
from tests.page_views import NARROW, WIDE, drop, serious_violations, take_pictures, watch
from waygraph.agents.runner.task_replay import replay_of_task
from waygraph.agents.scoring.run_folder import RunFolder
from waygraph.core.replay_file import ReplayContents, ReplayFile, ReplayOutcome, ReplayPage, ReplayStep
from waygraph.core.run_progress import PROGRESS_NAME, ActiveSite, RunProgress
from waygraph.core.schemas import UsageModel
from waygraph.core.settings import Settings
from waygraph.index.store import Store
from waygraph.pipeline.encode.registry import create_encoder


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> str:
    return make_store(str(tmp_path_factory.mktemp("page") / "maps"))


@pytest.fixture(scope="module")
def service(store: str) -> Iterator[RestartableService]:
    running = RestartableService(store)
    try:
        yield running
    finally:
        running.stop()


@pytest.fixture
def context(page_browser: Browser, service: RestartableService) -> Iterator[BrowserContext]:
    made = page_browser.new_context(viewport=WIDE)
    problems = watch(made, "blob:", service.url)
    yield made
    made.close()
    assert problems == []


@pytest.fixture
def page(context: BrowserContext, service: RestartableService) -> Page:
    """A page in which the key was entered."""
    opened = context.new_page()
    opened.goto(service.url)
    opened.get_by_label("API key", exact=True).fill(KEY)
    opened.keyboard.press("Enter")
    expect(opened.get_by_role("heading", name="Sites")).to_be_visible()
    return opened


def open_view(page: Page, service: RestartableService, view: str) -> None:
    page.goto(f"{service.url}#{view}")


def walk() -> ReplayFile:
    """A teleport of two steps, of which the second leads elsewhere."""
    contents = ReplayContents()

    def shown(title: str, node_id: str = "", *, with_image: bool = True) -> ReplayPage:
        key = contents.add_image(screenshot_of(title)) if with_image else ""
        return ReplayPage(node_id=node_id, url="http://tea.example/account", title=title, screenshot=key)

    home, account, cards = shown("Tea & Coffee", HOME), shown("Your account", ACCOUNT), shown("Payment cards", CARDS)
    login = shown("Sign in", with_image=False)
    steps: list[dict[str, Any]] = [
        {"action": "click link “Account”", "agrees": True, "before": home, "expected": account, "after": account},
        {"action": "click tab “Cards”", "agrees": False, "before": account, "expected": cards, "after": login},
    ]
    steps[1] |= {"status": "drifted", "message": "It led to a login.", "ms": 312.5}
    outcome = ReplayOutcome(status="arrived_elsewhere", good=False, message="The page is another one.")
    recorded = [ReplayStep(**step) for step in steps]
    return contents.file("teleport", title="Payment cards", site="tea.example", steps=recorded, outcome=outcome)


def attempt() -> ReplayFile:
    """A run of an agent with one step."""
    contents = ReplayContents()
    text = contents.add_text("Tea & Coffee\n[1] link Returns <svg onload=alert(1)>")
    before = ReplayPage(url="http://tea.example/", text=text, screenshot=contents.add_image(screenshot_of("Tea")))
    usage = UsageModel(model="model", calls=1, input_tokens=900, output_tokens=30, seconds=1.5, cost=0.002)
    step = ReplayStep(
        action="click [1]", status="done", before=before, thinking="<b>Returns</b> fits.\nSo click it.", usage=usage
    )
    outcome = ReplayOutcome(status="answered", answer="30 days")
    return contents.file("agent", title="How long can I return?", steps=[step], outcome=outcome)


def test_a_key_is_asked_for_once_and_a_wrong_one_again(context, service):
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


def test_a_request_that_was_refused_while_the_key_was_entered_is_sent_again(context, service):
    page = context.new_page()
    held: list[Route] = []
    # Only the first list of sites: it is answered when the key has been entered.
    page.route("**/v1/cards", lambda route: held.append(route), times=1)  # noqa: PLW0108 - not of a builtin
    page.goto(service.url)
    page.get_by_label("API key", exact=True).fill(KEY)
    page.get_by_role("button", name="Continue").click()
    expect(page.get_by_role("dialog")).to_have_count(0)
    held[0].continue_()
    expect(page.get_by_role("link", name="tea.example")).to_be_visible()


@pytest.mark.parametrize("read", ["before the key is kept", "after it is kept"])
def test_a_refusal_whose_text_is_read_while_the_key_is_entered_is_no_refusal_of_this_key(context, service, read):
    """The refusal of the list of sites has arrived; its text is read as soon as the key is sent, or later."""
    page = context.new_page()
    page.add_init_script(
        """
        const readText = Response.prototype.json;
        const entered = new Promise((resolve) => (window.goOn = resolve));
        Response.prototype.json = async function () {
          const answer = await readText.call(this);
          if (this.status === 401 && this.url.endsWith("/v1/cards")) {
            window.isHeld = true;
            await entered;
          }
          return answer;
        };
        """
    )
    page.goto(service.url)
    page.wait_for_function("() => window.isHeld")
    page.get_by_label("API key", exact=True).fill(KEY)
    if read == "before the key is kept":
        # What a resolved promise starts runs before the page's own listener.
        page.evaluate("document.addEventListener('submit', () => window.goOn(), { capture: true })")
    page.get_by_role("button", name="Continue").click()
    expect(page.get_by_role("dialog")).to_have_count(0)
    page.evaluate("window.goOn()")
    expect(page.get_by_role("link", name="tea.example")).to_be_visible()
    expect(page.get_by_role("dialog")).to_have_count(0)


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
    state.get_by_role("button", name="Tools 1").click()
    (tool,) = state.get_by_role("list", name="What can be done here").get_by_role("listitem").all_inner_texts()
    shown = "ask only reads “<b>Asks</b> the shop.” Inputs: question (required), days declared by a script"
    assert " ".join(tool.split()) == shown
    expect(state).to_contain_text("inputs are the page")
    state.get_by_role("button", name="Not visited").click()
    state.get_by_role("link", name="News").click()
    expect(state).to_contain_text("known from links only")


def test_captures_of_a_state_are_downloaded_and_those_that_are_not_kept_are_named(page, service):
    open_view(page, service, f"/sites/tea.example/states/{HOME}")
    files = page.get_by_role("group", name="Download")
    with page.expect_download() as waiting:
        files.get_by_role("button", name="DOM").click()
    assert waiting.value.suggested_filename == f"{HOME[:8]}.html.txt"
    assert Path(waiting.value.path()).read_text() == DOM
    with page.expect_download():
        files.get_by_role("button", name="Screenshot").click()
    open_view(page, service, f"/sites/tea.example/states/{CARDS}")
    expect(files).to_contain_text("Not kept of this state: DOM, Accessibility snapshot")
    expect(files.get_by_role("button")).to_have_count(0)


def test_the_whole_map_stays_in_view_when_the_window_changes_its_size(page, service):
    open_view(page, service, "/sites/tea.example")
    canvas, small = page.get_by_role("application"), page.locator(".mini-map")
    canvas.focus()
    page.keyboard.press("0")
    expect(small).to_be_hidden()
    page.set_viewport_size({"width": 1000, "height": 500})
    page.wait_for_function("document.querySelector('[role=application]').height < 500")
    page.wait_for_function("() => new Promise((drawn) => requestAnimationFrame(() => requestAnimationFrame(drawn)))")
    assert small.is_hidden()


def test_the_minimap_is_shown_while_a_part_of_the_map_is_out_of_view_and_moves_it(page, service):
    open_view(page, service, "/sites/tea.example")
    canvas, small = page.get_by_role("application"), page.locator(".mini-map")
    canvas.focus()
    page.keyboard.press("0")
    expect(small).to_be_hidden()
    for _ in range(5):
        page.keyboard.press("+")
    expect(small).to_be_visible()
    before = canvas.evaluate("map => map.toDataURL()")
    box = small.bounding_box()
    page.mouse.click(box["x"] + 8, box["y"] + box["height"] / 2)
    page.mouse.move(box["x"] + 300, box["y"] - 200)
    page.wait_for_function("before => document.querySelector('[role=application]').toDataURL() !== before", arg=before)
    page.keyboard.press("0")
    expect(small).to_be_hidden()


def test_the_progress_of_a_run_is_shown_while_it_goes_on(page, service, store, pictures):
    def write(*active: ActiveSite, ended: bool = False) -> None:
        now = datetime.now(UTC).isoformat()
        progress = RunProgress(
            run_id="20261122-062321-0a1b2c", work="index", updated=now, ended=ended, sites=9, done={"failed": 2},
            active=list(active),
        )  # fmt: skip
        Store.open(store).write_run(progress.run_id, PROGRESS_NAME, progress.model_dump_json().encode())

    since = datetime.now(UTC).isoformat()
    mapped = ActiveSite(site="tea.example", phase="exploring", since=since, attempt=1, states=34, pending=12)
    begun = ActiveSite(site="new.example", phase="encoding", since=since, attempt=2, states=5)
    write(mapped, begun)
    expect(page.get_by_role("link", name="tea.example")).to_contain_text("Being explored: 34 states, 12 pending")
    expect(page.get_by_text("Being encoded: 5 states")).to_contain_text("attempt 2")
    expect(page.get_by_role("list", name="Runs that are going on")).to_contain_text(
        "2 of 9 sites done, 2 failed, 2 in progress"
    )
    take_pictures(page, pictures, "progress")
    write(ended=True)
    expect(page.get_by_text("Being explored")).to_have_count(0)
    expect(page.get_by_role("link", name="tea.example")).to_contain_text("4 states")
    expect(page.get_by_text("new.example")).to_have_count(0)


def test_parts_of_a_screenshot_that_matched_are_marked(page_browser, tmp_path, pictures):
    visual = RestartableService(make_visual_store(str(tmp_path / "maps")), **VISUAL)
    page = page_browser.new_page(viewport=WIDE)
    try:
        page.goto(f"{visual.url}#/sites/tea.example/search?q=red+red+blue&to={HOME}")
        page.get_by_label("API key", exact=True).fill(KEY)
        page.keyboard.press("Enter")
        hit = page.locator(".hits > li").filter(has_text="Tea & Coffee")
        expect(hit).to_contain_text("2 parts of its screenshot")
        parts = hit.locator(".matched .box-heat")
        expect(parts).to_have_count(2)
        shown = [
            part.evaluate("part => [part.style.left, part.style.top, part.style.width, part.style.height]")
            for part in parts.all()
        ]
        assert shown == [["25%", "25%", "25%", "25%"], ["75%", "75%", "25%", "25%"]], "red, then blue"
        strong, weak = (float(part.evaluate("part => part.style.opacity")) for part in parts.all())
        assert strong > weak
        expect(hit.locator(".matched")).to_contain_text("earned 100% of the score")
        take_pictures(page, pictures, "search-patches")
    finally:
        page.close()
        visual.stop()


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
    forms = {
        "curl": f"{PREFIX}/v1/sites/tea.example/path",
        "Python": "maps.path(",
        "MCP": '"name": "path_to"',
        "JSON": '"steps"',
    }
    for form, part in forms.items():
        path.get_by_role("button", name=form, exact=True).click()
        expect(path.locator("pre")).to_contain_text(part)
        expect(path.locator("pre")).not_to_contain_text(KEY)
    page.reload()
    expect(path.get_by_role("link").nth(1)).to_contain_text("click tab “Cards”")
    page.go_back()
    expect(path.get_by_role("link").first).to_contain_text("load http://tea.example/account")


def test_the_texts_that_match_are_boxed_on_the_screenshot_of_a_chosen_hit(page, service):
    open_view(page, service, f"/sites/tea.example/search?q=send+something+back&to={RETURNS}")
    expect(page.get_by_alt_text("Where it matches: ")).to_be_visible()
    expect(page.locator(".matched .box").first).to_have_attribute("title", "Send something back")


def test_changes_show_states_before_and_after(page, service, pictures):
    open_view(page, service, "/sites/tea.example")
    page.get_by_role("link", name="Changes", exact=True).click()
    changes = page.get_by_role("region", name="Changes", exact=True)
    expect(changes).to_contain_text("1 changed · 1 new · 2 states unchanged")
    expect(changes.get_by_role("list", name="New states")).to_contain_text("Returns and refunds")
    state = page.get_by_role("region", name="State", exact=True)
    expect(state.get_by_role("list", name="Texts that are gone")).to_contain_text("Old delivery address")
    expect(state.get_by_role("list", name="New texts")).to_contain_text("Delivery address")
    for alternative in ("Before: Version 1", "After: Version 2"):
        expect(state.get_by_alt_text(alternative)).to_be_visible()
    sources = {image.get_attribute("src") for image in state.locator("img").all()}
    assert len(sources) == 2
    take_pictures(page, pictures, "changes")
    page.keyboard.press("ArrowDown")
    expect(state.get_by_role("heading").first).to_have_text("Returns and refunds")
    expect(state).to_contain_text("Not in this version")
    page.reload()
    expect(state.get_by_role("heading").first).to_have_text("Returns and refunds")
    changes.get_by_role("link", name="changed action").click()
    expect(page.get_by_role("list", name="Changed tools")).to_contain_text("changed ask")
    expect(page.get_by_role("list", name="Changed tools")).to_contain_text("+days, schema")
    expect(page.get_by_role("region", name="Changed actions")).to_contain_text("click link “Returns”")
    page.go_back()
    state.get_by_role("link", name="Show it on the map").click()
    expect(page.get_by_role("region", name="State", exact=True)).to_contain_text(RETURNS)


def test_versions_are_chosen_and_those_that_are_not_there_are_explained(page, service):
    open_view(page, service, "/sites/tea.example/changes?from=2&to=1")
    changes = page.get_by_role("region", name="Changes", exact=True)
    expect(changes.get_by_role("list", name="States that are gone")).to_contain_text("Returns and refunds")
    changes.get_by_label("To version").select_option("1")
    open_view(page, service, "/sites/tea.example/changes?from=7")
    expect(page.get_by_role("alert")).to_contain_text("has no version 7")
    page.get_by_role("link", name="The last two versions").click()
    expect(changes).to_contain_text("1 new")
    open_view(page, service, "/sites/odd.example:8080/changes")
    expect(page.get_by_text("There is one version of this map")).to_be_visible()


def test_the_map_shows_only_states_that_changed_since_a_version(page, service):
    open_view(page, service, "/sites/tea.example")
    listed = page.get_by_role("list", name="States")
    expect(listed.get_by_role("link")).to_have_count(4)
    page.get_by_label("Changed since version").select_option("1")
    expect(listed.get_by_role("link")).to_have_count(2)
    expect(listed).to_contain_text("Returns and refunds")
    page.reload()
    expect(listed.get_by_role("link")).to_have_count(2)
    page.get_by_label("Changed since version").select_option("")
    expect(listed.get_by_role("link")).to_have_count(4)


def test_the_tree_of_a_dropped_search_is_drawn(page, tmp_path):
    make_agent_run(tmp_path)
    drop(page, replay_of_task(RunFolder(tmp_path).task_folder(FOUND)).model_dump_json())
    page.get_by_role("button", name="Search tree").click()
    tree = page.get_by_role("group", name="Search tree")
    expect(tree.locator("img")).to_have_count(3)
    assert all(each.evaluate("image => image.complete && image.naturalWidth > 0") for each in tree.locator("img").all())
    boxes = [each.bounding_box() for each in tree.get_by_role("button").all()]
    assert boxes[0]["x"] < boxes[1]["x"] == boxes[2]["x"], "states below are to the right"
    tree.get_by_role("button", name="2. Returns page").click()
    expect(page.get_by_role("region", name="State 2")).to_contain_text("the answer was chosen here")
    page.reload()
    expect(page.get_by_text("Drop a trace here")).to_be_visible()


def test_a_dropped_teleport_is_replayed_with_expected_beside_actual(page, service, pictures):
    expect(page.get_by_role("heading", name="Sites")).to_be_visible()
    drop(page, walk().model_dump_json())
    steps = page.get_by_role("region", name="Steps", exact=True)
    expect(steps.get_by_role("heading")).to_have_text("Payment cards")
    expect(steps).to_contain_text("arrived elsewhere: The page is another one.")
    step = page.get_by_role("region", name="Step", exact=True)
    expect(step.get_by_alt_text("Expected: Your account")).to_be_visible()
    expect(step.get_by_alt_text("Actual: Your account")).to_be_visible()
    page.keyboard.press("ArrowRight")
    assert page.url.endswith("#/replay?step=2")
    expect(step).to_contain_text("Here it drifted. It led to a login.")
    expect(step.get_by_alt_text("Expected: Payment cards")).to_be_visible()
    expect(step.locator("figure").last).to_contain_text("No screenshot")
    take_pictures(page, pictures, "replay")
    expect(step.get_by_role("button", name="Next step")).to_be_disabled()
    steps.get_by_role("button", name="Close").click()
    expect(page.get_by_text("Drop a trace here")).to_be_visible()


def test_a_chosen_run_of_an_agent_shows_its_words_tokens_and_what_it_read(page, service):
    open_view(page, service, "/replay")
    file = {"name": "task.json", "mimeType": "application/json", "buffer": attempt().model_dump_json().encode()}
    page.get_by_label("Trace file").set_input_files(file)  # type: ignore[arg-type]
    expect(page.get_by_role("region", name="Steps", exact=True)).to_contain_text("930 tokens")
    step = page.get_by_role("region", name="Step", exact=True)
    expect(step.get_by_label("In the model's words")).to_contain_text("<b>Returns</b> fits.")
    expect(step).to_contain_text("900 tokens in, 30 out")
    expect(step.get_by_alt_text("Before: ")).to_be_visible()
    step.get_by_text("What the agent read").click()
    expect(step.get_by_label("What the agent read")).to_contain_text("[1] link Returns")
    assert page.locator("main b, main svg").count() == 0


@pytest.mark.parametrize(
    ("content", "shown"),
    [
        ("not json", "no JSON document"),
        ("[]", "no replay of waygraph"),
        ('{"format": "waygraph-replay", "version": 9, "steps": []}', "this page reads version 1"),
        ('{"format": "waygraph-replay", "version": 1}', "no list of steps"),
    ],
)
def test_a_dropped_file_that_is_no_replay_is_explained(page, content, shown):
    drop(page, content)
    expect(page.get_by_role("alert")).to_contain_text(shown)
    drop(page, walk().model_dump_json())
    expect(page.get_by_role("region", name="Step", exact=True)).to_be_visible()


def test_images_of_a_replay_that_may_hold_scripts_are_not_shown(page):
    document = walk().model_dump()
    document["images"] = dict.fromkeys(document["images"], "data:image/svg+xml;base64,PHN2Zy8+")
    document["steps"][0] |= {"details": {"__proto__": 1}, "thinking": HOSTILE["home"], "ms": "soon", "usage": 7}
    drop(page, json.dumps(document))
    step = page.get_by_role("region", name="Step", exact=True)
    expect(step).to_contain_text("<script>document.title")
    expect(step.locator("figure").first).to_contain_text("No screenshot")
    assert step.locator("img").count() == 0


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


def test_a_new_version_of_the_map_that_is_shown_is_noticed(page_browser, tmp_path):
    location = make_store(str(tmp_path / "maps"))
    store, encoder = Store.open(location), create_encoder(Settings().encode)
    own = RestartableService(location)
    page = page_browser.new_page(viewport=WIDE)
    try:
        page.clock.install()
        page.goto(f"{own.url}#/sites/tea.example")
        page.get_by_label("API key", exact=True).fill(KEY)
        page.keyboard.press("Enter")
        expect(page.get_by_role("application", name="Map of tea.example: 4 states")).to_be_visible()
        store.publish(TEA.draft(encoder, store.blobs, without=("returns",)))
        own.refresh()
        page.clock.fast_forward(6_000)
        expect(page.locator(".banner")).to_contain_text("Version 3 of the map was published meanwhile.")
        expect(page.get_by_role("application", name="Map of tea.example: 4 states")).to_be_visible()
        page.get_by_role("button", name="Load it").click()
        expect(page.get_by_role("application", name="Map of tea.example: 3 states")).to_be_visible()
        expect(page.locator(".banner")).to_have_count(0)
        store.remove("tea.example")
        own.refresh()
        page.clock.fast_forward(6_000)
        expect(page.locator(".banner")).to_contain_text("was removed meanwhile")
    finally:
        page.close()
        own.stop()


@pytest.mark.parametrize("colours", ["light", "dark"])
def test_axe_finds_nothing_serious(page, service, colours):
    if "WAYGRAPH_AXE" not in os.environ:
        pytest.skip("needs axe-core from the npm registry: make ui-check")
    page.emulate_media(color_scheme=colours)
    views = (
        "/",
        "/sites/tea.example",
        f"/sites/tea.example/states/{HOME}",
        f"/sites/tea.example/search?q=credit+card&to={CARDS}",
        "/sites/tea.example/changes",
        "/replay",
        "/sites/nowhere.example",
    )
    for size in (WIDE, NARROW):
        page.set_viewport_size(size)
        for view in views:
            open_view(page, service, view)
            if view == "/replay":
                drop(page, walk().model_dump_json())
                expect(page.get_by_role("region", name="Step", exact=True)).to_be_visible()
            expect(page.locator(".loading")).to_have_count(0)
            if "/states/" in view:
                page.get_by_role("button", name="Tools 1").click()
            assert serious_violations(page) == [], (view, size["width"])
