"""How do mapped sites get another encoder's vectors? The publisher reads them from the store, one after the other."""

from __future__ import annotations

import asyncio
import time
from collections import deque

import ray
from ray.exceptions import RayError

from pipeline.jobs.failures import policy_of, typed
from pipeline.jobs.metrics import RunMetrics
from pipeline.jobs.report.outcomes import Publication, StoppedBy
from pipeline.jobs.run.account import Account, SiteRun
from pipeline.jobs.run.ending import see_to_end
from pipeline.jobs.run.publisher import Publisher, keep_logs
from waygraph.cluster import Cluster
from waygraph.errors import WaygraphError
from waygraph.settings import Settings

#: One site is read or written while another one is encoded.
_SITES_AT_ONCE = 2


class Reencoding:
    """One run of `waygraph reencode` on a connected Ray."""

    def __init__(self, account: Account, settings: Settings, cluster: Cluster) -> None:
        self._account = account
        self._cluster = cluster
        self._publisher = Publisher(account, settings, cluster)
        account.listen(RunMetrics(account.work, (site.status for site in account.sites)))
        self._queue = deque(account.unfinished)
        self._in_work: dict[str, SiteRun] = {}
        self._task: asyncio.Task[None] | None = None
        self._grace_seconds = settings.jobs.publish_grace_seconds

    async def execute(self, stop: asyncio.Event) -> None:
        """Encode every site, or as many as there are before `stop` is set. What was encoded until then is kept."""
        account = self._account
        account.mark("ray_start")
        since = time.monotonic()
        work = self._task = asyncio.create_task(self._work())
        following = asyncio.create_task(self._follow())
        await see_to_end(
            work,
            stop=stop,
            budget=account.budget,
            begin_stop=self._begin_stop,
            cut_short=lambda: None,
            out_of_time=self._give_up,
            order_seconds=0,
            grace_seconds=self._grace_seconds,
        )
        following.cancel()
        await asyncio.wait({following})
        await self._publisher.report()
        if self._cluster.private is None:  # else it ends with it
            ray.kill(self._publisher.actor)
        account.mark("work", since=since)
        if self._publisher.lost_workers:
            keep_logs(account, self._cluster)
        if not work.cancelled():
            work.result()  # raises what nothing below could make an outcome of, such as a display that is gone

    def _begin_stop(self, reason: StoppedBy) -> None:
        self._account.stopped_by = reason
        why = "" if reason == "signal" else f" ({reason} is reached)"
        self._account.notice(f"Stopping{why}. Sites that are published stay published; what is encoded is kept.")
        self._queue.clear()
        if self._task is not None and not self._in_work:
            self._task.cancel()  # it waits for an encoder that nobody needs

    def _give_up(self) -> None:
        self._account.notice(f"{len(self._in_work)} sites are not waited for any longer. The same command goes on.")

    async def _work(self) -> None:
        try:
            await self._publisher.load()
        except WaygraphError as error:
            self._account.give_up(error)
            return
        try:
            async with asyncio.TaskGroup() as group:
                for _ in range(_SITES_AT_ONCE):
                    group.create_task(self._reencode_sites())
        except Exception as error:  # noqa: BLE001 - becomes the outcome of every site that is not finished
            self._account.give_up(typed(error, "The run"))

    async def _reencode_sites(self) -> None:
        while self._queue:
            site = self._queue.popleft()
            self._in_work[site.key] = site
            try:
                await self._reencode(site)
            finally:
                del self._in_work[site.key]

    async def _reencode(self, site: SiteRun) -> None:
        await asyncio.wrap_future(self._account.begin_encoding(site))
        try:
            publication: Publication | None = await self._publisher.call(
                lambda publisher: publisher.reencode.remote(site.key), site.key
            )
        except WaygraphError as error:
            self._account.finish(site, "failed", error=error, settled=policy_of(error).settled)
        else:
            if publication is not None:
                self._account.encoded(site, publication.encoded, publication.states)
            self._account.finish(site, "unchanged" if publication is None else "published", publication=publication)

    async def _follow(self) -> None:
        """Tell how far sites are, for as long as the publisher lives."""
        told: dict[str, tuple[int, int]] = {}
        while True:
            try:
                progress = await self._publisher.actor.progress.remote()
            except RayError as error:
                # Whoever waits for its results starts another one.
                self._account.notice(f"No progress is known any more: {typed(error, 'The publisher').message}")
                return
            for site, (done, states) in progress.items():
                if told.get(site) != (done, states):
                    told[site] = done, states
                    if (in_work := self._in_work.get(site)) is not None:
                        self._account.encoded(in_work, done, states)
