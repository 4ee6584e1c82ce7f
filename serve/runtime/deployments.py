"""Ray Serve deployments: one that answers all requests and, if configured, one that encodes queries for it.

Ray reads its environment when it is imported, and this module imports it.
"""

from __future__ import annotations

import asyncio
from typing import Any

from fastapi import FastAPI
from ray import serve
from ray.serve import Application
from ray.serve.handle import DeploymentHandle

from waygraph.core.errors import ServiceError, WaygraphError
from waygraph.core.log_records import escape_log_records
from waygraph.core.settings import Settings
from waygraph.serve.query.async_encoder import AsyncQueryEncoder
from waygraph.serve.query.query_encoder import MAX_BATCH, QueryEncoder
from waygraph.serve.query.remote_encoder import RemoteAnswer, RemoteQueryEncoder
from waygraph.serve.telemetry.metrics import Metrics

#: Requests that one replica takes at once. They wait for the CPU in the replica, where they do not delay health checks
#: and where excess requests get a proper error.
MAX_ONGOING_REQUESTS = 1_000
#: Requests that may wait while there is no replica, for example after one was killed. Ray Serve answers 503 to more.
MAX_QUEUED_REQUESTS = 500
#: Requests in progress per replica that autoscaling aims at.
TARGET_ONGOING_REQUESTS = 16
#: Time between health checks, and longest time for the answer to one. A replica that ended is noticed within the first,
#: and replaced.
HEALTH_PERIOD_SECONDS, HEALTH_TIMEOUT_SECONDS = 1.0, 15.0
#: CPU that each process reserves, so that index jobs find room on the same machine. It does not limit the use.
CPU_SHARE = 0.1


class MapsDeployment:
    """One replica: HTTP, API keys, caches, open maps, and the encoder unless another deployment encodes.

    Parameters
    ----------
    settings
        The service's settings.
    encoders
        Handle of the deployment that encodes; None encodes in this replica.
    """

    def __init__(self, settings: Settings, encoders: DeploymentHandle[Any] | None = None) -> None:
        # Only replicas need this module, not the process that deploys them.
        from waygraph.serve.query.maps import Maps  # noqa: PLC0415

        escape_log_records()
        self._settings = settings
        self._encoders = encoders
        self._maps = Maps(settings)

    def __serve_build_asgi_app__(self) -> FastAPI:
        """Build the HTTP application. Ray Serve calls it in the replica."""
        from waygraph.serve.http.api import create_api  # noqa: PLC0415

        encoders, settings = self._encoders, self._settings.serve
        if encoders is None:
            return create_api(self._settings, self._maps)

        async def call(text: str | None) -> RemoteAnswer | None:
            answer: RemoteAnswer | None = await (
                encoders.load.remote() if text is None else encoders.encode.remote(text)
            )
            return answer

        def make_remote_encoder(metrics: Metrics) -> AsyncQueryEncoder:
            # A batch that is encoded and one that waits, in each of the processes.
            slots = 2 * MAX_BATCH * max(settings.encoder_replicas, settings.encoder_replicas_max)
            return RemoteQueryEncoder(call, slots=slots, max_waiting=settings.max_waiting, metrics=metrics)

        return create_api(self._settings, self._maps, make_remote_encoder)

    def check_health(self) -> None:
        """Check the replica. Ray Serve calls it, and replaces a replica that fails.

        Raises
        ------
        ServiceError
            If the maps are no longer refreshed.
        """
        if not self._maps.is_alive:
            raise ServiceError("The background refresh of the maps has ended.")


class EncoderDeployment:
    """One replica of the deployment that encodes queries, in batches of those that arrive at the same time.

    Parameters
    ----------
    settings
        The service's settings.
    """

    def __init__(self, settings: Settings) -> None:
        escape_log_records()
        self._encoder = QueryEncoder(settings.encode)

    async def load(self) -> WaygraphError | None:
        """Load the encoder, and return the error if that fails."""
        try:
            await asyncio.to_thread(self._encoder.load)
        except WaygraphError as error:
            return error
        return None

    @serve.batch(max_batch_size=MAX_BATCH, batch_wait_timeout_s=0.0, max_concurrent_batches=1)
    async def encode(self, texts: list[str]) -> list[RemoteAnswer]:
        """Encode a batch of queries. Callers pass one query each; Ray Serve makes the batch and splits the result."""
        try:
            return list(await asyncio.to_thread(self._encoder.encode_each, texts))
        except WaygraphError as error:
            return [error] * len(texts)


def build(settings: Settings) -> Application:
    """Build the Ray Serve application for these settings."""
    serve_settings = settings.serve
    common: dict[str, Any] = {
        "health_check_period_s": HEALTH_PERIOD_SECONDS,
        "health_check_timeout_s": HEALTH_TIMEOUT_SECONDS,
        "graceful_shutdown_wait_loop_s": 0.1,
        "graceful_shutdown_timeout_s": serve_settings.drain_seconds,
    }
    maps = serve.deployment(
        name="maps",
        max_ongoing_requests=MAX_ONGOING_REQUESTS,
        max_queued_requests=MAX_QUEUED_REQUESTS,
        ray_actor_options={"num_cpus": CPU_SHARE, "num_gpus": serve_settings.replica_gpus},
        **_scaling(serve_settings.replicas, serve_settings.replicas_max),
        **common,
    )(serve.ingress()(MapsDeployment))
    if not serve_settings.encoder_replicas:
        return maps.bind(settings)
    encoders = serve.deployment(
        name="encoders",
        max_ongoing_requests=4 * MAX_BATCH,
        max_queued_requests=serve_settings.max_waiting,
        ray_actor_options={"num_cpus": CPU_SHARE, "num_gpus": serve_settings.encoder_gpus},
        **_scaling(serve_settings.encoder_replicas, serve_settings.encoder_replicas_max),
        **common,
    )(EncoderDeployment)
    return maps.bind(settings, encoders.bind(settings))


def _scaling(replicas: int, max_replicas: int) -> dict[str, Any]:
    if max_replicas <= replicas:
        return {"num_replicas": replicas}
    return {
        "autoscaling_config": {
            "min_replicas": replicas,
            "max_replicas": max_replicas,
            "target_ongoing_requests": TARGET_ONGOING_REQUESTS,
        }
    }
