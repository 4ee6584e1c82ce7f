"""Settings of the whole test session: Hypothesis profiles, scheduling of xdist, and process exit.

Nothing heavy is imported here, so that a test of a pure module starts at once.
"""

from __future__ import annotations

import gc
import logging
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import hypothesis
import pytest
from xdist.scheduler import LoadFileScheduling

# The duration of an example says only how busy the machine is. `make test` tries the same examples each time, so that
# its result depends on the commit alone; `make soak-properties` tries others, and many more.
EXAMPLES = int(os.environ.get("WAYGRAPH_EXAMPLES", "100"))
hypothesis.settings.register_profile("waygraph", deadline=None, derandomize=True, max_examples=40)
hypothesis.settings.register_profile("soak", deadline=None, max_examples=EXAMPLES)
hypothesis.settings.load_profile("waygraph")


@pytest.fixture(autouse=True)
def _service_warnings_are_logged() -> None:
    """Undo what Ray does to the logger `ray.serve` when it starts in this process: it silences warnings."""
    logging.getLogger("ray.serve").setLevel(logging.WARNING)


_exit_codes: list[int] = []


def pytest_sessionfinish(exitstatus: int) -> None:
    _exit_codes.append(int(exitstatus))


@pytest.hookimpl(trylast=True)
def pytest_unconfigure() -> None:
    """Exit without interpreter shutdown if Ray ran in this process.

    Ray leaves gRPC threads behind (`event_engine`, `gcs_client_io_service`). One of them crashed the shutdown of a
    process that had passed every test.
    """
    if _exit_codes and "ray" in sys.modules:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(_exit_codes[-1])


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what needs an S3 server, which `make test-fast` leaves out; check `SHOP_FILES`."""
    for item in items:
        if not isinstance(item, pytest.Function):
            continue
        if "bucket" in item.fixturenames:
            item.add_marker("s3")
        (*_, shop) = item._fixtureinfo.name2fixturedefs.get("shop", [None])
        if shop is not None and shop.scope == "session" and item.path.name not in SHOP_FILES:
            raise pytest.UsageError(f"{item.path.name} uses the explored shop and is missing in SHOP_FILES")


# Imports and collected tests are kept for the whole session: looking for garbage among them only takes time.
gc.disable()


def pytest_collection_finish() -> None:
    """Exclude modules that all tests import from garbage collection."""
    gc.enable()
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="session", autouse=True)
def _shared_browsers_close() -> Iterator[None]:
    yield
    if (browsers := sys.modules.get("tests.browsers")) is not None:
        browsers.BROWSERS.close()


#: Test files that use the explored demo shop. One process runs them all, so that the shop is explored once.
SHOP_FILES = {
    "test_cli_do.py",
    "test_cli_show.py",
    "test_described_shop.py",
    "test_exam_mcp.py",
    "test_exam_replay.py",
    "test_examples.py",
    "test_explore_demo_shop.py",
    "test_greedy_agent.py",
    "test_mcp_agents.py",
    "test_mcp_selectors.py",
    "test_model_agents.py",
    "test_page_flows.py",
    "test_screenshot_encoder.py",
    "test_several_sites.py",
    "test_task_run.py",
    "test_teleport.py",
}


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> LoadFileScheduling | None:
    """Distribute whole files to processes, long ones (e2e, integration) before the many short ones."""
    if config.getoption("dist") != "loadfile":
        return None
    config.option.loadscopereorder = False  # as collected, not by the number of tests in a file
    return FilesWithOneShop(config, log)


class FilesWithOneShop(LoadFileScheduling):  # type: ignore[misc]
    """Schedule each file as a whole, and all files of the demo shop together."""

    def _split_scope(self, nodeid: str) -> str:
        file = super()._split_scope(nodeid)
        return "shop" if Path(file).name in SHOP_FILES else file
