"""Flows through the page from end to end, on real maps: of the demo shop, and with `make ui-check` of a site of others.

Pictures of the views are left in the folder of `make ui-check PICTURES=FOLDER`, or the temporary folder of the tests.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import BrowserContext, Page, expect

from tests.mapped_sites import NEW_TEXT, MappedSite, map_gentelella, map_shop
from tests.page_service import KEY, RestartableService
from tests.page_views import WIDE, drop, take_pictures, watch
from waygraph.cli import main
from waygraph.index.store import Store

#: The first search loads the encoder, and maps are larger than those of other tests.
SLOW_MS = 60_000


@pytest.fixture(scope="module", params=["shop", "gentelella"])
def mapped(request, tmp_path_factory) -> Iterator[MappedSite]:
    folder = tmp_path_factory.mktemp(request.param)
    if request.param == "shop":
        site = request.getfixturevalue("shop").capture.site
        yield map_shop(site, request.getfixturevalue("shop_store"), folder)
    elif "WAYGRAPH_UI_SITES" not in os.environ:
        pytest.skip("needs a site from the npm registry: make ui-check")
    else:
        with map_gentelella(folder) as site:
            yield site


@pytest.fixture(scope="module")
def service(mapped) -> Iterator[RestartableService]:
    running = RestartableService(mapped.store)
    try:
        yield running
    finally:
        running.stop()


@pytest.fixture
def context(page_browser, service) -> Iterator[BrowserContext]:
    made = page_browser.new_context(viewport=WIDE)
    made.set_default_timeout(SLOW_MS)
    problems = watch(made, "blob:", "data:", "file:", service.url)
    yield made
    made.close()
    assert problems == []


@pytest.fixture
def page(context, service) -> Page:
    """A page in which the key was entered, on the list of sites."""
    opened = context.new_page()
    opened.goto(service.url)
    opened.get_by_label("API key", exact=True).fill(KEY)
    opened.keyboard.press("Enter")
    expect(opened.get_by_role("heading", name="Sites")).to_be_visible()
    return opened


def name_of(mapped: MappedSite, view: str) -> str:
    """Return the name of a picture: the view, and whose it is."""
    return f"{'shop' if 'shop' in mapped.store else 'gentelella'}-{view}"


def test_from_a_wrong_key_to_the_map_of_a_site(context, service, mapped, pictures):
    page = context.new_page()
    page.goto(service.url)
    page.get_by_label("API key", exact=True).fill("wrong")
    page.keyboard.press("Enter")
    expect(page.get_by_role("dialog")).to_contain_text("was not accepted")
    page.get_by_label("API key", exact=True).fill(KEY)
    page.get_by_role("button", name="Continue").click()
    card = page.get_by_role("link", name=mapped.site)
    states = len(Store.open(mapped.store).read(mapped.site).graph)
    expect(card).to_contain_text(f"{states} states")
    expect(card.locator("img")).to_be_visible()
    take_pictures(page, pictures, name_of(mapped, "sites"))
    card.click()
    expect(page.get_by_role("application", name=f"Map of {mapped.site}: {states} states")).to_be_visible()
    page.goto(f"{service.url}#/sites/nowhere.example")
    expect(page.get_by_text("'nowhere.example'").first).to_be_visible()
    page.get_by_role("link", name="all sites").first.click()
    expect(card).to_be_visible()


def test_the_map_is_filtered_and_a_state_shows_where_its_elements_lead_and_what_was_skipped(page, mapped, pictures):
    page.get_by_role("link", name=mapped.site).click()
    canvas = page.get_by_role("application")
    listed = page.get_by_role("list", name="States").get_by_role("link")
    expect(listed.first).to_be_visible()
    take_pictures(page, pictures, name_of(mapped, "map"))
    everything = canvas.get_attribute("aria-label")
    depth = page.get_by_label("Up to any depth")
    before = canvas.evaluate("map => map.toDataURL()")
    depth.fill("1")
    expect(page.get_by_label("Up to 1 action from the start")).to_be_visible()
    page.wait_for_function("before => document.querySelector('[role=application]').toDataURL() !== before", arg=before)
    assert "depth=1" in page.url
    page.get_by_label("Up to 1 action from the start").fill("9")
    page.get_by_label("Only states where something was skipped").check()
    skipping = listed.count()
    assert skipping > 0
    listed.first.click()
    state = page.get_by_role("region", name="State", exact=True)
    state.get_by_role("button", name="Left out").click()
    expect(state.locator(".tag-skipped").first).to_be_visible()
    page.get_by_label("Only states where something was skipped").uncheck()
    page.get_by_label("Find a state").fill(mapped.address)
    listed.first.click()
    state.get_by_role("button", name="Leads to").click()
    rows = state.get_by_role("list", name="Elements and where they lead").get_by_role("link")
    before = canvas.evaluate("map => map.toDataURL()")
    rows.last.hover()
    page.wait_for_function("before => document.querySelector('[role=application]').toDataURL() !== before", arg=before)
    expect(state.locator(".row-pointed")).to_have_count(1)
    take_pictures(page, pictures, name_of(mapped, "state"))
    assert canvas.get_attribute("aria-label") == everything


def test_a_search_explains_its_hits_and_shows_the_way(page, service, mapped, pictures):
    page.goto(f"{service.url}#/sites/{mapped.site}/search")
    page.get_by_label("What do you look for?").fill(mapped.query)
    page.keyboard.press("Enter")
    hits = page.locator(".hits > li > button")
    expect(hits.filter(has_text=mapped.address).first.locator(".why")).not_to_be_empty()
    page.get_by_label("Path starts").select_option(label="at the start page")
    hits.nth(first_shown_by_an_action(page, service, mapped)).click()
    steps = page.locator(".path .steps > li")
    expect(steps.last).to_contain_text("click")
    expect(page.get_by_alt_text("Where it matches: ").first).to_be_visible()
    steps.last.locator(".screenshot").scroll_into_view_if_needed()  # images are loaded when they come near the view
    expect(steps.last.locator(".screenshot .box")).to_be_visible()
    take_pictures(page, pictures, name_of(mapped, "search"))
    steps.last.get_by_role("link").click()
    expect(page.get_by_role("region", name="State", exact=True)).to_contain_text("reached by actions only")


def first_shown_by_an_action(page: Page, service: RestartableService, mapped: MappedSite) -> int:
    """Return the position of the first hit to which an action leads whose element is in the window."""
    version = Store.open(mapped.store).read(mapped.site)
    start = next(iter(version.graph.nodes))

    def ask(place: str, **request: object) -> Any:
        headers = {"authorization": f"Bearer {KEY}"}
        return page.request.post(f"{service.url}v1/sites/{mapped.site}/{place}", headers=headers, data=request).json()

    for at, hit in enumerate(ask("search", query=mapped.query, k=20)["hits"]):
        node = version.graph.nodes.get(hit["node_id"])
        if node is None or node.addressable:
            continue
        steps = ask("path", **{"from": start, "to": node.id})["steps"]
        source = steps[-2]["expected_node_id"] if len(steps) > 1 else start
        shown = version.observations[source].segments
        if any(each.text == steps[-1]["action"]["name"] and each.box.y < WIDE["height"] - 40 for each in shown):
            return at
    raise AssertionError("no hit is reached by such an action")


def test_the_trace_of_a_teleport_is_replayed_when_it_is_dropped_on_the_page(page, mapped, pictures):
    drop(page, mapped.trace)
    steps = page.get_by_role("region", name="Steps", exact=True)
    expect(steps).to_contain_text("arrived")
    step = page.get_by_role("region", name="Step", exact=True)
    expect(step.locator("img")).to_have_count(2)
    expect(steps.locator(".step-good").first).to_contain_text("as expected")
    expect(steps.locator(".step-bad")).to_have_count(0)
    take_pictures(page, pictures, name_of(mapped, "replay"))


def test_two_versions_are_compared(page, service, mapped, pictures):
    page.goto(f"{service.url}#/sites/{mapped.site}/changes")
    changes = page.get_by_role("region", name="Changes", exact=True)
    changes.get_by_role("list", name="Changed states").get_by_role("link", name=mapped.changed).first.click()
    state = page.get_by_role("region", name="State", exact=True)
    expect(state.get_by_role("list", name="New texts")).to_contain_text(NEW_TEXT)
    expect(state.locator("img")).to_have_count(2)
    take_pictures(page, pictures, name_of(mapped, "changes"))


def test_the_report_is_a_file_that_opens_from_disk(context, mapped, pictures, tmp_path):
    file = tmp_path / "report.html"
    assert main(["report", mapped.site, "-o", str(file), "--store", mapped.store]) == 0
    page = context.new_page()
    page.goto(file.as_uri())
    expect(page.get_by_role("application", name=f"Map of {mapped.site}")).to_be_visible()
    sheet = page.get_by_role("region", name="States", exact=True)
    expect(sheet.locator("img").first).to_be_visible()
    take_pictures(page, pictures, name_of(mapped, "report"))
    sheet.get_by_role("button").last.click()
    expect(page.get_by_role("region", name="State", exact=True)).to_contain_text("from the start page")


def test_what_is_shown_stays_while_the_service_is_away(page, service, mapped):
    page.get_by_role("link", name=mapped.site).click()
    listed = page.get_by_role("list", name="States").get_by_role("link")
    expect(listed.first).to_be_visible()
    service.stop()
    try:
        listed.nth(1).click()
        expect(page.locator(".banner")).to_contain_text("does not answer")
        expect(page.get_by_role("application")).to_be_visible()
    finally:
        service.start()
    expect(page.locator(".banner")).to_have_count(0)
    expect(page.get_by_role("region", name="State", exact=True).locator(".facts")).to_be_visible()
