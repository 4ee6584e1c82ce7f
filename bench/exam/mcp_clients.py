"""The exam for an agent that is not ours: the browser of Playwright's MCP server, and our MCP server on the maps.

A task has a browser of its own, in a server of its own; the server of the maps is one for all. The agent is
`bench.exam.tool_loop`.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote

from mcp import Client, MCPError, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp_types import CONNECTION_CLOSED, Tool
from pydantic import JsonValue

from bench.exam.tool_loop import do_task, system_text
from bench.real_sites import run
from waygraph.agents.loop.prompt import marked
from waygraph.agents.models.budget import BudgetedModel, ModelBudget
from waygraph.agents.models.cassette import CassetteModel
from waygraph.agents.models.chat import ChatMessage, ChatModel
from waygraph.agents.run_record import AgentStep, AttemptEnd
from waygraph.agents.runner.attempt import AttemptResult
from waygraph.agents.runner.retries import AttemptFailure
from waygraph.agents.runner.trace import TraceWriter
from waygraph.agents.scoring.run_folder import RunFolder, TaskAnswer
from waygraph.agents.tasks.task import Task
from waygraph.core.errors import ModelFailure
from waygraph.core.settings import Settings
from waygraph.pipeline.browser.process.find import find_browser
from waygraph.pipeline.browser.process.launch import ARGUMENTS

PLAYWRIGHT = "@playwright/mcp@0.0.83"
#: Tools of the browser: what people do with one, and the search of a page. No scripts, files, requests, consoles.
BROWSER_TOOLS = (
    "browser_navigate", "browser_navigate_back", "browser_click", "browser_hover", "browser_type",
    "browser_press_key", "browser_select_option", "browser_fill_form", "browser_handle_dialog", "browser_tabs",
    "browser_snapshot", "browser_find", "browser_wait_for",
)  # fmt: skip
#: Longest snapshot, in characters: 25,000 tokens and more, which clients cut as well.
MAX_SNAPSHOT = 80_000
#: Longest call of a tool, and the wait for the page that a task starts with, in seconds.
_CALL_SECONDS, _START_SECONDS = 120.0, 2
#: The server writes the page after an action into a file, for clients that can read files.
_SNAPSHOT_FILE = re.compile(r"^- \[Snapshot\]\((.+)\)$", re.MULTILINE)
#: Lines with times in them, which no replay has, about what no tool shows; colours of a terminal.
_NOISE = re.compile(r"^(### Events\n)?- (New console entries|Console): .*\n?|\x1b\[\d+m", re.MULTILINE)
_PAGE_URL = re.compile(r"^- Page URL: (\S+)$", re.MULTILINE)


def install(scratch: Path) -> Path:
    """Return the program of Playwright's MCP server below `scratch`, where it is installed if need be."""
    root = scratch / "playwright-mcp"
    program = root / "node_modules" / "@playwright" / "mcp" / "cli.js"
    if not program.exists():
        root.mkdir(parents=True, exist_ok=True)
        (root / "package.json").write_text('{"private": true}')
        run("npm", "install", "--silent", "--no-audit", "--no-fund", "--ignore-scripts", PLAYWRIGHT, cwd=root)
    return program


def readable(text: str, folder: Path) -> str:
    """Return a result of the browser with the page's snapshot in place of the link to its file below `folder`."""

    def snapshot(link: re.Match[str]) -> str:
        path = (folder / link[1]).resolve()
        if not (path.is_relative_to(folder.resolve()) and path.is_file()):
            return link[0]
        return f"```yaml\n{path.read_text(encoding='utf-8', errors='replace').rstrip()}\n```"

    shown = _SNAPSHOT_FILE.sub(snapshot, _NOISE.sub("", text)).strip()
    if len(shown) > MAX_SNAPSHOT:
        shown = shown[:MAX_SNAPSHOT]
        whole_lines = shown.rpartition("\n")[0]
        shown = whole_lines if len(whole_lines) > MAX_SNAPSHOT // 2 else shown
        shown += "\nThe rest is left out; browser_find searches the whole page." + "\n```" * ("```yaml" in shown)
    return shown or "Done."


