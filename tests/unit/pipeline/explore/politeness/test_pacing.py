"""Delays between navigations of a host, cool-downs, and the number of slots, in virtual time."""

import asyncio
from collections import defaultdict
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.virtual_time import run_virtually
from waygraph.core.retry_after import parse_retry_after
from waygraph.pipeline.explore.politeness.pacer import (
    MAX_COOL_DOWN_S,
    MAX_COOL_DOWNS_IN_A_ROW,
    Pacer,
    default_delay,
)
from waygraph.pipeline.explore.politeness.slots import SlotAutoscaler, Slots


def now() -> float:
    return asyncio.get_running_loop().time()


class Site:
    """Synthetic browser and servers; the servers record when a request arrives."""

    def __init__(self, pacer: Pacer, slots: Slots | None = None) -> None:
        self.pacer, self.slots = pacer, slots or Slots(1_000, most=1_000)
        self.arrivals: dict[str, list[float]] = defaultdict(list)
        self.most_busy = 0

    @asynccontextmanager
    async def navigation(self, host: str, *, out: float = 0.0, back: float = 0.0) -> AsyncIterator[None]:
        """A navigation whose request takes `out` seconds to the server, and the answer `back`."""
        async with self.slots.lease() as lease, self.pacer.turn(host, lease) as turn:
            self.most_busy = max(self.most_busy, self.slots.busy)
            await asyncio.sleep(out)
            self.arrivals[host].append(now())
            await asyncio.sleep(back)
            turn.end()
            yield

    async def go(self, host: str, *, out: float = 0.0, back: float = 0.0, after: float = 0.0) -> None:
        async with self.navigation(host, out=out, back=back):
            await asyncio.sleep(after)

    def gaps(self, host: str) -> list[float]:
        times = self.arrivals[host]
        return [later - earlier for earlier, later in pairwise(times)]


hosts = st.sampled_from(["a", "b", "c"])
times = st.floats(0, 3)
navigation = st.tuples(st.just("go"), hosts, times, times, times, times)
cancelled = st.tuples(st.just("cancel"), hosts, times, times, times, times)
used = st.tuples(st.just("used"), hosts, times, times, times, times)


@settings(max_examples=200)
@given(st.lists(navigation | cancelled | used, max_size=25), st.floats(0.1, 5), st.integers(1, 4))
def test_no_server_sees_a_gap_below_the_delay(events, delay, slots):
    async def scenario() -> Site:
        site = Site(Pacer(delay_seconds=delay), Slots(slots, most=slots))

        async def event(kind: str, host: str, start: float, *phases: float) -> None:
            out, back, after = phases
            await asyncio.sleep(start)
            if kind == "used":
                site.pacer.note_request(host)
                return
            work = asyncio.ensure_future(site.go(host, out=out, back=back, after=after))
            if kind == "cancel":
                await asyncio.sleep(after)
                work.cancel()
            await asyncio.wait([work])

        await asyncio.gather(*(event(*each) for each in events))
        assert site.slots.busy == 0
        return site

    site = run_virtually(scenario())
    assert all(gap >= delay - 1e-6 for host in "abc" for gap in site.gaps(host))
    assert site.most_busy <= slots
    assert sum(map(len, site.arrivals.values())) >= sum(kind == "go" for kind, *_ in events)


def test_hosts_do_not_wait_for_each_other_and_first_come_is_first_served():
    async def scenario() -> tuple[Site, list[str]]:
        site, order = Site(Pacer(delay_seconds=1.0)), []

        async def one(host: str, name: str) -> None:
            async with site.navigation(host):
                order.append(name)

        await asyncio.gather(*(one(host, f"{host}{i}") for host in "ab" for i in range(5)))
        return site, order

    site, order = run_virtually(scenario())
    assert [name for name in order if name[0] == "a"] == [f"a{i}" for i in range(5)]
    assert site.gaps("a") == site.gaps("b") == pytest.approx([1.0] * 4)
    assert site.arrivals["a"] == site.arrivals["b"]


