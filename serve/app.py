"""How does the service run? As a Ray Serve application (`serve.deployments`), started, watched and ended here."""

from __future__ import annotations

import logging
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import TYPE_CHECKING

import httpx

from serve.address import reserve, url_of
from waygraph.cluster import Cluster, ray_cluster
from waygraph.errors import ServiceError, by_slug
from waygraph.schemas import MissingPart, NotReady, problem_slug, problem_type
from waygraph.settings import Settings

if TYPE_CHECKING:
    import socket

    from ray.serve import Application

APPLICATION = "waygraph"

#: Of a private Ray, which takes no less. Requests and answers are small and never go through the object store.
OBJECT_STORE_BYTES = 80 * 2**20

#: What Ray Serve takes only from the environment; of a private Ray, a cluster has its own.
ENVIRONMENT = {
    "RAY_SERVE_LOG_TO_STDERR": "0",
    # One event loop per process instead of three: nothing of ours blocks it, and a request changes threads less often.
    "RAY_SERVE_RUN_USER_CODE_IN_SEPARATE_THREAD": "0",
    "RAY_SERVE_RUN_ROUTER_IN_SEPARATE_LOOP": "0",
    "RAY_SERVE_REQUEST_PATH_LOG_BUFFER_SIZE": "1000",
    # From proxy to replica by gRPC, on the port that every replica has open anyway: half the CPU time of an actor call.
    "RAY_SERVE_PROXY_USE_GRPC": "1",
    "RAY_SERVE_REPLICA_GRPC_MAX_MESSAGE_LENGTH": str(256 * 2**20),  # an answer is one message; 4 MiB would be too few
    "RAY_SERVE_HTTP_PROXY_CALLBACK_IMPORT_PATH": "serve.proxy:middlewares",
}

#: Longest time from the start of the application to its first ready answer; loading the encoder takes most of it.
START_SECONDS = 180.0


def run(settings: Settings, *, on_ready: Callable[[str], None] | None = None) -> None:
    """Serve the maps of `settings.store` until interrupted (Ctrl-C, SIGTERM), then stop every process again.

    Call it in the main thread, where signals arrive. `on_ready` gets the URL once every request can be answered.

    Raises
    ------
    ServiceError
        When the port is in use, or is beyond loopback without an API key, or when Ray ends under the service.
    EnvironmentMissing
        When Ray cannot be started or reached.
    StoreError, WeightsMissing, ...
        When the store cannot be opened or the encoder cannot be loaded.

    """
    from serve.maps import Maps  # noqa: PLC0415 - needs pyarrow and numpy

    with reserve(settings.serve) as held:
        with Maps(settings) as maps:
            maps.open()  # what is wrong with the store is said before anything is started
        with (
            _until_interrupted() as listen,
            ray_cluster(
                object_store_bytes=OBJECT_STORE_BYTES, num_cpus=1, environment=_environment(settings)
            ) as cluster,
        ):
            listen()  # again: Ray took SIGTERM for itself
            with _deployed(settings, held, cluster):
                url = url_of(held)
                _wait_until_ready(url)
                if on_ready is not None:
                    on_ready(url)
                _wait_for_end(cluster)


def application(_: dict[str, str]) -> Application:
    """Build the application for `serve run serve.app:application` and KubeRay; settings come from the environment.

    Raises
    ------
    ServiceError
        When there is no API key: the proxies of a cluster are reached from beyond its machines.

    """
    settings = Settings()
    if not (settings.serve.api_keys or settings.serve.keys_file):
        raise ServiceError(
            "Refusing to serve from a cluster without an API key.",
            hint="Set WAYGRAPH_SERVE__API_KEYS='[\"<a long secret>\"]', or WAYGRAPH_SERVE__KEYS_FILE.",
        )
    return build(settings)


def build(settings: Settings) -> Application:
    """Build the Ray Serve application, see `serve.deployments`."""
    from serve import deployments  # noqa: PLC0415 - Ray reads its environment when it is imported

    return deployments.build(settings)


def _environment(settings: Settings) -> dict[str, str]:
    """Of a private Ray, with what its proxy must know of our settings."""
    return {**ENVIRONMENT, "WAYGRAPH_SERVE__MAX_REQUESTS": str(settings.serve.max_requests)}


@contextmanager
def _deployed(settings: Settings, held: socket.socket, cluster: Cluster) -> Iterator[None]:
    from ray import serve  # noqa: PLC0415

    logging.getLogger("ray.serve").setLevel(logging.WARNING)
    host, port = held.getsockname()[:2]
    serve.start(
        proxy_location="HeadOnly",
        http_options={"host": host, "port": port},
        logging_config={"enable_access_log": False},
    )
    try:
        try:
            serve.run(build(settings), name=APPLICATION, route_prefix="/", logging_config={"enable_access_log": False})
        except RuntimeError as error:
            raise ServiceError("The service did not start.", hint=str(error)) from error
        yield
    finally:
        if cluster.private is None or not cluster.private.ended:
            serve.delete(APPLICATION)  # requests that are being answered still are


def _wait_for_end(cluster: Cluster) -> None:
    if cluster.private is None:
        threading.Event().wait()
        return
    cluster.private.lifeline.read()
    raise ServiceError("Ray ended under the service.", hint="Was it killed? Start the service again.")


@contextmanager
def _until_interrupted() -> Iterator[Callable[[], None]]:
    """End the block without an error on SIGINT or SIGTERM; further ones do not disturb the cleaning up.

    Yields a function that takes the signals back from whoever took them inside the block.
    """
    signals = (signal.SIGINT, signal.SIGTERM)
    previous = {number: signal.getsignal(number) for number in signals}

    def stop(_number: int, _frame: FrameType | None) -> None:
        for number in signals:
            signal.signal(number, signal.SIG_IGN)
        raise KeyboardInterrupt

    def listen() -> None:
        for number in signals:
            signal.signal(number, stop)

    listen()
    try:
        yield listen
    except KeyboardInterrupt:
        logging.getLogger(__name__).info("interrupted: the service has ended")
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)


def _wait_until_ready(url: str) -> None:
    """Ask until the service is ready; give up when it says that it cannot become so.

    Raises
    ------
    WaygraphError
        The error that keeps the service from being ready.

    """
    deadline = time.monotonic() + START_SECONDS
    pause = threading.Event()
    with httpx.Client(timeout=10, trust_env=False) as http:
        while True:
            missing = _missing(http, f"{url}/readyz")
            if not missing:
                return
            for part in missing:
                if part.final:
                    raise (by_slug(problem_slug(part.type)) or ServiceError)(part.detail, hint=part.hint)
            if time.monotonic() > deadline:
                waiting = " ".join(part.detail for part in missing)
                raise ServiceError(f"The service was not ready after {START_SECONDS:.0f} s. {waiting}")
            pause.wait(0.1)


def _missing(http: httpx.Client, url: str) -> list[MissingPart]:
    """What the service lacks, as it says itself."""
    try:
        response = http.get(url)
    except httpx.TransportError as error:
        return [
            MissingPart(part="http", type=problem_type(ServiceError.slug), detail=f"{url} does not answer: {error}.")
        ]
    if response.is_success:
        return []
    if response.headers.get("content-type") != "application/problem+json":  # Ray Serve's proxy, without a replica yet
        return [MissingPart(part="http", type=problem_type(ServiceError.slug), detail=f"{url}: {response.text[:200]}")]
    return NotReady.model_validate_json(response.content).missing
