"""The coordinator of re-encoding: the publisher reads mapped sites from the store and encodes them."""

from __future__ import annotations

import asyncio
import time
from collections import deque

from waygraph.core.errors import WaygraphError
from waygraph.core.settings import Settings
from waygraph.pipeline.jobs.actors.protocol import ActorError, ActorSystem
from waygraph.pipeline.jobs.call_errors import to_waygraph_error
from waygraph.pipeline.jobs.failures import retry_policy
from waygraph.pipeline.jobs.metrics import RunMetrics
from waygraph.pipeline.jobs.report.outcomes import Publication, StoppedBy
from waygraph.pipeline.jobs.run.publisher import PublisherClient, save_worker_logs
from waygraph.pipeline.jobs.run.run_state import RunState
from waygraph.pipeline.jobs.run.shutdown import ShutdownSteps, run_until_stopped
from waygraph.pipeline.jobs.run.site_run import SiteRun

#: One site is read or written while another is encoded.
_SITES_AT_ONCE = 2


class ReencodeCoordinator:
    """One run of `waygraph reencode`.

    Parameters
    ----------
    run_state
        State of the run.
    settings
        Settings of the run.
    actors
        Where publisher and encoders run.
    """

    def __init__(self, run_state: RunState, settings: Settings, actors: ActorSystem) -> None:
        self._run_state = run_state
        self._actors = actors
        self._publisher = PublisherClient(run_state, settings, actors)
        if actors.exports_metrics:
            run_state.subscribe(RunMetrics(run_state.work, (site.status for site in run_state.sites)))
        self._queue = deque(run_state.unfinished)
        self._in_work: dict[str, SiteRun] = {}
        self._task: asyncio.Task[None] | None = None
        self._grace_seconds = settings.jobs.publish_grace_seconds

    async def execute(self, stop: asyncio.Event) -> None:
        """Encode sites until all are done or `stop` is set. Vectors that were encoded until then are kept."""
        run_state = self._run_state
        run_state.record_phase("start")
        since = time.monotonic()
        work = self._task = asyncio.create_task(self._work())
        following = asyncio.create_task(self._follow())
        steps = ShutdownSteps(
            stop=self._stop,
            abandon=lambda: None,
            cancel=self._abandon_sites,
            stop_seconds=0,
            grace_seconds=self._grace_seconds,
        )
        await run_until_stopped(work, interrupted=stop, budget=run_state.budget, steps=steps)
        following.cancel()
        await asyncio.wait({following})
        await self._publisher.report()
        if not self._actors.ends_with_coordinator:
            self._publisher.actor.kill()
        run_state.record_phase("work", since=since)
        if self._publisher.lost_workers:
            save_worker_logs(run_state, self._actors)
        if not work.cancelled():
            work.result()  # raises errors that are not outcomes of sites, such as a closed display

    def _stop(self, reason: StoppedBy) -> None:
        self._run_state.stopped_by = reason
        limit = "" if reason == "signal" else f" ({reason} is reached)"
        self._run_state.notify(f"Stopping{limit}. Published sites stay published; vectors are kept.")
        self._queue.clear()
        if self._task is not None and not self._in_work:
            self._task.cancel()  # it waits for an encoder that is no longer needed

    def _abandon_sites(self) -> None:
        self._run_state.notify(f"{len(self._in_work)} sites are left unfinished. The same command resumes them.")

    async def _work(self) -> None:
        try:
            await self._publisher.load()
        except WaygraphError as error:
            self._run_state.fail_unfinished(error)
            return
        try:
            async with asyncio.TaskGroup() as group:
                for _ in range(_SITES_AT_ONCE):
                    group.create_task(self._reencode_sites())
        except Exception as error:  # noqa: BLE001 - becomes the outcome of every site that is not finished
            self._run_state.fail_unfinished(to_waygraph_error(error, "The run"))

    async def _reencode_sites(self) -> None:
        while self._queue:
            site = self._queue.popleft()
            self._in_work[site.key] = site
            try:
                await self._reencode(site)
            finally:
                del self._in_work[site.key]

    async def _reencode(self, site: SiteRun) -> None:
        await asyncio.wrap_future(self._run_state.begin_encoding(site))
        try:
            publication: Publication | None = await self._publisher.call(site.key, "reencode", site.key)
        except WaygraphError as error:
            self._run_state.finish(site, "failed", error=error, is_final=retry_policy(error).is_final)
        else:
            if publication is not None:
                self._run_state.set_encoding_progress(site, publication.encoded, publication.states)
            self._run_state.finish(site, "unchanged" if publication is None else "published", publication=publication)

    async def _follow(self) -> None:
        """Record the progress of sites until the publisher dies."""
        reported: dict[str, tuple[int, int]] = {}
        while True:
            try:
                progress = await self._publisher.actor.call("progress")
            except ActorError as error:
                # The tasks that wait for its results start another publisher.
                self._run_state.notify(f"Progress is unknown: {to_waygraph_error(error, 'The publisher').message}")
                return
            for site, (done, states) in progress.items():
                if reported.get(site) != (done, states):
                    reported[site] = done, states
                    if (in_work := self._in_work.get(site)) is not None:
                        self._run_state.set_encoding_progress(in_work, done, states)
