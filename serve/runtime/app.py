"""Start, readiness check and end of the service.

It is a Ray Serve application (see `waygraph.serve.runtime.deployments`), or one process without Ray (see
`waygraph.serve.runtime.one_process`).
"""

from __future__ import annotations

import json
import logging
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from types import FrameType
from typing import TYPE_CHECKING

import httpx

from waygraph.cluster import Cluster, ray_cluster
from waygraph.core.errors import ServiceError, error_class_for
from waygraph.core.schemas import MissingPart, NotReady, problem_slug, problem_type
from waygraph.core.settings import Settings
from waygraph.serve.runtime.address import local_url, reserve

if TYPE_CHECKING:
    import socket

    from ray.serve import Application

log = logging.getLogger(__name__)

APPLICATION = "waygraph"

#: Object store of a private Ray, in bytes: the least that Ray accepts. Requests and answers are small and bypass it.
OBJECT_STORE_BYTES = 80 * 2**20

#: Settings that Ray Serve reads only from the environment. They apply to a private Ray; a cluster has its own.
ENVIRONMENT = {
    "RAY_SERVE_LOG_TO_STDERR": "0",
    # One event loop per process instead of three: no code here blocks it, and a request changes threads less often.
    "RAY_SERVE_RUN_USER_CODE_IN_SEPARATE_THREAD": "0",
    "RAY_SERVE_RUN_ROUTER_IN_SEPARATE_LOOP": "0",
    "RAY_SERVE_REQUEST_PATH_LOG_BUFFER_SIZE": "1000",
    # gRPC from proxy to replica, on the port that every replica has open anyway: half the CPU time of an actor call.
    "RAY_SERVE_PROXY_USE_GRPC": "1",
    "RAY_SERVE_REPLICA_GRPC_MAX_MESSAGE_LENGTH": str(256 * 2**20),  # an answer is one message; 4 MiB would be too few
    "RAY_SERVE_HTTP_PROXY_CALLBACK_IMPORT_PATH": "waygraph.serve.runtime.proxy:middlewares",
    # uvicorn would take the address of a caller on this machine from what the caller says (X-Forwarded-For).
    "FORWARDED_ALLOW_IPS": "",
}

#: Longest time from the start of the application until it is ready, in seconds. Loading the encoder takes most of it.
START_SECONDS = 180.0
#: Time between two checks whether the service still runs, in seconds.
CHECK_SECONDS = 0.5


def run(settings: Settings, *, on_ready: Callable[[str], None] | None = None) -> None:
    """Serve the maps of `settings.store` until interrupted (Ctrl-C, SIGTERM), then stop every started process.

    Call it in the main thread, which receives the signals.

    Parameters
    ----------
    settings
        The service's settings.
    on_ready
        Called with the service's URL once it can answer every request.

    Raises
    ------
    ServiceError
        If the port is in use, if it is reachable from other machines without an API key, or if the service ends by
        itself, for example because Ray was killed.
    EnvironmentMissing
        If Ray cannot be started or reached.
    StoreError
        If the store cannot be opened.
    WeightsMissing
        If the encoder cannot be loaded, or the files of the reranker are missing.
    """
    from waygraph.serve.query.maps import Maps  # noqa: PLC0415 - needs pyarrow and numpy

    with reserve(settings.serve) as reserved:
        with Maps(settings) as maps:
            maps.open()  # reports problems of the store before anything is started
            maps.reranker.check()
        with _until_interrupted() as install_handlers, ExitStack() as stack:
            if settings.serve.local:
                # FastAPI and uvicorn are needed by this process only then.
                from waygraph.serve.runtime import one_process  # noqa: PLC0415

                install_handlers()  # again: an import that was interrupted may have swallowed the exception
                check = stack.enter_context(one_process.serving(settings, reserved))
            else:
                ray = ray_cluster(object_store_bytes=OBJECT_STORE_BYTES, num_cpus=1, environment=_environment(settings))
                cluster = stack.enter_context(ray)
                install_handlers()  # again: Ray replaced the handler of SIGTERM
                check = stack.enter_context(_deployed(settings, reserved, cluster))
            url = local_url(reserved)
            _wait_until_ready(url, check)
            if on_ready is not None:
                on_ready(url)
            pause = threading.Event()
            while not pause.wait(CHECK_SECONDS):
                check()


def application(_: dict[str, str]) -> Application:
    """Build the application for `serve run waygraph.serve.runtime.app:application` and KubeRay.

    Its settings come from the environment.

    Without an API key it raises `ServiceError`: the proxies of a cluster are reachable from other machines.
    """
    settings = Settings()
    if not (settings.serve.api_keys or settings.serve.keys_file):
        raise ServiceError(
            "Refusing to serve from a cluster without an API key.",
            hint="Set WAYGRAPH_SERVE__API_KEYS='[\"<16 characters or more>\"]', or WAYGRAPH_SERVE__KEYS_FILE.",
        )
    return build(settings)


def build(settings: Settings) -> Application:
    """Build the Ray Serve application, see `waygraph.serve.runtime.deployments`."""
    # Not imported above: Ray reads its environment when it is imported.
    from waygraph.serve.runtime import deployments  # noqa: PLC0415

    return deployments.build(settings)


