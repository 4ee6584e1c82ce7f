"""Which processes answer? A Ray Serve deployment that does everything, and if wanted one that encodes for it.

Import it where Ray may be imported: Ray reads its environment then.
"""

from __future__ import annotations

import asyncio
from typing import Any

from fastapi import FastAPI
from ray import serve
from ray.serve import Application
from ray.serve.handle import DeploymentHandle

from serve.encoding import MAX_TOGETHER, Encoding, EncodingElsewhere, QueryEncoder, RemoteAnswer
from serve.metrics import Metrics
from waygraph.errors import ServiceError, WaygraphError
from waygraph.settings import Settings

#: Requests one replica takes at once. They wait for the CPU inside, where health checks do not wait behind them, and
#: where who comes too many is told so properly.
REQUESTS_AT_ONCE = 1_000
#: Requests that may wait for a replica where there is none, as after one was killed; Ray Serve answers 503 to more.
REQUESTS_WITHOUT_REPLICA = 500
#: With autoscaling, so many requests under way in each replica are what is aimed at.
TARGET_REQUESTS = 16
#: How often is looked whether a replica still lives, and how long it may take to say so. One that is gone is noticed
#: within the first, and replaced.
HEALTH_PERIOD_SECONDS, HEALTH_TIMEOUT_SECONDS = 1.0, 15.0
#: A share of one CPU for each process, so that indexing finds room beside it; what is really used is up to the machine.
CPU_SHARE = 0.1


class Answers:
    """One replica: HTTP, keys, caches, open maps, and the encoder unless another deployment encodes.

    Parameters
    ----------
    encoders : the deployment that encodes, if there is one.

    """

    def __init__(self, settings: Settings, encoders: DeploymentHandle[Any] | None = None) -> None:
        from serve.maps import Maps  # noqa: PLC0415 - only replicas need it, not who deploys them

        self._settings = settings
        self._encoders = encoders
        self._maps = Maps(settings)

    def __serve_build_asgi_app__(self) -> FastAPI:
        """The HTTP application."""
        from serve.api import create_api  # noqa: PLC0415

        encoders, most = self._encoders, self._settings.serve.max_waiting
        if encoders is None:
            return create_api(self._settings, self._maps)

        async def ask(text: str | None) -> RemoteAnswer | None:
            answer: RemoteAnswer | None = await (
                encoders.ready.remote() if text is None else encoders.encode.remote(text)
            )
            return answer

        def elsewhere(metrics: Metrics) -> Encoding:
            return EncodingElsewhere(ask, max_waiting=most, metrics=metrics)

        return create_api(self._settings, self._maps, elsewhere)

    def check_health(self) -> None:
        """Called by Ray Serve, which replaces a replica that is not well (ServiceError)."""
        if not self._maps.alive:
            raise ServiceError("Nobody looks for new versions any more.")


class Encoders:
    """One replica of the deployment that encodes questions, those that come at the same time together."""

    def __init__(self, settings: Settings) -> None:
        self._encoder = QueryEncoder(settings.encode)

    async def ready(self) -> WaygraphError | None:
        """Load the encoder; says why that failed."""
        try:
            await asyncio.to_thread(self._encoder.load)
        except WaygraphError as error:
            return error
        return None

    @serve.batch(max_batch_size=MAX_TOGETHER, batch_wait_timeout_s=0.0, max_concurrent_batches=1)
    async def encode(self, texts: list[str]) -> list[RemoteAnswer]:
        """Encode questions: Ray Serve calls it with those that wait, each caller gets its own answer."""
        try:
            return list(await asyncio.to_thread(self._encoder.encode_each, texts))
        except WaygraphError as error:
            return [error] * len(texts)


def build(settings: Settings) -> Application:
    """The Ray Serve application that these settings describe."""
    wanted = settings.serve
    common: dict[str, Any] = {
        "health_check_period_s": HEALTH_PERIOD_SECONDS,
        "health_check_timeout_s": HEALTH_TIMEOUT_SECONDS,
        "graceful_shutdown_wait_loop_s": 0.1,
        "graceful_shutdown_timeout_s": wanted.drain_seconds,
    }
    answers = serve.deployment(
        name="maps",
        max_ongoing_requests=REQUESTS_AT_ONCE,
        max_queued_requests=REQUESTS_WITHOUT_REPLICA,
        ray_actor_options={"num_cpus": CPU_SHARE},
        **_scale(wanted.replicas, wanted.replicas_max),
        **common,
    )(serve.ingress()(Answers))
    if not wanted.encoder_replicas:
        return answers.bind(settings)
    encoders = serve.deployment(
        name="encoders",
        max_ongoing_requests=4 * MAX_TOGETHER,
        max_queued_requests=wanted.max_waiting,
        ray_actor_options={"num_cpus": CPU_SHARE, "num_gpus": wanted.encoder_gpus},
        **_scale(wanted.encoder_replicas, wanted.encoder_replicas_max),
        **common,
    )(Encoders)
    return answers.bind(settings, encoders.bind(settings))


def _scale(replicas: int, most: int) -> dict[str, Any]:
    if most <= replicas:
        return {"num_replicas": replicas}
    return {
        "autoscaling_config": {
            "min_replicas": replicas,
            "max_replicas": most,
            "target_ongoing_requests": TARGET_REQUESTS,
        }
    }
