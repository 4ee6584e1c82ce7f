"""A claim in a bucket that is not renewed in time is lost permanently."""

from __future__ import annotations

import threading
from datetime import timedelta

import pytest
from botocore.exceptions import HTTPClientError

from tests.stores import SITE, draft
from waygraph.core.errors import StoreError
from waygraph.index.store import Store
from waygraph.index.store.backends.commit import StoreLease
from waygraph.index.store.backends.s3 import S3Commit
from waygraph.index.store.backends.s3_lease import S3Lease
from waygraph.index.store.layout import GC_CLAIM
from waygraph.index.store.upkeep import gc as collection
from waygraph.index.store.upkeep.checks import verify
from waygraph.index.store.upkeep.copy import copy_maps


class Clock:
    """Clock of a machine, advanced by the seconds that it was suspended."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self._now = 0.0
        for module in ("waygraph.index.store.backends.s3_lease", "waygraph.index.store.backends.s3"):
            patch.setattr(f"{module}.clock", lambda: self._now)
        self._patch = patch

    def suspend(self) -> None:
        """Advance the clock by ten minutes, so that its claims expire for others."""
        self._now += 601
        self._patch.setattr("waygraph.index.store.backends.s3.STALE_SECONDS", -10)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    return Clock(monkeypatch)


def claimed(store: Store) -> S3Lease:
    return as_in_a_bucket(store.commit.claim(GC_CLAIM) or store.commit.take_over(GC_CLAIM))


def as_in_a_bucket(lease: StoreLease | None) -> S3Lease:
    assert isinstance(lease, S3Lease)
    return lease


def test_a_claim_is_renewed_until_it_is_released(bucket: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    renewed = threading.Event()
    commit = bucket.commit
    assert isinstance(commit, S3Commit)
    renew = commit.renew_claim

    def noticed(path: str, holder: str) -> str | None:
        etag = renew(path, holder)
        renewed.set()
        return etag

    monkeypatch.setattr(commit, "renew_claim", noticed)
    monkeypatch.setattr("waygraph.index.store.backends.s3_lease.RENEW_SECONDS", 0.01)
    lease = claimed(bucket)
    assert commit.claim(GC_CLAIM) is None
    assert renewed.wait(30)
    assert commit.is_claimed(GC_CLAIM)
    assert commit.take_over(GC_CLAIM) is None
    lease.release()
    assert not commit.is_claimed(GC_CLAIM)


def test_suspended_process_leaves_its_claim_to_the_process_that_took_it_over(bucket: Store, clock: Clock) -> None:
    first = claimed(bucket)
    clock.suspend()
    second = claimed(bucket)
    assert not first.renew()
    assert not first.is_valid()
    first.release()
    assert second.renew()
    second.release()
    assert bucket.read_file(GC_CLAIM) is None


def test_expired_claim_is_lost_although_no_other_process_took_it(bucket: Store, clock: Clock) -> None:
    lease = claimed(bucket)
    clock.suspend()
    assert [lease.is_valid(), lease.renew(), lease.is_valid()] == [False] * 3
    lease.release()


def test_renewal_that_takes_too_long_loses_the_claim(
    bucket: Store, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    lease = claimed(bucket)
    renew = S3Commit.renew_claim

    def slow(self: S3Commit, path: str, holder: str) -> str | None:
        clock.suspend()
        return renew(self, path, holder)

    monkeypatch.setattr(S3Commit, "renew_claim", slow)
    assert not lease.renew()
    assert not lease.is_valid()
    lease.release()


def test_lost_claim_is_neither_renewed_nor_deleted_by_its_former_holder(bucket: Store) -> None:
    """By the server's conditions alone: this process's own clock has not noticed anything."""
    lease = claimed(bucket)
    bucket.commit.put(GC_CLAIM, b"another process")
    lease.release()
    assert bucket.read_file(GC_CLAIM) == b"another process"
    bucket.commit.delete([GC_CLAIM])
    lease = claimed(bucket)
    bucket.commit.put(GC_CLAIM, b"another process")
    assert not lease.renew()
    assert not lease.is_valid()
    lease.release()
    assert bucket.read_file(GC_CLAIM) == b"another process"


def test_renewal_with_a_lost_response_keeps_the_claim(bucket: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    lease = claimed(bucket)
    renew = S3Commit.renew_claim

    def unanswered(self: S3Commit, path: str, holder: str) -> str | None:
        renew(self, path, holder)
        raise OSError("the connection broke off")

    with monkeypatch.context() as patch:
        patch.setattr(S3Commit, "renew_claim", unanswered)
        assert lease.renew()
    assert lease.renew()
    lease.release()
    assert bucket.read_file(GC_CLAIM) is None


def test_a_collection_that_was_suspended_deletes_nothing_that_was_published_since(
    bucket: Store, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    later, now, look = draft(bucket), bucket.commit.now(), collection._scan_blobs
    monkeypatch.setattr(bucket.commit, "now", lambda: now + timedelta(days=8).total_seconds())

    def suspended(*arguments: object) -> object:
        seen = look(*arguments)  # type: ignore[arg-type]
        if seen.unused and bucket.commit.is_claimed(GC_CLAIM):  # the look under the claim
            clock.suspend()
            monkeypatch.setattr(
                "waygraph.index.store.backends.s3.RECENT_SECONDS", -1
            )  # the publisher makes the blob young
            assert bucket.publish(later) == 1
        return seen

    monkeypatch.setattr(collection, "_scan_blobs", suspended)
    with pytest.raises(StoreError, match="suspended for too long"):
        collection.collect_garbage(bucket)
    assert verify(bucket).problems == []


def test_suspended_copy_does_not_publish_files_deleted_meanwhile(
    store: Store, bucket: Store, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.publish(draft(store))
    write = Store.write_version_files

    def suspended(self: Store, *arguments: object) -> None:
        write(self, *arguments)  # type: ignore[arg-type]
        clock.suspend()
        assert self.drop(SITE, []) == ([], [1])

    monkeypatch.setattr(Store, "write_version_files", suspended)
    with pytest.raises(StoreError, match="suspended for too long"):
        copy_maps(store, bucket)
    assert bucket.sites() == []


def test_retried_delete_checks_its_claim_again(bucket: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    digest, lease = bucket.blobs.put(b"a picture"), claimed(bucket)
    path = f"blobs/{digest[:2]}/{digest}"
    tried: list[None] = []

    def suspended_once(**_: object) -> None:
        tried.append(None)
        monkeypatch.setattr(lease, "_lost", True)
        raise HTTPClientError(error="broken off while the machine slept")

    assert isinstance(bucket.commit, S3Commit)
    events = bucket.commit._client.meta.events
    events.register_last("before-send.s3.DeleteObjects", suspended_once)
    try:
        with pytest.raises(StoreError, match="suspended"):
            bucket.commit.delete([path], under=lease)
    finally:
        events.unregister("before-send.s3.DeleteObjects", suspended_once)
        lease.release()
    assert len(tried) == 1
    assert bucket.blobs.has(digest)
