"""The service as a process: how it ends, what it leaves behind, and what it says when it cannot start."""

from __future__ import annotations

import signal
import tempfile
from pathlib import Path

import httpx
import psutil
import pytest

from tests.service_process import RunningService, spawn


def traces() -> set[str]:
    """Temporary folders that a service makes."""
    return {
        path.name
        for path in Path(tempfile.gettempdir()).iterdir()
        if path.name.startswith(("wg-serve-", "waygraph-edge-"))
    }


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_whatever_ends_it_nothing_goes_on_running(tmp_path: Path, number: signal.Signals) -> None:
    before = traces()
    service = RunningService(tmp_path / "maps")
    assert httpx.get(f"{service.url}/readyz").json()["sites"] == 0
    family = service.family()
    assert len(family) > 3
    out, errors = service.stop(number)
    _, alive = psutil.wait_procs(family, timeout=30)
    assert alive == []
    if number != signal.SIGKILL:
        assert (out, errors, service.process.returncode) == ("ended\n", "", 0)
        assert traces() == before


def test_missing_weights_are_one_error_and_nothing_goes_on_running(tmp_path: Path) -> None:
    before = traces()
    weights = str(tmp_path / "nowhere")
    process = spawn({"store": str(tmp_path / "maps"), "serve": {"port": 0}, "encode": {"weights": weights}})
    out, errors = process.communicate(timeout=120)
    assert (out, process.returncode) == ("", 1)
    assert errors.startswith("WeightsMissing: ")
    assert weights in errors
    assert len(errors.strip().splitlines()) == 1
    assert traces() == before
