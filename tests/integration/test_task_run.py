"""Runs of tasks: real workers with real browsers on the demo shop. The agent is the baseline without a model."""

import json
import os
import signal
from contextlib import AsyncExitStack
from pathlib import Path

import psutil
import pytest

from tests.browsers import BROWSERS
from tests.chat_server import failure, reply, serving_chat
from waygraph.agents.create import AgentName
from waygraph.agents.runner.attempt import AttemptOptions
from waygraph.agents.runner.task_run import TaskLimits, run_tasks
from waygraph.agents.scoring.run_folder import RunFolder
from waygraph.agents.tasks.task_file import read_task_file
from waygraph.cli import main
from waygraph.cluster import ray_cluster
from waygraph.core.errors import InUse, InvalidInput, RunUnfinished
from waygraph.core.locks import exclusive_lock
from waygraph.core.settings import AgentSettings, ChatSettings, Settings
from waygraph.core.urls import site_key
from waygraph.demo_site.local_server import LocalServer, Response

TASKS = Path("bench/tasks/demo_shop.json")


@pytest.fixture(scope="module", autouse=True)
def ray_with_two_cpus():
    with ray_cluster(num_cpus=2, object_store_bytes=256 * 2**20):
        yield


@pytest.fixture(scope="module")
def file(shop):
    return read_task_file(TASKS, {"__DEMO_SHOP__": shop.site.url.rstrip("/")})


def tasks_of(file, *ids):
    return [task for task in file.tasks if task.task_id in ids]


@pytest.fixture
def options(shop, shop_store, tmp_path):
    def make(*, maps=True, **changes):
        return AttemptOptions(
            **{
                "output": tmp_path / "run",
                "agent": AgentName.GREEDY,
                "settings": Settings(store=str(shop_store)),
                "maps": str(shop_store) if maps else "",
                "api_key": None,
                "mapped": frozenset({site_key(shop.site.url)}),
                "sessions": tmp_path,
                "max_steps": 3,
                "step_seconds": 20.0,
                **changes,
            }
        )

    return make


def trace_of(folder, task_id):
    text = (folder / "tasks" / task_id / "trace.jsonl").read_text()
    return [json.loads(line) for line in text.splitlines()]


def test_results_and_traces_are_stored_and_not_made_twice(file, options, shop, tmp_path):
    run = options()
    ended = []
    assert run_tasks(file, tasks_of(file, "101", "103"), run, TaskLimits(), on_ended=ended.append) == {}
    assert sorted(each.task_id for each in ended) == ["101", "103"]
    stored = RunFolder(run.output).read()
    assert stored.manifest.tasks == ("101", "103")
    assert stored.manifest.labels["agent"] == "greedy"
    start, first, *_, end = trace_of(run.output, "103")
    (site,) = start["sites"]
    assert (start["kind"], site["name"], site["key"]) == ("start", "demo_shop", site_key(shop.site.url))
    assert site["is_mapped"]
    assert "Northfold" in site["title"]
    assert (first["kind"], first["action"]) == ("step", "navigate")
    assert "Northfold" in (run.output / "tasks" / "103" / "observations" / f"{first['observation']}.txt").read_text()
    assert (end["kind"], end["url"]) == ("end", stored.attempts["103"].answer.url)
    folder = run.output / "tasks" / "103"
    shown = [(folder / "screenshots" / f"{line['screenshot']}.jpg").read_bytes() for line in (first, end)]
    assert all(image.startswith(b"\xff\xd8") for image in shown)
    assert shown[0] != shown[1]
    requested = json.loads((folder / end["network"]).read_text())["log"]["entries"]
    assert next(entry["request"]["url"] for entry in requested) == shop.site.url
    assert stored.attempts["103"].answer.url in [entry["request"]["url"] for entry in requested]
    assert not any("text" in entry["response"]["content"] for entry in requested)
    assert stored.attempts["103"].answer.url.endswith("/admin/settings")

    (run.output / "tasks" / "101" / "answer.json").unlink()
    ended.clear()
    run_tasks(file, tasks_of(file, "101", "102", "103"), run, TaskLimits(), on_ended=ended.append)
    assert sorted((each.task_id, each.tasks) for each in ended) == [("101", 3), ("102", 3)]
    assert RunFolder(run.output).read_manifest().tasks == ("101", "103", "102")


