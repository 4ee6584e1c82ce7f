"""The demo shop, explored and published once per test session."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.blobs import MemoryBlobs
from tests.exploring import ExploredShop, explore
from waygraph.core.settings import EncodeSettings, Settings
from waygraph.demo_site import DemoSite
from waygraph.index.store import Store
from waygraph.pipeline.encode.registry import create_encoder
from waygraph.pipeline.jobs.publishing.draft import encode_draft


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
