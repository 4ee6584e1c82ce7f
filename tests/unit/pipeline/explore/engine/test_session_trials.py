"""Trials of what a state left in the browser."""

import asyncio
from collections import Counter

from waygraph.pipeline.browser.page.snapshot import Snapshot
from waygraph.pipeline.explore.engine.session_trials import SessionTrials
from waygraph.pipeline.explore.identity.session_values import SessionValues
from waygraph.pipeline.explore.records.state import State

LEFT = (("cookie", "x.example/ lang", "ja"),)
SEEN = Snapshot("id", "http://x/", "http://x/", "", "text/html", 200, (), (), (), capped=False, opened=0)


def test_a_state_that_is_not_reached_teaches_nothing_and_its_trial_counts():
    values, counters = SessionValues(), Counter()
    trials = SessionTrials(None, None, values, counters)
    for number in range(12):
        assert trials.are_needed(LEFT)
        state = State(f"s{number}", "http://x/", "", "key", 1, left=LEFT)
        asyncio.run(trials.run(None, state, seen=SEEN, route=None, links=(), shared=frozenset()))
    assert values.untried(LEFT) == LEFT
    assert not trials.are_needed(LEFT)
