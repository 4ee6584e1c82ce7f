"""How does a store get to another place, from a disk to a bucket or back, and how does a copy go on after a stop?

A copy publishes: blobs first, then the files of a version, then its number. So it can be stopped at any moment, readers
of the target see whole versions only, and doing it again copies what is missing.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection
from dataclasses import dataclass, field

from index.store.commit import check_lasts
from index.store.concurrency import concurrently
from index.store.layout import MANIFEST, claim_path, explained, head_path
from index.store.manifest import Head
from index.store.store import Store
from waygraph.errors import InvalidInput, PublishConflict


@dataclass(slots=True)
class Copied:
    """What was copied; `there` is what the target had already."""

    versions: dict[str, list[int]] = field(default_factory=dict)
    versions_there: int = 0
    blobs: int = 0
    blobs_there: int = 0
    bytes: int = 0


def copy(
    source: Store,
    target: Store,
    sites: Collection[str] | None = None,
    *,
    newest_only: bool = False,
    on_site: Callable[[str], None] = lambda _: None,
) -> Copied:
    """Copy maps with their versions, numbers and blobs. Every file is checked against its hash on the way.

    Runs (reports, unfinished work) and agents' feedback are not copied.

    Parameters
    ----------
    sites : keys; None: all.
    newest_only : leave out all but the current version of each site.
    on_site : told each site before it is copied.

    Raises
    ------
    NotFound
        When a site is not mapped in the source.
    PublishConflict
        When the target has other versions of a site than the source.
    StoreError
        When something is damaged, or cannot be read or written. What was published in the target is whole.

    """
    if source.location == target.location:
        raise InvalidInput("The two stores are one.", hint="Name another place to copy to.")
    done = Copied()
    with explained(f"copy {source.location} to {target.location}"):
        for site in sorted(source.heads()) if sites is None else sites:
            on_site(site)
            _copy_site(source, target, site, done, newest_only=newest_only)
    return done


def _copy_site(source: Store, target: Store, site: str, done: Copied, *, newest_only: bool) -> None:
    current, versions = source.head(site), source.versions(site)
    theirs, mine = source.read_head(site)[1].versions, target.read_head(site)[1]
    if strange := [number for number, sha256 in mine.versions.items() if theirs.get(number, sha256) != sha256]:
        raise PublishConflict(
            f"Version {strange[0]} of '{site}' in {target.location} is another one than in {source.location}.",
            hint="Copy to an empty store, or remove the site there first: waygraph rm.",
        )
    if mine.last > max(versions):
        raise PublishConflict(
            f"{target.location} has published '{site}' since it was copied: up to {mine.last}, not {max(versions)}.",
            hint="Copy to an empty store, or remove the site there first: waygraph rm.",
        )
    for number in [current] if newest_only else versions:
        if number in mine.versions:
            done.versions_there += 1
            continue
        _copy_version(source, target, site, number, done)
        done.versions.setdefault(site, []).append(number)
    _make_current(target, site, current)


def _copy_version(source: Store, target: Store, site: str, number: int, done: Copied) -> None:
    _copy_blobs(source, target, source.blobs_of(site, number), done)
    files = source.version_files(site, number)
    lease = target.commit.claim(claim_path(site, number)) or target.commit.take_over(claim_path(site, number))
    if lease is None:
        raise PublishConflict(f"Somebody else writes version {number} of '{site}'.", hint="Wait, and copy again.")
    try:
        target.write_version_files(site, number, files)
        sha256 = hashlib.sha256(files[MANIFEST]).hexdigest()
        while True:
            raw, head = target.read_head(site)
            if number in head.versions:
                return
            # Who took it for dead may have deleted the files.
            check_lasts(lease)
            # A number below the last one was left out before (`newest_only`), or removed.
            versions = {**head.versions, number: sha256}
            changed = Head(current=max(head.current or 0, number), last=max(head.last, number), versions=versions)
            if target.commit.swap(head_path(site), raw, changed.to_bytes()):
                break
    finally:
        lease.release()
    done.bytes += sum(map(len, files.values()))


def _copy_blobs(source: Store, target: Store, digests: Collection[str], done: Copied) -> None:
    missing = target.blobs.keep(sorted(digests))
    done.blobs_there += len(digests) - len(missing)
    for size in concurrently(lambda digest: _copy_blob(source, target, digest), missing):
        done.blobs += 1
        done.bytes += size


def _copy_blob(source: Store, target: Store, digest: str) -> int:
    content = source.blobs.get(digest)
    target.blobs.put(content)
    return len(content)


def _make_current(target: Store, site: str, current: int) -> None:
    """After a rollback in the source, the newest version is not the current one."""
    while True:
        raw, head = target.read_head(site)
        if head.current == current or current not in head.versions:
            return
        changed = Head(current=current, last=head.last, versions=head.versions)
        if target.commit.swap(head_path(site), raw, changed.to_bytes()):
            return
