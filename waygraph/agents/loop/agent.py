"""The loop: observe the page, let the decider decide, act, remember, until the task ends."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import TYPE_CHECKING

from waygraph.agents.actions.brackets import parse_brackets
from waygraph.agents.actions.types import ActionSyntaxError, NavigateAction, ShowAction, StopAction
from waygraph.agents.loop.decision import Decider, Decision, Situation, available
from waygraph.agents.loop.usage_meter import UsageMeter
from waygraph.agents.run_record import AgentRun, AgentStep, AttemptEnd, StepListener, ignore_step
from waygraph.core.errors import BadModelReply, ContextTooLong, ModelBudgetSpent, ModelFailure
from waygraph.pipeline.browser.page.failures import PageFailure

if TYPE_CHECKING:
    from pydantic import JsonValue

    from waygraph.agents.actions.report import ActionReport
    from waygraph.agents.actions.session import AgentSession
    from waygraph.agents.actions.types import AgentAction
    from waygraph.agents.observation.page_observation import PageObservation

log = logging.getLogger(__name__)

#: Answers in a row that are no action, or none that fits the page, after which the task has failed.
MAX_UNUSABLE = 5
#: Times in a row that `show` counts as no action.
FREE_SHOWS = 3


class ModelAgent:
    """An agent that asks a chat model what to do.

    Parameters
    ----------
    session
        The browser session; its page shows where the task begins.
    decider
        Asks the model and remembers.
    meter
        The model that the decider asks, with the usage of its calls.
    max_steps
        Limit of actions. Answers that could not be used do not count, nor does `show`, unless it is repeated.
    images
        Whether the decider gets screenshots.
    tips
        What every prompt says about the task's sites; empty: nothing.
    """

    def __init__(
        self,
        session: AgentSession,
        decider: Decider,
        meter: UsageMeter,
        *,
        max_steps: int = 20,
        images: bool = False,
        tips: str = "",
    ) -> None:
        self._session = session
        self._decider = decider
        self._meter = meter
        self._max_steps = max_steps
        self._images = images
        self._tips = tips

    async def run(self, task: str, on_step: StepListener = ignore_step) -> AgentRun:
        """Do a task; see `Agent.run`.

        Parameters
        ----------
        task
            The task, in plain words.
        on_step
            Called after every step.

        Returns
        -------
        AgentRun
            What it did and how it ended. A model that does not answer ends it as `UNAVAILABLE`; answers that could
            not be used are steps with the status `unparsed`.
        """
        run = _ModelRun(self._session, self._decider, self._meter, on_step, images=self._images, tips=self._tips)
        try:
            end = await run.work(task, self._max_steps)
        except ModelBudgetSpent as error:
            end = AttemptEnd.BUDGET
            run.problem = error.message
        except (BadModelReply, ContextTooLong) as error:
            end = AttemptEnd.FAILED
            run.problem = error.message
        except ModelFailure as error:
            end = AttemptEnd.UNAVAILABLE
            run.problem = error.message
        last = run.observation
        return AgentRun(task, end, run.answer, last.url, last.snapshot.id, tuple(run.steps), run.problem)


class _ModelRun:
    """One run.

    Parameters
    ----------
    session
        The browser session.
    decider
        Decides and remembers.
    meter
        Counts what its calls take.
    on_step
        Called after every step.
    images
        Whether the decider gets screenshots.
    tips
        Tips for the task.
    """

    def __init__(
        self,
        session: AgentSession,
        decider: Decider,
        meter: UsageMeter,
        on_step: StepListener,
        *,
        images: bool,
        tips: str,
    ) -> None:
        self._session = session
        self._decider = decider
        self._meter = meter
        self._on_step = on_step
        self._images = images
        self._tips = tips
        self.answer = ""
        self.problem = ""
        self.steps: list[AgentStep] = []
        self.observation: PageObservation

    async def work(self, task: str, max_steps: int) -> AttemptEnd:
        self.observation = await self._session.observe()
        actions = unusable = shows = 0
        problem = ""
        while actions < max_steps:
            screenshot = await self._screenshot() if self._images else None
            situation = Situation(task, self.observation, max_steps - actions, problem, screenshot, self._tips)
            decision: Decision | None = None
            try:
                decision = await self._decider.decide(situation)
                allowed = available(self._decider.allowed(situation), self.observation)
                action = parse_brackets(decision.action, allowed)
                self._decider.check(action)
            except (ActionSyntaxError, BadModelReply) as error:
                problem = error.message
                await self._record(decision, "unparsed", problem)
                unusable += 1
            else:
                shows = shows + 1 if isinstance(action, ShowAction) else 0
                actions += shows == 0 or shows > FREE_SHOWS
                if isinstance(action, StopAction):
                    self.answer = action.answer
                    await self._record(decision, "kept", "Stopped.")
                    return AttemptEnd.ANSWERED
                report = await self._act(decision, action)
                problem = str(report) if report.status == "invalid" else ""
                unusable = unusable + 1 if problem else 0
            if unusable == MAX_UNUSABLE:
                self.problem = f"{MAX_UNUSABLE} answers in a row could not be used. The last problem: {problem}"
                return AttemptEnd.FAILED
        return AttemptEnd.STEP_LIMIT

    async def _screenshot(self) -> bytes | None:
        """Return the window with the ids drawn on it; None if the page does not respond, as behind an open dialog."""
        try:
            return await self._session.screenshot(marks=True)
        except PageFailure as failure:
            log.info("agent/no_screenshot %s", failure.message)
            return None

    async def _act(self, decision: Decision, action: AgentAction) -> ActionReport:
        if isinstance(action, NavigateAction) and not action.thinking:
            action = action.model_copy(update={"thinking": decision.thinking})
        before = self.observation
        report = await self._session.act(self._decider.page_action(action))
        self._decider.remember(decision, action, report, before)
        await self._record(decision, report.status, str(report))
        self.observation = report.observation or before
        return report

    async def _record(self, decision: Decision | None, status: str, message: str) -> None:
        """Add a step: what was decided on the current observation, and what came of it."""
        details: Mapping[str, JsonValue] = decision.details if decision is not None else {}
        step = AgentStep(
            state=self.observation.snapshot.id,
            url=self.observation.url,
            action=decision.action if decision is not None else "",
            status=status,
            message=message,
            thinking=decision.thinking if decision is not None else "",
            usage=self._meter.take(),
            details=details,
        )
        self.steps.append(step)
        await self._on_step(step, self.observation)
