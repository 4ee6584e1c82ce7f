"""The exam and the tasks over several sites: what does not need their sites."""

from __future__ import annotations

import json
from collections import Counter

import pytest

from bench import renamed_pages
from bench.exam.exam_tasks import EXAM, NEEDLE, RENAMED, ExamTask, exam_tasks
from bench.exam.maps import MAPS
from bench.tasks.replay import end_problems
from bench.tasks.serving import session_file
from bench.tasks.site_tasks import ACROSS, CHANGE_SOMETHING, SPLITS, read_tasks, sites_of
from waygraph.agents.scoring.final_state import FinalState
from waygraph.agents.tasks.task import EvaluatorKind

FILES = [*ACROSS.values(), *EXAM.values()]
#: Sites of `bench.renamed_sites`, by split.
RENAMED_SITES = {"dev": {"skerrywatch"}, "test": {"fernleigh", "korvat"}}
WITH_LOGIN = {"fossil", "wagtail", "dokuwiki", "jupyterlab"}


@pytest.fixture(scope="module")
def exam() -> list[ExamTask]:
    return [task for split in SPLITS for task in exam_tasks(split)]


def test_the_exam_has_sixty_tasks_half_over_two_pages_and_a_third_over_two_sites(exam):
    assert len(exam) >= 60
    assert sum(len(task.pages) >= 2 for task in exam) >= len(exam) / 2
    assert sum(len(task.sites) >= 2 for task in exam) >= len(exam) / 3
    traits = Counter(trait for task in exam for trait in task.traits)
    assert min(traits[NEEDLE], traits[RENAMED]) >= 10
    assert len({task.task_id for task in exam}) == len(exam)
    assert all(task.kind != CHANGE_SOMETHING for task in exam)


def test_at_least_24_own_tasks_are_over_two_or_three_sites():
    tasks = [task for path in ACROSS.values() for task in read_tasks(path, {}).file.tasks]
    assert len(tasks) >= 24
    assert {len(task.sites) for task in tasks} == {2, 3}
    assert {len(task.start_urls) for task in tasks} == {1}


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}-{path.stem}")
async def test_right_answers_score_1_and_wrong_ones_0(path):
    tasks = read_tasks(path, {site: f"http://{site.replace('_', '-')}.example/" for site in sites_of(path)})
    for task in tasks.file.tasks:
        replay = tasks.replays[task.task_id]
        assert replay.shown
        if task.evaluation.eval_types == (EvaluatorKind.STRING_MATCH,):
            for name, end in (("right", replay.right), ("wrong", replay.wrong)):
                assert await end_problems(task, name, FinalState(end.answer, "")) == [], task.intent


def test_all_sites_of_a_task_are_of_its_split_and_mapped(exam):
    for task in exam:
        assert set(task.sites) <= {*SPLITS[task.split], *RENAMED_SITES[task.split]}
        assert set(task.sites) <= set(MAPS)
        assert (RENAMED in task.traits) == bool(set(task.sites) & RENAMED_SITES[task.split])


def test_pages_that_answer_a_task_are_on_each_of_its_sites(exam):
    for task in exam:
        assert {site for site, _ in task.pages} == set(task.sites), task.task_id


def test_the_session_of_a_task_is_that_of_all_its_sites_with_a_login():
    for path in FILES:
        for row in json.loads(path.read_text(encoding="utf-8")):
            login = set(row["sites"]) & WITH_LOGIN
            assert row["storage_state"] == (session_file(login) if login else None)


def test_a_needle_is_told_by_what_no_other_page_says():
    buoys = {renamed_pages.buoy_name(number) for number in range(1, 501)}
    letters = {renamed_pages.letter_subject(number) for number in range(1, 501)}
    assert len(buoys) == len(letters) == 500
