"""What do many tests share? A demo shop that runs, and what one exploration of it found."""

import asyncio
import hashlib
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from pipeline.explore import SiteCapture, explore_site
from waygraph.demo_site import DemoSite
from waygraph.settings import BrowserSettings, Settings

#: Nothing but this machine can be reached from a browser under test.
LOOPBACK_ONLY = BrowserSettings(extra_args=("--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",))


class MemoryBlobs(dict[str, bytes]):
    """Captured blobs by hash."""

    def put(self, content: bytes) -> str:
        key = hashlib.sha256(content).hexdigest()
        self[key] = content
        return key


def explore(url: str, **explore_settings) -> SiteCapture:
    """Explore a site with a loopback-only browser, without keeping its blobs."""
    settings = Settings(browser=LOOPBACK_ONLY, explore=explore_settings)
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