def test_a_navigation_that_arrives_while_the_turn_changes_hands_waits_without_a_slot():
    async def scenario() -> None:
        site = Site(Pacer(delay_seconds=1.0), Slots(1, most=1))
        async with site.pacer.turn("a") as turn:
            waiting = asyncio.ensure_future(site.go("a"))
            await asyncio.sleep(0.1)
            async with site.slots.lease() as lease:
                turn.end()
                async with asyncio.timeout(10), site.pacer.turn("a", lease):
                    assert len(site.arrivals["a"]) == 1
        await waiting

    run_virtually(scenario())


def test_20_hosts_allow_90_percent_of_20_navigations_per_second():
    """Each navigation takes 100 ms of the browser, so 3 slots could do 30 per second."""

    async def scenario() -> Site:
        site = Site(Pacer(delay_seconds=1.0), Slots(3, most=3))
        end = now() + 60

        async def explore(host: str) -> None:
            while now() < end:
                await site.go(host, out=0.01, back=0.02, after=0.07)

        await asyncio.gather(*(explore(f"h{i}") for i in range(20)))
        return site

    site = run_virtually(scenario())
    assert sum(map(len, site.arrivals.values())) / 60 >= 0.9 * 20
    assert site.most_busy == 3
    counts = [len(times) for times in site.arrivals.values()]
    assert max(counts) - min(counts) <= 1


def test_waiting_for_a_host_holds_no_slot():
    async def scenario() -> tuple[float, int]:
        site = Site(Pacer(delay_seconds=10.0), Slots(1, most=1))
        began = now()
        slow = [asyncio.ensure_future(site.go("slow")) for _ in range(3)]
        await asyncio.sleep(1)
        busy = site.slots.busy
        await site.go("other")
        waited = now() - began
        await asyncio.gather(*slow)
        return waited, busy

    assert run_virtually(scenario()) == (1.0, 0)


def test_without_a_delay_navigations_overlap_and_wait_for_cool_downs_only():
    async def scenario() -> tuple[float, float]:
        site, began = Site(Pacer(delay_seconds=0)), now()
        await asyncio.gather(*(site.go("a", out=1.0) for _ in range(5)))
        together = now() - began
        site.pacer.cool_down("a", "a block page", 7.0)
        await site.go("a")
        return together, now() - began

    assert run_virtually(scenario()) == (1.0, 8.0)


def test_the_default_delay_depends_on_the_address_and_each_port_is_a_host():
    assert [default_delay(h) for h in ("127.0.0.1:81", "[::1]:8000", "10.1.2.3", "shop.localhost", "192.168.0.9")] == [
        0.0
    ] * 5
    assert [default_delay(h) for h in ("example.org", "8.8.8.8", "localhost.example.org:8080")] == [1.0] * 3

    async def scenario() -> float:
        site, began = Site(Pacer(delay_seconds=1.0)), now()
        await asyncio.gather(site.go("127.0.0.1:81"), site.go("127.0.0.1:82"))
        return now() - began

    assert run_virtually(scenario()) == 0.0


def test_a_crawl_delay_lengthens_the_delay_never_shortens_it_and_is_capped(caplog):
    async def scenario() -> list[float]:
        pacer = Pacer(delay_seconds=1.0, max_delay_seconds=30.0)
        delays = []
        for asked in (None, 0.2, 3.0, 2.0, 3_600.0):
            pacer.set_crawl_delay("a", asked)
            delays.append(pacer.delay("a"))
        return delays

    assert run_virtually(scenario()) == [1.0, 1.0, 3.0, 3.0, 30.0]
    assert "3600 s" in caplog.text


def test_a_crawl_delay_applies_to_the_request_for_robots_txt_before_it():
    async def scenario() -> list[float]:
        site = Site(Pacer(delay_seconds=1.0))
        await site.go("a")
        site.pacer.set_crawl_delay("a", 5.0)
        await site.go("a")
        return site.gaps("a")

    assert run_virtually(scenario()) == [5.0]


