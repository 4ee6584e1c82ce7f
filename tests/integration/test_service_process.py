"""The service as a process: exit, removal of its files and processes, and errors at the start."""

from __future__ import annotations

import os
import signal
import socket
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import httpx
import psutil
import pytest

from tests.service_process import RunningService, files_of_services, spawn, temporary_folder
from tests.small_map import SmallMap
from waygraph.core.settings import Settings
from waygraph.index.store import Store
from waygraph.pipeline.encode.registry import create_encoder


@pytest.fixture
def temporary() -> Iterator[Path]:
    with temporary_folder() as folder:
        yield folder


def gone(folder: Path) -> bool:
    """Return whether the files of the service are removed within seconds after its processes ended."""
    deadline = time.monotonic() + 60
    while files_of_services(folder) and time.monotonic() < deadline:
        time.sleep(0.05)  # polling: the process that removes them is not a child of this one
    return not files_of_services(folder)


@pytest.mark.extended
@pytest.mark.parametrize("local", [False, True], ids=["ray", "local"])
def test_interrupted_service_leaves_no_files_and_no_processes(tmp_path: Path, temporary: Path, local: bool) -> None:
    """With SIGINT; `test_service` tests SIGTERM."""
    service = RunningService(tmp_path / "maps", temporary=str(temporary), local=local)
    assert httpx.get(f"{service.url}/readyz").json()["sites"] == 0
    assert files_of_services(temporary)
    family = service.family()
    os.killpg(service.process.pid, signal.SIGINT)  # as a terminal sends it
    out, errors = service.process.communicate(timeout=60)
    _, alive = psutil.wait_procs(family, timeout=30)
    assert (out, errors, service.process.returncode, alive) == ("ended\n", "", 0, [])
    assert files_of_services(temporary) == []


@pytest.mark.extended
def test_killed_service_leaves_no_files_and_no_processes(tmp_path: Path, temporary: Path) -> None:
    settings = Settings(store=str(tmp_path / "maps"))
    store = Store.open(settings.store, create=True)
    store.publish(SmallMap("tea.example").draft(create_encoder(settings.encode), store.blobs))
    service = RunningService(tmp_path / "maps", temporary=str(temporary))
    assert httpx.get(f"{service.url}/readyz").json()["sites"] == 1  # its vectors are in a temporary folder
    family = service.family()
    service.process.kill()
    service.process.communicate()
    _, alive = psutil.wait_procs(family, timeout=60)
    assert alive == []
    assert gone(temporary)


@pytest.mark.extended
def test_a_stopping_local_service_finishes_the_requests_in_progress(tmp_path: Path) -> None:
    service = RunningService(tmp_path / "maps", local=True)
    url = httpx.URL(service.url)
    head = (
        b"POST /v1/search HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: 13\r\n\r\n"
    )
    with socket.create_connection((url.host, url.port or 0), timeout=30) as client:
        client.sendall(head)
        assert httpx.get(f"{service.url}/healthz").is_success  # the head has arrived by now
        service.process.terminate()
        with suppress(httpx.TransportError):
            while httpx.get(f"{service.url}/healthz"):  # polling: until nothing listens any more
                pass
        client.sendall(b'{"query":"a"}')
        answer = b"".join(iter(lambda: client.recv(65_536), b""))
    assert answer.startswith(b"HTTP/1.1 200 ")
    assert service.process.communicate(timeout=60) == ("ended\n", "")


@pytest.mark.extended
def test_files_of_a_killed_local_service_are_removed_by_the_next_one(tmp_path: Path, temporary: Path) -> None:
    settings = Settings(store=str(tmp_path / "maps"))
    store = Store.open(settings.store, create=True)
    store.publish(SmallMap("tea.example").draft(create_encoder(settings.encode), store.blobs))
    service = RunningService(tmp_path / "maps", temporary=str(temporary), local=True)
    assert httpx.post(f"{service.url}/v1/sites/tea.example/search", json={"query": "cards"}).is_success
    (left,) = files_of_services(temporary)
    assert list(left.glob("waygraph-edge-*"))
    service.process.kill()
    service.process.communicate()
    following = RunningService(tmp_path / "maps", temporary=str(temporary), local=True)
    assert left not in files_of_services(temporary)
    assert following.stop() == ("ended\n", "")
    assert files_of_services(temporary) == []


@pytest.mark.extended
def test_service_with_killed_ray_reports_it_and_exits(tmp_path: Path, temporary: Path) -> None:
    service = RunningService(tmp_path / "maps", temporary=str(temporary))
    family = service.family()
    (host,) = psutil.Process(service.process.pid).children()
    host.kill()
    out, errors = service.process.communicate(timeout=30)
    for process in family:
        if process.is_running():
            process.kill()  # Ray's agents stay for a minute when who would have ended them is gone
    assert (out, service.process.returncode) == ("", 1)
    assert files_of_services(temporary) == []
    assert errors.startswith("ServiceError: Ray ended")
    assert len(errors.strip().splitlines()) == 1


@pytest.mark.extended
@pytest.mark.parametrize("local", [False, True], ids=["ray", "local"])
def test_missing_weights_give_one_error_and_leave_no_files(tmp_path: Path, temporary: Path, local: bool) -> None:
    weights = str(tmp_path / "nowhere")
    settings = {"store": str(tmp_path / "maps"), "serve": {"port": 0, "local": local}, "encode": {"weights": weights}}
    process = spawn(settings, str(temporary))
    out, errors = process.communicate(timeout=200)
    assert (out, process.returncode) == ("", 1)
    *logged, error = errors.strip().splitlines()
    assert error.startswith("WeightsMissing: ")
    assert weights in error
    # Ray Serve's replicas log into files.
    assert [line.partition(": ")[2][:29] for line in logged] == ["the encoder cannot be loaded:"] * local
    assert files_of_services(temporary) == []
