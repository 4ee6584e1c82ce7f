"""The benchmark's tasks over the demo shop: each can be done and can be failed, and the oracle finds its pages."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from bench.tasks.oracle import OracleRun, follow_way
from bench.tasks.replay import TaskCheck
from bench.tasks.site_tasks import CHANGE_SOMETHING, ClickStep, SiteTasks, read_site
from tests.browsers import BROWSERS
from waygraph.agents.tasks.task import Task
from waygraph.demo_site import DemoSite


@pytest.fixture
def shop() -> Iterator[DemoSite]:
    with DemoSite() as shop:
        yield shop


def replayed(shop: DemoSite, tasks: SiteTasks, chosen: list[Task]) -> dict[str, list[str]]:
    """Replay tasks at the same time; return what is wrong, by task."""

    async def check() -> list[list[str]]:
        context = await (await BROWSERS.browser()).new_context()
        try:
            checks = [
                TaskCheck(context, {"demo_shop": shop.url}, task, tasks.replays[task.task_id]).problems()
                for task in chosen
            ]
            return await asyncio.gather(*checks)
        finally:
            await context.close()

    found = BROWSERS.run(check())
    return {task.task_id: problems for task, problems in zip(chosen, found, strict=True) if problems}


def followed(task: Task, way: tuple[ClickStep, ...]) -> OracleRun:
    async def follow() -> OracleRun:
        context = await (await BROWSERS.browser()).new_context()
        try:
            return await follow_way(context, task, way)
        finally:
            await context.close()

    return BROWSERS.run(follow())


def test_tasks_that_only_read_the_demo_shop_are_replayed_as_they_should(shop):
    tasks = read_site("demo_shop", shop.url)
    chosen = [task for task in tasks.file.tasks if tasks.kinds[task.task_id] != CHANGE_SOMETHING]
    assert len(chosen) == 14
    assert replayed(shop, tasks, chosen) == {}
    assert shop.mutations == 0


def test_tasks_that_change_the_demo_shop_are_replayed_as_they_should(shop):
    tasks = read_site("demo_shop", shop.url)
    chosen = [task for task in tasks.file.tasks if tasks.kinds[task.task_id] == CHANGE_SOMETHING]
    assert len(chosen) == 4
    assert replayed(shop, tasks, chosen) == {}
    assert shop.state.profile["email"] == "ingrid@fjord.example"


def test_a_task_that_is_done_already_is_noticed(shop):
    tasks = read_site("demo_shop", shop.url)
    shop.state.statuses["NF-1047"] = "Packed"
    done = [task for task in tasks.file.tasks if task.task_id == "117"]
    assert "the idle end gets 1.0 in webarena" in str(replayed(shop, tasks, done)["117"])


def test_the_oracle_arrives_with_the_clicks_that_it_knows(shop):
    tasks = read_site("demo_shop", shop.url)
    task = next(task for task in tasks.file.tasks if task.task_id == "103")
    assert followed(task, tasks.ways["103"]) == OracleRun(arrived=True, steps=3)


def test_the_oracle_reports_a_page_that_is_not_the_one_that_is_wanted(shop):
    tasks = read_site("demo_shop", shop.url)
    task = next(task for task in tasks.file.tasks if task.task_id == "103")
    run = followed(task, tasks.ways["103"][:2])
    assert not run.arrived
    assert "url_match" in run.problem


def test_the_oracle_reports_an_element_that_is_not_there(shop):
    tasks = read_site("demo_shop", shop.url)
    task = next(task for task in tasks.file.tasks if task.task_id == "101")
    run = followed(task, (ClickStep(role="link", name="Freight"),))
    assert (run.arrived, run.steps) == (False, 0)
    assert "there is no link 'Freight'" in run.problem