def shop_with_api(request):
    """Answer as WebArena's shop does: an API for its administrator, and the page of the latest order."""
    if request.path == "/rest/default/V1/integration/admin/token":
        return Response('"t0k"', content_type="application/json")
    if request.path == "/rest/V1/orders":
        return Response('{"items": [{"increment_id": "000000189"}]}', content_type="application/json")
    title = "Order 189" if request.path == "/sales/order/view/order_id/189/" else "Shop"
    return Response(f"<!doctype html><title>{title}</title><h1>{title}</h1>", content_type="text/html")


def test_the_command_scores_with_the_shops_api_in_the_dialect_that_it_is_given(tmp_path, monkeypatch, capsys):
    target = {"url": "func:shopping_get_latest_order_url()", "locator": "document.title"}
    target["required_contents"] = {"must_include": ["Order 189"]}
    evaluation = {"eval_types": ["program_html"], "program_html": [target]}
    row = {"task_id": 1, "intent": "Order it", "sites": ["shopping"], "start_url": "__SHOPPING__", "eval": evaluation}
    tasks = tmp_path / "tasks.json"
    tasks.write_text(json.dumps([row, {**row, "task_id": 2, "type_main": "others"}, {"task_id": 3}]))
    with LocalServer(shop_with_api) as server:
        command = ["run", "--tasks", str(tasks), "--placeholder", f"__SHOPPING__={server.url}", "--no-map", "--json"]
        assert main([*command, "--output", str(tmp_path / "without"), "--where", "type_main=others"]) == 0
        without = capsys.readouterr()
        monkeypatch.setenv("WAYGRAPH_AGENTS__SHOP__USER", "admin")
        monkeypatch.setenv("WAYGRAPH_AGENTS__SHOP__PASSWORD", "s3cret")
        assert main([*command, "--output", str(tmp_path / "run"), "--dialect", "weboperator"]) == 0
    score = json.loads(without.out)
    assert (score["needs"], score["scorers"]) == ({"an account of the shop's administrator": 1}, {"agentoccam": 1})
    assert "get no reward without WAYGRAPH_AGENTS__SHOP__USER" in without.err
    assert "1 problem(s) with rows that are no tasks" in without.err
    score = json.loads(capsys.readouterr().out)
    assert (score["tasks"], score["successes"], score["scorers"]) == (2, 2, {"weboperator": 2})
    assert json.loads((tmp_path / "run" / "run.json").read_text())["dialect"] == "weboperator"
    written = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert not any(b"s3cret" in path.read_bytes() for path in written)


def command_of(process):
    try:
        return " ".join(process.cmdline())
    except psutil.Error:  # it has ended
        return ""


@pytest.mark.extended
def test_a_task_whose_worker_or_browser_is_killed_is_done_again(file, options):
    run = options(maps=False)
    killed = []

    def kill_one(_):
        """Kill the worker after its first task, and the browser of the next one after its first."""
        if len(killed) == 2:
            return
        own = psutil.Process().children(recursive=True)  # the private Ray is among them
        (worker,) = [each for each in own if "TaskWorker" in command_of(each)]
        browsers = [each for each in worker.children(recursive=True) if "--headless" in command_of(each)]
        victim = worker if not killed else browsers[0]
        os.kill(victim.pid, signal.SIGKILL)
        killed.append(victim.pid)

    chosen = tasks_of(file, "101", "102", "103", "104")
    assert run_tasks(file, chosen, run, TaskLimits(workers=1), on_ended=kill_one) == {}
    assert len(killed) == 2
    assert set(RunFolder(run.output).read().attempts) == {"101", "102", "103", "104"}


@pytest.mark.extended
def test_what_agents_are_not_to_blame_for_has_no_result_and_ends_no_other_task(file, options):
    good, closed, secret = (task.model_copy() for task in tasks_of(file, "101", "102", "103"))
    closed = closed.model_copy(update={"start_urls": ("http://127.0.0.1:9/",)})
    secret = secret.model_copy(update={"storage_state": ".auth/missing.json"})
    run = options(maps=False)
    problems = run_tasks(file, [closed, secret, good], run, TaskLimits())
    assert problems.keys() == {"102", "103"}
    assert "127.0.0.1:9" in problems["102"]
    assert "missing.json" in problems["103"]
    assert set(RunFolder(run.output).read().attempts) == {"101"}
    assert trace_of(run.output, "102")[-1]["failure"] == "start_failed"


