"""Publishing and removal of versions, by compare-and-swap of a site's `HEAD`."""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Collection

from waygraph.core.errors import InvalidInput, PublishConflict, StoreError
from waygraph.index.store.backends.commit import StoreLease
from waygraph.index.store.backends.failures import translate_errors
from waygraph.index.store.blobs import BlobStore, blob_path
from waygraph.index.store.contents import StoreContents
from waygraph.index.store.draft import MapDraft
from waygraph.index.store.layout import claim_path, head_path, version_folder
from waygraph.index.store.manifest import Head
from waygraph.index.store.missing_heads import complete_versions, lost_versions, rebuild_head
from waygraph.index.store.version_files import write_version

log = logging.getLogger(__name__)

_PUBLISH_ATTEMPTS = 100


class Publisher:
    """Writer of the versions of a store.

    A writer claims a version number exclusively, writes the version durably, and publishes it by one compare-and-swap
    of the site's `HEAD`. Files of numbers that are neither published nor claimed by a live writer were left by crashed
    writers; the next writer of the site deletes them.

    Parameters
    ----------
    contents
        The store.
    blobs
        Its blobs.
    """

    def __init__(self, contents: StoreContents, blobs: BlobStore) -> None:
        self._contents = contents
        self._commit = contents.commit
        self._blobs = blobs

    def publish(self, draft: MapDraft, replaces: int | None) -> int:
        """Publish a draft as a new version, see `Store.publish`."""
        draft.check()
        with translate_errors(f"publish '{draft.site}' in {self._contents.location}"):
            self._persist_blobs(draft)
            for _ in range(_PUBLISH_ATTEMPTS):
                number, lease = self._claim_number(draft.site)
                try:
                    folder = version_folder(draft.site, number)
                    manifest = write_version(self._contents.files, self._commit, folder, draft, number)
                    published = self._move_head(draft.site, number, hashlib.sha256(manifest).hexdigest(), replaces)
                finally:
                    lease.release()
                self._delete_leftovers(draft.site)
                if published:
                    return number
        raise PublishConflict(
            f"Other writers published '{draft.site}' first, {_PUBLISH_ATTEMPTS} times in a row.",
            hint="Index a site with one job at a time.",
        )

    def remove(self, site: str) -> None:
        """Remove a site with all its versions, see `Store.remove`."""
        with translate_errors(f"remove '{site}' from {self._contents.location}"):
            swapped = False
            while not swapped:
                try:
                    raw, head = self._contents.read_head(site)
                    if head.current is None and not lost_versions(self._contents, site):
                        self._contents.mapped_head(site)  # raises NotFound with the mapped sites
                except StoreError:
                    # A site with a damaged HEAD can be removed.
                    raw, head = self._commit.read_register(head_path(site)), Head()
                # If HEAD was lost, only the folders tell which numbers were used.
                head = head.with_used_number(max(self._contents.numbers(site), default=0))
                swapped = self._commit.compare_and_swap(head_path(site), raw, head.removed().to_bytes())
            self._delete_leftovers(site)

    def drop(self, site: str, versions: Collection[int]) -> tuple[list[int], list[int]]:
        """Remove versions that are not current, see `Store.drop`."""
        with translate_errors(f"remove versions of '{site}' from {self._contents.location}"):
            while True:
                raw, head = self._contents.read_head(site)
                gone = sorted(head.versions.keys() & set(versions) - {head.current})
                if not gone or self._commit.compare_and_swap(head_path(site), raw, head.without(gone).to_bytes()):
                    break
            deleted = self._delete_leftovers(site)
        return gone, [number for number in deleted if number not in gone]

    def _persist_blobs(self, draft: MapDraft) -> None:
        """Protect the blobs that a draft names from garbage collection, and persist their names."""
        blobs = sorted(draft.blobs)
        if missing := self._blobs.touch(blobs):
            raise InvalidInput(
                f"The map of '{draft.site}' names blob '{missing[0]}', which the store does not hold.",
                hint="A garbage collection may have deleted it since the exploration began. "
                "Explore the site again: waygraph index --fresh.",
            )
        self._commit.persist(map(blob_path, blobs))

    def _claim_number(self, site: str) -> tuple[int, StoreLease]:
        """Claim the next version number that was never used."""
        contents = self._contents
        number = max([contents.read_head(site)[1].last, *contents.numbers(site), *contents.claimed(site)])
        while True:
            number += 1
            if lease := self._commit.claim(claim_path(site, number)):
                # Since the numbers were listed, another writer may have published this one and released its claim.
                if contents.read_head(site)[1].last < number and number not in contents.numbers(site):
                    return number, lease
                lease.release()

    def _move_head(self, site: str, number: int, manifest_sha256: str, replaces: int | None) -> bool:
        """Publish a durable version; False if a higher number was published meanwhile."""
        while True:
            raw, head = self._contents.read_head(site)
            current = head.current or 0
            # Number 1 has no versions before it. If another writer creates a HEAD meanwhile, the swap fails.
            if raw is None and number > 1 and (numbers := complete_versions(self._contents, site)):
                # Unless they are named, they would count as leftovers of crashed writers as soon as there is a HEAD.
                head = rebuild_head(self._contents, site, numbers)
                log.warning("The HEAD of '%s' was lost; it is rebuilt with versions %s", site, sorted(head.versions))
            if replaces not in {None, current, head.current}:
                raise PublishConflict(
                    f"'{site}' has another current version by now: {head.current or 'none'}, not {replaces or 'none'}.",
                    hint="Start again from the current version.",
                )
            if head.last >= number:
                return False
            changed = head.with_version(number, manifest_sha256)
            if self._commit.compare_and_swap(head_path(site), raw, changed.to_bytes()):
                return True

    def _delete_leftovers(self, site: str) -> list[int]:
        """Delete the files of numbers that are neither published nor claimed by a live writer; return the numbers."""
        claims = set(self._contents.claimed(site))
        published = self._contents.read_head(site)[1].versions
        deleted = []
        for number in sorted(claims | set(self._contents.numbers(site)) - set(published)):
            path = claim_path(site, number)
            lease = self._commit.take_over(path) if number in claims else self._commit.claim(path)
            if lease is None:
                continue
            try:
                if self._give_up_number(site, number):
                    self._commit.remove_folder(version_folder(site, number))
                    deleted.append(number)
            finally:
                lease.release()
        return deleted

    def _give_up_number(self, site: str, number: int) -> bool:
        """Make sure that a number will never be published; False if it was.

        A writer that was suspended for so long that an object store counts it as dead then cannot publish its number.
        """
        while True:
            raw, head = self._contents.read_head(site)
            if number in head.versions:
                return False
            if head.last >= number:
                return True
            if self._commit.compare_and_swap(head_path(site), raw, head.with_used_number(number).to_bytes()):
                return True
