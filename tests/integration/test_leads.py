"""Pages that are known and were not visited: collected, searched, walked to and verified."""

import asyncio
import json

import pytest

from tests.browsers import BROWSERS, LOOPBACK_ONLY, shared_browser
from tests.exploring import explore_with
from tests.sites.server import FixtureServer, Page
from waygraph.cli import main
from waygraph.core.errors import NoPath, Superseded
from waygraph.core.schemas import Filter
from waygraph.core.settings import EncodeSettings, Settings
from waygraph.index.graph import lead_id
from waygraph.index.graph.export import to_json
from waygraph.index.store import Store
from waygraph.pipeline.encode.registry import create_encoder
from waygraph.pipeline.jobs.exploring.refresh import refresh_site
from waygraph.pipeline.jobs.publishing.draft import draft_from_capture, encode_draft
from waygraph.sdk.local import StoreMap
from waygraph.sdk.teleport import teleport

HOME = """<title>Shop</title><h1>Shop</h1><nav><a href="/help">Help</a></nav><a href="/archive" hidden>Archive</a>"""
HELP = """<title>Help</title><h1>Help</h1><h2>Your orders</h2>
<ul><li><a href="/returns">Send something back</a> <span>Labels and refunds</span></li>
<li><a href="/invoices">Invoices</a></li><li><a href="/gone">Gift cards</a></li>
<li><a href="/private">Suppliers</a></li><li><a href="/sign-out">Log out</a></li>
<li><a href="http://elsewhere.invalid/">Elsewhere</a></li></ul>"""
PAGES = {
    "/": HOME,
    "/help": HELP,
    "/returns": "<title>Returns</title><h1>Send back what you do not like</h1>",
    "/invoices": "<title>Sign in</title><h1>Please sign in</h1>",
    "/gone": Page("<h1>Gift cards are not here</h1>", status=404),
    "/private": "<h1>Suppliers</h1>",
    "/letters": "<title>Send a letter</title><h1>Send a letter</h1>",
    "/sign-out": "<h1>Good bye</h1>",
    "/archive": "<title>Archive</title><h1>Old orders</h1>",
    "/robots.txt": Page("User-agent: *\nDisallow: /private\n", content_type="text/plain"),
}


@pytest.fixture(scope="module")
def settings(tmp_path_factory):
    location = str(tmp_path_factory.mktemp("leads") / "maps")
    return Settings(browser=LOOPBACK_ONLY, explore={"depth": 1, "workers": 2}, store=location)


@pytest.fixture(scope="module")
def shop(settings):
    """The running site, its capture to depth 1, and its published map."""
    with FixtureServer(PAGES) as site:
        store = Store.open(settings.store, create=True)
        capture = explore_with(settings, site.url, blobs=store.blobs)
        store.publish(encode_draft(capture, settings, create_encoder(EncodeSettings())))
        with StoreMap(store.location, settings) as maps:
            yield site, capture, maps


def lead_at(capture, path):
    (lead,) = [lead for lead in capture.leads.values() if lead.url.endswith(path)]
    return lead


def walk(maps, capture, path, start="", **options):
    async def run():
        async with shared_browser() as browser:
            context = await browser.new_context(viewport={"width": 1280, "height": 800}, reduced_motion="reduce")
            page = await context.new_page()
            await page.goto(capture.start_url + start)
            return await teleport(page, maps, capture.site, lead_at(capture, path).id, **options)

    return BROWSERS.run(run())


def test_links_at_the_depth_limit_are_leads_with_their_context(shop):
    _, capture, _ = shop
    assert {lead.names for lead in capture.leads.values()} == {
        ("Send something back",), ("Invoices",), ("Gift cards",), ("Suppliers",), ("Log out",), ("Archive",)
    }  # fmt: skip
    lead = lead_at(capture, "/returns")
    assert (lead.heading, lead.description, lead.depth) == ("Your orders", "Labels and refunds", 2)
    assert lead_at(capture, "/private").refusal == "robots"
    assert lead_at(capture, "/sign-out").refusal == "hazard"


def test_elements_at_the_depth_limit_are_counted_by_kind(shop):
    _, capture, _ = shop
    counters = capture.report.counters
    # Of the six links of the page one leads elsewhere, one is disallowed, and one is hazardous.
    assert counters["depth_limit/link"] == 3
    assert (counters["leads/known"], counters["leads/hidden"]) == (6, 1)
    assert (counters["leads/refused/robots"], counters["leads/refused/hazard"]) == (1, 1)


def test_a_lead_is_found_by_its_name_and_marked(shop):
    _, capture, maps = shop
    hit = maps.search(capture.site, "send something back", 3).hits[0]
    assert (hit.visited, hit.title, hit.refusal) == (False, "Send something back", "")
    private = next(hit for hit in maps.search(capture.site, "suppliers", 10).hits if hit.title == "Suppliers")
    assert (private.visited, private.refusal) == (False, "robots")
    only = maps.search(capture.site, "send something back", 10, Filter(visited_only=True)).hits
    assert {hit.node_id for hit in only} == set(capture.graph.nodes)


@pytest.mark.parametrize("allow_goto", [True, False])
def test_a_walk_to_a_lead_arrives_unmapped(shop, allow_goto):
    _, capture, maps = shop
    result = walk(maps, capture, "/returns", allow_goto=allow_goto)
    assert (result.outcome, result.arrived, result.node_id) == (
        "arrived_unmapped", True, lead_at(capture, "/returns").id
    )  # fmt: skip
    assert [step.action.split()[0] for step in result.steps] == (["goto"] if allow_goto else ["click", "click"])