def test_start_urls_are_tabs_and_time_is_limited(file, options, shop):
    (task,) = tasks_of(file, "101")
    task = task.model_copy(update={"start_urls": (shop.site.url, shop.site.url + "cart")})
    run = options(maps=False, step_seconds=0.001)
    assert run_tasks(file, [task], run, TaskLimits()) == {}
    answer = RunFolder(run.output).read().attempts["101"].answer
    assert (answer.ended, answer.url) == ("budget", shop.site.url)
    assert "0.003 s" in answer.problem


def test_a_folder_is_of_one_run_and_of_one_process(file, options):
    run = options(maps=False)
    chosen = tasks_of(file, "101")
    run.output.mkdir()
    with exclusive_lock(run.output / "run.lock"), pytest.raises(InUse):
        run_tasks(file, chosen, run, TaskLimits())
    run_tasks(file, chosen, run, TaskLimits())
    with pytest.raises(InvalidInput, match="other options"):
        run_tasks(file, chosen, options(maps=False, max_steps=9), TaskLimits())
    with pytest.raises(InvalidInput, match="no tasks"):
        run_tasks(file, [], run, TaskLimits())
    with pytest.raises(InvalidInput, match="__DEMO_SHOP__"):
        run_tasks(file, read_task_file(TASKS).tasks, run, TaskLimits())


ANSWER = json.dumps(
    {
        "objective": "o",
        "constraints": [],
        "history_summary": "h",
        "observation_description": "d",
        "mode": "action",
        "reason": "It is on the page.",
        "action": "stop [42]",
        "observation_highlight": [],
    }
)


@pytest.fixture
def chat_server():
    """Start servers that give prepared answers; they end with the test."""
    stack = AsyncExitStack()
    yield lambda *answers: BROWSERS.run(stack.enter_async_context(serving_chat(*answers)))
    BROWSERS.run(stack.aclose())


def model_settings(shop_store, url, *, key="", **agents):
    model = ChatSettings(model="m" if url else "", base_url=url, api_key=key, retries=0, input_price=10.0)
    return Settings(store=str(shop_store), agents=AgentSettings(model=model, **agents))


@pytest.mark.extended
def test_a_model_is_asked_its_usage_stored_and_its_calls_replayed(file, options, shop_store, chat_server, tmp_path):
    server = chat_server(reply(ANSWER))
    run = options(
        agent=AgentName.WEBNAVIGATOR,
        settings=model_settings(shop_store, server.url, key="sk-secret"),
        cassettes=tmp_path / "calls",
    )
    chosen = tasks_of(file, "101", "103")
    assert run_tasks(file, chosen, run, TaskLimits()) == {}
    stored = RunFolder(run.output).read()
    assert {attempt.answer.answer for attempt in stored.attempts.values()} == {"42"}
    usage = stored.attempts["101"].answer.usage
    assert (usage.calls, usage.input_tokens, usage.cost) == (1, 100, pytest.approx(0.001))
    assert stored.manifest.labels["model"] == "m"
    assert trace_of(run.output, "101")[1]["thinking"] == "It is on the page."
    assert set(server.keys) == {"Bearer sk-secret"}
    written = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert not any(b"sk-secret" in path.read_bytes() for path in written)

    asked = len(server.requests)
    replayed = options(
        agent=AgentName.WEBNAVIGATOR,
        output=tmp_path / "again",
        settings=model_settings(shop_store, ""),
        cassettes=tmp_path / "calls",
    )
    assert run_tasks(file, chosen, replayed, TaskLimits()) == {}
    assert RunFolder(replayed.output).read().attempts["101"].answer.answer == "42"
    assert len(server.requests) == asked


@pytest.mark.extended
def test_images_are_sent_in_tasks_that_need_them(file, options, shop_store, chat_server):
    server = chat_server(reply(ANSWER))
    settings = model_settings(shop_store, server.url, images="auto")
    run = options(agent=AgentName.WEBNAVIGATOR, settings=settings, maps=False)
    labels = {"101": "image", "102": "any", "103": "text"}
    chosen = [
        task.model_copy(update={"labels": {"required_obs": labels[task.task_id]}}) for task in tasks_of(file, *labels)
    ]
    assert run_tasks(file, chosen, run, TaskLimits(workers=1)) == {}
    sent = [
        any(part["type"] == "image_url" for message in request["messages"] for part in parts_of(message))
        for request in server.requests
    ]
    assert sent == [True, False, False]
    assert RunFolder(run.output).read_manifest().labels["images"] == "auto"


