"""Leads: which targets of links are kept, over which link, and what is known of them."""

import dataclasses
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from tests.sites.static_pages import BASE
from tests.sites.static_pages import look as snapshot_of
from waygraph.core.urls import normalize_url
from waygraph.index.graph import Edge, lead_id
from waygraph.pipeline.browser.page.snapshot import PageLink
from waygraph.pipeline.explore.engine.leads import (
    MAX_NAMES,
    MAX_REFUSED,
    MAX_TARGETS,
    MAX_URL,
    LeadSources,
    collect_leads,
    tried_targets,
)
from waygraph.pipeline.explore.policies.policy import Refusal
from waygraph.pipeline.explore.records.element_outcome import ElementOutcome
from waygraph.pipeline.explore.records.listing import ListedPage
from waygraph.pipeline.explore.records.state import State

#: Bytes of a lead to a short address.
SHORT = 400 + 2 * len(f"{BASE}/tickets/100")


def collected(pages, *, links=None, tried=(), budget=2**20, refuse=lambda *_: None, counters=None, **listing):
    """Return what is collected from states that show these pages (HTML by path), each one click from the one before.

    `links` are those that no element shows, by path: `PageLink`s with paths as addresses. `listing` is what the site
    lists, see `LeadSources`.
    """
    seen = [snapshot_of(html, f"{BASE}{path}") for path, html in pages.items()]
    for number, path in enumerate(pages):
        added = tuple(replace(link, url=f"{BASE}{link.url}") for link in (links or {}).get(path, ()))
        seen[number] = dataclasses.replace(seen[number], links=added)
    snapshots = {each.id: each for each in seen}
    sources = LeadSources(
        states={each.id: State.of(each, each.id, depth, None) for depth, each in enumerate(seen)},
        snapshot_of=snapshots.__getitem__,
        depth=lambda state_id: list(snapshots).index(state_id),
        normalize=normalize_url,
        url_key=normalize_url,
        is_in_scope=lambda url: url.startswith(BASE),
        refuse=refuse,
        tried={f"{BASE}{path}" for path in tried},
        **listing,
    )
    return collect_leads(sources, budget, Counter() if counters is None else counters)


def found(pages, **options):
    """Return the leads of `collected`."""
    return list(collected(pages, **options).leads.values())


def paths(leads):
    return [lead.url.removeprefix(BASE) for lead in leads]


def test_targets_that_are_no_states_and_were_not_tried_are_leads():
    html = "<a href='/'>Home</a><a href='/tried'>T</a><a href='/next'>N</a><a href='//other.example/'>O</a>"
    assert paths(found({"/": html}, tried=["/tried"])) == ["/next"]


def test_a_link_that_a_script_handled_in_the_page_was_not_followed():
    seen = snapshot_of("<a href='/in'>In</a><a href='/away'>Away</a><a href='/back'>Back</a>", f"{BASE}/")
    opened, away = snapshot_of("<p>Open</p>", f"{BASE}/"), snapshot_of("<p>Away</p>", f"{BASE}/away")
    states = {each.id: State.of(each, each.id, 0, None) for each in (seen, opened, away)}
    actions = [candidate.action for candidate in seen.candidates]
    targets = [opened, away, seen]  # a menu opens, a page is loaded, a redirect leads back
    edges = [Edge(seen.id, target.id, action) for target, action in zip(targets, actions, strict=True)]
    outcomes = [ElementOutcome(seen.id, str(action), "done", target=action.target) for action in actions]
    loaded = {f"{BASE}/away", f"{BASE}/back"}
    assert tried_targets(outcomes, edges, states, loaded.__contains__) == loaded


