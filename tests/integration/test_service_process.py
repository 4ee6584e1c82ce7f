"""The service as a process: how it ends, what it leaves behind, and what it says when it cannot start."""

from __future__ import annotations

import signal
import tempfile
from collections.abc import Iterator
from pathlib import Path

import httpx
import psutil
import pytest

from tests.service_process import RunningService, spawn


@pytest.fixture
def temporary() -> Iterator[Path]:
    """A folder for temporary files; its path is short because Ray makes sockets in it."""
    with tempfile.TemporaryDirectory(prefix="wg") as folder:
        yield Path(folder)


def ours(folder: Path) -> list[Path]:
    """What the service made there (torch has a cache of its own in the same place)."""
    return [path for path in folder.iterdir() if path.name.startswith(("wg-", "waygraph-"))]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_when_it_is_interrupted_nothing_stays_behind(tmp_path: Path, temporary: Path, number: signal.Signals) -> None:
    service = RunningService(tmp_path / "maps", temporary=str(temporary))
    assert httpx.get(f"{service.url}/readyz").json()["sites"] == 0
    assert ours(temporary)
    family = service.family()
    out, errors = service.stop(number)
    _, alive = psutil.wait_procs(family, timeout=30)
    assert (out, errors, service.process.returncode, alive) == ("ended\n", "", 0, [])
    assert ours(temporary) == []


def test_missing_weights_are_one_error_and_nothing_stays_behind(tmp_path: Path, temporary: Path) -> None:
    weights = str(tmp_path / "nowhere")
    settings = {"store": str(tmp_path / "maps"), "serve": {"port": 0}, "encode": {"weights": weights}}
    process = spawn(settings, str(temporary))
    out, errors = process.communicate(timeout=200)
    assert (out, process.returncode) == ("", 1)
    assert errors.startswith("WeightsMissing: ")
    assert weights in errors
    assert len(errors.strip().splitlines()) == 1
    assert ours(temporary) == []
