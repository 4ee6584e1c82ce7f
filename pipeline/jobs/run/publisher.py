"""How does a run reach its publisher? A handle that starts it, and another one when it dies, and asks how it went."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import TypeVar

import ray
from ray.exceptions import RayError

from pipeline.jobs.actors import Actor, start_actor
from pipeline.jobs.encoding.pool_size import EncoderRoom
from pipeline.jobs.failures import MOST_MACHINES, CaptureLost, MachineLost, WorkerLost, typed, verdict
from pipeline.jobs.publishing.publisher_actor import PUBLISHER_CALLS, PublisherActor
from pipeline.jobs.run.account import Account
from waygraph.cluster import Cluster
from waygraph.settings import Settings

_Result = TypeVar("_Result")

_PUBLISHER_CPUS = 0.05
#: The encoders' account is waited for so long: a publisher that is too busy to give it is not worth more.
_REPORT_SECONDS = 2.0
#: After this long without an encoder the user is told why nothing happens.
_PATIENCE_SECONDS = 60.0
#: So much is kept of each log when a worker died.
_LOG_BYTES = 200_000


class Publisher:
    """The publisher of a run, started when it is first wanted.

    Attributes
    ----------
    lost_workers : whether it, or an encoder, died.
    uses_gpus : whether its encoders reserve GPUs.

    """

    def __init__(self, account: Account, settings: Settings, cluster: Cluster) -> None:
        self._account = account
        self._settings = settings
        self._private = cluster.private
        self._room = EncoderRoom.of(settings, cpus=cluster.cpus, gpus=cluster.gpus)
        self.lost_workers = False
        self.uses_gpus = self._room.gpus > 0
        self.actor = self._start()

    def _start(self) -> Actor:
        return start_actor(
            PublisherActor,
            self._settings,
            self._account.run_id,
            self._room,
            cpus=_PUBLISHER_CPUS,
            concurrency=PUBLISHER_CALLS,
        )

    async def load(self) -> None:
        """Wait until there is an encoder (WaygraphError when there can be none)."""
        loading = asyncio.ensure_future(self.call(lambda publisher: publisher.load.remote(), "the encoder"))
        try:
            finished, _ = await asyncio.wait({loading}, timeout=_PATIENCE_SECONDS)
            if not finished:
                needs = f"{self._room.cpus:g} CPUs" + (f" and {self._room.gpus:g} GPUs" if self._room.gpus else "")
                self._account.notice(f"Still waiting for the encoder: it loads, or waits for {needs} of the cluster.")
            await loading
        finally:
            loading.cancel()
        self._account.mark("encoder_ready")

    async def call(self, call: Callable[[Actor], Awaitable[_Result]], what: str) -> _Result:
        """Call the publisher; when it dies, start another one and call again.

        Raises
        ------
        CaptureLost
            When what it was called with was lost with its machine: another call cannot help.
        WaygraphError
            When it failed otherwise.

        """
        left, machines = self._settings.jobs.site_retries, MOST_MACHINES
        while True:
            actor = self.actor
            try:
                return await call(actor)
            except Exception as error:
                failure = typed(await verdict(error, actor.report.remote), f"Publishing {what}")
                with_machine = isinstance(failure, MachineLost)
                again = machines if with_machine else left
                if not (again and isinstance(failure, WorkerLost)) or isinstance(failure, CaptureLost):
                    raise failure from error
            left, machines = left - (not with_machine), machines - with_machine
            self.lost_workers = True
            self._account.notice(f"{what}: trying again. {failure.message}")
            if actor is self.actor:
                ray.kill(actor)  # it may live, and cannot be reached
                self.actor = self._start()

    async def report(self) -> None:
        """Put what the encoders did into the run's account, if they can still be asked."""
        if self._private is not None and self._private.ended:
            return  # and everything in it
        started = time.monotonic()
        try:
            report = await asyncio.wait_for(self.actor.report.remote(), _REPORT_SECONDS)
        except (RayError, TimeoutError) as error:
            seconds = time.monotonic() - started
            self._account.notice(f"No account of the encoders after {seconds:.1f} s: {type(error).__name__}.")
        else:
            self._account.encoding = report
            self.lost_workers |= report.actors_lost > 0


def keep_logs(account: Account, cluster: Cluster) -> None:
    """Keep what the workers wrote: the private Ray's folder disappears with it."""
    if cluster.private is None:
        return
    logs = cluster.private.logs
    for log in sorted([*logs.glob("worker-*"), *logs.glob("raylet.*")]):
        lines = log.read_bytes()[-_LOG_BYTES:].splitlines(keepends=True)
        # Lines that start with a colon are Ray's marks for its own log reader.
        if content := b"".join(line for line in lines if not line.startswith(b":")):
            account.keep(f"log-{log.name}", content)
