"""How do mapped sites get another encoder's vectors? The publisher reads them from the store, one after the other."""

from __future__ import annotations

import asyncio
import time
from collections import deque

import ray
from ray.exceptions import RayError

from pipeline.jobs.events import SiteEncoding
from pipeline.jobs.failures import policy_of, typed
from pipeline.jobs.report.outcomes import Publication
from pipeline.jobs.run.account import Account, SiteRun
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
        self._queue = deque(account.sites)

    async def execute(self, stop: asyncio.Event) -> None:
        """Encode every site, or as many as there are before `stop` is set. What was encoded until then is kept."""
        account = self._account
        account.mark("ray_start")
        since = time.monotonic()
        work = asyncio.create_task(self._work())
        stopping = asyncio.create_task(stop.wait())
        following = asyncio.create_task(self._follow())
        await asyncio.wait({work, stopping}, return_when=asyncio.FIRST_COMPLETED)
        if not work.done():
            account.stopped_by = "signal"
            account.notice("Stopping. Sites that are published stay published; what is encoded is kept.")
        for task in (work, stopping, following):
            task.cancel()
        await asyncio.gather(work, stopping, following, return_exceptions=True)
        await self._publisher.report()
        if self._cluster.private is None:  # else it ends with it
            ray.kill(self._publisher.actor)
        account.mark("work", since=since)
        if self._publisher.lost_workers:
            keep_logs(account, self._cluster)
        if not work.cancelled():
            work.result()  # raises what nothing below could make an outcome of, such as a display that is gone

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
            await self._reencode(self._queue.popleft())

    async def _reencode(self, site: SiteRun) -> None:
        await asyncio.wrap_future(self._account.begin_encoding(site))
        try:
            publication: Publication | None = await self._publisher.call(
                lambda publisher: publisher.reencode.remote(site.key), site.key
            )
        except WaygraphError as error:
            self._account.finish(site, "failed", error=error, settled=policy_of(error).settled)
        else:
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
                    self._account.emit(SiteEncoding(site, done, states))
