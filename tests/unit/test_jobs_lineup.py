"""Who is next when many sites wait? And when is enough?"""

import asyncio
import copy

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.jobs.failures import POLICIES, EncoderLost, Policy, WorkerLost, pause_before, policy_of
from pipeline.jobs.run.budget import Budget
from pipeline.jobs.run.lineup import Lineup, domain_of
from waygraph.errors import (
    BrowserFailure,
    InUse,
    NewerSchema,
    PublishConflict,
    RobotsForbidden,
    SiteUnreachable,
    StoreError,
    WaygraphError,
    WeightsMissing,
)
from waygraph.settings import JobSettings


class Clock:
    def __init__(self):
        self.now = 0.0

    def __call__(self):
        return self.now


def lineup(sites, clock=None):
    return Lineup(sites, domain_of, clock=clock or Clock())


def take_all(line):
    """Sites in the order in which one worker takes them."""
    taken = []
    while (site := line.next()) is not None:
        taken.append(site)
        line.left(site)
    return taken


def test_hosts_of_one_domain_take_turns_with_everybody_else():
    many = [f"{name}.shops.example" for name in "abcd"]
    assert take_all(lineup([*many, "x.example", "y.example"])) == [many[0], "x.example", "y.example", *many[1:]]


def test_a_domain_with_sites_in_work_comes_after_those_without():
    line = lineup(["a.shops.example", "b.shops.example", "c.shops.example", "x.example"])
    assert [line.next(), line.next()] == ["a.shops.example", "x.example"]
    line.put("y.example")
    assert line.next() == "y.example"
    line.left("x.example")
    line.put("z.x.example")
    assert line.next() == "z.x.example"
    assert line.next() == "b.shops.example"  # nobody else waits: its domain may have two at once


def test_ports_of_one_machine_are_one_domain():
    assert domain_of("127.0.0.1:1") == domain_of("127.0.0.1:2") == "127.0.0.1"
    assert domain_of("[::1]:8000") == "::1"


def test_a_site_that_is_tried_again_comes_after_its_pause_and_after_the_others():
    clock = Clock()
    line = lineup(["a.example", "b.example"], clock)
    line.put("c.example", pause_seconds=10)
    assert line.next() == "a.example"
    clock.now = 11
    assert [line.next(), line.next(), line.next()] == ["b.example", "c.example", None]


async def test_whoever_waits_is_told_of_a_new_site_and_of_the_end_of_a_pause():
    line = Lineup([], domain_of)
    waiting = asyncio.create_task(line.take())
    await asyncio.sleep(0)
    line.put("a.example")
    assert await waiting == "a.example"
    line.put("b.example", pause_seconds=0.01)
    assert await line.take() == "b.example"


names = st.tuples(st.sampled_from("abcdef"), st.sampled_from(["one", "two", "three", "four"]))


@given(
    st.lists(names, unique=True), st.lists(st.sampled_from(["take", "leave", "again", "later", "wait"]), max_size=60)
)
def test_no_site_is_lost_or_doubled_and_the_least_busy_domain_is_next(given_names, steps):
    sites = [f"{host}.{domain}.example" for host, domain in given_names]
    clock = Clock()
    line = lineup(sites, clock)
    waiting, pausing, working = set(sites), {}, []
    for step in steps:
        if step == "take":
            waiting |= {site for site, until in pausing.items() if until <= clock.now}
            pausing = {site: until for site, until in pausing.items() if until > clock.now}
            site = line.next()
            assert (site is None) == (not waiting)
            if site is not None:
                busy = [domain_of(each) for each in working]
                least = min(busy.count(domain_of(each)) for each in waiting)
                assert busy.count(domain_of(site)) == least
                waiting.remove(site)
                working.append(site)
        elif step == "wait":
            clock.now += 5
        elif working:
            site = working.pop(0)
            line.left(site)
            if step == "again":
                line.put(site)
                waiting.add(site)
            elif step == "later":
                line.put(site, pause_seconds=7)
                pausing[site] = clock.now + 7
    assert sorted(line.drain()) == sorted([*waiting, *pausing])
    assert line.next() is None


# ---- which errors are tried again ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("error", "policy"),
    [
        (WorkerLost("died"), Policy("at once", settled=True)),
        (BrowserFailure("crashed"), Policy("at once", settled=True)),
        (SiteUnreachable("HTTP 404"), Policy("never", settled=True)),
        (SiteUnreachable("no answer", after_s=5), Policy("later", settled=True)),
        (RobotsForbidden("robots.txt"), Policy("never", settled=True)),
        (StoreError("full"), Policy("later", settled=False)),
        (PublishConflict("another was first"), Policy("later", settled=False)),
        (InUse("somebody is at it"), Policy("never", settled=False)),
        (NewerSchema("newer"), Policy("never", settled=False)),
        (WeightsMissing("none"), Policy("never", settled=False)),
        (EncoderLost("out of memory"), Policy("never", settled=False)),
        (WaygraphError("a defect"), Policy("never", settled=True)),
    ],
)
def test_each_kind_of_error_has_its_policy(error, policy):
    assert policy_of(error) == policy
    assert policy_of(copy.copy(error)) == policy  # made anew, as by Ray


def test_a_site_that_an_explorer_without_a_machine_still_has_is_tried_again_later():
    assert policy_of(InUse("by an explorer that was cut off"), excused=1) == Policy("later", settled=False)


def test_every_error_has_a_policy():
    assert WaygraphError in POLICIES


@given(st.integers(1, 10_000), st.floats(0, 10_000))
def test_pauses_grow_and_are_bounded(failures, after):
    error = SiteUnreachable("no answer", after_s=after)
    assert 5 <= pause_before(error, failures) <= pause_before(error, failures + 1) <= 600


# ---- budgets ------------------------------------------------------------------------------------------------------


async def is_spent(budget):
    task = asyncio.create_task(budget.until_spent())
    for _ in range(10):
        await asyncio.sleep(0)
    spent = task.done() and task.result()
    task.cancel()
    return spent


async def test_states_of_all_sites_count_together():
    budget = Budget(JobSettings(max_total_states=10))
    budget.tell("a", 3, resumed=False)
    budget.tell("b", 6, resumed=False)
    budget.tell("a", 2, resumed=False)  # it was begun again: what it finds anew is known already
    assert not await is_spent(budget)
    budget.tell("a", 4, resumed=False)
    assert budget.states == 10
    assert await budget.until_spent() == "max_total_states"


async def test_states_that_an_unfinished_exploration_brings_along_do_not_count():
    budget = Budget(JobSettings(max_total_states=10))
    budget.tell("a", 500, resumed=True)
    budget.tell("a", 509, resumed=True)
    assert budget.states == 9
    budget.tell("a", 510, resumed=True)
    assert await budget.until_spent() == "max_total_states"


async def test_time_is_a_budget_too_and_no_limit_is_none():
    assert await Budget(JobSettings(max_total_seconds=0.01)).until_spent() == "max_total_seconds"
    assert not await is_spent(Budget(JobSettings()))