def test_a_walk_to_a_page_whose_link_no_person_sees_loads_its_url(shop):
    site, capture, maps = shop
    assert "/archive" not in {path for _, path in site.requests}
    assert (lead_at(capture, "/archive").hidden, lead_at(capture, "/returns").hidden) == (True, False)
    assert maps.node(capture.site, lead_at(capture, "/archive").id).lead.hidden
    result = walk(maps, capture, "/archive")
    assert (result.outcome, [step.action.split()[0] for step in result.steps]) == ("arrived_unmapped", ["goto"])
    with pytest.raises(NoPath, match="only loading its URL"):
        maps.path(capture.site, None, lead_at(capture, "/archive").id, allow_goto=False)


def test_a_page_with_a_word_of_the_link_is_left_for_the_page_that_the_link_leads_to(shop):
    site, capture, maps = shop
    result = walk(maps, capture, "/returns", start="letters")
    assert (result.outcome, result.url) == ("arrived_unmapped", site.at("/returns"))


@pytest.mark.parametrize(("path", "problem"), [("/gone", "404"), ("/invoices", "Invoices")])
def test_a_page_that_does_not_fit_its_links_is_not_an_arrival(shop, path, problem):
    _, capture, maps = shop
    result = walk(maps, capture, path)
    assert (result.outcome, result.node_id) == ("failed", None)
    assert problem in result.problem


def test_no_path_leads_to_a_refused_lead(shop):
    site, capture, maps = shop
    with pytest.raises(NoPath, match="robots"):
        maps.path(capture.site, None, lead_at(capture, "/private").id)
    result = walk(maps, capture, "/private")
    assert (result.outcome, result.steps) == ("arrived_elsewhere", ())
    assert "robots" in result.problem
    assert not {"/private", "/sign-out"} & {path for _, path in site.requests}


def test_a_lead_has_an_answer_of_its_own(shop):
    _, capture, maps = shop
    lead = lead_at(capture, "/returns")
    answer = maps.node(capture.site, lead.id[:8])
    assert (answer.node_id, answer.lead.names, answer.lead.state) == (lead.id, list(lead.names), lead.state)
    assert (maps.site(capture.site).leads, len(capture.leads)) == (6, 6)


@pytest.fixture
def cli(shop, settings, capsys):
    """Run a command on the map; return its exit code and output."""

    def run(command, *words):
        capsys.readouterr()
        code = main([command, shop[1].site, *words, "--store", settings.store])
        return code, capsys.readouterr().out

    return run


def test_commands_mark_leads_and_list_them(shop, cli):
    _, capture, _ = shop
    lead, refused = lead_at(capture, "/returns"), lead_at(capture, "/private")
    code, out = cli("search", "send something back", "-k", "1")
    assert (code, f"{lead.url}  [{lead.id[:8]}]  (not visited)" in out) == (0, True)
    assert "not visited" not in cli("search", "send something back", "--visited-only")[1]
    assert "(not visited, left alone: robots)" in cli("search", "suppliers")[1]
    assert "6 pages more are known and were not visited" in cli("show")[1]
    assert "known from links only" in cli("show", lead.id)[1]
    assert "no path leads there: its links are left alone (robots)" in cli("show", refused.id)[1]
    listed = json.loads(cli("show", "--leads", "--offset", "1", "--limit", "2", "--json")[1])
    assert (len(listed["leads"]), listed["total"]) == (2, 6)
    (hidden,) = json.loads(cli("show", "/", "--leads", "--json")[1])["leads"]
    assert (hidden["hidden"], "Archive  (hidden)" in cli("show", "/", "--leads")[1]) == (True, True)
    assert "no person sees a link to it" in cli("show", hidden["id"])[1]
    assert json.loads(cli("show", "/help", "--leads", "--json")[1])["total"] == 5
    exported = json.loads(cli("export")[1])["leads"]
    assert [each["id"] for each in exported] == sorted(capture.leads)


@pytest.mark.extended
def test_leads_do_not_depend_on_the_number_of_workers(shop, settings):
    site, capture, _ = shop
    alone = settings.model_copy(update={"explore": settings.explore.model_copy(update={"workers": 1})})
    again = explore_with(alone, site.url, blobs=Store.open(settings.store).blobs)
    one, other = (to_json("x", 1, each.graph, leads=each.leads) for each in (capture, again))
    assert one == other


@pytest.mark.extended
def test_leads_that_agents_reached_are_visited_first_by_the_next_refresh(tmp_path):
    links = "".join(f"<li><a href='/item/{n}'>Item {n}</a></li>" for n in range(40))
    pages = {"/": f"<h1>Items</h1><ul>{links}</ul>"} | {f"/item/{n}": f"<h1>Item {n}</h1>" for n in range(40)}
    limits = {"depth": 1, "max_states": 6}
    settings = Settings(browser=LOOPBACK_ONLY, explore=limits, store=str(tmp_path / "maps"))
    with FixtureServer(pages) as site:
        store = Store.open(settings.store, create=True)
        capture = explore_with(settings, site.url, blobs=store.blobs)
        store.publish(draft_from_capture(capture, settings))
        wanted = lead_at(capture, "/item/37")
        with StoreMap(store.location, settings) as maps:
            assert [walk(maps, capture, "/item/37").outcome for _ in range(2)] == ["arrived_unmapped"] * 2
        refreshed = asyncio.run(refresh_site(site.url, settings=settings, blobs=store.blobs))
        assert wanted.url in {node.url for node in refreshed.graph.nodes.values()}
        assert wanted.id not in refreshed.leads
        store.publish(draft_from_capture(refreshed, settings))
        with StoreMap(store.location, settings) as maps, pytest.raises(Superseded) as error:
            maps.node(capture.site, lead_id(wanted.url))
    assert refreshed.graph.nodes[error.value.successor].url == wanted.url