def test_a_lead_has_the_names_of_all_its_links_and_the_path_over_the_first():
    home = "<h2>Administration</h2><p>All of it</p><a href='/users'>People</a><p>Add and remove accounts</p>"
    (lead,) = found({"/": home, "/help": "<a href='/users'>Accounts</a><a href='/users'>People</a>"}, tried=["/help"])
    assert lead.names == ("People", "Accounts")
    assert (lead.heading, lead.description) == ("Administration", "Add and remove accounts")
    assert (lead.depth, lead.action.target, lead.id) == (1, f"{BASE}/users", lead_id(f"{BASE}/users"))


def test_a_link_that_no_policy_refuses_is_preferred():
    html = "<a href='/x'>Delete</a><a href='/x'>View</a><a href='/y'>Delete</a>"
    x, y = found({"/": html}, refuse=lambda c, _: Refusal("hazard") if c.action.name == "Delete" else None)
    assert (x.names, x.action.name, x.refusal) == (("View", "Delete"), "View", "")
    assert (y.names, y.refusal) == (("Delete",), "hazard")


def test_if_the_budget_is_too_small_the_hundredth_record_of_a_list_is_left_out_first():
    records = "".join(f"<li><a href='/tickets/{n}'>Ticket {n}</a></li>" for n in range(200))
    functions = "".join(f"<p><a href='/admin/{n}/list'>{n}</a></p>" for n in ("users", "mail", "backup", "log"))
    counters = Counter()
    kept = collected({"/": f"<ul>{records}</ul>{functions}"}, budget=10 * SHORT, counters=counters)
    urls = paths(kept.leads.values())
    assert {f"/admin/{n}/list" for n in ("users", "mail", "backup", "log")} <= set(urls)
    assert 9 <= len(urls) <= 10
    assert kept.left_out == {f"{BASE}/tickets/*": 204 - len(urls)}
    assert (counters["leads/known"], counters["leads/left_out"]) == (204, 204 - len(urls))


def test_visited_pages_count_as_pages_of_their_kind():
    links = "".join(f"<li><a href='/tickets/{n}'>Ticket {n}</a></li>" for n in range(60))
    other = "<ol>" + "".join(f"<li><a href='/users/{n}'>User {n}</a></li>" for n in range(60)) + "</ol>"
    tried = [f"/tickets/{n}" for n in range(50)]
    kept = paths(found({"/": f"<ul>{links}</ul>{other}"}, tried=tried, budget=8 * SHORT))
    assert len(kept) == 8
    assert all(path.startswith("/users/") for path in kept)


def test_nothing_is_kept_without_a_budget():
    assert found({"/": "<a href='/a'>A</a>"}, budget=0) == []


def test_an_index_of_functions_is_kept_as_a_whole_beside_thousands_of_records():
    functions = [
        f"/special/{name}" for name in ("pages", "users", "uploads", "blocks", "logs", "gadgets", "tags", "files")
    ]
    index = "".join(f"<li><a href='{path}'>{path[9:]}</a></li>" for path in functions)
    records = "".join(f"<li><a href='/item/{n}'>Item {n}</a></li>" for n in range(3_000))
    kept = paths(found({"/": f"<ul>{records}</ul><dl>{index}</dl>"}, budget=100 * SHORT))
    assert set(functions) <= set(kept)


def test_refused_leads_take_no_place_of_others_and_are_counted_by_reason():
    logouts = "".join(f"<a href='/logout?from={n}'>Log out</a>" for n in range(300))
    others = "".join(f"<li><a href='/tickets/{n}'>Ticket {n}</a></li>" for n in range(20))
    counters = Counter()

    def refuse(candidate, _):
        return Refusal("hazard") if candidate.action.name == "Log out" else None

    leads = found({"/": f"{logouts}<ul>{others}</ul>"}, refuse=refuse, counters=counters)
    assert [lead.names for lead in leads if lead.refusal] == [("Log out",)]
    assert sum(not lead.refusal for lead in leads) == 20
    assert counters["leads/refused/hazard"] == 300
    tight = found({"/": f"{logouts}<ul>{others}</ul>"}, refuse=refuse, budget=20 * SHORT)
    assert not any(lead.refusal for lead in tight)


