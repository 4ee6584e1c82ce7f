"""Copies of maps between stores, from a disk to a bucket or back.

A copy publishes each version: first its blobs, then its files, then its number. So it can be stopped at any moment,
readers of the target see complete versions only, and repeating the copy adds what is missing.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection
from dataclasses import dataclass, field

from waygraph.core.errors import InvalidInput, PublishConflict
from waygraph.index.store.backends.commit import check_valid
from waygraph.index.store.backends.concurrency import concurrent_map
from waygraph.index.store.backends.failures import translate_errors
from waygraph.index.store.layout import MANIFEST_FILE, claim_path, head_path
from waygraph.index.store.manifest import Head
from waygraph.index.store.store import Store


@dataclass(slots=True)
class CopyReport:
    """What was copied.

    Attributes
    ----------
    versions
        Numbers of the copied versions by site.
    versions_there
        Number of versions that the target had already.
    blobs
        Number of copied blobs.
    blobs_there
        Number of blobs that the target had already.
    bytes
        Total size of copied blobs and files.
    """

    versions: dict[str, list[int]] = field(default_factory=dict)
    versions_there: int = 0
    blobs: int = 0
    blobs_there: int = 0
    bytes: int = 0


def copy_maps(
    source: Store,
    target: Store,
    sites: Collection[str] | None = None,
    *,
    newest_only: bool = False,
    on_site: Callable[[str], None] = lambda _: None,
) -> CopyReport:
    """Copy maps with their versions, numbers and blobs. Every file is checked against its hash on the way.

    Runs (reports, unfinished work) and agents' feedback are not copied.

    Parameters
    ----------
    source
        The store to copy from.
    target
        The store to copy to.
    sites
        Keys of the sites; None: all.
    newest_only
        Whether to copy only the current version of each site.
    on_site
        Called with each site before it is copied.

    Returns
    -------
    CopyReport
        What was copied.

    Raises
    ------
    InvalidInput
        If both stores are the same.
    NotFound
        If a site is not mapped in the source.
    PublishConflict
        If the target has other versions of a site than the source.
    StoreError
        If something is damaged, or cannot be read or written. What was published in the target is complete.
    """
    if source.location == target.location:
        raise InvalidInput("Both stores are the same.", hint="Name another location to copy to.")
    report = CopyReport()
    with translate_errors(f"copy {source.location} to {target.location}"):
        for site in sorted(source.heads()) if sites is None else sites:
            on_site(site)
            _copy_site(source, target, site, report, newest_only=newest_only)
    return report


def _copy_site(source: Store, target: Store, site: str, report: CopyReport, *, newest_only: bool) -> None:
    current, versions = source.head(site), source.versions(site)
    source_hashes, target_head = source.read_head(site)[1].versions, target.read_head(site)[1]
    differing = [n for n, sha256 in target_head.versions.items() if source_hashes.get(n, sha256) != sha256]
    if differing:
        raise PublishConflict(
            f"Version {differing[0]} of '{site}' in {target.location} is another one than in {source.location}.",
            hint="Copy to an empty store, or remove the site there first: waygraph rm.",
        )
    if target_head.last > max(versions):
        raise PublishConflict(
            f"{target.location} has published '{site}' since it was copied: "
            f"up to {target_head.last}, not {max(versions)}.",
            hint="Copy to an empty store, or remove the site there first: waygraph rm.",
        )
    for number in [current] if newest_only else versions:
        if number in target_head.versions:
            report.versions_there += 1
            continue
        _copy_version(source, target, site, number, report)
        report.versions.setdefault(site, []).append(number)
    _make_current(target, site, current)


def _copy_version(source: Store, target: Store, site: str, number: int, report: CopyReport) -> None:
    _copy_blobs(source, target, source.blobs_of(site, number), report)
    files = source.version_files(site, number)
    lease = target.commit.claim(claim_path(site, number)) or target.commit.take_over(claim_path(site, number))
    if lease is None:
        raise PublishConflict(f"Another process is writing version {number} of '{site}'.", hint="Wait, and copy again.")
    try:
        target.write_version_files(site, number, files)
        sha256 = hashlib.sha256(files[MANIFEST_FILE]).hexdigest()
        while True:
            raw, head = target.read_head(site)
            if number in head.versions:
                return
            # A process that counted this one as dead may have deleted the files.
            check_valid(lease)
            # A number below the last one was skipped earlier (`newest_only`), or removed.
            versions = {**head.versions, number: sha256}
            changed = Head(current=max(head.current or 0, number), last=max(head.last, number), versions=versions)
            if target.commit.compare_and_swap(head_path(site), raw, changed.to_bytes()):
                break
    finally:
        lease.release()
    report.bytes += sum(map(len, files.values()))


def _copy_blobs(source: Store, target: Store, digests: Collection[str], report: CopyReport) -> None:
    missing = target.blobs.touch(sorted(digests))
    report.blobs_there += len(digests) - len(missing)
    for size in concurrent_map(lambda digest: _copy_blob(source, target, digest), missing):
        report.blobs += 1
        report.bytes += size


def _copy_blob(source: Store, target: Store, digest: str) -> int:
    content = source.blobs.get(digest)
    target.blobs.put(content)
    return len(content)


def _make_current(target: Store, site: str, current: int) -> None:
    """Make a version current in the target: after a rollback in the source, that is not the newest one."""
    while True:
        raw, head = target.read_head(site)
        if head.current == current or current not in head.versions:
            return
        changed = Head(current=current, last=head.last, versions=head.versions)
        if target.commit.compare_and_swap(head_path(site), raw, changed.to_bytes()):
            return
