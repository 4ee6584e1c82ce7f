"""What the started images must do: answer with keys, map the demo shop in the sandbox, load the encoders."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import httpx
import psutil

from bench.images.building import ROOT, name_of
from bench.images.containers import Container, Containers
from tests.tiny_vision import make_colmodernvbert
from waygraph.demo_site import DemoSite
from waygraph.index.store import Store

PROFILE = ROOT / "k8s" / "seccomp" / "waygraph-browser.json"
USER = 10001
KEY = "a-key-of-this-test-alone"
#: What the manifests and compose.yaml give every container.
RIGHTS = ("--cap-drop=ALL", "--security-opt=no-new-privileges", "--network=host", "--shm-size=1g")
_PATIENCE_S = 300.0


def store_volume(tools: Containers, name: str = "maps") -> Path:
    """Return a folder for a store that the user of the images owns."""
    folder = tools.folder / name
    folder.mkdir(exist_ok=True)
    os.chown(folder, USER, USER)
    return folder


def free_port() -> int:
    """Return a port of loopback that is free."""
    with socket.socket() as opened:
        opened.bind(("127.0.0.1", 0))
        return int(opened.getsockname()[1])


def settings(**values: str) -> list[str]:
    """Return options that set environment variables."""
    return [f"--env={name}={value}" for name, value in values.items()]


# The browser ----------------------------------------------------------------------------------------------------------


def check_browser(tools: Containers, *, depth: int) -> dict[str, Any]:
    """Map the demo shop, and look at the processes of Chromium meanwhile.

    Parameters
    ----------
    tools
        Where the image is.
    depth
        Clicks from the start page.

    Returns
    -------
    dict of str to Any
        States, seconds, and what the sandbox of the renderers consisted of.
    """
    options = [*RIGHTS, f"--security-opt=seccomp={PROFILE}", f"--volume={store_volume(tools)}:/maps"]
    with DemoSite() as site:
        command = ["index", site.url, "--depth", str(depth), "--json"]
        with tools.started(name_of("browser"), *command, options=options) as container:
            sandbox = _watch_renderers(container)
            state = _wait_for_exit(container)
            seconds = time.perf_counter() - container.since
            assert state["ExitCode"] == 0, f"exit code {state['ExitCode']}\n{container.logs()}"
    return {"seconds": round(seconds, 1), **sandbox}


def _watch_renderers(container: Container) -> dict[str, Any]:
    """Return what the kernel says about a renderer, once there is one."""
    ended = threading.Event()
    deadline = time.monotonic() + _PATIENCE_S
    while time.monotonic() < deadline and container.state()["Running"]:
        init = psutil.Process(container.state()["Pid"])
        for process in init.children(recursive=True):
            with contextlib.suppress(psutil.Error, OSError):
                line = process.cmdline()
                if "--type=renderer" in line:
                    return _described(init, process, line)
        ended.wait(0.2)
    raise AssertionError(f"no renderer was seen\n{container.logs()}")


def _described(init: psutil.Process, renderer: psutil.Process, line: Sequence[str]) -> dict[str, Any]:
    status = dict(
        row.split(":\t", 1) for row in Path(f"/proc/{renderer.pid}/status").read_text().splitlines() if ":\t" in row
    )
    own = {kind: str(Path(f"/proc/{renderer.pid}/ns/{kind}").readlink()) for kind in ("user", "pid", "net")}
    outer = {kind: str(Path(f"/proc/{init.pid}/ns/{kind}").readlink()) for kind in own}
    found: dict[str, Any] = {
        "renderer_uid": int(status["Uid"].split()[0]),
        "renderer_seccomp_filters": int(status["Seccomp_filters"]),
        "container_seccomp_filters": int(_status(init.pid, "Seccomp_filters")),
        "renderer_namespaces_of_its_own": sorted(kind for kind in own if own[kind] != outer[kind]),
        "renderer_root": str(Path(f"/proc/{renderer.pid}/root").readlink()),
        "no_new_privileges": status["NoNewPrivs"] == "1",
    }
    assert found["renderer_uid"] == USER
    assert "--no-sandbox" not in line
    # A filter of the runtime, and on top of it that of Chromium.
    assert found["renderer_seccomp_filters"] > found["container_seccomp_filters"] >= 1
    assert {"user", "pid", "net"} <= set(found["renderer_namespaces_of_its_own"])
    return found


def _status(pid: int, name: str) -> str:
    (found,) = [
        row.partition(":")[2].strip()
        for row in Path(f"/proc/{pid}/status").read_text().splitlines()
        if row.startswith(f"{name}:")
    ]
    return found


def _wait_for_exit(container: Container) -> dict[str, Any]:
    container.tools.run("podman", "wait", container.name)
    return container.state()


# The service ----------------------------------------------------------------------------------------------------------


@contextlib.contextmanager
def service(tools: Containers) -> Iterator[tuple[Container, str]]:
    """Run the image `serve` as compose.yaml does, on a free port of loopback."""
    port = free_port()
    options = [
        *RIGHTS,
        f"--volume={store_volume(tools)}:/maps",
        *settings(
            WAYGRAPH_SERVE__API_KEYS=json.dumps([KEY]), WAYGRAPH_SERVE__PORT=str(port),
            WAYGRAPH_SERVE__HOST="127.0.0.1", RAY_USAGE_STATS_ENABLED="0",
        ),
    ]  # fmt: skip
    with tools.started(name_of("serve"), options=options) as container:
        yield container, f"http://127.0.0.1:{port}"


def wait_for(container: Container, url: str) -> float:
    """Return the seconds from the start of the container until the URL answered with 200."""
    pause = threading.Event()
    deadline = time.monotonic() + _PATIENCE_S
    with httpx.Client(trust_env=False, timeout=10) as http:
        while time.monotonic() < deadline:
            with contextlib.suppress(httpx.TransportError):
                if http.get(url).is_success:
                    return time.perf_counter() - container.since
            assert container.state()["Running"], container.logs()
            pause.wait(0.1)
    raise AssertionError(f"{url} was never ready\n{container.logs()}")


def check_serve(tools: Containers) -> dict[str, Any]:
    """Start the service on the map of the shop, and ask with and without its key."""
    with service(tools) as (container, url):
        alive = wait_for(container, f"{url}/healthz")
        ready = wait_for(container, f"{url}/readyz")
        assert _status(container.state()["Pid"], "Uid").split()[0] == str(USER)
        assert _status(container.state()["Pid"], "CapEff") == "0" * 16
        with httpx.Client(trust_env=False, base_url=url, timeout=30) as http:
            assert http.get("/v1/sites").status_code == 401
            with_key = {"authorization": f"Bearer {KEY}"}
            (site,) = http.get("/v1/sites", headers=with_key).raise_for_status().json()
            found = http.post(
                f"/v1/sites/{site['site']}/search", json={"query": "basket"}, headers=with_key
            ).raise_for_status()
        healthy = json.loads(tools.run("podman", "inspect", container.name))[0]["Config"]["Healthcheck"]["Test"]
        tools.run("podman", "exec", container.name, *healthy[1:])
    return {
        "seconds_to_healthz": round(alive, 1),
        "seconds_to_readyz": round(ready, 1),
        "hits": len(found.json()["hits"]),
    }


# The encoders that see ------------------------------------------------------------------------------------------------


def check_encoder(tools: Containers) -> dict[str, Any]:
    """Load a small random checkpoint of ColModernVBERT on the CPU, and map the shop's start page with it.

    Parameters
    ----------
    tools
        Where the image is.

    Returns
    -------
    dict of str to Any
        Seconds, and the encoder that the map names.
    """
    weights, maps = tools.folder / "colmodernvbert", tools.folder / "seen"
    if not weights.exists():
        make_colmodernvbert(weights)
        for file in weights.iterdir():
            file.chmod(0o644)  # transformers writes for its own user alone
    maps.mkdir(exist_ok=True)
    os.chown(maps, USER, USER)
    options = [
        *RIGHTS, f"--security-opt=seccomp={PROFILE}", f"--volume={maps}:/maps",
        f"--volume={weights}:/models/colmodernvbert:ro",
        *settings(WAYGRAPH_ENCODE__ENCODER="colmodernvbert", WAYGRAPH_ENCODE__WEIGHTS="/models/colmodernvbert"),
    ]  # fmt: skip
    started = time.perf_counter()
    with DemoSite() as site:
        done = tools.attached(name_of("encoder"), "index", site.url, "--depth", "0", "--json", options=options)
    assert done.returncode == 0, done.stdout + done.stderr
    store = Store.open(str(maps))
    (name,) = store.sites()
    return {"seconds": round(time.perf_counter() - started, 1), "encoder": store.read(name).manifest.encoder.name}