@pytest.mark.extended
def test_pages_are_written_as_the_setting_says(file, options, shop_store, chat_server):
    server = chat_server(reply(ANSWER))
    settings = model_settings(shop_store, server.url, observation="raw")
    run = options(agent=AgentName.OCCAM, settings=settings, maps=False)
    assert run_tasks(file, tasks_of(file, "101"), run, TaskLimits(workers=1)) == {}
    assert "StaticText" in server.requests[0]["messages"][-1]["content"]


def parts_of(message):
    return message["content"] if isinstance(message["content"], list) else []


@pytest.mark.extended
def test_a_model_that_is_down_gives_no_result_and_the_run_goes_on(file, options, shop_store, chat_server):
    server = chat_server(failure(503), failure(503), reply(ANSWER))
    run = options(agent=AgentName.WEBNAVIGATOR, settings=model_settings(shop_store, server.url), maps=False)
    problems = run_tasks(file, tasks_of(file, "101"), run, TaskLimits())
    assert list(problems) == ["101"], "both attempts met a server that is down"
    assert trace_of(run.output, "101")[-1]["failure"] == "model_unavailable"
    assert run_tasks(file, tasks_of(file, "101"), run, TaskLimits()) == {}


@pytest.mark.extended
def test_a_run_ends_when_its_budget_is_spent_and_goes_on_with_a_larger_one(file, options, shop_store, chat_server):
    server = chat_server(reply(ANSWER))

    def run(tokens):
        return options(
            agent=AgentName.WEBNAVIGATOR,
            settings=model_settings(shop_store, server.url, run_tokens=tokens),
            maps=False,
        )

    chosen = tasks_of(file, "101", "102", "103")
    problems = run_tasks(file, chosen, run(150), TaskLimits(workers=1))
    assert problems == {"103": "The budget of the run is spent."}
    assert len(server.requests) == 2
    assert run_tasks(file, chosen, run(150), TaskLimits(workers=1)) == problems, "what was spent before counts"
    assert run_tasks(file, chosen, run(1_000), TaskLimits(workers=1)) == {}
    assert len(server.requests) == 3


@pytest.mark.extended
def test_the_command_repeats_tasks_runs_hooks_and_writes_reports(shop, tmp_path, capsys):
    placeholder = f"__DEMO_SHOP__={shop.site.url.rstrip('/')}"
    command = ["run", "--tasks", str(TASKS), "--placeholder", placeholder, "--no-map", "--output", str(tmp_path)]
    # Task 102 has no result: the reset of its site fails, and nothing else does.
    once = [*command, "--task", "101", "--task", "102", "--reset", "demo_shop=test {task} != 102", "--repeat", "2"]
    assert main(once) == RunUnfinished.exit_code
    printed = capsys.readouterr()
    assert "repeat 2 of 2" in printed.err
    assert "The reset of 'demo_shop' ended with exit code 1." in printed.err
    assert "2 repeats: mean success" in printed.out
    for number in ("1", "2"):
        stored = RunFolder(tmp_path / "repeats" / number).read()
        assert set(stored.attempts) == {"101"}
        assert set(stored.problems) == {"102"}
        failed = tmp_path / "repeats" / number
        assert [line["failure"] for line in trace_of(failed, "102")] == ["hook_failed"]
        assert "ended with exit code 1" in (failed / "report.html").read_text()
        assert "data:image/jpeg" in (failed / "report.html").read_text()
    assert "repeats/2/report.html" in (tmp_path / "report.html").read_text()

    (tmp_path / "report.html").unlink()
    assert main(["score", str(tmp_path), "--report", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["tasks"] == [
        {"task_id": "101", "successes": 2, "scored": 2},
        {"task_id": "102", "successes": 0, "scored": 0},
    ]
    assert (tmp_path / "report.html").is_file()
    assert main([*command, "--task", "101"]) == InvalidInput.exit_code  # it holds repeats
