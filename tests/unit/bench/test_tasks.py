"""The tasks of the benchmark: what does not need their sites."""

from __future__ import annotations

from collections import Counter

import pytest

from bench.tasks.replay import end_problems
from bench.tasks.site_tasks import ACROSS, CHANGE_SOMETHING, FIND_A_PAGE, KINDS, SPLITS, read_site, read_tasks
from waygraph.agents.scoring.final_state import FinalState
from waygraph.agents.tasks.task import LAST_PAGE, EvaluatorKind

SITES = {site: read_site(site, "http://127.0.0.1:7000/") for sites in SPLITS.values() for site in sites}


def test_there_are_tasks_of_every_kind_in_both_splits():
    assert len(SITES) == 8
    assert sum(len(site.file.tasks) for site in SITES.values()) >= 66
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
            elif kind in {"read-a-value", "compare-across-pages"}:
                assert replay.shown


def test_shortest_clicks_are_known_for_find_a_page_tasks_and_no_others():
    for site in SITES.values():
        assert set(site.ways) == {task_id for task_id, kind in site.kinds.items() if kind == FIND_A_PAGE}
        assert all(site.ways.values())


def test_changes_are_looked_for_in_the_data_of_the_server_and_not_on_the_page_that_the_agent_left():
    changes = [
        (task, site.replays[task.task_id])
        for site in SITES.values()
        for task in site.file.tasks
        if site.kinds[task.task_id] == CHANGE_SOMETHING
    ]
    across = [read_tasks(path, {}) for path in ACROSS.values()]
    changes += [
        (task, file.replays[task.task_id])
        for file in across
        for task in file.file.tasks
        if file.kinds[task.task_id] == CHANGE_SOMETHING
    ]
    assert len(changes) >= 9
    assert sum(len(task.sites) > 1 for task, _ in changes) >= 3
    for task, replay in changes:
        assert task.evaluation.eval_types == (EvaluatorKind.PROGRAM_HTML,)
        assert LAST_PAGE not in {target.url for target in task.evaluation.program_html}
        assert replay.right.steps
        assert replay.wrong.steps
