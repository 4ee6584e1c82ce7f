"""Turns of sites: their length, their order, and the sums over them."""

import asyncio

import pytest

from waygraph.core.settings import JobSettings, Settings
from waygraph.index.graph import InteractionGraph
from waygraph.pipeline.explore.records.capture import ExploreProgress, ExploreReport, SiteCapture
from waygraph.pipeline.jobs.exploring.turn import Turn, TurnProgress
from waygraph.pipeline.jobs.report.outcomes import TURN_ENDED, Exploration, Publication, SiteOutcome
from waygraph.pipeline.jobs.run.fair_queue import FairQueue, fairness_domain
from waygraph.pipeline.jobs.run.turns import EarlierTurns, add_turns, next_turn, takes_turns

LIMITED = JobSettings(max_total_states=100)


def exploration(**known):
    fields = {"states": 3, "edges": 5, "inherited_edges": 2, "seconds": 1.0, "partial": True, "stopped_by": TURN_ENDED,
              "depths": (), "counters": {}, "skipped": {}, "failed": {}, "failures": ()}  # fmt: skip
    return Exploration(**fields | known)


def publication(**known):
    fields = {"version": 1, "encoded": 3, "reused": 0, "encode_seconds": 0.5, "publish_seconds": 0.25, "states": 3}
    return Publication(**fields | known)


def progress(states):
    return ExploreProgress("a.example", 1, states, 0, 0, 0, 0, 0)


def capture(*, partial, stopped_by=""):
    report = ExploreReport("http://a.example/", 1.0, partial=partial, stopped_by=stopped_by, depths=(), counters={})
    return SiteCapture("a.example", report.start_url, InteractionGraph(), {}, report)


@pytest.mark.parametrize(
    ("jobs", "work", "sites", "expected"),
    [
        (LIMITED, "index", 2, True),
        (JobSettings(max_total_seconds=1), "index", 2, True),
        (JobSettings(), "index", 2, False),
        (LIMITED, "index", 1, False),
        (LIMITED, "refresh", 2, False),
        (JobSettings(max_total_states=100, states_per_turn=0), "index", 2, False),
    ],
)
def test_sites_take_turns_only_where_a_budget_is_divided_among_them(jobs, work, sites, expected):
    assert takes_turns(jobs, work=work, sites=sites) is expected


def test_a_turn_doubles_the_map_and_the_last_site_has_no_limit():
    states, turns, lengths = 0, None, []
    for _ in range(5):
        turn = next_turn(LIMITED, turns, is_last_site=False)
        lengths.append(turn.states)
        states += turn.states
        turns = EarlierTurns(states, 1.0)
    assert lengths == [50, 50, 100, 200, 400]
    assert next_turn(LIMITED, turns, is_last_site=True).states == 0


@pytest.mark.parametrize(("limit", "last"), [(3, 10), (5, 12), (0, 90)])
def test_an_exploration_stops_after_the_new_states_of_its_turn(limit, last):
    stop = asyncio.Event()
    turn = TurnProgress(Turn(limit), stop)
    for states in range(7, last + 1):  # it resumes from seven states
        assert not stop.is_set()
        turn.update(progress(states))
    assert stop.is_set() == (limit > 0)


def test_a_stopped_exploration_with_a_turn_is_partial_because_of_it():
    stop = asyncio.Event()
    stop.set()
    of_turn = TurnProgress(Turn(5), stop)
    assert of_turn.end(capture(partial=True, stopped_by="interrupted")).report.stopped_by == TURN_ENDED
    whole, stopped = capture(partial=False), capture(partial=True, stopped_by="interrupted")
    assert of_turn.end(whole) is whole
    assert TurnProgress(None, stop).end(stopped) is stopped
    timed_out = capture(partial=True, stopped_by="max_seconds")
    assert TurnProgress(Turn(5), asyncio.Event()).end(timed_out) is timed_out


def test_earlier_turns_count_towards_the_time_limit_of_a_site():
    settings = Settings(explore={"max_seconds": 60})
    assert Turn(5, seconds_before=45).settings(settings).explore.max_seconds == 15
    assert 0 < Turn(5, seconds_before=70).settings(settings).explore.max_seconds < 0.1
    assert Turn(5).settings(settings) == settings


def test_sites_without_a_turn_come_first_and_then_those_with_the_largest_expected_gain():
    queue = FairQueue(["new.example"], fairness_domain)
    gains = {"little": 0.5, "much": 20.0, "none": 0.0, "also-much": 20.0}
    for position, (name, gain) in enumerate(gains.items()):
        queue.put_back(name, EarlierTurns(60, gain).rank(position))
    taken = [queue.next(), queue.next()]
    queue.put("late.example")
    taken += [queue.next() for _ in range(4)]
    assert taken == ["new.example", "much", "late.example", "also-much", "little", "none"]
    assert queue.next() is None


def test_sites_with_less_expected_gain_wait_for_an_expected_site():
    queue = FairQueue([], fairness_domain)
    queue.put_back("some", EarlierTurns(60, 3.0).rank(1))
    queue.expect("much", EarlierTurns(60, 20.0).rank(0))
    queue.expect("little", EarlierTurns(60, 1.0).rank(2))
    assert queue.next() is None
    queue.put("new.example")
    assert queue.next() == "new.example"
    queue.put_back("much", EarlierTurns(60, 20.0).rank(0))
    assert [queue.next(), queue.next(), queue.next()] == ["much", "some", None]


async def test_take_wakes_up_when_a_site_is_expected_no_more():
    queue = FairQueue([], fairness_domain)
    queue.put_back("some", (0.0, 1))
    queue.expect("failed", (-5.0, 0))
    waiting = asyncio.create_task(queue.take())
    await asyncio.sleep(0)
    queue.forget("failed")
    assert await waiting == "some"


def test_drained_sites_include_those_that_wait_for_another_turn():
    queue = FairQueue(["new.example"], fairness_domain)
    queue.put_back("waiting.example", (0.0, 1))
    assert list(queue.drain()) == ["new.example", "waiting.example"]
    assert queue.next() is None


async def test_take_wakes_up_for_a_site_that_waits_for_another_turn():
    queue = FairQueue([], fairness_domain)
    waiting = asyncio.create_task(queue.take())
    await asyncio.sleep(0)
    queue.put_back("a.example", (0.0, 0))
    assert await waiting == "a.example"


def test_durations_and_encoded_states_of_turns_are_added_and_the_rest_is_that_of_the_last_turn():
    first = SiteOutcome(site="a.example", start_url="http://a.example/", status="published", seconds=2.0,
                        exploration=exploration(), publication=publication())  # fmt: skip
    last = first.model_copy(
        update={
            "seconds": 3.0,
            "exploration": exploration(states=8, seconds=4.0, stopped_by="", partial=False),
            "publication": publication(version=2, encoded=4, reused=4, states=8),
        }
    )
    total = add_turns(first, last)
    assert total.seconds == 5.0
    assert (total.exploration.states, total.exploration.seconds, total.exploration.partial) == (8, 5.0, False)
    made = total.publication
    assert (made.version, made.states, made.encoded, made.reused, made.encode_seconds) == (2, 8, 7, 1, 1.0)
    failed = SiteOutcome(site="a.example", start_url="http://a.example/", status="failed", seconds=1.0)
    assert add_turns(first, failed).publication == first.publication