def test_the_delay_follows_slow_answers_and_errors_and_never_falls_below_the_minimum():
    async def scenario() -> list[float]:
        pacer = Pacer(delay_seconds=1.0, max_delay_seconds=20.0)
        delays = []
        for seconds, status in [(0.1, 200), (4.0, 200), (0.2, 200), (0.2, 404), (0.1, 500), (20.0, 0), (60.0, 200)]:
            assert not pacer.record_answer("a", seconds=seconds, status=status)
            delays.append(pacer.delay("a"))
        for _ in range(10):
            pacer.record_answer("a", seconds=0.1, status=200)
        return [*delays, pacer.delay("a")]

    assert run_virtually(scenario()) == pytest.approx([1.0, 4.0, 2.1, 1.15, 2.3, 4.6, 20.0, 1.0])


def test_a_loopback_host_gets_no_adaptive_delay():
    async def scenario() -> float:
        pacer = Pacer()
        pacer.record_answer("127.0.0.1:80", seconds=3.0, status=500)
        return pacer.delay("127.0.0.1:80")

    assert run_virtually(scenario()) == 0.0


@pytest.mark.parametrize(
    ("header", "seconds"),
    [
        ("120", 120.0),
        (" 0 ", 0.0),
        ("Sun, 06 Nov 1994 08:49:37 GMT", 37.0),
        ("Sunday, 06-Nov-94 08:49:37 GMT", 37.0),
        ("Sun Nov  6 08:49:37 1994", 37.0),
        ("Sun, 06 Nov 1994 08:48:00 GMT", 0.0),
        ("", None),
        ("soon", None),
        ("-5", None),
        ("1.5", None),
        ("Sun, 99 Nov 1994 08:49:37 GMT", None),
        ("9" * 400, 999_999_999.0),
    ],
)
def test_retry_after_is_seconds_or_a_date_and_nothing_else(header, seconds):
    assert parse_retry_after(header, 784_111_740.0) == seconds


def test_a_cool_down_lasts_as_long_as_the_host_asks_up_to_a_limit():
    async def scenario() -> list[float]:
        waits = []
        for retry_after in ("40", "Sun, 06 Nov 1994 08:49:37 GMT", "86400", ""):
            site = Site(Pacer(delay_seconds=1.0, wall_clock=lambda: 784_111_740.0))
            assert site.pacer.record_answer("a", seconds=0.1, status=429, retry_after=retry_after)
            began = now()
            await site.go("a")
            waits.append(now() - began)
        return waits

    assert run_virtually(scenario()) == [40.0, 37.0, MAX_COOL_DOWN_S, 5.0]


def test_a_host_turns_the_explorer_away_by_a_long_cool_down_or_by_many_in_a_row():
    async def scenario() -> None:
        site = Site(Pacer(delay_seconds=1.0))
        for host, retry_after, times in (("a", "301", 1), ("b", "", MAX_COOL_DOWNS_IN_A_ROW + 1)):
            waiting = asyncio.ensure_future(site.pacer.wait_until_given_up(host))
            for _ in range(times):
                await site.go(host)
                assert not site.pacer.has_given_up(host)
                assert not waiting.done()
                site.pacer.record_answer(host, seconds=0.1, status=429, retry_after=retry_after)
            await waiting
            assert site.pacer.has_given_up(host)
        await asyncio.sleep(302)
        assert not site.pacer.has_given_up("a")
        await site.go("b")
        site.pacer.record_answer("b", seconds=0.1, status=200)
        assert not site.pacer.has_given_up("b")

    run_virtually(scenario())