def _environment(settings: Settings) -> dict[str, str]:
    """Return the environment of a private Ray, with the settings that its proxy reads."""
    serve = settings.serve
    values = {
        "max_requests": str(serve.max_requests),
        "max_requests_per_caller": str(serve.max_requests_per_caller),
        "request_seconds": str(serve.request_seconds),
        "api_keys": json.dumps(serve.api_keys),
        **({"keys_file": str(serve.keys_file.absolute())} if serve.keys_file is not None else {}),
    }
    return {**ENVIRONMENT, **{f"WAYGRAPH_SERVE__{name.upper()}": value for name, value in values.items()}}


@contextmanager
def _deployed(settings: Settings, reserved: socket.socket, cluster: Cluster) -> Iterator[Callable[[], None]]:
    """Run the application on the reserved address for the duration of the block.

    Parameters
    ----------
    settings
        The service's settings.
    reserved
        The bound socket.
    cluster
        The Ray that it runs on.

    Yields
    ------
    Callable[[], None]
        Raises `ServiceError` once a private Ray has ended.
    """
    from ray import serve  # noqa: PLC0415

    logging.getLogger("ray.serve").setLevel(logging.WARNING)
    private = cluster.private

    def check() -> None:
        if private is not None and private.has_ended:
            raise ServiceError(
                "Ray ended while the service was running.", hint="Was it killed? Start the service again."
            )

    host, port = reserved.getsockname()[:2]
    serve.start(
        proxy_location="HeadOnly",
        http_options={"host": host, "port": port},
        logging_config={"enable_access_log": False},
    )
    try:
        try:
            serve.run(build(settings), name=APPLICATION, route_prefix="/", logging_config={"enable_access_log": False})
        except RuntimeError as error:
            _log_deployment_errors()
            raise ServiceError("The service did not start.", hint=f"The log has the reason. {error}") from error
        yield check
    finally:
        if private is None or not private.has_ended:
            serve.delete(APPLICATION)  # waits for the requests in progress


def _log_deployment_errors() -> None:
    """Log what Ray Serve says about the deployments of the application, such as the traceback of a replica."""
    from ray import serve  # noqa: PLC0415

    try:
        application = serve.status().applications.get(APPLICATION)
    except Exception as error:  # noqa: BLE001 - the caller reports why the service did not start
        log.warning("serve/no_status Ray Serve does not answer: %r", error)
        return
    for name, each in (application.deployments if application is not None else {}).items():
        if each.message:
            log.error("serve/not_deployed %s: %s", name, each.message)


@contextmanager
def _until_interrupted() -> Iterator[Callable[[], None]]:
    """End the block without an error on SIGINT or SIGTERM; further signals do not interrupt the cleanup.

    Yields
    ------
    Callable[[], None]
        Installs the signal handlers again, after other code replaced them inside the block.
    """
    signals = (signal.SIGINT, signal.SIGTERM)
    previous = {number: signal.getsignal(number) for number in signals}

    def stop(_number: int, _frame: FrameType | None) -> None:
        for number in signals:
            signal.signal(number, signal.SIG_IGN)
        raise KeyboardInterrupt

    def install_handlers() -> None:
        for number in signals:
            signal.signal(number, stop)

    install_handlers()
    try:
        yield install_handlers
    except KeyboardInterrupt:
        logging.getLogger(__name__).info("interrupted: the service has ended")
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)


def _wait_until_ready(url: str, check: Callable[[], None]) -> None:
    """Poll `/readyz` until the service is ready.

    Parameters
    ----------
    url
        URL of the service.
    check
        Raises `ServiceError` if the service has ended.

    Raises
    ------
    WaygraphError
        If a part that is missing will not become available, or the service ends or is not ready in time.
    """
    deadline = time.monotonic() + START_SECONDS
    pause = threading.Event()
    with httpx.Client(timeout=10, trust_env=False) as http:
        while True:
            check()
            missing = _missing_parts(http, f"{url}/readyz")
            if not missing:
                return
            for part in missing:
                if part.final:
                    raise (error_class_for(problem_slug(part.type)) or ServiceError)(part.detail, hint=part.hint)
            if time.monotonic() > deadline:
                waiting = " ".join(part.detail for part in missing)
                raise ServiceError(f"The service was not ready after {START_SECONDS:.0f} s. {waiting}")
            pause.wait(0.1)


def _missing_parts(http: httpx.Client, url: str) -> list[MissingPart]:
    """Return the parts that the service reports as missing; none if it is ready."""
    try:
        response = http.get(url)
    except httpx.TransportError as error:
        return [
            MissingPart(part="http", type=problem_type(ServiceError.slug), detail=f"{url} does not answer: {error}.")
        ]
    if response.is_success:
        return []
    if response.headers.get("content-type") != "application/problem+json":  # from Ray Serve's proxy: no replica yet
        return [MissingPart(part="http", type=problem_type(ServiceError.slug), detail=f"{url}: {response.text[:200]}")]
    return NotReady.model_validate_json(response.content).missing
