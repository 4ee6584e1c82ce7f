"""Which tasks of a run may begin: those whose sites all have room and a URL."""

from waygraph.agents.create import AgentName
from waygraph.agents.runner.attempt import AttemptOptions
from waygraph.agents.runner.hooks import HookOptions, TaskHooks
from waygraph.agents.runner.task_run import TaskLimits, _TaskRun
from waygraph.agents.scoring.dialects import DialectName
from waygraph.agents.scoring.run_folder import RunFolder, StoredTaskFile, TaskRunManifest
from waygraph.agents.tasks.task import Task, TaskBenchmark
from waygraph.core.settings import Settings


def task_over(task_id, *hosts, placeholders=()):
    urls = {host: f"http://{host}.example/" for host in hosts}
    return Task(
        task_id=task_id,
        benchmark=TaskBenchmark.WEBARENA,
        intent="i",
        sites=hosts,
        start_urls=(next(iter(urls.values())),),
        site_urls=urls,
        placeholders=placeholders,
    )


def begin(tasks, folder, ended=()):
    options = AttemptOptions(folder, AgentName.GREEDY, Settings(), "", None, frozenset(), folder, 1, 1.0)
    manifest = TaskRunManifest(
        created="2026-11-28T00:00:00+00:00",
        task_file=StoredTaskFile(name="t.json", sha256="0" * 64),
        dialect=DialectName.WEBARENA,
        tasks=tuple(task.task_id for task in tasks),
        labels={},
    )
    RunFolder(folder).write_manifest(manifest)
    return _TaskRun(tasks, options, TaskLimits(per_site=1), TaskHooks(HookOptions()), getattr(ended, "append", print))


async def test_a_task_over_two_sites_occupies_both(tmp_path):
    run = begin([task_over("1", "a", "b"), task_over("2", "b"), task_over("3", "c")], tmp_path)
    assert [(await run._next()).task_id for _ in range(2)] == ["1", "3"]


def test_a_task_without_the_url_of_a_site_has_no_result_and_the_others_wait_for_their_turn(tmp_path):
    ended = []
    run = begin([task_over("1", "a", placeholders=("__B__",)), task_over("2", "a")], tmp_path, ended)
    assert run.without_result == {"1": "These placeholders have no URL: __B__."}
    assert [(each.task_id, each.ended, each.tasks) for each in ended] == [("1", 0, 2)]
    assert run.has_work
    assert "__B__" in (tmp_path / "tasks" / "1" / "trace.jsonl").read_text()
