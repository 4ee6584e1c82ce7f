"""The baseline `oracle-steps`: the shortest clicks to a page, known beforehand and done as an agent does them.

Its number of steps is the lower bound that the steps of other agents are compared with. A click that an agent cannot
do, because the observation lacks the element or the gate refuses it, makes the oracle fail.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from bench.tasks.site_tasks import ClickStep
from waygraph.agents.actions.session import AgentSession, SessionOptions
from waygraph.agents.actions.types import ClickAction
from waygraph.agents.scoring.dialects import DIALECTS, DialectName
from waygraph.agents.scoring.final_state import FinalState
from waygraph.agents.scoring.page_recorder import record_findings
from waygraph.agents.scoring.score import score_task

if TYPE_CHECKING:
    from playwright.async_api import BrowserContext

    from waygraph.agents.tasks.task import Task


@dataclass(frozen=True)
class OracleRun:
    """How the clicks of a task ended.

    Attributes
    ----------
    arrived : whether the score of the last page is 1.
    steps : number of clicks that were done.
    problem : why it did not arrive; empty if it did.
    """

    arrived: bool
    steps: int
    problem: str = ""


async def follow_way(
    context: BrowserContext, task: Task, way: Sequence[ClickStep], options: SessionOptions | None = None
) -> OracleRun:
    """Do the clicks from the task's start page, and score the page where they end."""
    page = await context.new_page()
    try:
        await page.goto(task.start_urls[0], wait_until="commit")
        async with AgentSession(page, options) as session:
            observation = await session.observe()
            for number, step in enumerate(way):
                found = [each for each in observation.elements if (each.role, each.name) == (step.role, step.name)]
                if len(found) <= step.nth:
                    return OracleRun(arrived=False, steps=number, problem=f"there is no {step} at {observation.url}")
                report = await session.act(ClickAction(element=found[step.nth].ref, double=step.double))
                if not report.done or report.observation is None:
                    return OracleRun(arrived=False, steps=number, problem=str(report))
                observation = report.observation
            last = session.tabs.current.page
            state = FinalState("", last.url, await record_findings(task, last))
    finally:
        for opened in context.pages:
            await opened.close()
    score = await score_task(task, state, DIALECTS[DialectName.WEBARENA])
    return OracleRun(arrived=bool(score.success), steps=len(way), problem="" if score.success else str(score.checks))
