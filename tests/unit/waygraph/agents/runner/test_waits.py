"""Waits after tasks that change what a site allows next."""

from waygraph.agents.runner.waits import SiteWaits
from waygraph.agents.tasks.task import Task, TaskBenchmark


def task_on(*sites, waits=False):
    return Task(
        task_id="1",
        benchmark=TaskBenchmark.WEBCHOREARENA,
        intent="Post it",
        sites=sites,
        labels={"required_wait": "true" if waits else "false"},
    )


POST = task_on("forum", "shop", waits=True)


def test_sites_of_a_marked_task_rest_after_it():
    now = [100.0]
    waits = SiteWaits(30, lambda: now[0])
    waits.begin(POST)
    assert [waits.allow(task_on(site), set()) for site in ("forum", "shop", "map")] == [False, False, True]
    assert waits.left() is None, "nobody knows when the task ends"
    waits.end(POST)
    assert (waits.left(), waits.allow(task_on("forum"), set())) == (30, False)
    assert waits.allow(task_on("forum"), {"forum"}), "a site that is reset has forgotten"
    now[0] += 30
    assert (waits.left(), waits.allow(task_on("forum", "shop"), set())) == (None, True)


def test_other_tasks_and_a_wait_of_zero_leave_sites_free():
    for waits, task in ((SiteWaits(30), task_on("forum")), (SiteWaits(0), POST)):
        waits.begin(task)
        waits.end(task)
        assert waits.allow(POST, set())
