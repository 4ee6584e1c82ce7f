"""The tables of the papers beside runs: numbers of a stored run, maps, and the commands that are left."""

import shlex

import pytest

from bench.papers.__main__ import figures_line, mapped_lines, missing_commands, read_tables, run_figures
from waygraph.agents.run_record import AttemptEnd
from waygraph.agents.scoring.run_folder import RunFolder, StoredTaskFile, TaskAnswer, TaskRunManifest
from waygraph.agents.tasks.task import EvaluatorKind, ReferenceAnswers, Task, TaskBenchmark, TaskEvaluation
from waygraph.core.schemas import UsageModel
from waygraph.core.settings import AgentSettings, Settings


def task(number, *sites):
    reference = ReferenceAnswers(exact_match="30")
    return Task(
        task_id=str(number),
        benchmark=TaskBenchmark.WEBARENA,
        intent="how many?",
        sites=sites,
        start_urls=(f"http://{sites[0]}.example/",),
        evaluation=TaskEvaluation(eval_types=(EvaluatorKind.STRING_MATCH,), reference_answers=reference),
    )


TASKS = [task(1, "shop"), task(2, "shop"), task(3, "map", "shop"), task(4, "map")]


@pytest.fixture
def run(tmp_path):
    folder = RunFolder(tmp_path / "run")
    file = StoredTaskFile(name="t.json", sha256="0" * 64)
    folder.write_manifest(TaskRunManifest(created="", task_file=file, tasks=tuple(each.task_id for each in TASKS)))
    usage = UsageModel(model="m", calls=1, input_tokens=90, output_tokens=10, seconds=1.0)
    for each, answer in zip(TASKS, ("30", "31", "30"), strict=False):  # the fourth has no result
        left = TaskAnswer(answer=answer, url="http://x/", ended=AttemptEnd.ANSWERED, steps=4, usage=usage)
        folder.write_attempt(each, left, {})
    return tmp_path / "run"


def test_a_run_has_rows_of_all_tasks_of_each_site_and_of_several_sites(run):
    figures = {each.name: (each.successes, each.tasks) for each in run_figures(run)}
    assert figures == {"all": (2, 4), "multi-site": (1, 1), "shop": (1, 2)}


def test_a_row_has_success_mean_steps_and_tokens_and_a_range_where_tasks_are_undecided(run):
    line = figures_line(run_figures(run)[0])
    assert " ".join(line.split()) == ("all 50.0 to 75.0% of 4 tasks, 3 done, mean steps 4.0, tokens 100 a task")


def test_sites_are_mapped_or_not():
    lines = [" ".join(each.split()) for each in mapped_lines(TASKS, ["shop.example"])]
    assert lines == ["map.example NOT mapped", "shop.example mapped", "2 of 4 tasks start on mapped sites"]


@pytest.mark.parametrize("name", sorted(read_tables()))
def test_the_commands_of_every_table_have_their_values(name):
    table = read_tables()[name]
    commands = missing_commands(table, tasks="t.json", store="s3://b/maps", placeholders=["__SHOP__=http://s/"], runs=0)
    assert "--tasks t.json" in " ".join(commands)
    assert "--placeholder __SHOP__=http://s/" in " ".join(commands)
    assert not {"TASKS", "STORE", "PLACEHOLDERS", "RUN"} & set(" ".join(commands).split())


@pytest.mark.parametrize("name", sorted(read_tables()))
def test_the_settings_of_every_table_change_the_settings_of_agents(name, monkeypatch):
    for line in read_tables()[name].settings:
        with monkeypatch.context() as environment:
            for each in shlex.split(line):
                environment.setenv(*each.split("=", 1))
            assert Settings().agents != Settings(agents=AgentSettings()).agents


def test_a_table_of_ablations_needs_a_run_for_each_and_those_that_there_are_are_left_out():
    table = read_tables()["weboperator-4"]
    every = missing_commands(table, tasks="t", store="", placeholders=[], runs=0)
    left = missing_commands(table, tasks="t", store="", placeholders=[], runs=3)
    runs = [each for each in every if "waygraph run" in each]
    assert (len(runs), len([each for each in left if "waygraph run" in each])) == (7, 4)
    assert "WAYGRAPH_AGENTS__SEARCH__BACKTRACKING=false" in left[-4]
