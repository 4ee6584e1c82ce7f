"""The baseline without a language model, on the demo shop, with and without its map."""

import pytest

from tests.browsers import BROWSERS, LOOPBACK_ONLY
from waygraph import AsyncWaygraph
from waygraph.agents.actions import AgentSession, NavigateAction, SessionOptions
from waygraph.agents.greedy import GreedyAgent, GreedyOptions
from waygraph.core.settings import EncodeSettings, ExploreSettings
from waygraph.demo_site import DemoSite
from waygraph.pipeline.encode.registry import create_encoder
from waygraph.pipeline.explore.policies.scope import Scope


@pytest.fixture(scope="module")
def encoder():
    return create_encoder(EncodeSettings())


@pytest.fixture(scope="module")
def site():
    with DemoSite() as running:
        yield running


def run(url, encoder, task, *, maps_in=None, mapped="", **options):
    async def work():
        browser = await BROWSERS.browser()
        context = await browser.new_context(viewport={"width": 1280, "height": 800}, reduced_motion="reduce")
        maps = AsyncWaygraph(maps_in) if maps_in else None
        try:
            page = await context.new_page()
            await page.goto(url)
            async with AgentSession(page, SessionOptions(browser=LOOPBACK_ONLY), maps=maps) as session:
                return await GreedyAgent(
                    session, encoder, GreedyOptions(sites=[mapped] if mapped else [], **options)
                ).run(task)
        finally:
            await context.close()
            if maps:
                await maps.close()

    return BROWSERS.run(work())


def test_it_clicks_what_is_nearest_and_stops_there(site, encoder):
    done = run(site.url, encoder, "a warm wool throw")
    assert (done.end, done.url) == ("answered", site.url + "p/fjord-wool-throw")
    assert [step.status for step in done.steps] == ["done"]
    assert done.answer == "Fjord wool throw"
    assert done.steps[0].action == "click [15] link 'Fjord wool throw'"


def test_it_tries_nothing_twice_and_goes_back_from_dead_ends(site, encoder):
    done = run(site.url, encoder, "change the password of a customer", max_steps=12)
    clicks = [(step.state, step.action) for step in done.steps if step.action.startswith("click")]
    assert len(clicks) == len(set(clicks))
    assert len(done.steps) <= 12


def test_with_the_map_it_stops_where_the_map_leads(shop, shop_store, encoder):
    task = "sales by month in the back office"
    without = run(shop.site.url, encoder, task)
    done = run(shop.site.url, encoder, task, maps_in=shop_store, mapped=shop.capture.site)
    assert [(step.action, step.status) for step in done.steps] == [("navigate", "done")]
    assert done.end == "answered"
    assert done.url.startswith(shop.site.url + "admin")
    assert not without.url.startswith(shop.site.url + "admin/reports")


def test_navigate_says_where_it_led_or_why_not(shop, shop_store):
    async def work():
        browser = await BROWSERS.browser()
        context = await browser.new_context(viewport={"width": 1280, "height": 800}, reduced_motion="reduce")
        try:
            page = await context.new_page()
            scope = Scope.of("elsewhere.example", ExploreSettings())
            async with AsyncWaygraph(shop_store) as maps:
                reports = []
                for wanted, site in [(None, shop.capture.site), (None, "nowhere.example"), (scope, shop.capture.site)]:
                    async with AgentSession(
                        page, SessionOptions(browser=LOOPBACK_ONLY, scope=wanted), maps=maps
                    ) as session:
                        reports.append(await session.act(NavigateAction(site=site, query="how returns work")))
                return reports
        finally:
            await context.close()

    there, unknown, outside = BROWSERS.run(work())
    assert there.status == "done"
    assert there.message.startswith('Arrived at the page "Returns · Northfold".')
    assert there.observation.url == shop.site.url + "help/returns"
    assert "The page is now Returns" in str(there)
    assert unknown.status == "failed"
    assert "nowhere.example" in unknown.message
    assert outside.status == "refused"
