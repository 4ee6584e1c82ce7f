"""Where does the service run? In a private Ray of its own on this machine, or in the cluster RAY_ADDRESS names."""

from __future__ import annotations

import logging
import os
import secrets
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

#: Ray asks for no less. Requests and answers are small and never go through the object store.
OBJECT_STORE_BYTES = 80 * 2**20

#: Unix sockets are made in Ray's folder; their paths may have 107 bytes, of which Ray takes about 70.
LONGEST_PARENT = 20

#: Settings of a private Ray that can only be given by the environment; what the user set wins.
_PRIVATE = {
    "RAY_USAGE_STATS_ENABLED": "0",
    # Ray's own ports run code for whoever reaches them. Despite its name this keeps them on loopback on every
    # platform; the one that stays open (between replicas) asks for the secret below.
    "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0",
    "RAY_AUTH_MODE": "token",
    "RAY_ENABLE_UV_RUN_RUNTIME_ENV": "0",  # `uv run waygraph` would rebuild its environment for every actor
    "RAY_SERVE_LOG_TO_STDERR": "0",
    # One event loop per process instead of three: nothing of ours blocks it, and a request costs 3 ms of CPU less.
    "RAY_SERVE_RUN_USER_CODE_IN_SEPARATE_THREAD": "0",
    "RAY_SERVE_RUN_ROUTER_IN_SEPARATE_LOOP": "0",
    "RAY_SERVE_REQUEST_PATH_LOG_BUFFER_SIZE": "1000",
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",  # else it warns about a future change for actors without GPU
    "RAY_gcs_rpc_server_reconnect_timeout_s": "2",
}


@contextmanager
def connected() -> Iterator[None]:
    """Connect to Ray for the duration of the block; a private one, with its files, is ended with it.

    Call it in the main thread: the daemons of a private Ray die with the thread that started them.
    """
    cluster = os.environ.get("RAY_ADDRESS", "")
    if not cluster:
        for name, value in _PRIVATE.items():
            os.environ.setdefault(name, value)
        if os.environ["RAY_AUTH_MODE"] == "token":
            os.environ.setdefault("RAY_AUTH_TOKEN", secrets.token_hex(32))

    import ray  # noqa: PLC0415 - reads its environment when it is imported

    # Ray prints what happens to its workers on the driver's stdout, where answers belong. It has no public switch.
    ray._private.worker._worker_logs_enabled = False  # noqa: SLF001
    quiet: dict[str, Any] = {"log_to_driver": False, "logging_level": logging.ERROR}
    with ExitStack() as ending:
        if cluster:
            ending.callback(ray.shutdown)
            ray.init(cluster, **quiet)
        else:
            parent = tempfile.gettempdir()
            if len(parent) > LONGEST_PARENT:
                parent = "/tmp"  # noqa: S108 - a private folder is made in it
            folder = ending.enter_context(
                tempfile.TemporaryDirectory(prefix="wg-serve-", dir=parent, ignore_cleanup_errors=True)
            )
            ending.callback(ray.shutdown)
            ray.init(
                address="local",
                num_cpus=1,
                object_store_memory=OBJECT_STORE_BYTES,
                include_dashboard=False,
                _temp_dir=folder,
                **quiet,
            )
        yield
