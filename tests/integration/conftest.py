"""The demo shop, explored and published once per test session; a browser and a folder for pictures of pages."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.blobs import MemoryBlobs
from tests.exploring import ExploredShop, explore
from waygraph.core.settings import EncodeSettings, Settings
from waygraph.demo_site import DemoSite
from waygraph.index.store import Store
from waygraph.pipeline.encode.registry import create_encoder
from waygraph.pipeline.jobs.publishing.draft import encode_draft

if TYPE_CHECKING:
    from playwright.sync_api import Browser


@pytest.fixture(scope="module")
def one_cpu(request: pytest.FixtureRequest) -> Iterator[str]:
    """Give runs one CPU: of this machine, or of a Ray that is connected (`tests.actors.ON_BOTH`). Return which."""
    from waygraph.cluster import ClusterMachine, ray_cluster
    from waygraph.pipeline.jobs.actors import local_actors

    kind: str = getattr(request, "param", "local")
    if kind == "ray":
        often = {"RAY_metrics_report_interval_ms": "500"}
        with ray_cluster(num_cpus=1, object_store_bytes=256 * 2**20, environment=often):
            yield kind
        return
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(local_actors, "this_machine", lambda: ClusterMachine("", 1.0))
        yield kind


@pytest.fixture(scope="module")
def page_browser() -> Iterator[Browser]:
    """Start a browser that reaches this machine only, for Playwright's interface without asyncio.

    What a test expects of a page is waited for longer than the default of 5 s, which a busy machine exceeds.
    """
    from playwright.sync_api import expect, sync_playwright

    from waygraph.pipeline.browser.process.find import find_browser

    with sync_playwright() as driver:
        flags = ["--disable-background-networking", "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1"]
        started = driver.chromium.launch(executable_path=str(find_browser().path), args=flags)
        expect.set_options(timeout=60_000)
        yield started
        expect.set_options(timeout=5_000)
        started.close()


@pytest.fixture(scope="module")
def pictures(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of `make ui-check PICTURES=FOLDER`; without one, a temporary folder of the tests."""
    if not (named := os.environ.get("WAYGRAPH_PICTURES")):
        return tmp_path_factory.mktemp("pictures")
    folder = Path(named)
    folder.mkdir(parents=True, exist_ok=True)
    return folder


@pytest.fixture(scope="session")
def shop() -> Iterator[ExploredShop]:
    """Serve the demo shop and explore it to depth 3, breadth first: the parents in the ground truth are by levels."""
    with DemoSite() as site:
        blobs = MemoryBlobs()
        capture = explore(site.url, blobs=blobs, order="breadth")
        yield ExploredShop(site, capture, blobs, tuple(site.requests))


@pytest.fixture(scope="session")
def shop_store(shop: ExploredShop, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Publish the explored shop, encoded, as version 1 of a new store and return the store's folder."""
    path = tmp_path_factory.mktemp("shop") / "maps"
    store = Store.open(str(path), create=True)
    for content in shop.blobs.values():
        store.blobs.put(content)
    store.publish(encode_draft(shop.capture, Settings(), create_encoder(EncodeSettings())))
    return path
