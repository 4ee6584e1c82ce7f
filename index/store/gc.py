"""What in a store is named by nobody any more, and how is it deleted beside readers and running jobs?

Three things keep what is in use:

- Versions: the current one, the newest few, and those that were replaced within the grace. So a reader has that long to
  move on to the newer version; one that holds a version in memory is not disturbed at all.
- Blobs: whoever stores or names one makes it young (`BlobStore`), and only blobs older than the grace are deleted. So
  what a run has stored and not published yet is kept, as long as the run takes less time than that.
- The claim `gc.claim`: it is held while blobs are looked at and deleted. Who makes an old blob young waits for its end,
  and looks whether the blob survived.

Ages are told by the clock of the storage alone, so other machines' clocks do not matter.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from itertools import pairwise
from typing import TYPE_CHECKING

from pyarrow import fs

from index.store.blobs import is_digest
from index.store.commit import Lease
from index.store.concurrency import concurrently
from index.store.layout import GC_CLAIM, HEAD, MANIFEST, explained, version_folder
from index.store.lost_heads import lost, problem_of
from waygraph.errors import InvalidInput, NotFound, StoreError

if TYPE_CHECKING:
    from index.store.store import Store

KEEP_VERSIONS = 3
GRACE = timedelta(days=7)
#: Blobs count as young for six hours (`YOUNG_SECONDS`), and the longest run must fit in what is left.
SHORTEST_GRACE = timedelta(days=1)
_PREFIXES = tuple(f"{number:02x}" for number in range(256))


@dataclass(slots=True)
class Collection:
    """What a garbage collection deleted, or would delete.

    Attributes
    ----------
    versions : numbers by site.
    blobs, blob_bytes : how many, and their size together.
    kept_blobs : blobs that are named, or still young.
    leftovers : versions and files that crashed writers left, and replaced records of registers.
    strange : paths of files among the blobs that no waygraph wrote, sorted; they stay.

    """

    versions: dict[str, list[int]] = field(default_factory=dict)
    blobs: int = 0
    blob_bytes: int = 0
    kept_blobs: int = 0
    leftovers: int = 0
    strange: list[str] = field(default_factory=list)

    def count(self, seen: _Blobs) -> None:
        """Add what was found among some blobs."""
        self.blobs += len(seen.doomed) - seen.leftovers
        self.blob_bytes += seen.bytes
        self.kept_blobs += seen.kept
        self.leftovers += seen.leftovers
        self.strange += sorted(seen.strange)


@dataclass(slots=True)
class _Blobs:
    """Blobs of one prefix: paths of those that nobody needs (files of crashed writers among them), and sizes."""

    doomed: list[str] = field(default_factory=list)
    bytes: int = 0
    kept: int = 0
    leftovers: int = 0
    strange: list[str] = field(default_factory=list)


def collect(store: Store, *, keep: int = KEEP_VERSIONS, grace: timedelta = GRACE, dry_run: bool = False) -> Collection:
    """Delete versions and blobs that nobody needs. It may be interrupted at any moment and run again.

    Parameters
    ----------
    keep : versions of each site that are kept beside the current one, at least 1; the newest.
    grace : see above.
    dry_run : delete nothing, and return what would be deleted.

    Raises
    ------
    InvalidInput
        When `keep` or `grace` make no sense.
    StoreError
        When it cannot be told what a version names, since it is damaged or the `HEAD` of its site is lost, or another
        collection is under way. No blob is deleted then.

    """
    if keep < 1:
        raise InvalidInput(
            f"--keep is {keep}.", hint="At least 1 version of each site is kept; waygraph rm removes all."
        )
    if grace < timedelta(0):
        raise InvalidInput("The grace is negative.", hint=f"At least {SHORTEST_GRACE.days} day is safe beside jobs.")
    with explained(f"collect garbage in {store.location}"):
        before = store.commit.now() - grace.total_seconds()
        done = Collection()
        sites = store.all_sites()
        for site in sites:
            _refuse_lost_head(store, site)
        kept = {site: _sort_out(store, site, keep, before, done, dry_run=dry_run) for site in sites}
        # What stays, and what was published since.
        named = _named(store, kept if dry_run else {site: sorted(store.read_head(site)[1].versions) for site in kept})
        looks = concurrently(lambda prefix: _look(store, prefix, named, before), _PREFIXES)
        for prefix, seen in zip(_PREFIXES, looks, strict=True):
            done.count(seen if dry_run or not seen.doomed else _delete_blobs(store, prefix, named, before))
        if not dry_run:
            done.leftovers += store.commit.prune("sites", HEAD, before)
    return done


def _refuse_lost_head(store: Store, site: str) -> None:
    if numbers := lost(store, site):
        raise StoreError(
            f"{problem_of(site, numbers)} Nothing is deleted.",
            hint="Bring it back from a backup, or write it anew: waygraph store repair.",
        )


def _sort_out(store: Store, site: str, keep: int, before: float, done: Collection, *, dry_run: bool) -> list[int]:
    """Remove versions of a site, and what writers left; returns the numbers of those that stay."""
    head = store.read_head(site)[1]
    published = sorted(head.versions)
    staying = {head.current, *published[-keep:]}
    gone = [
        number
        for number, successor in pairwise(published)
        if number not in staying and _written(store, site, successor) < before
    ]
    if dry_run:
        leftovers = store.leftovers(site)
    else:
        gone, leftovers = store.drop(site, gone)
    done.leftovers += len(leftovers) + _remove_temporary(store, site, before, dry_run=dry_run)
    if gone:
        done.versions[site] = gone
    return [number for number in published if number not in gone]


def _written(store: Store, site: str, number: int) -> float:
    info = store.files.get_file_info(f"{version_folder(site, number)}/{MANIFEST}")
    return float(info.mtime.timestamp()) if info.mtime is not None else store.commit.now()


def _remove_temporary(store: Store, site: str, before: float, *, dry_run: bool) -> int:
    entries = store.files.get_file_info(fs.FileSelector(f"sites/{site}", allow_not_found=True))
    old = [entry.path for entry in entries if _is_temporary(entry) and entry.mtime.timestamp() < before]
    if not dry_run:
        store.commit.delete(old)
    return len(old)


def _is_temporary(entry: fs.FileInfo) -> bool:
    return bool(entry.type == fs.FileType.File and entry.base_name.startswith(".") and entry.extension == "tmp")


def _named(store: Store, kept: dict[str, list[int]]) -> set[bytes]:
    """Digests of all blobs that versions name."""
    versions = [(site, number) for site, numbers in kept.items() for number in numbers]

    def blobs_of(version: tuple[str, int]) -> set[bytes]:
        site, number = version
        try:
            return {bytes.fromhex(digest) for digest in store.blobs_of(site, number)}
        except NotFound:
            return set()  # removed meanwhile
        except StoreError as error:
            raise StoreError(
                f"Nobody can tell which blobs version {number} of '{site}' names, so none are deleted. {error.message}",
                hint="Repair the store first: waygraph store repair. Or remove the site: waygraph rm.",
            ) from error

    return set().union(*concurrently(blobs_of, versions))


def _look(store: Store, prefix: str, named: set[bytes], before: float) -> _Blobs:
    """Which blobs of a prefix nobody needs."""
    seen = _Blobs()
    for entry in store.files.get_file_info(fs.FileSelector(f"blobs/{prefix}", allow_not_found=True)):
        if entry.type != fs.FileType.File:
            continue
        is_old = entry.mtime.timestamp() < before
        if _is_temporary(entry):
            if is_old:
                seen.doomed.append(entry.path)
                seen.leftovers += 1
        elif not is_digest(entry.base_name):
            # Of a file manager, or of a network file system's open file.
            seen.strange.append(entry.path)
        elif is_old and bytes.fromhex(entry.base_name) not in named:
            seen.doomed.append(entry.path)
            seen.bytes += entry.size
        else:
            seen.kept += 1
    return seen


def _delete_blobs(store: Store, prefix: str, named: set[bytes], before: float) -> _Blobs:
    """Delete them, after another look that nobody who makes one young can miss."""
    with deleting_blobs(store) as lease:
        seen = _look(store, prefix, named, before)
        store.commit.delete(seen.doomed, under=lease)
    return seen


@contextmanager
def deleting_blobs(store: Store) -> Iterator[Lease]:
    """The claim under which blobs are looked at and deleted: who changes one meanwhile waits, and looks again.

    Raises
    ------
    StoreError
        When another process holds it.

    """
    lease = store.commit.claim(GC_CLAIM) or store.commit.take_over(GC_CLAIM)
    if lease is None:
        raise StoreError("Another garbage collection of the store is under way.", hint="Wait for its end.")
    try:
        yield lease
    finally:
        lease.release()
