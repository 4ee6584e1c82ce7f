"""The services of compose.yaml, started by hand with what the file says; Qdrant, whose image is pulled, is left out."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from bench.compose_file import fast_refresh, service, settings_without_qdrant
from bench.images.building import name_of
from bench.images.checks import KEY, store_volume
from bench.images.containers import Container, Containers
from waygraph.demo_site import DemoSite
from waygraph.index.store import Store

_PATIENCE_S = 240


def options_of(name: str, maps: Path) -> list[str]:
    """Return podman's options for a service."""
    found = service(name)
    options = [f"--cap-drop={right}" for right in found["cap_drop"]]
    options += [f"--security-opt={value}" for value in found["security_opt"]]
    options += [f"--shm-size={found['shm_size']}", "--network=host", f"--volume={maps}:/maps"]
    values = settings_without_qdrant(name, {"API_KEYS": json.dumps([KEY])})
    options += [f"--env={key}={value}" for key, value in values.items()]
    if "entrypoint" in found:
        options.append(f"--entrypoint={json.dumps(found['entrypoint'])}")
    return options


def refresh_on_schedule(tools: Containers) -> dict[str, Any]:
    """Let the service `refresh` refresh a map, stop it in the middle of a refresh, and start it again.

    Parameters
    ----------
    tools
        Where the image is.

    Returns
    -------
    dict of str to Any
        Versions after each step, and seconds and exit code of the stop.
    """
    maps = store_volume(tools, "scheduled")
    options, command = options_of("refresh", maps), fast_refresh(pause_s=1)
    image = name_of("browser")
    with DemoSite() as site:
        made = tools.attached(image, "waygraph", "index", site.url, "--depth", "1", options=options)
        assert made.returncode == 0, made.stdout + made.stderr
        store = Store.open(str(maps))
        (name,) = store.sites()
        with tools.started(image, *command, options=options) as container:
            refreshed = _version_after(store, name, 1, container)
            # The pause is over when the site is visited again.
            visited = len(site.requests)
            _wait(lambda: len(site.requests) > visited + 5, container)
            since = time.perf_counter()
            tools.run("podman", "stop", "--time", "120", container.name)
            seconds, state = time.perf_counter() - since, container.state()
            stopped = store.head(name)
        with tools.started(image, *command, options=options) as container:
            resumed = _version_after(store, name, stopped, container)
    return {
        "versions": {"first": 1, "refreshed": refreshed, "when_stopped": stopped, "after_next_start": resumed},
        "exit_code": state["ExitCode"],
        "seconds_to_end": round(seconds, 1),
    }


def _version_after(store: Store, name: str, version: int, container: Container) -> int:
    _wait(lambda: store.head(name) > version, container)
    return store.head(name)


def _wait(condition: Callable[[], bool], container: Container) -> None:
    deadline, pause = time.monotonic() + _PATIENCE_S, threading.Event()
    while not condition():
        assert time.monotonic() < deadline, container.logs()
        assert container.state()["Running"], container.logs()
        pause.wait(0.2)
