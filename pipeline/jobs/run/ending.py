"""When does a call of a run end? With its work, or in order when it is told to stop or has spent its budget."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from pipeline.jobs.report.outcomes import StoppedBy
from pipeline.jobs.run.budget import Budget


async def see_to_end(
    work: asyncio.Task[None],
    *,
    stop: asyncio.Event,
    budget: Budget,
    begin_stop: Callable[[StoppedBy], None],
    cut_short: Callable[[], None],
    out_of_time: Callable[[], None],
    order_seconds: float,
    grace_seconds: float,
) -> None:
    """Wait until `work` has ended, by itself or because it has to; it is done or cancelled afterwards.

    Parameters
    ----------
    stop : set by who interrupts the call.
    begin_stop : told why, once or (when an interruption follows a spent budget) twice: nothing is begun from then on.
    cut_short : called when the budget is spent and `order_seconds` later something still works: what can be gone on
        with later is not waited for any longer.
    out_of_time : called when `grace_seconds` after that something still works, before it is cancelled.
    order_seconds : time for what was begun to end by itself. After an interruption there is no other.

    """
    stopping = asyncio.create_task(stop.wait())
    spending = asyncio.create_task(budget.until_spent())
    ended = {work, stopping}
    try:
        await asyncio.wait({*ended, spending}, return_when=asyncio.FIRST_COMPLETED)
        if not (work.done() or stopping.done()):
            begin_stop(spending.result())
            for seconds, too_late in ((order_seconds, cut_short), (grace_seconds, out_of_time)):
                await asyncio.wait(ended, return_when=asyncio.FIRST_COMPLETED, timeout=seconds)
                if work.done() or stopping.done():
                    break
                too_late()
        if stopping.done() and not work.done():
            begin_stop("signal")
            await asyncio.wait({work}, timeout=order_seconds)
    finally:
        for task in (*ended, spending):
            task.cancel()
        await asyncio.wait({*ended, spending})
