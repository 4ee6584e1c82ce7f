"""The service without Ray: the application of a replica behind the admission control of a proxy, in this process."""

from __future__ import annotations

import logging
import math
import os
import socket
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import uvicorn

from waygraph.core.errors import ServiceError
from waygraph.core.locked_folders import locked_folder
from waygraph.core.settings import Settings
from waygraph.serve.http.api import create_api
from waygraph.serve.query.maps import Maps
from waygraph.serve.runtime.http_protocol import LimitedHttpProtocol
from waygraph.serve.runtime.proxy import AdmissionMiddleware

#: Time after which a connection without requests is closed, in seconds. It is that of Ray Serve's proxies.
KEEP_ALIVE_SECONDS = 90


@contextmanager
def serving(settings: Settings, reserved: socket.socket) -> Iterator[Callable[[], None]]:
    """Serve on the reserved address for the duration of the block, then finish the requests in progress.

    The server runs in a thread of its own, so that the main thread receives signals as it does with Ray.

    Parameters
    ----------
    settings
        The service's settings.
    reserved
        The bound socket.

    Yields
    ------
    Callable[[], None]
        Raises `ServiceError` once the service has ended by itself.
    """
    # To stderr. Else the MCP library would set up the root logger, and log requests.
    logging.basicConfig(format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    maps = Maps(settings)
    with _temporary_folder(), _server(settings, maps, reserved) as thread:

        def check() -> None:
            if not thread.is_alive():
                raise ServiceError(
                    "The HTTP server has ended.", hint="The log has the reason. Start the service again."
                )
            if not maps.is_alive:
                raise ServiceError("The background refresh of the maps has ended.", hint="Start the service again.")

        yield check


@contextmanager
def _temporary_folder() -> Iterator[None]:
    """Put temporary files of this process, such as vectors, where the next service removes them after a kill."""
    before = tempfile.tempdir
    with locked_folder(tempfile.gettempdir(), "wg-serve-") as (folder, _):
        tempfile.tempdir = str(folder)
        try:
            yield
        finally:
            tempfile.tempdir = before


@contextmanager
def _server(settings: Settings, maps: Maps, reserved: socket.socket) -> Iterator[threading.Thread]:
    """Run the HTTP server for the duration of the block; yield its thread."""
    config = uvicorn.Config(
        AdmissionMiddleware(create_api(settings, maps), settings=settings.serve),
        http=LimitedHttpProtocol,
        ws="none",
        lifespan="on",
        log_config=None,
        access_log=False,
        # As with Ray: the address of a caller on this machine is not what the caller says (X-Forwarded-For).
        forwarded_allow_ips=os.environ.get("FORWARDED_ALLOW_IPS", ""),
        timeout_keep_alive=KEEP_ALIVE_SECONDS,
        timeout_graceful_shutdown=math.ceil(settings.serve.drain_seconds),
    )
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, args=([reserved],), name="http")
    try:
        thread.start()
        yield thread
    finally:
        server.should_exit = True
        if thread.ident is not None:
            thread.join()
