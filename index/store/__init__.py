"""Where do maps live, and how are they published so that a crash loses nothing?"""

from index.store.blobs import BlobStore
from index.store.commit import Commit, Lease
from index.store.draft import MapDraft, MapVersion
from index.store.local import LocalCommit
from index.store.manifest import Counts, EncoderInfo, FileEntry, Head, Manifest, checked_site_key, url_policy_from
from index.store.store import Store

__all__ = [
    "BlobStore",
    "Commit",
    "Counts",
    "EncoderInfo",
    "FileEntry",
    "Head",
    "Lease",
    "LocalCommit",
    "Manifest",
    "MapDraft",
    "MapVersion",
    "Store",
    "checked_site_key",
    "url_policy_from",
]
