"""The tasks of the benchmark: what does not need their sites."""

from __future__ import annotations

from collections import Counter

import pytest

from bench.tasks.replay import KINDS, SPLITS, end_problems, read_site
from waygraph.agents.scoring.final_state import FinalState
from waygraph.agents.tasks.task import EvaluatorKind

SITES = {site: read_site(site, "http://127.0.0.1:7000/") for sites in SPLITS.values() for site in sites}


def test_there_are_tasks_of_every_kind_in_both_splits():
    assert sum(len(site.file.tasks) for site in SITES.values()) >= 24
    for sites in SPLITS.values():
        assert set(Counter(kind for name in sites for kind in SITES[name].kinds.values())) == set(KINDS)


def test_ids_are_unique_and_each_task_can_be_replayed():
    ids = [task.task_id for site in SITES.values() for task in site.file.tasks]
    assert len(set(ids)) == len(ids)
    for site in SITES.values():
        assert set(site.replays) == set(site.kinds) == {task.task_id for task in site.file.tasks}
        assert site.file.placeholders() == []


@pytest.mark.parametrize("site", SITES)
async def test_right_answers_score_1_and_wrong_ones_0(site):
    answered = 0
    for task in SITES[site].file.tasks:
        if task.evaluation.eval_types == (EvaluatorKind.STRING_MATCH,):
            replay = SITES[site].replays[task.task_id]
            for name, end in (("right", replay.right), ("wrong", replay.wrong)):
                assert await end_problems(task, name, FinalState(end.answer, "")) == [], task.intent
            answered += 1
    assert answered >= 3


async def test_a_reference_that_is_wrong_is_noticed():
    task = next(task for task in SITES["demo_shop"].file.tasks if task.task_id == "105")
    assert await end_problems(task, "right", FinalState("11", ""))
    assert await end_problems(task, "wrong", FinalState("6", ""))


def test_every_read_value_is_looked_for_on_the_site():
    for site in SITES.values():
        for task_id, kind in site.kinds.items():
            replay = site.replays[task_id]
            if kind == "impossible":
                assert replay.absent
            elif kind != "find-a-page":
                assert replay.shown
