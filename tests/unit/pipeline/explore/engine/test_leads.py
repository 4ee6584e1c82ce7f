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
from waygraph.pipeline.explore.engine import leads as module
from waygraph.pipeline.explore.engine.leads import MAX_LINKS, MAX_URL, LeadSources, collect_leads, tried_targets
from waygraph.pipeline.explore.policies.policy import Refusal
from waygraph.pipeline.explore.records.element_outcome import ElementOutcome
from waygraph.pipeline.explore.records.state import State


def found(pages, *, tried=(), limit=1_000, refuse=lambda *_: None, counters=None):
    """Return the leads of states that show these pages (HTML by path), each one click from the one before."""
    seen = [snapshot_of(html, f"{BASE}{path}") for path, html in pages.items()]
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
    )
    return list(collect_leads(sources, limit, Counter() if counters is None else counters).values())


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


def test_of_more_targets_than_may_be_kept_those_of_new_kinds_are():
    records = "".join(f"<li><a href='/tickets/{n}'>Ticket {n}</a></li>" for n in range(200))
    functions = "".join(f"<p><a href='/admin/{n}/list'>{n}</a></p>" for n in ("users", "mail", "backup", "log"))
    kept = paths(found({"/": f"<ul>{records}</ul>{functions}"}, limit=10))
    assert {f"/admin/{n}/list" for n in ("users", "mail", "backup", "log")} <= set(kept)
    assert len(kept) == 10


def test_visited_pages_count_as_pages_of_their_kind():
    links = "".join(f"<li><a href='/tickets/{n}'>Ticket {n}</a></li>" for n in range(60))
    other = "<ol>" + "".join(f"<li><a href='/users/{n}'>User {n}</a></li>" for n in range(60)) + "</ol>"
    tried = [f"/tickets/{n}" for n in range(50)]
    kept = paths(found({"/": f"<ul>{links}</ul>{other}"}, tried=tried, limit=8))
    assert all(path.startswith("/users/") for path in kept)


def test_nothing_is_kept_if_the_limit_is_zero():
    assert found({"/": "<a href='/a'>A</a>"}, limit=0) == []


@given(st.lists(st.tuples(st.integers(0, 30), st.text(max_size=3)), max_size=40), st.integers(0, 12))
def test_each_page_has_at_most_one_lead(links, limit):
    html = "".join(f"<a href='/p{number}'>{name}</a>" for number, name in links)
    kept = found({"/": html}, limit=limit)
    assert len({lead.url for lead in kept}) == len(kept) == min(limit, len({number for number, _ in links}))
    assert all(len(lead.names) <= MAX_LINKS and all(lead.names) for lead in kept)


@pytest.mark.parametrize("length", [MAX_URL, MAX_URL + 1])
def test_urls_that_no_request_can_contain_are_counted_and_left_out(length):
    counters = Counter()
    path = "/" + "a" * (length - len(BASE) - 1)
    kept = found({"/": f"<a href='{path}'>Long</a><a href='/b'>B</a>"}, counters=counters)
    assert len(kept) == 2 - (length > MAX_URL)
    assert counters["leads/too_long"] == (length > MAX_URL)


def test_long_urls_do_not_exceed_their_share(monkeypatch):
    monkeypatch.setattr(module, "MAX_URL_CHARACTERS", 10_000)
    links = "".join(f"<a href='/{'a' * 5_000}/{n}'>Long {n}</a>" for n in range(10))
    kept = found({"/": f"{links}<a href='/short'>Short</a>"})
    assert "/short" in paths(kept)
    assert len(kept) == 2


@pytest.mark.extended
def test_a_page_of_200_000_links_gives_as_many_leads_as_may_be_kept():
    page = snapshot_of("<a href='/0'>Go</a>", f"{BASE}/")
    element = page.candidates[0]
    many = tuple(
        replace(element, action=replace(element.action, name=f"Go {n}", target=f"{BASE}/{n}")) for n in range(200_000)
    )
    crowded = dataclasses.replace(page, candidates=many)
    counters = Counter()
    sources = LeadSources(
        states={page.id: State.of(page, page.id, 0, None)},
        snapshot_of=lambda _: crowded,
        depth=lambda _: 0,
        normalize=normalize_url,
        url_key=normalize_url,
        is_in_scope=lambda _: True,
        refuse=lambda *_: None,
        tried=frozenset(),
    )
    assert len(collect_leads(sources, 500, counters)) == 500
    assert counters["leads/known"] == 200_000
