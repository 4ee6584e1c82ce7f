"""The exam's agent that is not ours, with the real MCP servers; see `test_mcp_agents` for what has to be installed."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from bench.exam.mcp_clients import BROWSER_TOOLS, client_attempts
from tests.browsers import LOOPBACK_ONLY
from tests.exploring import ExploredShop
from tests.integration.test_examples import QUESTION
from tests.integration.test_mcp_agents import PLAYWRIGHT, RATE
from waygraph.agents.models.chat import ChatRequest
from waygraph.agents.models.scripted import ScriptedModel
from waygraph.agents.runner.attempt import AttemptResult
from waygraph.agents.runner.retries import AttemptFailure
from waygraph.agents.scoring.run_folder import RunFolder
from waygraph.agents.tasks.task import Task, TaskBenchmark
from waygraph.core.settings import Settings

pytestmark = pytest.mark.skipif(
    not (PLAYWRIGHT.is_file() and shutil.which("node")), reason="@playwright/mcp is not installed, see test_mcp_agents"
)


async def attempt(folder: Path, url: str, model: ScriptedModel | None, store: str = "") -> AttemptResult:
    task = Task(
        task_id="7", benchmark=TaskBenchmark.WEBARENA, intent=QUESTION, start_urls=(url,), site_urls={"shop": url}
    )
    settings = Settings(browser=LOOPBACK_ONLY)
    async with client_attempts(PLAYWRIGHT, settings, store, folder, lambda _: model, max_steps=5) as do:
        return await do(task)


def tools_of(model: ScriptedModel) -> set[str]:
    lines = model.requests[0].messages[0].text.splitlines()
    return {json.loads(line)["name"] for line in lines if line.startswith('{"name"')}


async def test_it_goes_where_our_server_says_in_a_browser_of_its_own(shop: ExploredShop, shop_store, tmp_path):
    def ask_the_map(request: ChatRequest) -> str:
        assert "### Snapshot\n```yaml" in request.messages[-1].text
        assert f"- shop: {shop.site.url}" in request.messages[-1].text
        return json.dumps({"thought": "", "tool": "navigate", "arguments": {"site": shop.site.url, "query": QUESTION}})

    def walk(request: ChatRequest) -> str:
        answer = json.loads(request.messages[-1].text.splitlines()[1])
        url = next(step["value"] for step in answer["way"]["steps"] if step["do"] == "goto")
        return json.dumps({"thought": "", "tool": "browser_navigate", "arguments": {"url": url}})

    model = ScriptedModel([ask_the_map, walk, json.dumps({"thought": "", "answer": RATE})])
    done = await attempt(tmp_path, shop.site.url, model, str(shop_store))
    assert done.answer is not None, done.problem
    assert (done.answer.answer, done.answer.steps) == (RATE, 3)
    assert done.answer.url.startswith(f"{shop.site.url}admin/settings")
    assert done.answer.usage is not None
    assert done.answer.usage.calls == 3
    assert RunFolder(tmp_path).has("7")
    assert {*BROWSER_TOOLS, "navigate", "search_screens"} < tools_of(model)
    replayed = await attempt(tmp_path, shop.site.url, None, str(shop_store))
    assert replayed.answer is not None, replayed.problem
    assert replayed.answer.url == done.answer.url


async def test_without_a_map_it_has_a_browser_and_the_address_of_the_tab_that_it_left(shop: ExploredShop, tmp_path):
    new_tab = {"action": "new", "url": f"{shop.site.url}help"}
    model = ScriptedModel([
        json.dumps({"thought": "", "tool": "browser_evaluate", "arguments": {"function": "() => 1"}}),
        json.dumps({"thought": "", "tool": "browser_tabs", "arguments": new_tab}),
        json.dumps({"thought": "", "answer": "N/A"}),
    ])  # fmt: skip
    done = await attempt(tmp_path, shop.site.url, model)
    assert done.answer is not None, done.problem
    assert done.answer.url == f"{shop.site.url}help"
    assert tools_of(model) == set(BROWSER_TOOLS)
    assert "There is no tool 'browser_evaluate'." in model.requests[1].messages[-1].text


async def test_a_start_page_that_does_not_load_is_no_result(tmp_path):
    model = ScriptedModel([])
    done = await attempt(tmp_path, "http://127.0.0.1:9/", model)
    assert done.failure is AttemptFailure.START_FAILED
    assert model.requests == []
    assert not RunFolder(tmp_path).has("7")