def test_of_refused_leads_with_names_of_their_own_a_few_are_kept():
    html = "".join(f"<a href='/private/{n}'>{chr(945 + n % 24) * (1 + n // 24)}</a>" for n in range(3 * MAX_REFUSED))
    assert len(found({"/": html}, refuse=lambda *_: Refusal("robots"))) == MAX_REFUSED


def test_a_link_that_no_element_shows_is_a_lead_that_is_loaded():
    (lead,) = found({"/": "<p>Home</p>"}, links={"/": [PageLink("/reports", "Reports", hidden=True)]})
    assert (lead.names, lead.hidden, lead.depth) == (("Reports",), True, 1)
    assert (lead.action.kind, lead.action.url) == ("goto", f"{BASE}/reports")


@pytest.mark.parametrize("hidden_first", [True, False])
def test_a_link_that_is_hidden_on_one_page_and_visible_on_another_is_visible(hidden_first):
    shown, hiding = ("/a", "<a href='/reports'>All reports</a>"), ("/b", "<p>B</p>")
    pages = dict([hiding, shown] if hidden_first else [shown, hiding])
    (lead,) = found(pages, links={"/b": [PageLink("/reports", "Reports", hidden=True)]})
    assert (lead.names, lead.hidden, lead.action.kind) == (("All reports",), False, "click")


def test_a_hidden_link_does_not_permit_what_a_policy_refuses_at_the_visible_one():
    (lead,) = found(
        {"/": "<a href='/x'>Delete</a>"},
        links={"/": [PageLink("/x", "", hidden=True)]},
        refuse=lambda c, _: Refusal("hazard") if c.action.name == "Delete" else None,
    )
    assert (lead.refusal, lead.hidden) == ("hazard", False)


def test_policies_judge_hidden_links():
    (lead,) = found(
        {"/": "<p>Home</p>"},
        links={"/": [PageLink("/private", "", hidden=True)]},
        refuse=lambda c, _: Refusal("robots") if "private" in c.action.target else None,
    )
    assert (lead.refusal, lead.hidden) == ("robots", True)


def test_downloads_are_no_leads():
    seen = snapshot_of("<a href='/list.csv'>Export</a>", f"{BASE}/")
    page = dataclasses.replace(seen, candidates=tuple(replace(each, download=True) for each in seen.candidates))
    assert collect_leads(sources_of(page), 2**20, Counter()).leads == {}


@given(st.lists(st.tuples(st.integers(0, 30), st.text(max_size=3)), max_size=40), st.integers(0, 12))
def test_each_page_has_at_most_one_lead(links, count):
    html = "".join(f"<a href='/p{number:02}'>{name}</a>" for number, name in links)
    kept = found({"/": html}, budget=count * (400 + 2 * len(f"{BASE}/p00")))
    assert len({lead.url for lead in kept}) == len(kept) == min(count, len({number for number, _ in links}))
    assert all(len(lead.names) <= MAX_NAMES and all(lead.names) for lead in kept)


@pytest.mark.parametrize("length", [MAX_URL, MAX_URL + 1])
def test_urls_that_no_request_can_contain_are_counted_and_left_out(length):
    counters = Counter()
    path = "/" + "a" * (length - len(BASE) - 1)
    kept = found({"/": f"<a href='{path}'>Long</a><a href='/b'>B</a>"}, counters=counters)
    assert len(kept) == 2 - (length > MAX_URL)
    assert counters["leads/too_long"] == (length > MAX_URL)


def test_a_long_url_takes_the_place_of_several_short_ones():
    links = "".join(f"<a href='/{'a' * 5_000}/{n}'>Long {n}</a>" for n in range(10))
    kept = found({"/": f"{links}<a href='/short'>Short</a>"}, budget=12_000)
    assert "/short" in paths(kept)
    assert len(kept) == 2


