"""Which versions did a `HEAD` name that is not there any more, and what did it say?

A removed site has a `HEAD` that says so, and its writer's claim is beside a version that was never published. So whole
versions without either were published once: their `HEAD` was lost, as by a backup that was restored in part. (Or the
very first publication of a site failed when all but `HEAD` was written; then nothing speaks against them either.)
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import TYPE_CHECKING

from index.store.layout import HEAD, MANIFEST, version_folder
from index.store.manifest import Head, Manifest
from waygraph.errors import NewerSchema, StoreError

if TYPE_CHECKING:
    from index.store.store import Store


def finished(store: Store, site: str) -> list[int]:
    """Numbers of the versions that were written to their end and that nobody claims, sorted."""
    numbers = store.numbers(site)
    # In this order: who writes one has claimed it before.
    claimed = store.claimed(site) if numbers else []
    return [each for each in numbers if each not in claimed and store.holds(_manifest_of(site, each))]


def lost(store: Store, site: str) -> list[int]:
    """Numbers of the versions that a lost `HEAD` named; empty when there is one."""
    if store.read_head(site)[0] is not None:
        return []
    # Once more: who has let go of its claim meanwhile has published before.
    numbers = finished(store, site)
    return numbers if numbers and store.read_head(site)[0] is None else []


def problem_of(site: str, numbers: Sequence[int]) -> str:
    """The message about a `HEAD` that is lost."""
    listed = ", ".join(map(str, numbers))
    return f"The {HEAD} of '{site}' is missing, and nothing else says that its versions are published: {listed}."


def head_of(store: Store, site: str, numbers: Sequence[int]) -> Head:
    """A `HEAD` that names those of some versions whose files are whole; the newest is the current one.

    Raises
    ------
    NewerSchema
        When a newer waygraph wrote one of them.

    """
    versions: dict[int, str] = {}
    for number in numbers:
        content = store.read_file(_manifest_of(site, number))
        if content is not None and _is_whole(store, site, number, content):
            versions[number] = hashlib.sha256(content).hexdigest()
    return Head(current=max(versions, default=None), last=max(numbers, default=0), versions=versions)


def _is_whole(store: Store, site: str, number: int, manifest: bytes) -> bool:
    try:
        described = Manifest.from_bytes(manifest, MANIFEST).files
    except NewerSchema:
        raise
    except StoreError:
        return False
    return all(
        (content := store.read_file(f"{version_folder(site, number)}/{name}")) is not None
        and hashlib.sha256(content).hexdigest() == entry.sha256
        for name, entry in described.items()
    )


def _manifest_of(site: str, number: int) -> str:
    return f"{version_folder(site, number)}/{MANIFEST}"
