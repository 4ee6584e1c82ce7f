"""One invocation of a run: start actors, handle signals, and write the report in every case."""

from __future__ import annotations

import asyncio
import signal
import threading
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from types import FrameType
from typing import IO

from waygraph.core.errors import WaygraphError
from waygraph.core.settings import Settings
from waygraph.index.store import Store
from waygraph.pipeline.encode.registry import check_name
from waygraph.pipeline.jobs.actors.choice import actor_system
from waygraph.pipeline.jobs.actors.protocol import ActorSystem
from waygraph.pipeline.jobs.events import JobEvent
from waygraph.pipeline.jobs.report.run_report import RunReport
from waygraph.pipeline.jobs.run.budget import RunBudget
from waygraph.pipeline.jobs.run.coordinator import Coordinator
from waygraph.pipeline.jobs.run.manifest import MANIFEST_NAME, new_manifest, run_database_folder
from waygraph.pipeline.jobs.run.progress_file import ProgressFile
from waygraph.pipeline.jobs.run.reencode import ReencodeCoordinator
from waygraph.pipeline.jobs.run.run_database import RunDatabase
from waygraph.pipeline.jobs.run.run_state import RunPhase, RunState
from waygraph.pipeline.jobs.sites.site_list import SitePlan, plan_sites, tasks_of_mapped_sites

#: Works until the event is set or all work is done.
Execute = Callable[[asyncio.Event], Awaitable[None]]

#: Kind of work, by the function that explores.
_WORK = {
    "waygraph.pipeline.explore.exploration:explore_site": "index",
    "waygraph.pipeline.jobs.exploring.refresh:refresh_site": "refresh",
}
_SIGNALS = (signal.SIGINT, signal.SIGTERM)


def explore_sites(
    sites: Sequence[str], *, settings: Settings, on_event: Callable[[JobEvent], None], explore: str
) -> RunReport:
    """Explore and publish sites, see `waygraph.pipeline.jobs.run_index`."""
    plan = plan_sites(sites)
    check_name(settings.encode.encoder)  # before anything slow starts
    store = Store.open(settings.store, create=True)
    run_state = _open_run_state(plan, store, settings, on_event, work=_WORK.get(explore, explore))

    def connect(actors: ActorSystem) -> Execute:
        return Coordinator(run_state, settings, actors, explore).execute

    return execute(run_state, settings, connect)


def reencode_sites(sites: Sequence[str], *, settings: Settings, on_event: Callable[[JobEvent], None]) -> RunReport:
    """Re-encode sites, see `waygraph.pipeline.jobs.run_reencode`."""
    check_name(settings.encode.encoder)
    store = Store.open(settings.store)
    plan = SitePlan(tasks_of_mapped_sites(store, sites), ())
    run_state = _open_run_state(plan, store, settings, on_event, work="reencode")

    def connect(actors: ActorSystem) -> Execute:
        return ReencodeCoordinator(run_state, settings, actors).execute

    return execute(run_state, settings, connect)


def _open_run_state(
    plan: SitePlan, store: Store, settings: Settings, on_event: Callable[[JobEvent], None], *, work: str
) -> RunState:
    """Return the state of the requested run: of an unfinished one, or a new one."""
    manifest = new_manifest(plan.tasks, settings, work)
    with _interruptible(raises=False) as interrupted:  # an interruption here also ends with a report
        folder = run_database_folder(settings.store)
        database = RunDatabase.open(folder, manifest, plan.tasks, resume=settings.explore.resume)
        try:
            if not database.resumed:
                store.write_run(manifest.run_id, MANIFEST_NAME, manifest.model_dump_json(indent=2).encode())
            budget = RunBudget(settings.jobs)
            run_state = RunState(database, store, duplicates=plan.duplicates, budget=budget, on_event=on_event)
            run_state.recover()
        except BaseException:
            database.close(finished=False)
            raise
        if interrupted.is_set():
            run_state.stopped_by = "signal"
    return run_state


def execute(run_state: RunState, settings: Settings, connect: Callable[[ActorSystem], Execute]) -> RunReport:
    """Execute work with actors and write a report in every case.

    Parameters
    ----------
    run_state
        State of the run.
    settings
        Settings of the run.
    connect
        Returns, for the actors of the run, the coroutine function that works until an event is set.

    Returns
    -------
    RunReport
        The report, also written to the store.
    """
    try:
        # An earlier invocation may have done everything except the report.
        if run_state.phase is RunPhase.WORKING:
            with (
                ProgressFile(run_state),
                _interruptible() as interrupted,
                actor_system(settings, sites=len(run_state.unfinished)) as actors,
            ):
                if interrupted.is_set():
                    run_state.stopped_by = "signal"
                else:
                    asyncio.run(_execute(run_state, actors, connect))
    except KeyboardInterrupt:
        run_state.stopped_by = "signal"  # during the start or end of actors
    except WaygraphError as error:
        run_state.fail_unfinished(error)
    finally:
        report = run_state.close()
    return report


async def _execute(run_state: RunState, actors: ActorSystem, connect: Callable[[ActorSystem], Execute]) -> None:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    handled = _SIGNALS if threading.current_thread() is threading.main_thread() else ()
    before = {number: signal.getsignal(number) for number in handled}
    for number in handled:
        loop.add_signal_handler(number, stop.set)
    if actors.lifeline is not None:
        # Ray waits a minute for a lost head and then ends this process, which would leave no report.
        loop.add_reader(actors.lifeline, _fail_without_ray, run_state, loop, actors.lifeline)
    try:
        await connect(actors)(stop)
    finally:
        for number, handler in before.items():
            loop.remove_signal_handler(number)
            signal.signal(number, handler)  # the end of the loop waits for threads that write to the store


def _fail_without_ray(run_state: RunState, loop: asyncio.AbstractEventLoop, lifeline: IO[bytes]) -> None:
    loop.remove_reader(lifeline)
    run_state.fail_unfinished(
        WaygraphError("Ray ended in the middle of the run.", hint="Was it killed? Run the command again.")
    )


@contextmanager
def _interruptible(*, raises: bool = True) -> Iterator[threading.Event]:
    """Outside the event loop, make SIGTERM behave like Ctrl-C: raise KeyboardInterrupt, unless `raises` is False.

    Extension modules swallow the exception during their import, so the yielded event is set as well.
    """
    interrupted = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        yield interrupted
        return

    def interrupt(_number: int, _frame: FrameType | None) -> None:
        interrupted.set()
        if raises:
            raise KeyboardInterrupt

    before = {number: signal.signal(number, interrupt) for number in _SIGNALS}
    try:
        yield interrupted
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
