"""What do many tests share? A demo shop that runs, and what one exploration of it found."""

import gc
import hashlib
import logging
import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import hypothesis
import pytest
from xdist.scheduler import LoadFileScheduling

from index.store import Store
from pipeline.encode.registry import create_encoder
from pipeline.explore import SiteCapture, explore_site
from pipeline.jobs.publishing.draft import encoded_draft
from tests.browsers import BROWSERS, LOOPBACK_ONLY
from waygraph.demo_site import DemoSite
from waygraph.settings import EncodeSettings, Settings

# How long an example takes says how busy the machine is, and nothing else. `make test` tries the same examples each
# time, so that it says the same of a commit each time; `make soak-properties` looks for others.
EXAMPLES = int(os.environ.get("WAYGRAPH_EXAMPLES", "100"))
hypothesis.settings.register_profile("waygraph", deadline=None, derandomize=True)
hypothesis.settings.register_profile("soak", deadline=None, max_examples=EXAMPLES)
hypothesis.settings.load_profile("waygraph")

#: A test with real browsers and processes on a busy machine gets a second try, which the summary lists as RERUN: one
#: lost race among three thousand tests should be looked at, not stop everything. The pure core gets none.
TRIED_TWICE = {"integration", "e2e"}


@pytest.fixture(autouse=True)
def _service_is_heard() -> None:
    """A Ray that was started in this process silences what is logged below its name, the service's warnings as well."""
    logging.getLogger("ray.serve").setLevel(logging.WARNING)


_ended: list[int] = []


def pytest_sessionfinish(exitstatus: int) -> None:
    _ended.append(int(exitstatus))


@pytest.hookimpl(trylast=True)
def pytest_unconfigure() -> None:
    """Leave at once when all is said: a Ray that ran in this process leaves threads of gRPC behind (`event_engine`,
    `gcs_client_io_service`), and one of them crashed the taking down of a process that had passed every test.
    """
    if _ended and "ray" in sys.modules:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(_ended[-1])


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        # A soak is to find what goes wrong once in many times.
        if TRIED_TWICE & set(item.path.parts) and item.get_closest_marker("slow") is None:
            item.add_marker(pytest.mark.flaky(reruns=1))


def pytest_collection_finish() -> None:
    """What all tests import is no garbage: it need not be looked through each time that garbage is collected."""
    gc.collect()
    gc.freeze()


#: Files whose tests look at the explored shop: one process runs them all, so that it is explored once.
SHOP_FILES = {
    "test_cli_show.py",
    "test_examples.py",
    "test_explore_demo_shop.py",
    "test_teleport.py",
    "test_visual_encoder.py",
}


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> LoadFileScheduling | None:
    """Give processes whole files, the long ones (e2e, integration) before the many short ones."""
    if config.getoption("dist") != "loadfile":
        return None
    config.option.loadscopereorder = False  # as collected, not by the number of tests in a file
    return FilesWithOneShop(config, log)


class FilesWithOneShop(LoadFileScheduling):  # type: ignore[misc]
    """A file is not split; those about the shop are one."""

    def _split_scope(self, nodeid: str) -> str:
        file = super()._split_scope(nodeid)
        return "shop" if Path(file).name in SHOP_FILES else file


class MemoryBlobs(dict[str, bytes]):
    """Captured blobs by hash."""

    def put(self, content: bytes) -> str:
        key = hashlib.sha256(content).hexdigest()
        self[key] = content
        return key


def explore(
    url: str, *, browser: dict[str, int] | None = None, blobs: MemoryBlobs | None = None, **explore_settings: Any
) -> SiteCapture:
    """Explore a site with a loopback-only browser: the shared one, unless `browser` wants another."""
    settings = Settings(browser=LOOPBACK_ONLY.model_copy(update=browser or {}), explore=explore_settings)
    blobs = MemoryBlobs() if blobs is None else blobs

    async def work() -> SiteCapture:
        pool = None if browser else await BROWSERS.pool()
        return await explore_site(url, settings=settings, blobs=blobs, pool=pool)

    return BROWSERS.run(work())


@pytest.fixture(scope="session", autouse=True)
def _browsers_end() -> Iterator[None]:
    yield
    BROWSERS.close()


@dataclass(frozen=True)
class ExploredShop:
    """The running demo shop, what exploring it to depth 3 found, and the blobs that were captured."""

    site: DemoSite
    capture: SiteCapture
    blobs: MemoryBlobs
    requests: tuple[tuple[str, str], ...]
    """Requests that the exploration made."""


@pytest.fixture(scope="session")
def shop() -> Iterator[ExploredShop]:
    """The demo shop, explored once per test session."""
    with DemoSite() as site:
        blobs = MemoryBlobs()
        capture = explore(site.url, blobs=blobs)
        yield ExploredShop(site, capture, blobs, tuple(site.requests))


@pytest.fixture(scope="session")
def shop_store(shop: ExploredShop, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store that holds the explored shop, encoded and published as version 1."""
    path = tmp_path_factory.mktemp("shop") / "maps"
    store = Store.open(str(path), create=True)
    for content in shop.blobs.values():
        store.blobs.put(content)
    store.publish(encoded_draft(shop.capture, Settings(), create_encoder(EncodeSettings())))
    return path
