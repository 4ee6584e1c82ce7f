"""What surrounds a run? Ray for its time, signals that end it in order, and its report on disk in every case."""

from __future__ import annotations

import asyncio
import signal
import threading
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from types import FrameType

from index.store import Store
from pipeline.encode.registry import check_name
from pipeline.jobs.events import JobEvent
from pipeline.jobs.report.outcomes import RunReport
from pipeline.jobs.run.account import Account
from pipeline.jobs.run.budget import Budget
from pipeline.jobs.run.ledger import Ledger
from pipeline.jobs.run.manifest import MANIFEST_NAME, ledgers, new_manifest
from pipeline.jobs.sites.site_list import SitePlan, mapped_tasks, plan_sites
from waygraph.cluster import Cluster, PrivateRay, ray_cluster
from waygraph.errors import WaygraphError
from waygraph.settings import Settings

#: Works until the event is set, or until there is nothing left to do.
Execute = Callable[[asyncio.Event], Awaitable[None]]

#: What a run is called, by the function that explores.
_WORK = {"pipeline.explore:explore_site": "index", "pipeline.jobs.exploring.refresh:refresh_site": "refresh"}
_SIGNALS = (signal.SIGINT, signal.SIGTERM)
#: Of a private Ray: captures and vectors of the sites in flight; the rest is spilled to disk.
_OBJECT_STORE_BYTES = 256 * 2**20


def run(sites: Sequence[str], *, settings: Settings, on_event: Callable[[JobEvent], None], explore: str) -> RunReport:
    """See `pipeline.jobs.run_index`."""
    plan = plan_sites(sites)
    check_name(settings.encode.encoder)  # before anything slow starts
    store = Store.open(settings.store, create=True)
    account = _account(
        plan, store, settings, on_event, work=_WORK.get(explore, explore), resume=settings.explore.resume
    )

    def work(cluster: Cluster) -> Execute:
        from pipeline.jobs.run.coordinator import Run  # noqa: PLC0415 - imports Ray, before its environment is set

        return Run(account, settings, cluster, explore).execute

    return on_ray(account, work)


def rerun(sites: Sequence[str], *, settings: Settings, on_event: Callable[[JobEvent], None]) -> RunReport:
    """See `pipeline.jobs.run_reencode`."""
    check_name(settings.encode.encoder)
    store = Store.open(settings.store)
    tasks = mapped_tasks(store, sites)
    account = _account(SitePlan(tasks, ()), store, settings, on_event, work="reencode", resume=settings.explore.resume)

    def work(cluster: Cluster) -> Execute:
        from pipeline.jobs.run.reencode import Reencoding  # noqa: PLC0415 - as above

        return Reencoding(account, settings, cluster).execute

    return on_ray(account, work)


def _account(
    plan: SitePlan, store: Store, settings: Settings, on_event: Callable[[JobEvent], None], *, work: str, resume: bool
) -> Account:
    """The books of the run that is asked for: those of an unfinished one, or new ones."""
    manifest = new_manifest(plan.tasks, settings, work)
    with _interruptible(raises=False) as interrupted:  # who interrupts this gets a report as well
        ledger = Ledger.open(ledgers(settings.store), manifest, plan.tasks, resume=resume)
        try:
            if not ledger.resumed:
                store.write_run(manifest.run_id, MANIFEST_NAME, manifest.model_dump_json(indent=2).encode())
            budget = Budget(settings.jobs)
            account = Account(ledger, store, duplicates=plan.duplicates, budget=budget, on_event=on_event)
            account.recover()
        except BaseException:
            ledger.close(finished=False)
            raise
        if interrupted.is_set():
            account.stopped_by = "signal"
    return account


def on_ray(account: Account, work: Callable[[Cluster], Execute]) -> RunReport:
    """Do work on a Ray for the time that it takes, and report on it, whatever happens.

    Parameters
    ----------
    work : gives, on a connected Ray, what does the work until an event is set, and then ends it in order.

    """
    try:
        # Everything may be done, but for the report: by an earlier call.
        if not (account.completed.is_set() or account.interrupted):
            with _interruptible() as interrupted, ray_cluster(object_store_bytes=_OBJECT_STORE_BYTES) as cluster:
                if interrupted.is_set():
                    account.stopped_by = "signal"
                else:
                    asyncio.run(_until_stopped(account, cluster, work))
    except KeyboardInterrupt:
        account.stopped_by = "signal"  # while Ray was starting or ending
    except WaygraphError as error:
        account.give_up(error)
    finally:
        report = account.close()
    return report


async def _until_stopped(account: Account, cluster: Cluster, work: Callable[[Cluster], Execute]) -> None:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    handled = _SIGNALS if threading.current_thread() is threading.main_thread() else ()
    for number in handled:
        loop.add_signal_handler(number, stop.set)
    if cluster.private is not None:
        # Ray itself would wait a minute for a head that is gone, and then end this process without a word from us.
        loop.add_reader(cluster.private.lifeline, _ray_ended, account, loop, cluster.private)
    try:
        await work(cluster)(stop)
    finally:
        for number in handled:
            loop.remove_signal_handler(number)


def _ray_ended(account: Account, loop: asyncio.AbstractEventLoop, private: PrivateRay) -> None:
    loop.remove_reader(private.lifeline)
    account.give_up(WaygraphError("Ray ended in the middle of the run.", hint="Was it killed? Run the command again."))


@contextmanager
def _interruptible(*, raises: bool = True) -> Iterator[threading.Event]:
    """Outside the event loop SIGTERM does what Ctrl-C does: it raises KeyboardInterrupt, unless it is only to be noted.

    Extension modules swallow that when it comes in the middle of their import, so the event that is given says it too.
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
