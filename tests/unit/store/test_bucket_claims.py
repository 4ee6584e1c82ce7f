"""A claim in a bucket is lost when it was not renewed in time, and lost for good."""

from __future__ import annotations

import threading
from datetime import timedelta

import pytest
from botocore.exceptions import HTTPClientError

from index.store import Store
from index.store import gc as collection
from index.store.bucket_claims import S3Lease
from index.store.checks import verify
from index.store.commit import Lease
from index.store.copying import copy
from index.store.layout import GC_CLAIM
from index.store.objects import S3Commit
from tests.stores import SITE, draft
from waygraph.errors import StoreError


class Clock:
    """What a machine's clock shows, moved on by as many seconds as it was suspended."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self._now = 0.0
        for module in ("index.store.bucket_claims", "index.store.objects"):
            patch.setattr(f"{module}.clock", lambda: self._now)
        self._patch = patch

    def suspend(self) -> None:
        """Ten minutes pass: others take its claims for dead."""
        self._now += 601
        self._patch.setattr("index.store.objects.STALE_SECONDS", -10)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    return Clock(monkeypatch)


def claimed(store: Store) -> S3Lease:
    return as_in_a_bucket(store.commit.claim(GC_CLAIM) or store.commit.take_over(GC_CLAIM))


def as_in_a_bucket(lease: Lease | None) -> S3Lease:
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
    monkeypatch.setattr("index.store.bucket_claims.RENEW_SECONDS", 0.01)
    lease = claimed(bucket)
    assert commit.claim(GC_CLAIM) is None
    assert renewed.wait(30)
    assert commit.is_claimed(GC_CLAIM)
    assert commit.take_over(GC_CLAIM) is None
    lease.release()
    assert not commit.is_claimed(GC_CLAIM)


def test_who_was_suspended_leaves_the_claim_to_who_took_it_over(bucket: Store, clock: Clock) -> None:
    first = claimed(bucket)
    clock.suspend()
    second = claimed(bucket)
    assert not first.renew()
    assert not first.lasts()
    first.release()
    assert second.renew()
    second.release()
    assert bucket.read_file(GC_CLAIM) is None


def test_a_claim_that_was_late_is_lost_though_nobody_took_it_over(bucket: Store, clock: Clock) -> None:
    lease = claimed(bucket)
    clock.suspend()
    assert [lease.lasts(), lease.renew(), lease.lasts()] == [False] * 3
    lease.release()


def test_a_renewal_that_took_too_long_comes_too_late(
    bucket: Store, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    lease = claimed(bucket)
    renew = S3Commit.renew_claim

    def slow(self: S3Commit, path: str, holder: str) -> str | None:
        clock.suspend()
        return renew(self, path, holder)

    monkeypatch.setattr(S3Commit, "renew_claim", slow)
    assert not lease.renew()
    assert not lease.lasts()
    lease.release()


def test_a_claim_is_not_renewed_over_another_and_not_deleted_by_who_lost_it_unknowingly(bucket: Store) -> None:
    """By the server's conditions alone: this process's own clock has not noticed anything."""
    lease = claimed(bucket)
    bucket.commit.put(GC_CLAIM, b"another process")
    lease.release()
    assert bucket.read_file(GC_CLAIM) == b"another process"
    bucket.commit.delete([GC_CLAIM])
    lease = claimed(bucket)
    bucket.commit.put(GC_CLAIM, b"another process")
    assert not lease.renew()
    assert not lease.lasts()
    lease.release()
    assert bucket.read_file(GC_CLAIM) == b"another process"


def test_a_renewal_whose_answer_was_lost_is_no_loss(bucket: Store, monkeypatch: pytest.MonkeyPatch) -> None:
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
    later, now, look = draft(bucket), bucket.commit.now(), collection._look
    monkeypatch.setattr(bucket.commit, "now", lambda: now + timedelta(days=8).total_seconds())

    def suspended(*arguments: object) -> object:
        seen = look(*arguments)  # type: ignore[arg-type]
        if seen.doomed and bucket.commit.is_claimed(GC_CLAIM):  # the look under the claim
            clock.suspend()
            monkeypatch.setattr("index.store.objects.YOUNG_SECONDS", -1)  # the publisher makes the blob young
            assert bucket.publish(later) == 1
        return seen

    monkeypatch.setattr(collection, "_look", suspended)
    with pytest.raises(StoreError, match="suspended for too long"):
        collection.collect(bucket)
    assert verify(bucket).problems == []


def test_a_copy_that_was_suspended_publishes_no_files_that_others_deleted(
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
        copy(store, bucket)
    assert bucket.sites() == []


def test_a_delete_that_is_tried_again_looks_at_its_claim_again(bucket: Store, monkeypatch: pytest.MonkeyPatch) -> None:
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