def test_block_pages_of_many_urls_give_a_host_up_and_those_of_one_url_do_not():
    async def scenario() -> None:
        pacer = Site(Pacer(delay_seconds=1.0)).pacer

        async def show(url: str, status: int) -> None:
            pacer.record_block_page("a", url, "wall", status=status)
            await asyncio.sleep(MAX_COOL_DOWN_S)

        for _ in range(20):
            await show("/one", 403)
            assert not pacer.has_given_up("a")
        for number in range(MAX_COOL_DOWNS_IN_A_ROW):
            assert not pacer.has_given_up("a")
            await show(f"/{number}", 200)
        assert pacer.has_given_up("a")
        pacer.record_answer("a", seconds=0.1, status=200)
        assert not pacer.has_given_up("a")
        for _ in range(MAX_COOL_DOWNS_IN_A_ROW + 1):
            assert not pacer.has_given_up("a")
            await show("/busy", 429)
        assert pacer.has_given_up("a")

    run_virtually(scenario())


def test_cool_downs_grow_until_the_host_answers():
    async def scenario() -> list[float]:
        site, waits = Site(Pacer(delay_seconds=1.0)), []
        for status in (503, 503, 429, 200, 503):
            site.pacer.record_answer("a", seconds=0.1, status=status)
            # Answers to requests that were already sent start no further cool-down.
            if status != 200:
                site.pacer.record_answer("a", seconds=0.1, status=status)
            began = now()
            await site.go("a")
            waits.append(now() - began)
        assert site.pacer.take_counters("a") == {"pace/turns": 5, "pace/waited_ms": 41_000, "pace/cool_downs": 4}
        assert site.pacer.take_counters("a") == {}
        return waits

    assert run_virtually(scenario()) == pytest.approx([5.0, 10.0, 20.0, 1.0, 5.0])


def test_in_page_actions_wait_only_after_they_made_requests():
    async def scenario() -> list[float]:
        pacer, times = Pacer(delay_seconds=1.0), []
        began = now()
        for requested in (False, True, True, True, False, False, False):
            await pacer.wait_for_action("a")
            times.append(now() - began)
            pacer.note_action("a", requested=requested)
        return times

    assert run_virtually(scenario()) == [0.0, 0.0, 0.0, 1.0, 2.0, 2.0, 2.0]


def test_a_page_that_hangs_loses_its_slot():
    async def scenario() -> tuple[float, bool, int]:
        slots, began = Slots(1, most=1), now()
        hanging = slots.lease(limit_seconds=60)

        async def hang() -> None:
            async with hanging:
                await asyncio.sleep(1_000)

        stuck = asyncio.ensure_future(hang())
        await asyncio.sleep(0)
        async with slots.lease():
            waited = now() - began
        await stuck
        return waited, hanging.expired, slots.busy

    assert run_virtually(scenario()) == (60.0, True, 0)


def climbed(rate_of: dict[int, float], *, start: int, most: int) -> list[int]:
    """Return the numbers of slots that were tried while work is finished at the rate that each allows."""
    autoscaler, time, limits = SlotAutoscaler(start, least=2, most=most), 0.0, []
    for _ in range(20_000):
        time += 1 / rate_of[autoscaler.limit]
        autoscaler.record_finished(time, in_demand=True)
        limits.append(autoscaler.limit)
    return limits


@pytest.mark.parametrize(("start", "best"), [(2, 4), (8, 4), (4, 4)])
def test_the_number_of_slots_approaches_the_number_that_finishes_the_most_work(start, best):
    rates = {2: 5.0, 3: 6.5, 4: 8.0, 5: 7.0, 6: 6.0, 7: 5.0, 8: 4.0}
    settled = climbed(rates, start=start, most=8)[10_000:]
    assert settled.count(best) / len(settled) > 0.6
    assert set(settled) <= {best - 1, best, best + 1}


def test_without_waiters_the_number_of_slots_does_not_change():
    autoscaler = SlotAutoscaler(3, least=2, most=8)
    assert {autoscaler.record_finished(float(i), in_demand=i % 3 == 0) for i in range(1_000)} == {3}
