"""The fair queue alternates between the domains of sites."""

import asyncio

from hypothesis import given
from hypothesis import strategies as st

from waygraph.pipeline.jobs.run.fair_queue import FairQueue, fairness_domain


class Clock:
    def __init__(self):
        self.now = 0.0

    def __call__(self):
        return self.now


def fair_queue_of(sites, clock=None):
    return FairQueue(sites, fairness_domain, clock=clock or Clock())


def drain_in_order(queue):
    """Sites in the order in which one worker takes them."""
    taken = []
    while (site := queue.next()) is not None:
        taken.append(site)
        queue.release(site)
    return taken


def test_hosts_of_one_domain_alternate_with_other_domains():
    many = [f"{name}.shops.example" for name in "abcd"]
    assert drain_in_order(fair_queue_of([*many, "x.example", "y.example"])) == [
        many[0],
        "x.example",
        "y.example",
        *many[1:],
    ]


def test_domains_with_sites_in_work_come_after_idle_domains():
    queue = fair_queue_of(["a.shops.example", "b.shops.example", "c.shops.example", "x.example"])
    assert [queue.next(), queue.next()] == ["a.shops.example", "x.example"]
    queue.put("y.example")
    assert queue.next() == "y.example"
    queue.release("x.example")
    queue.put("z.x.example")
    assert queue.next() == "z.x.example"
    assert queue.next() == "b.shops.example"  # no other site waits: the domain may have two at once


def test_ports_of_one_address_are_one_domain():
    assert fairness_domain("127.0.0.1:1") == fairness_domain("127.0.0.1:2") == "127.0.0.1"
    assert fairness_domain("[::1]:8000") == "::1"


def test_retried_site_runs_after_its_pause_and_after_waiting_sites():
    clock = Clock()
    queue = fair_queue_of(["a.example", "b.example"], clock)
    queue.put("c.example", pause_seconds=10)
    assert queue.next() == "a.example"
    clock.now = 11
    assert [queue.next(), queue.next(), queue.next()] == ["b.example", "c.example", None]


async def test_take_wakes_up_for_a_new_site_and_at_the_end_of_a_pause():
    queue = FairQueue([], fairness_domain)
    waiting = asyncio.create_task(queue.take())
    await asyncio.sleep(0)
    queue.put("a.example")
    assert await waiting == "a.example"
    queue.put("b.example", pause_seconds=0.01)
    assert await queue.take() == "b.example"


names = st.tuples(st.sampled_from("abcdef"), st.sampled_from(["one", "two", "three", "four"]))


@given(
    st.lists(names, unique=True), st.lists(st.sampled_from(["take", "leave", "again", "later", "wait"]), max_size=60)
)
def test_no_site_is_lost_or_duplicated_and_the_least_busy_domain_is_next(given_names, steps):
    sites = [f"{host}.{domain}.example" for host, domain in given_names]
    clock = Clock()
    queue = fair_queue_of(sites, clock)
    waiting, pausing, working = set(sites), {}, []
    for step in steps:
        if step == "take":
            waiting |= {site for site, until in pausing.items() if until <= clock.now}
            pausing = {site: until for site, until in pausing.items() if until > clock.now}
            site = queue.next()
            assert (site is None) == (not waiting)
            if site is not None:
                busy = [fairness_domain(each) for each in working]
                least = min(busy.count(fairness_domain(each)) for each in waiting)
                assert busy.count(fairness_domain(site)) == least
                waiting.remove(site)
                working.append(site)
        elif step == "wait":
            clock.now += 5
        elif working:
            site = working.pop(0)
            queue.release(site)
            if step == "again":
                queue.put(site)
                waiting.add(site)
            elif step == "later":
                queue.put(site, pause_seconds=7)
                pausing[site] = clock.now + 7
    assert sorted(queue.drain()) == sorted([*waiting, *pausing])
    assert queue.next() is None
