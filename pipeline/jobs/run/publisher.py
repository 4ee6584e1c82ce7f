"""Client of the publisher actor: starts it, restarts it when it dies, and collects its report."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import TypeVar

import ray
from ray.exceptions import RayError

from waygraph.cluster import Cluster
from waygraph.core.settings import Settings
from waygraph.pipeline.jobs.actors import ActorHandle, start_actor
from waygraph.pipeline.jobs.encoding.pool_size import EncoderResources
from waygraph.pipeline.jobs.failures import CallRetries, decide_call_retry
from waygraph.pipeline.jobs.publishing.publisher_actor import MAX_PUBLISHER_CALLS, PublisherActor
from waygraph.pipeline.jobs.ray_errors import resolve_actor_error, to_waygraph_error
from waygraph.pipeline.jobs.run.run_state import RunState

_Result = TypeVar("_Result")

_PUBLISHER_CPUS = 0.05
#: Time to wait for the encoders' report at the end of a run.
_REPORT_SECONDS = 2.0
#: Time without an encoder after which a notice explains the delay.
_PATIENCE_SECONDS = 60.0
#: Maximal size of each log that is kept when a worker died.
_LOG_BYTES = 200_000


class PublisherClient:
    """The publisher of a run.

    Parameters
    ----------
    run_state
        State of the run.
    settings
        Settings of the run.
    cluster
        The connected Ray.

    Attributes
    ----------
    lost_workers
        Whether the publisher or an encoder died.
    uses_gpus
        Whether its encoders reserve GPUs.
    actor
        The current actor.
    """

    def __init__(self, run_state: RunState, settings: Settings, cluster: Cluster) -> None:
        self._run_state = run_state
        self._settings = settings
        self._private = cluster.private
        self._resources = EncoderResources.of(settings, cpus=cluster.cpus, gpus=cluster.gpus)
        self.lost_workers = False
        self.uses_gpus = self._resources.gpus > 0
        self.actor = self._start()

    def _start(self) -> ActorHandle:
        return start_actor(
            PublisherActor,
            self._settings,
            self._run_state.run_id,
            self._resources,
            cpus=_PUBLISHER_CPUS,
            concurrency=MAX_PUBLISHER_CALLS,
        )

    async def load(self) -> None:
        """Wait until an encoder is loaded. Raise WaygraphError if none can be loaded."""
        loading = asyncio.ensure_future(self.call(lambda publisher: publisher.load.remote(), "the encoder"))
        try:
            finished, _ = await asyncio.wait({loading}, timeout=_PATIENCE_SECONDS)
            if not finished:
                needs = f"{self._resources.cpus:g} CPUs" + (
                    f" and {self._resources.gpus:g} GPUs" if self._resources.gpus else ""
                )
                self._run_state.notify(
                    f"Still waiting for the encoder: it is loading, or waits for {needs} of the cluster."
                )
            await loading
        finally:
            loading.cancel()
        self._run_state.record_phase("encoder_ready")

    async def call(self, call: Callable[[ActorHandle], Awaitable[_Result]], what: str) -> _Result:
        """Call the publisher. If it dies, start another one and call again.

        Parameters
        ----------
        call
            Calls a method of the actor.
        what
            What is published, for messages.

        Returns
        -------
        _Result
            The result of the call.

        Raises
        ------
        CaptureLost
            If the arguments of the call were lost with their machine, so that another call cannot succeed.
        WaygraphError
            If the call failed otherwise.
        """
        left = CallRetries(crashes=self._settings.jobs.site_retries)
        while True:
            actor = self.actor
            try:
                return await call(actor)
            except Exception as error:
                failure = to_waygraph_error(await resolve_actor_error(error, actor.report.remote), f"Publishing {what}")
                retry = decide_call_retry(failure, left)
                if retry is None:
                    raise failure from error
            left = retry
            self.lost_workers = True
            self._run_state.notify(f"{what}: trying again. {failure.message}")
            if actor is self.actor:
                ray.kill(actor)  # it may be alive and unreachable
                self.actor = self._start()

    async def report(self) -> None:
        """Add the encoders' report to the run state, if the publisher still answers."""
        if self._private is not None and self._private.has_ended:
            return  # with the publisher
        started = time.monotonic()
        try:
            report = await asyncio.wait_for(self.actor.report.remote(), _REPORT_SECONDS)
        except (RayError, TimeoutError) as error:
            seconds = time.monotonic() - started
            self._run_state.notify(f"No report of the encoders after {seconds:.1f} s: {type(error).__name__}.")
        else:
            self._run_state.encoding = report
            self.lost_workers |= report.actors_lost > 0


def save_worker_logs(run_state: RunState, cluster: Cluster) -> None:
    """Copy the workers' logs to the run's folder. A private Ray deletes its own folder."""
    if cluster.private is None:
        return
    logs = cluster.private.logs
    for log in sorted([*logs.glob("worker-*"), *logs.glob("raylet.*")]):
        lines = log.read_bytes()[-_LOG_BYTES:].splitlines(keepends=True)
        # Lines that start with a colon are Ray's marks for its own log reader.
        if content := b"".join(line for line in lines if not line.startswith(b":")):
            run_state.write_file(f"log-{log.name}", content)
