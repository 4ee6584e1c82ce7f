"""A teleport arrives where it reports, and reports when it does not arrive."""

import os
import random
from contextlib import asynccontextmanager, contextmanager

import pytest
from playwright.sync_api import sync_playwright

from tests.browsers import BROWSERS, LOOPBACK_ONLY, shared_browser
from tests.ground_truth.demo_shop import truth
from tests.ground_truth.match import match_states
from waygraph import Waygraph
from waygraph.core.errors import EnvironmentMissing, NoPath, NotFound
from waygraph.pipeline.browser.process.launch import ARGUMENTS, find_browser
from waygraph.sdk.local import StoreMap
from waygraph.sdk.sync_page import run
from waygraph.sdk.teleport import teleport

PAIRS = int(os.environ.get("WAYGRAPH_TELEPORTS", "16"))
"""Random teleports; `make soak-teleports` asks for more."""


@pytest.fixture(scope="module")
def maps(shop_store):
    with StoreMap(str(shop_store)) as source:
        yield source


@asynccontextmanager
async def open_page(shop):
    """Open a page with the capture profile of the map."""
    async with shared_browser() as browser:
        context = await browser.new_context(viewport={"width": 1280, "height": 800}, reduced_motion="reduce")
        yield await context.new_page()


@pytest.fixture(scope="module")
def ids(shop):
    """Node id of every true state."""
    base = shop.site.url.rstrip("/")
    matches = match_states(truth(), shop.capture.graph, shop.capture.observations, base)
    return {key: node_id for node_id, (key,) in matches.items()}


def random_pairs(shop, maps):
    """Return pairs of states with a path: half of the targets not addressable, half without goto."""
    chance = random.Random(2026)
    nodes = list(shop.capture.graph.nodes.values())
    pairs = []
    while len(pairs) < PAIRS:
        number = len(pairs)
        allow_goto, addressable = number % 2 == 0, number % 4 < 2
        source = chance.choice(nodes)
        target = chance.choice([n for n in nodes if n.addressable is addressable and n.id != source.id])
        if allow_goto or has_way(maps, shop.capture.site, source.id, target.id):
            pairs.append((source.id, target.id, allow_goto))
    return pairs


def has_way(maps, site, source, target):
    try:
        maps.path(site, source, target, allow_goto=False)
    except NoPath:
        return False
    return True


@pytest.mark.extended
@pytest.mark.timeout(300 + 10 * PAIRS)
def test_random_teleports_arrive(shop, maps):
    site = shop.capture.site

    async def walk_all():
        problems = []
        async with open_page(shop) as page:
            for source, target, allow_goto in random_pairs(shop, maps):
                began = await teleport(page, maps, site, source)
                assert began.outcome == "arrived", began
                result = await teleport(page, maps, site, target, allow_goto=allow_goto)
                if result.outcome != "arrived" or result.node_id != target:
                    problems.append((source, target, allow_goto, result))
                await close_other_tabs(page)
        return problems

    assert BROWSERS.run(walk_all()) == []


async def close_other_tabs(page):
    for other in page.context.pages:
        if other is not page:
            await other.close()


def test_a_teleport_starts_from_any_page_of_the_site(shop, maps, ids):
    async def walk():
        async with open_page(shop) as page:
            await page.goto(shop.site.url + "help/returns")
            return await teleport(page, maps, shop.capture.site, ids["admin/settings"])

    result = BROWSERS.run(walk())
    assert (result.outcome, result.node_id) == ("arrived", ids["admin/settings"])
    assert result.steps[-1].agrees


def test_changed_target_page_is_never_reported_as_reached(shop, maps, ids):
    """The recorded element exists and opens something other than recorded."""
    target = next(node_id for key, node_id in ids.items() if key.startswith("p/fjord-wool-throw+"))

    async def walk():
        async with open_page(shop) as page:
            await page.add_init_script(
                """addEventListener('click', (event) => {
                    event.stopImmediatePropagation();
                    event.preventDefault();
                    document.body.insertAdjacentHTML('beforeend', '<hr><p>Sorry, this went wrong</p>');
                }, true)"""
            )
            return await teleport(page, maps, shop.capture.site, target)

    result = BROWSERS.run(walk())
    assert result.outcome == "failed"
    assert result.problem


def test_missing_element_is_not_replaced_by_another_one(shop, maps, ids):
    async def walk():
        clicked = []
        async with open_page(shop) as page:
            await page.expose_function("noteClick", lambda text: clicked.append(text))  # noqa: PLW0108 - has a __dict__
            await page.add_init_script(
                """addEventListener('DOMContentLoaded', () => {
                    for (const tab of document.querySelectorAll('[role=tab]')) tab.textContent = 'Renamed';
                    addEventListener('click', (event) => noteClick(event.target.textContent), true);
                })"""
            )
            result = await teleport(page, maps, shop.capture.site, ids["p/tide-vase+reviews"])
        return result, clicked

    result, clicked = BROWSERS.run(walk())
    assert result.outcome != "arrived"
    assert "Renamed" not in clicked


def test_an_unknown_target_is_an_error(shop, maps):
    async def walk():
        async with open_page(shop) as page:
            await page.goto(shop.site.url)
            await teleport(page, maps, shop.capture.site, "0" * 32)

    with pytest.raises(NotFound):
        BROWSERS.run(walk())


@contextmanager
def open_sync_page():
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=find_browser(None).path, args=[*ARGUMENTS, *LOOPBACK_ONLY.extra_args]
        )
        context = browser.new_context(viewport={"width": 1280, "height": 800}, reduced_motion="reduce")
        yield context.new_page()


def test_teleport_works_on_a_page_of_the_sync_api(shop, shop_store, maps, ids):
    """The rest of that API keeps working during the walk and after it."""
    site = shop.capture.site
    noticed = []
    with open_sync_page() as page, Waygraph(shop_store) as sync_maps:
        page.on("request", lambda request: noticed.append(request.frame.page.url))  # a call within a handler
        began = sync_maps.teleport(page, site, ids["admin/settings"])
        assert (began.outcome, began.page is page) == ("arrived", True)
        assert page.title()
        assert noticed
        new_tabs = 0
        for source, target, allow_goto in random_pairs(shop, maps)[:6]:
            assert sync_maps.teleport(page, site, source).outcome == "arrived"
            result = sync_maps.teleport(page, site, target, allow_goto=allow_goto)
            assert (result.outcome, result.node_id) == ("arrived", target), result
            assert type(result.page) is type(page)
            assert result.page.evaluate("1 + 1") == 2
            new_tabs += result.page is not page
            for other in page.context.pages:
                if other is not page:
                    other.close()
        with pytest.raises(NotFound):
            sync_maps.teleport(page, site, "0" * 32)
        assert page.main_frame.evaluate("() => document.readyState") == "complete"


def test_an_unsupported_version_of_playwright_is_an_error():
    with pytest.raises(EnvironmentMissing):
        run(object(), lambda _: None)
