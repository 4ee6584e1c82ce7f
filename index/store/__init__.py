"""Versioned storage of maps: immutable versions, published atomically, on a disk or in an object store."""

from waygraph.index.store.backends.commit import Commit, StoreLease
from waygraph.index.store.backends.local import LocalCommit
from waygraph.index.store.blobs import BlobStore
from waygraph.index.store.draft import MapDraft, MapVersion
from waygraph.index.store.manifest import (
    Counts,
    EncoderInfo,
    FileEntry,
    Head,
    Manifest,
    url_policy_from,
)
from waygraph.index.store.names import validate_site_key
from waygraph.index.store.store import Store

__all__ = [
    "BlobStore",
    "Commit",
    "Counts",
    "EncoderInfo",
    "FileEntry",
    "Head",
    "LocalCommit",
    "Manifest",
    "MapDraft",
    "MapVersion",
    "Store",
    "StoreLease",
    "url_policy_from",
    "validate_site_key",
]