def sources_of(page):
    return LeadSources(
        states={page.id: State.of(page, page.id, 0, None)},
        snapshot_of=lambda _: page,
        depth=lambda _: 0,
        normalize=normalize_url,
        url_key=normalize_url,
        is_in_scope=lambda _: True,
        refuse=lambda *_: None,
        tried=frozenset(),
    )


@pytest.mark.extended
def test_of_more_links_than_are_compared_the_rest_is_counted():
    page = snapshot_of("<a href='/0'>Go</a>", f"{BASE}/")
    element = page.candidates[0]
    many = tuple(
        replace(element, action=replace(element.action, name=f"Go {n:x}", target=f"{BASE}/{n}"))
        for n in range(MAX_TARGETS + 10)
    )
    counters = Counter()
    found = collect_leads(sources_of(dataclasses.replace(page, candidates=many)), 500 * SHORT, counters)
    assert 0 < len(found.leads) < 600
    assert (counters["leads/known"], counters["leads/too_many"]) == (MAX_TARGETS, 10)


def listed(pages, entries, *, budget=2**20, refuse_url=lambda _: None, counters=None):
    """Return the leads of these pages (HTML by path) on a site that lists these pages: (path, name, date)."""
    listing = [ListedPage(f"{BASE}{path}", name, date) for path, name, date in entries]
    return found(pages, budget=budget, counters=counters, listed=listing, refuse_url=refuse_url)


def test_pages_that_only_the_site_lists_are_leads_without_a_link():
    first, second = listed(
        {"/": "<a href=/linked>Linked</a>"},
        [("/", "Home", ""), ("/linked", "Its title", "2026-01-02"), ("/new#top", "New  shoes", "2026-01-03")],
    )
    assert (first.names, first.lastmod, first.is_linked) == (("Linked",), "2026-01-02", True)
    assert (second.url, second.names, second.lastmod) == (f"{BASE}/new", ("New shoes",), "2026-01-03")
    assert (str(second.action), second.state, second.is_linked) == (f"goto {BASE}/new", first.state, False)


def test_a_link_without_a_name_gets_the_listed_title():
    (lead,) = listed({"/": "<a href=/linked><img></a>"}, [("/linked", "Its title", "")])
    assert lead.names == ("Its title",)


def test_listed_pages_take_the_room_that_links_leave_and_the_first_of_each_kind_comes_first():
    pages = {"/": "<a href=/linked>Linked</a>"}
    records = [(f"/shop/{n}", "", "") for n in range(9)]
    kept = listed(
        pages, [*records, ("/shop/help", "", ""), ("/find?q=1", "", ""), ("/find?q=2", "", "")], budget=4 * SHORT
    )
    assert paths(kept) == ["/linked", "/shop/0", "/find?q=1", "/shop/help"]


def test_listed_pages_that_a_policy_refuses_are_counted_and_take_no_room():
    counters = Counter()
    refuse = {f"{BASE}/private": "robots"}.get
    kept = listed({"/": ""}, [("/private", "", ""), ("/b", "", "")], budget=SHORT, refuse_url=refuse, counters=counters)
    assert (paths(kept), counters["sitemap/refused"], counters["leads/listed"]) == (["/b"], 1, 1)


def test_what_is_listed_twice_has_the_name_of_one_and_the_date_of_the_other():
    lead, *more = listed({"/": ""}, [("/a", "Shoes", ""), ("/a", "Page", "2026-01-02")])
    assert (lead.names, lead.lastmod, more) == (("Shoes",), "2026-01-02", [])


def test_a_link_without_a_name_lifts_a_refusal_too():
    html = "<a href=/p>Buy now</a><a href=/p><img></a>"
    (lead,) = found({"/": html}, refuse=lambda c, _: Refusal("hazard") if c.action.name else None)
    assert (lead.refusal, lead.names) == ("", ("Buy now",))