@dataclass
class Tools:
    """The tools of a task.

    Attributes
    ----------
    browser : the client of its browser.
    folder : the folder in which the browser's server writes.
    maps : the client of our server; None: there are no maps.
    url : the address that the browser showed last.
    """

    browser: Client
    folder: Path
    maps: Client | None
    url: str = ""
    _owners: dict[str, Client] = field(default_factory=dict)

    async def describe(self) -> str:
        """Return the instructions of a task with these tools."""
        listed: list[Tool] = []
        said = []
        for client in (self.browser, *([self.maps] if self.maps else ())):
            every = (await client.list_tools()).tools
            offered = [each for each in every if client is self.maps or each.name in BROWSER_TOOLS]
            self._owners |= dict.fromkeys((each.name for each in offered), client)
            listed += offered
            said += [client.instructions] if client.instructions else []
        tools = [
            {"name": each.name, "description": each.description, "input_schema": _plain(each.input_schema)}
            for each in listed
        ]
        return system_text(tools, "\n\n".join(said))

    async def call(self, name: str, arguments: Mapping[str, JsonValue]) -> str:
        """Call a tool and return its result as text; see `CallTool`. MCPError, if its server is gone."""
        if (client := self._owners.get(name)) is None:
            return f"There is no tool '{name}'."
        return await self._call(client, name, arguments)

    async def open(self, url: str) -> str:
        """Open an address and return the page as text: what its scripts show after the load, too."""
        page = await self._call(self.browser, "browser_navigate", {"url": url})
        return await self._call(self.browser, "browser_wait_for", {"time": _START_SECONDS}) if self.url else page

    async def final_url(self) -> str:
        """Return the address of the current tab; behind an open dialog, the one that it had before."""
        said = await self._call(self.browser, "browser_evaluate", {"function": "() => location.href"})
        found = re.search(r'^"(.*)"$', said, re.MULTILINE)
        return str(json.loads(found[0])) if found else self.url

    async def _call(self, client: Client, name: str, arguments: Mapping[str, JsonValue]) -> str:
        try:
            result = await client.call_tool(name, dict(arguments))
        except MCPError as error:
            if error.code == CONNECTION_CLOSED:
                raise
            return error.message
        text = "\n".join(block.text for block in result.content if block.type == "text")
        if client is self.maps:
            return text
        if url := _PAGE_URL.search(text):
            self.url = url[1]
        return await asyncio.to_thread(readable, text, self.folder)


def _plain(schema: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in schema.items() if key != "$schema"}


