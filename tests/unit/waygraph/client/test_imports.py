"""`import waygraph` and the client are light: a program that only calls a service loads no torch, ray or pyarrow."""

from __future__ import annotations

import subprocess
import sys

import pytest

import waygraph

HEAVY = ("torch", "ray", "numpy", "pyarrow", "transformers", "qdrant_edge", "qdrant_client", "fastapi", "playwright")


def modules_after(code: str) -> set[str]:
    """Names of the modules a fresh interpreter has loaded after running `code`."""
    script = f"{code}\nimport sys; print(' '.join(sys.modules))"
    return set(
        subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout.split()
    )


@pytest.mark.parametrize(
    "code",
    [
        "import waygraph",
        "from waygraph import Waygraph",
        "from waygraph import Waygraph; Waygraph('http://127.0.0.1:9').close()",
        "from waygraph import Settings, ServiceMap, WaygraphError",
    ],
)
def test_a_service_client_loads_no_heavy_library(code: str) -> None:
    assert modules_after(code).isdisjoint(HEAVY)


def test_import_waygraph_loads_next_to_nothing() -> None:
    loaded = modules_after("import waygraph")
    assert loaded.isdisjoint({*HEAVY, "pydantic", "httpx", "rich", "typer"})


def test_every_public_name_can_be_imported() -> None:
    for name in waygraph.__all__:
        assert getattr(waygraph, name) is not None
        assert name in dir(waygraph)


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no_such_name"):
        waygraph.no_such_name  # noqa: B018
