"""Detection and reconstruction of a lost `HEAD`.

The `HEAD` of a removed site says that it was removed, and a version that was never published has its writer's claim
beside it. Complete versions with neither were therefore published once, and their `HEAD` was lost, as by a backup that
was restored in part. (The only exception: the very first publication of a site failed after everything but `HEAD` was
written.)
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

from waygraph.core.errors import NewerSchema, StoreError
from waygraph.index.store.contents import StoreContents
from waygraph.index.store.layout import HEAD, MANIFEST_FILE, manifest_path, version_folder
from waygraph.index.store.manifest import Head
from waygraph.index.store.reading import parse_manifest


def complete_versions(store: StoreContents, site: str) -> list[int]:
    """Return the numbers of the versions that were written completely and are not claimed, sorted."""
    numbers = store.numbers(site)
    # Claims are listed after the versions: a writer claims its version before it writes.
    claimed = store.claimed(site) if numbers else []
    return [each for each in numbers if each not in claimed and store.holds(manifest_path(site, each))]


def lost_versions(store: StoreContents, site: str) -> list[int]:
    """Return the numbers of the versions that a lost `HEAD` named; empty if the `HEAD` exists."""
    if store.read_head(site)[0] is not None:
        return []
    # The head is read again: a writer that released its claim meanwhile has published before.
    numbers = complete_versions(store, site)
    return numbers if numbers and store.read_head(site)[0] is None else []


def missing_head_message(site: str, numbers: Sequence[int]) -> str:
    """Return the message about a lost `HEAD`."""
    listed = ", ".join(map(str, numbers))
    return f"The {HEAD} of '{site}' is missing, so these versions are not published any more: {listed}."


def rebuild_head(store: StoreContents, site: str, numbers: Sequence[int]) -> Head:
    """Build a `HEAD` of those versions whose files are intact; the newest becomes the current one.

    Parameters
    ----------
    store
        The store.
    site
        Key of the site.
    numbers
        Numbers of complete versions.

    Returns
    -------
    Head
        The head; it is not written.

    Raises
    ------
    NewerSchema
        If a newer waygraph wrote one of the versions.
    """
    versions: dict[int, str] = {}
    for number in numbers:
        content = store.read_file(manifest_path(site, number))
        if content is not None and _has_intact_files(store, site, number, content):
            versions[number] = hashlib.sha256(content).hexdigest()
    return Head(current=max(versions, default=None), last=max(numbers, default=0), versions=versions)


def _has_intact_files(store: StoreContents, site: str, number: int, manifest: bytes) -> bool:
    try:
        described = parse_manifest(manifest, site, number, MANIFEST_FILE).files
    except NewerSchema:
        raise
    except StoreError:
        return False
    return all(
        (content := store.read_file(f"{version_folder(site, number)}/{name}")) is not None
        and hashlib.sha256(content).hexdigest() == entry.sha256
        for name, entry in described.items()
    )
