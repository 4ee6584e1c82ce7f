"""Garbage collection: deletion of versions and blobs that nothing names any more, beside readers and running jobs.

Three rules protect what is in use:

- Versions: the current one, the newest few, and those that were replaced within the grace period stay. So a reader has
  that long to move to the newer version; a reader that holds a version in memory is not affected at all.
- Blobs: storing or naming a blob touches it (`BlobStore`), and only blobs older than the grace period are deleted. So
  the blobs of a run that has not published yet stay, as long as the run takes less time than that.
- The claim `gc.claim` is held while blobs are examined and deleted. A process that touches an old blob waits for its
  release, and then checks whether the blob still exists.

Ages are measured by the storage's clock alone, so the clocks of other machines do not matter.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from datetime import timedelta
from itertools import pairwise

from pyarrow import fs

from waygraph.core.errors import InvalidInput, NotFound, StoreError
from waygraph.index.store.backends.commit import StoreLease
from waygraph.index.store.backends.concurrency import concurrent_map
from waygraph.index.store.backends.failures import translate_errors
from waygraph.index.store.layout import GC_CLAIM, HEAD, manifest_path
from waygraph.index.store.manifest import Manifest
from waygraph.index.store.missing_heads import lost_versions, missing_head_message
from waygraph.index.store.names import is_digest
from waygraph.index.store.store import Store
from waygraph.index.store.upkeep.reserve import spare_room

log = logging.getLogger(__name__)

#: Number of newest versions of each site that stay.
DEFAULT_KEEP_VERSIONS = 3
#: Grace period of replaced versions and of blobs.
DEFAULT_GRACE = timedelta(days=7)
#: Blobs count as recent for six hours (`RECENT_SECONDS`), and the longest run must fit into the rest.
MIN_GRACE = timedelta(days=1)
_PREFIXES = tuple(f"{number:02x}" for number in range(256))


@dataclass(slots=True)
class GarbageReport:
    """What a garbage collection deleted, or would delete.

    Attributes
    ----------
    versions
        Numbers of the deleted versions by site.
    blobs
        Number of deleted blobs.
    blob_bytes
        Their total size.
    kept_blobs
        Number of blobs that are named, or younger than the grace period.
    leftovers
        Number of versions and files that crashed writers left, and of replaced records of registers.
    strange
        Paths of files among the blobs that waygraph did not write, sorted; they stay.
    """

    versions: dict[str, list[int]] = field(default_factory=dict)
    blobs: int = 0
    blob_bytes: int = 0
    kept_blobs: int = 0
    leftovers: int = 0
    strange: list[str] = field(default_factory=list)

    def add(self, scan: _BlobScan) -> None:
        """Add the result of a scan."""
        self.blobs += len(scan.unused) - scan.leftovers
        self.blob_bytes += scan.bytes
        self.kept_blobs += scan.kept
        self.leftovers += scan.leftovers
        self.strange += sorted(scan.strange)


@dataclass(slots=True)
class _BlobScan:
    """Files of one blob prefix.

    Attributes
    ----------
    unused
        Paths of old blobs that no version names, and of temporary files of crashed writers.
    bytes
        Total size of the unused blobs.
    kept
        Number of other blobs.
    leftovers
        Number of temporary files in `unused`.
    strange
        Paths of files that waygraph did not write.
    """

    unused: list[str] = field(default_factory=list)
    bytes: int = 0
    kept: int = 0
    leftovers: int = 0
    strange: list[str] = field(default_factory=list)


def do_nothing(_: Sequence[Manifest]) -> None:
    """Delete no copies: nothing else holds the vectors of versions."""


def collect_garbage(
    store: Store,
    *,
    keep: int = DEFAULT_KEEP_VERSIONS,
    grace: timedelta = DEFAULT_GRACE,
    dry_run: bool = False,
    before_drop: Callable[[Sequence[Manifest]], None] = do_nothing,
) -> GarbageReport:
    """Delete versions and blobs that nothing names any more. It may be interrupted at any moment and run again.

    Parameters
    ----------
    store
        The store.
    keep
        Number of newest versions of each site that stay, at least 1. The current version stays in any case.
    grace
        Grace period of replaced versions and of blobs.
    dry_run
        Whether to delete nothing, and only return what would be deleted.
    before_drop
        Called with the manifests of the versions of a site that are deleted next: copies elsewhere are deleted first,
        so that none is left when this is interrupted.

    Returns
    -------
    GarbageReport
        What was deleted.

    Raises
    ------
    InvalidInput
        If `keep` or `grace` is too small.
    StoreError
        If the blobs of a version cannot be determined, because it is damaged or the `HEAD` of its site is lost, or if
        another collection is running. No blob is deleted then.
    """
    if keep < 1:
        raise InvalidInput(
            f"--keep is {keep}.", hint="At least 1 version of each site is kept; waygraph rm removes all."
        )
    if grace < timedelta(0):
        raise InvalidInput("The grace is negative.", hint=f"At least {MIN_GRACE.days} day is safe beside running jobs.")
    with (
        translate_errors(f"collect garbage in {store.location}"),
        nullcontext() if dry_run else spare_room(store),
    ):
        before = store.commit.now() - grace.total_seconds()
        report = GarbageReport()
        sites = store.all_sites()
        for site in sites:
            _check_head(store, site)
        kept = {
            site: _collect_versions(store, site, keep, before, report, dry_run=dry_run, before_drop=before_drop)
            for site in sites
        }
        # The heads are read again: they include what was published since.
        named = _named_blobs(
            store, kept if dry_run else {site: sorted(store.read_head(site)[1].versions) for site in kept}
        )
        scans = concurrent_map(lambda prefix: _scan_blobs(store, prefix, named, before), _PREFIXES)
        for prefix, scan in zip(_PREFIXES, scans, strict=True):
            report.add(scan if dry_run or not scan.unused else _delete_blobs(store, prefix, named, before))
        if not dry_run:
            report.leftovers += store.commit.prune_registers("sites", HEAD, before)
    return report


def _check_head(store: Store, site: str) -> None:
    if numbers := lost_versions(store, site):
        raise StoreError(
            f"{missing_head_message(site, numbers)} Nothing is deleted.",
            hint="Restore it from a backup, or rebuild it: waygraph store repair.",
        )


def _collect_versions(
    store: Store,
    site: str,
    keep: int,
    before: float,
    report: GarbageReport,
    *,
    dry_run: bool,
    before_drop: Callable[[Sequence[Manifest]], None],
) -> list[int]:
    """Remove old versions of a site, and what crashed writers left; return the numbers of the versions that stay."""
    head = store.read_head(site)[1]
    published = sorted(head.versions)
    staying = {head.current, *published[-keep:]}
    gone = [
        number
        for number, successor in pairwise(published)
        if number not in staying and _publication_time(store, site, successor) < before
    ]
    if dry_run:
        leftovers = store.leftovers(site)
    else:
        before_drop(readable_manifests(store, site, gone))
        gone, leftovers = store.drop(site, gone)
    report.leftovers += len(leftovers) + _remove_temporary_files(store, site, before, dry_run=dry_run)
    if gone:
        report.versions[site] = gone
    return [number for number in published if number not in gone]


def readable_manifests(store: Store, site: str, versions: Iterable[int]) -> list[Manifest]:
    """Return the manifests of versions of a site; damaged and missing ones are left out: they were never searched.

    Parameters
    ----------
    store
        The store.
    site
        Key of the site.
    versions
        Numbers of the versions.

    Returns
    -------
    list of Manifest
        The manifests.
    """
    manifests = []
    for number in versions:
        try:
            manifests.append(store.manifest(site, number))
        except (NotFound, StoreError) as error:
            log.info("gc/manifest_unreadable %s version %d: %s", site, number, error)
    return manifests


def _publication_time(store: Store, site: str, number: int) -> float:
    info = store.files.get_file_info(manifest_path(site, number))
    return float(info.mtime.timestamp()) if info.mtime is not None else store.commit.now()


def _remove_temporary_files(store: Store, site: str, before: float, *, dry_run: bool) -> int:
    entries = store.files.get_file_info(fs.FileSelector(f"sites/{site}", allow_not_found=True))
    old = [entry.path for entry in entries if _is_temporary(entry) and entry.mtime.timestamp() < before]
    if not dry_run:
        store.commit.delete(old)
    return len(old)


def _is_temporary(entry: fs.FileInfo) -> bool:
    return bool(entry.type == fs.FileType.File and entry.base_name.startswith(".") and entry.extension == "tmp")


def _named_blobs(store: Store, kept: dict[str, list[int]]) -> set[bytes]:
    """Return the digests of all blobs that versions name."""
    versions = [(site, number) for site, numbers in kept.items() for number in numbers]

    def blobs_of(version: tuple[str, int]) -> set[bytes]:
        site, number = version
        try:
            return {bytes.fromhex(digest) for digest in store.blobs_of(site, number)}
        except NotFound:
            return set()  # removed meanwhile
        except StoreError as error:
            raise StoreError(
                f"The blobs of version {number} of '{site}' are unknown, so no blobs are deleted. {error.message}",
                hint="Repair the store first: waygraph store repair. Or remove the site: waygraph rm.",
            ) from error

    return set().union(*concurrent_map(blobs_of, versions))


def _scan_blobs(store: Store, prefix: str, named: set[bytes], before: float) -> _BlobScan:
    """Find the blobs of a prefix that are old and that no version names."""
    scan = _BlobScan()
    for entry in store.files.get_file_info(fs.FileSelector(f"blobs/{prefix}", allow_not_found=True)):
        if entry.type != fs.FileType.File:
            continue
        is_old = entry.mtime.timestamp() < before
        if _is_temporary(entry):
            if is_old:
                scan.unused.append(entry.path)
                scan.leftovers += 1
        elif not is_digest(entry.base_name):
            # Created by a file manager, or by a network file system for an open file.
            scan.strange.append(entry.path)
        elif is_old and bytes.fromhex(entry.base_name) not in named:
            scan.unused.append(entry.path)
            scan.bytes += entry.size
        else:
            scan.kept += 1
    return scan


def _delete_blobs(store: Store, prefix: str, named: set[bytes], before: float) -> _BlobScan:
    """Delete unused blobs, after a second scan under the claim: a process that touches one meanwhile waits for it."""
    with deleting_blobs(store) as lease:
        scan = _scan_blobs(store, prefix, named, before)
        store.commit.delete(scan.unused, under=lease)
    return scan


@contextmanager
def deleting_blobs(store: Store) -> Iterator[StoreLease]:
    """Hold the claim under which blobs are examined and deleted.

    A process that touches an old blob meanwhile waits, and then checks whether the blob still exists.

    Parameters
    ----------
    store
        The store.

    Yields
    ------
    StoreLease
        The claim.

    Raises
    ------
    StoreError
        If another process holds it.
    """
    lease = store.commit.claim(GC_CLAIM) or store.commit.take_over(GC_CLAIM)
    if lease is None:
        raise StoreError("Another garbage collection of the store is running.", hint="Wait until it has finished.")
    try:
        yield lease
    finally:
        lease.release()
