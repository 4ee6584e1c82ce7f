"""What do many tests share? A demo shop that runs, and what one exploration of it found."""

import asyncio
import hashlib
import logging
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from index.store import Store
from pipeline.encode.registry import create_encoder
from pipeline.explore import SiteCapture, explore_site
from pipeline.jobs.publishing.draft import encoded_draft
from waygraph.demo_site import DemoSite
from waygraph.settings import BrowserSettings, EncodeSettings, Settings

#: Nothing but this machine can be reached from a browser under test.
LOOPBACK_ONLY = BrowserSettings(extra_args=("--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",))


#: A test with real browsers and processes on a busy machine gets a second try, which the summary lists as RERUN: one
#: lost race among three thousand tests should be looked at, not stop everything. The pure core gets none.
TRIED_TWICE = {"integration", "e2e"}


@pytest.fixture(autouse=True)
def _service_is_heard() -> None:
    """A Ray that was started in this process silences what is logged below its name, the service's warnings as well."""
    logging.getLogger("ray.serve").setLevel(logging.WARNING)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if TRIED_TWICE & set(item.path.parts):
            item.add_marker(pytest.mark.flaky(reruns=1))


class MemoryBlobs(dict[str, bytes]):
    """Captured blobs by hash."""

    def put(self, content: bytes) -> str:
        key = hashlib.sha256(content).hexdigest()
        self[key] = content
        return key


def explore(url: str, *, browser: dict[str, int] | None = None, **explore_settings: Any) -> SiteCapture:
    """Explore a site with a loopback-only browser, without keeping its blobs."""
    settings = Settings(browser=LOOPBACK_ONLY.model_copy(update=browser or {}), explore=explore_settings)
    return asyncio.run(explore_site(url, settings=settings, blobs=MemoryBlobs()))


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
        settings = Settings(browser=LOOPBACK_ONLY)
        capture = asyncio.run(explore_site(site.url, settings=settings, blobs=blobs))
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
