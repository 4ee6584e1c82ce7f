"""Orderly end of an invocation: after its work, on an interruption, or when its budget is spent."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass

from waygraph.pipeline.jobs.report.outcomes import StoppedBy
from waygraph.pipeline.jobs.run.budget import RunBudget


@dataclass(frozen=True, slots=True)
class ShutdownSteps:
    """Steps of an early end, and the time between them.

    A spent budget takes all steps. An interruption takes the first one, and the work is cancelled `stop_seconds` later.

    Attributes
    ----------
    stop
        Called with the reason when no new work may begin. Called twice if an interruption follows a spent budget.
    abandon
        Called if work continues `stop_seconds` later: explorations, which can be resumed, are no longer waited for.
    cancel
        Called if work continues `grace_seconds` after that, before it is cancelled.
    stop_seconds
        Time for work in progress to end.
    grace_seconds
        Further time for publishing.
    """

    stop: Callable[[StoppedBy], None]
    abandon: Callable[[], None]
    cancel: Callable[[], None]
    stop_seconds: float
    grace_seconds: float


async def run_until_stopped(
    work: asyncio.Task[None], *, interrupted: asyncio.Event, budget: RunBudget, steps: ShutdownSteps
) -> None:
    """Wait until `work` ends, or end it. It is done or cancelled afterwards.

    Parameters
    ----------
    work
        The work of the invocation.
    interrupted
        Set by an interruption.
    budget
        Limits of the invocation.
    steps
        How the work ends early.
    """
    interruption = asyncio.create_task(interrupted.wait())
    spending = asyncio.create_task(budget.until_spent())
    ends = {work, interruption}
    try:
        await asyncio.wait({*ends, spending}, return_when=asyncio.FIRST_COMPLETED)
        if not (work.done() or interruption.done()):
            steps.stop(spending.result())
            for seconds, step in ((steps.stop_seconds, steps.abandon), (steps.grace_seconds, steps.cancel)):
                await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED, timeout=seconds)
                if work.done() or interruption.done():
                    break
                step()
        if interruption.done() and not work.done():
            steps.stop("signal")
            await asyncio.wait({work}, timeout=steps.stop_seconds)
    finally:
        for task in (*ends, spending):
            task.cancel()
        await asyncio.wait({*ends, spending})
