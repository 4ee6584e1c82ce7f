"""Client of the publisher actor: starts it, restarts it when it dies, and collects its report."""

from __future__ import annotations

import asyncio
import time
from functools import partial
from typing import Any

from waygraph.core.settings import Settings
from waygraph.pipeline.jobs.actors.protocol import Actor, ActorError, ActorSystem
from waygraph.pipeline.jobs.call_errors import resolve_actor_error, to_waygraph_error
from waygraph.pipeline.jobs.encoding.pool_size import EncoderResources
from waygraph.pipeline.jobs.failures import CallRetries, decide_call_retry
from waygraph.pipeline.jobs.publishing.publisher_actor import MAX_PUBLISHER_CALLS
from waygraph.pipeline.jobs.run.run_state import RunState

_PUBLISHER = "waygraph.pipeline.jobs.publishing.publisher_actor:PublisherActor"
_PUBLISHER_CPUS = 0.05
#: Time to wait for the encoders' report at the end of a run.
_REPORT_SECONDS = 2.0
#: Time without an encoder after which a notice explains the delay.
_PATIENCE_SECONDS = 60.0


class PublisherClient:
    """The publisher of a run.

    Parameters
    ----------
    run_state
        State of the run.
    settings
        Settings of the run.
    actors
        Where publisher and encoders run.

    Attributes
    ----------
    lost_workers
        Whether the publisher or an encoder died.
    uses_gpus
        Whether its encoders reserve GPUs.
    actor
        The current actor.
    """

    def __init__(self, run_state: RunState, settings: Settings, actors: ActorSystem) -> None:
        self._run_state = run_state
        self._settings = settings
        self._system = actors
        machines = actors.machines()
        self._resources = EncoderResources.of(
            settings,
            cpus=sum(machine.cpus for machine in machines),
            gpus=sum(machine.gpus for machine in machines),
        )
        self.lost_workers = False
        self.uses_gpus = self._resources.gpus > 0
        self.actor = self._start()

    def _start(self) -> Actor:
        return self._system.start(
            _PUBLISHER,
            self._settings,
            self._run_state.run_id,
            self._resources,
            self._system,
            cpus=_PUBLISHER_CPUS,
            concurrency=MAX_PUBLISHER_CALLS,
            is_light=True,
        )

    async def load(self) -> None:
        """Wait until an encoder is loaded. Raise WaygraphError if none can be loaded."""
        loading = asyncio.ensure_future(self.call("the encoder", "load"))
        try:
            finished, _ = await asyncio.wait({loading}, timeout=_PATIENCE_SECONDS)
            if not finished:
                needs = f"{self._resources.cpus:g} CPUs" + (
                    f" and {self._resources.gpus:g} GPUs" if self._resources.gpus else ""
                )
                self._run_state.notify(
                    f"Still waiting for the encoder: it is loading, or waits for {needs} of a cluster."
                )
            await loading
        finally:
            loading.cancel()
        self._run_state.record_phase("encoder_ready")

    async def call(self, what: str, method: str, *arguments: object) -> Any:  # noqa: ANN401 - see `Actor.call`
        """Call the publisher. If it dies, start another one and call again.

        Parameters
        ----------
        what
            What is published, for messages.
        method
            A method of `PublisherActor`.
        *arguments
            Its arguments.

        Returns
        -------
        object
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
                return await actor.call(method, *arguments)
            except Exception as error:
                failure = to_waygraph_error(
                    await resolve_actor_error(error, partial(actor.call, "report")), f"Publishing {what}"
                )
                retry = decide_call_retry(failure, left)
                if retry is None:
                    raise failure from error
            left = retry
            self.lost_workers = True
            self._run_state.notify(f"{what}: trying again. {failure.message}")
            if actor is self.actor:
                actor.kill()  # it may be alive and unreachable
                self.actor = self._start()

    async def report(self) -> None:
        """Add the encoders' report to the run state, if the publisher still answers."""
        if self._system.has_ended:
            return  # with the publisher
        started = time.monotonic()
        try:
            report = await asyncio.wait_for(self.actor.call("report"), _REPORT_SECONDS)
        except (ActorError, TimeoutError) as error:
            seconds = time.monotonic() - started
            self._run_state.notify(f"No report of the encoders after {seconds:.1f} s: {type(error).__name__}.")
        else:
            self._run_state.encoding = report
            self.lost_workers |= report.actors_lost > 0


def save_worker_logs(run_state: RunState, actors: ActorSystem) -> None:
    """Copy the workers' logs to the run's folder."""
    for name, content in actors.logs():
        if content:
            run_state.write_file(f"log-{name}", content)
