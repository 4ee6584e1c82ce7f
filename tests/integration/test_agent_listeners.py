"""Elements that only listen have no role, pointer cursor or handler attribute; agents see them and act on them."""

import json

import pytest

from tests.browsers import BROWSERS, LOOPBACK_ONLY
from tests.model_replies import reply
from tests.sites.server import FixtureServer
from waygraph.agents.create import AgentName
from waygraph.agents.models.budget import ModelBudget
from waygraph.agents.models.scripted import ScriptedModel
from waygraph.agents.runner.attempt import AttemptOptions, TaskAttempts
from waygraph.agents.tasks.task import Task, TaskBenchmark
from waygraph.core.settings import Settings

FILES = """<!doctype html><title>Files</title><ul id=files><li>notes.txt<li>plan.txt</ul>
<div id=tool style="width: 60px">Brush</div><table id=rows><tr id=row><td>Row</table><p id=said>Nothing yet</p>
<script>
const say = (text) => { said.textContent = text };
files.addEventListener("dblclick", { handleEvent: (event) => say("Opened " + event.target.textContent) });
tool.addEventListener("mousedown", () => say("Took the brush"));
row.addEventListener("click", () => say("Selected"));
row.addEventListener("dblclick", () => say("Opened the row"));
</script>"""


@pytest.fixture(scope="module")
def files():
    with FixtureServer({"/": FILES}) as server:
        yield server


@pytest.mark.parametrize(
    ("element", "said"),
    [
        ("listitem 'plan.txt'", "Opened plan.txt"),
        ("generic 'Brush'", "Took the brush"),
        ("generic 'Row'", "Selected"),  # not the double click
    ],
)
def test_a_click_performs_what_an_element_listens_to(files, tmp_path, element, said):
    task = Task(
        task_id="1", benchmark=TaskBenchmark.WEBARENA, intent="Open the plan", sites=(), start_urls=(files.url,)
    )  # fmt: skip
    script = ScriptedModel([reply(AgentName.OCCAM, action) for action in [f"click {{{element}}}", "stop [done]"]])
    options = AttemptOptions(
        tmp_path, AgentName.OCCAM, Settings(browser=LOOPBACK_ONLY), "", None, frozenset(), tmp_path, 5, 120.0
    )

    async def work():
        attempts = TaskAttempts(options, None, None, script)
        await attempts.attempt(task, await BROWSERS.browser(), ModelBudget("the run"))

    BROWSERS.run(work())
    lines = (tmp_path / "tasks" / "1" / "trace.jsonl").read_text().splitlines()
    assert [json.loads(line).get("status") for line in lines][1:-1] == ["done", "kept"]
    assert said in script.requests[-1].messages[-1].text
