"""SIGTERM to the containers: what a rolling update, a drained node, or `docker compose stop` sends."""

from __future__ import annotations

import http.client
import json
import threading
import time
from collections import Counter
from pathlib import Path
from typing import Any

from bench.images.building import name_of
from bench.images.checks import KEY, PROFILE, RIGHTS, service, store_volume, wait_for
from bench.images.containers import Containers
from waygraph.demo_site import DemoSite
from waygraph.index.graph.export import to_json
from waygraph.index.store import Store

_CLIENTS = 8
_LOAD_S = 3.0
#: What a client, or a load balancer, sends elsewhere or again: the pause before it, in seconds, as `Retry-After` asks.
_AGAIN = {"refused": 0.05, "503": 1.0}
#: What compose.yaml and the manifests grant, in seconds.
_GRACE = {"serve": "60", "browser": "120"}


class _Load:
    """Clients that ask all the time, each request over a connection of its own; counts what became of them."""

    def __init__(self, port: int, site: str) -> None:
        self.outcomes: Counter[str] = Counter()
        self._port, self._path = port, f"/v1/sites/{site}/search"
        self._end, self._lock = threading.Event(), threading.Lock()
        self._threads = [threading.Thread(target=self._ask, args=(number,)) for number in range(_CLIENTS)]
        for thread in self._threads:
            thread.start()

    def _ask(self, client: int) -> None:
        number = 0
        while not self._end.is_set():
            number += 1
            # A question that no cache answers.
            outcome = self._outcome(json.dumps({"query": f"lamp {client} {number}"}).encode())
            with self._lock:
                self.outcomes[outcome] += 1
            if outcome in _AGAIN:
                self._end.wait(_AGAIN[outcome])

    def _outcome(self, body: bytes) -> str:
        connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=60)
        try:
            connection.connect()
        except OSError:
            return "refused"  # before anything was sent: a client, or a load balancer, asks elsewhere
        try:
            headers = {"authorization": f"Bearer {KEY}", "content-type": "application/json"}
            connection.request("POST", self._path, body, headers)
            answer = connection.getresponse()
            answer.read()
        except (OSError, http.client.HTTPException) as error:
            return f"broken: {type(error).__name__}"
        finally:
            connection.close()
        again = answer.status == 503 and answer.headers.get("Retry-After") == "1"
        return str(answer.status) if again or answer.status != 503 else "503 for good"

    def stop(self) -> None:
        """Let every client finish its request."""
        self._end.set()
        for thread in self._threads:
            thread.join()


def stop_service_under_load(tools: Containers) -> dict[str, Any]:
    """Stop the service while clients ask, and count the answers.

    Parameters
    ----------
    tools
        Where the images and the map are.

    Returns
    -------
    dict of str to Any
        Outcomes by kind, exit code and seconds until the container had ended.
    """
    (site,) = Store.open(str(tools.folder / "maps")).sites()
    with service(tools) as (container, url):
        wait_for(container, f"{url}/readyz")
        load = _Load(int(url.rpartition(":")[2]), site)
        threading.Event().wait(_LOAD_S)
        before, since = dict(load.outcomes), time.perf_counter()
        tools.run("podman", "stop", "--time", _GRACE["serve"], container.name)
        seconds = time.perf_counter() - since
        load.stop()
        exit_code = container.state()["ExitCode"]
    failed = {kind: count for kind, count in load.outcomes.items() if kind not in ("200", *_AGAIN)}
    return {
        "answered_before": before,
        "outcomes": dict(load.outcomes),
        "failed": sum(failed.values()),
        "exit_code": exit_code,
        "seconds_to_end": round(seconds, 1),
    }


def stop_and_resume_exploration(tools: Containers, *, depth: int) -> dict[str, Any]:
    """Stop an exploration in the middle, start it again, and compare the map with that of an undisturbed one.

    Parameters
    ----------
    tools
        Where the image is.
    depth
        Clicks from the start page.

    Returns
    -------
    dict of str to Any
        Exit codes, loads of pages with and without the interruption, and whether the maps are equal.
    """
    with DemoSite() as site:
        whole = store_volume(tools, "whole")
        undisturbed = _explore(tools, site.url, whole, depth)
        loads = _documents(site)
        broken = store_volume(tools, "stopped")
        options = _options(broken)
        with tools.started(name_of("browser"), *_command(site.url, depth), options=options) as container:
            while _documents(site) - loads < loads // 2 and container.state()["Running"]:
                threading.Event().wait(0.1)
            since = time.perf_counter()
            tools.run("podman", "stop", "--time", _GRACE["browser"], container.name)
            seconds, code = time.perf_counter() - since, container.state()["ExitCode"]
        stopped_after = _documents(site) - loads
        resumed = _explore(tools, site.url, broken, depth)
        return {
            "exit_codes": [undisturbed, code, resumed],
            "seconds_to_end": round(seconds, 1),
            "loads_undisturbed": loads,
            "loads_before_sigterm": stopped_after,
            "loads_after": _documents(site) - loads - stopped_after,
            "same_map": _export(whole) == _export(broken),
        }


def _documents(site: DemoSite) -> int:
    return len(site.requests)


def _options(maps: Path) -> list[str]:
    return [*RIGHTS, f"--security-opt=seccomp={PROFILE}", f"--volume={maps}:/maps"]


def _command(url: str, depth: int) -> list[str]:
    return ["index", url, "--depth", str(depth), "--json"]


def _explore(tools: Containers, url: str, maps: Path, depth: int) -> int:
    return tools.attached(name_of("browser"), *_command(url, depth), options=_options(maps)).returncode


def _export(maps: Path) -> dict[str, Any]:
    store = Store.open(str(maps))
    (site,) = store.sites()
    version = store.read(site)
    return to_json(site, 1, version.graph, leads=version.leads)