@dataclass(frozen=True)
class ClientAttempts:
    """Does tasks.

    Attributes
    ----------
    program : Playwright's MCP server.
    settings : settings of the browser and the window.
    maps : client of our server; None: there are no maps.
    folder : folder of the run.
    model_of : returns the model that is asked about a task; None: its calls are replayed.
    max_steps : limit of steps.
    """

    program: Path
    settings: Settings
    maps: Client | None
    folder: Path
    model_of: Callable[[str], ChatModel | None]
    max_steps: int

    async def attempt(self, task: Task) -> AttemptResult:
        """Do a task and store the result."""
        began = time.monotonic()
        run_folder, budget = RunFolder(self.folder), ModelBudget(task.task_id)
        calls, asked = self.folder / "calls" / f"{quote(task.task_id, safe='')}.jsonl", self.model_of(task.task_id)
        trace = TraceWriter(run_folder.task_folder(task.task_id))
        trace.write("start", task=task.task_id, intent=task.intent, agent="mcp")
        left: TaskAnswer | tuple[AttemptFailure, str]
        try:
            async with self._tools(task) as tools:
                left = await self._work(task, tools, trace, BudgetedModel(CassetteModel(calls, asked), budget))
        except* (MCPError, OSError) as errors:
            left = AttemptFailure.BROWSER_LOST, "; ".join(map(str, errors.exceptions))
        if not isinstance(left, TaskAnswer):
            failure, problem = left
            trace.write("end", failure=failure, problem=problem)
            return AttemptResult(None, failure, problem)
        spent = budget.spent if budget.spent.calls else None
        answer = left.model_copy(update={"seconds": round(time.monotonic() - began, 3), "usage": spent})
        trace.write("end", ended=answer.ended, answer=answer.answer, url=answer.url, problem=answer.problem)
        run_folder.write_attempt(task, answer, {})
        return AttemptResult(answer, usage=answer.usage)

    async def _work(
        self, task: Task, tools: Tools, trace: TraceWriter, model: ChatModel
    ) -> TaskAnswer | tuple[AttemptFailure, str]:
        """Let the model work; return what it leaves, or why there is no result."""
        page = await tools.open(task.start_urls[0])
        if not tools.url:
            return AttemptFailure.START_FAILED, page
        sites = "\n".join(f"- {name}: {url}" for name, url in task.site_urls.items())
        question = f"Task: {task.intent}\n\nSites of the task:\n{sites}\n\nThe browser shows:\n{marked(page)}"
        messages = [ChatMessage.system(await tools.describe()), ChatMessage.user(question)]
        url = tools.url
        steps = 0

        def on_step(step: AgentStep) -> None:
            nonlocal url, steps
            usage = step.usage.model_dump() if step.usage is not None else None
            trace.write("step", **{**asdict(step), "url": url, "details": {}, "usage": usage})
            url, steps = tools.url, steps + 1

        try:
            ended, said = await do_task(model, messages, tools.call, max_steps=self.max_steps, on_step=on_step)
            url = await tools.final_url()
        except ModelFailure as error:
            return AttemptFailure.MODEL_UNAVAILABLE, error.message
        except MCPError as error:  # here, since what leaves the block of a client is a group of errors
            return AttemptFailure.BROWSER_LOST, error.message
        is_answer = ended is AttemptEnd.ANSWERED
        return TaskAnswer(
            answer=said if is_answer else "", url=url, ended=ended, steps=steps, problem="" if is_answer else said
        )

    @asynccontextmanager
    async def _tools(self, task: Task) -> AsyncIterator[Tools]:
        window = self.settings.capture
        with tempfile.TemporaryDirectory(prefix="playwright-mcp-") as made:
            folder = Path(made)
            options = {
                "browser": {
                    "browserName": "chromium",
                    "isolated": True,
                    "launchOptions": {
                        "executablePath": str(find_browser(self.settings.browser.executable).path),
                        "headless": True,
                        "chromiumSandbox": os.geteuid() != 0,
                        "args": [*ARGUMENTS, *self.settings.browser.extra_args],
                    },
                    "contextOptions": {
                        "viewport": {"width": window.viewport_width, "height": window.viewport_height},
                        "locale": window.locale,
                        "timezoneId": window.timezone,
                        "reducedMotion": "reduce",
                        **({"storageState": task.storage_state} if task.storage_state else {}),
                    },
                },
                "outputDir": str(folder / "pages"),
                "codegen": "none",
            }
            config = folder / "config.json"
            config.write_text(json.dumps(options), encoding="utf-8")
            async with _client("node", str(self.program), "--config", str(config), cwd=folder) as browser:
                yield Tools(browser, folder, self.maps)


@asynccontextmanager
async def client_attempts(
    program: Path,
    settings: Settings,
    store: str,
    folder: Path,
    model_of: Callable[[str], ChatModel | None],
    *,
    max_steps: int,
) -> AsyncIterator[Callable[[Task], Awaitable[AttemptResult]]]:
    """Start our MCP server on a store, if one is given; yield what does a task with it and a browser."""
    async with AsyncExitStack() as stack:
        maps: Client | None = None
        if store:
            server = _client(sys.executable, "-m", "waygraph", "mcp", "--store", store)
            maps = await stack.enter_async_context(server)
        yield ClientAttempts(program, settings, maps, folder, model_of, max_steps).attempt


def _client(*command: str, cwd: Path | None = None) -> Client:
    """Return the client of a server that it starts; it gets the environment of this process."""
    server = StdioServerParameters(command=command[0], args=list(command[1:]), env=dict(os.environ), cwd=cwd)
    return Client(stdio_client(server), read_timeout_seconds=_CALL_SECONDS)
