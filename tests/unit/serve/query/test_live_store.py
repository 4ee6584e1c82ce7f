"""The store behind the answers while it vanishes, fails and comes back; on a disk and in a bucket."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from pyarrow import fs

from tests.s3_server import BUCKET, s3_server
from tests.stores import draft
from waygraph.core.errors import NotFound, StoreError
from waygraph.core.settings import Settings
from waygraph.index.catalog.catalog import Catalog
from waygraph.index.store import Store
from waygraph.serve.query.live_store import LiveStore

OPEN, OTHER = "open.example", "other.example"


def until(condition: Callable[[], object]) -> None:
    """Wait until a condition holds; pytest ends a test that waits in vain."""
    while not condition():
        threading.Event().wait(0.005)


@pytest.fixture
def live(location: str) -> Iterator[LiveStore]:
    """A refreshed store of two sites, one of them open."""
    store = Store.open(location, create=True)
    for site in (OPEN, OTHER):
        store.publish(draft(store, site=site))
    with LiveStore(Settings(store=location, vectors={"engine": "packed"}, serve={"refresh_seconds": 0.01})) as live:
        live.start()
        until(lambda: live.is_open)
        live.map_of(OPEN).close()
        yield live


@pytest.fixture
def location(tmp_path: Path) -> str:
    return str(tmp_path / "maps")


@pytest.fixture
def bucket(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    with s3_server(monkeypatch):
        yield f"s3://{BUCKET}/maps"


def check_vanished(live: LiveStore) -> None:
    """Check what a service says while its store has vanished."""
    until(lambda: live.unavailable is not None)
    assert "marker" in str(live.unavailable)
    assert live.open_version(OPEN) == 1
    for call in (live.map_of, live.newest_version):
        with pytest.raises(StoreError, match="marker"):
            call(OTHER)
    with pytest.raises(StoreError, match="marker"):
        live.site_count()
    assert live.is_alive


def check_back(live: LiveStore) -> None:
    """Check that a service recovers by itself, and sees what was published meanwhile."""
    until(lambda: live.unavailable is None)
    live.map_of(OTHER).close()
    with pytest.raises(NotFound):
        live.map_of("unknown.example")
    until(lambda: live.open_version(OPEN) == 2)


def test_vanished_folder_is_unavailable_until_it_is_back(live: LiveStore, location: str) -> None:
    Path(location).rename(f"{location} elsewhere")
    check_vanished(live)
    Path(location).mkdir()  # as where a volume was mounted
    check_vanished(live)
    Path(location).rmdir()
    Path(f"{location} elsewhere").rename(location)
    store = Store.open(location)
    store.publish(draft(store, site=OPEN, marker="b"))
    check_back(live)


def test_lost_head_is_no_removal(live: LiveStore, location: str) -> None:
    store = Store.open(location)
    head = Path(location) / "sites" / OPEN / "HEAD"
    content = head.read_bytes()
    head.unlink()
    until(lambda: live.unopened == {"head": 1})
    assert live.open_version(OPEN) == 1
    head.write_bytes(content)
    until(lambda: not live.unopened)
    store.remove(OPEN)
    until(lambda: live.open_version(OPEN) is None)


def test_unexpected_error_does_not_end_the_refresh(
    live: LiveStore, location: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    failed = threading.Event()

    def fail(_: Catalog) -> list[str]:
        failed.set()
        raise RuntimeError("something else")

    with monkeypatch.context() as patch:
        patch.setattr(Catalog, "refresh", fail)
        failed.wait()
        until(lambda: "RuntimeError" in str(live.unavailable))
        assert live.is_alive
    store = Store.open(location)
    store.publish(draft(store, site=OPEN, marker="b"))
    check_back(live)


def test_refresh_that_does_not_end_means_that_the_store_does_not_answer(
    live: LiveStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("waygraph.serve.query.live_store.STALLED_SECONDS", 0.0)
    answers = threading.Event()
    refresh = Catalog.refresh

    def hang(catalog: Catalog) -> list[str]:
        answers.wait()
        return refresh(catalog)

    monkeypatch.setattr(Catalog, "refresh", hang)
    until(lambda: "does not answer" in str(live.unavailable))
    monkeypatch.undo()
    answers.set()
    until(lambda: live.unavailable is None)


class TestBucket:
    """The same in a bucket."""

    @pytest.fixture
    def location(self, bucket: str) -> str:
        return bucket

    def test_vanished_prefix_is_unavailable_until_it_is_back(self, live: LiveStore, location: str) -> None:
        store = Store.open(location)
        listed = store.files.get_file_info(fs.FileSelector("", recursive=True))
        kept = {each.path: store.read_file(each.path) or b"" for each in listed if each.type == fs.FileType.File}
        store.commit.delete(kept)
        check_vanished(live)
        for path, content in kept.items():
            store.commit.put(path, content)
        store.publish(draft(store, site=OPEN, marker="b"))
        check_back(live)
