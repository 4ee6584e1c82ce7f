"""Where does everything lie in a store, and how are failures of the disk explained?"""

from __future__ import annotations

import errno
import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import unquote, urlsplit

from index.store.manifest import SCHEMA, check_schema, checked_site_key, damaged
from waygraph.errors import StoreError

MARKER = "store.json"
HEAD = "HEAD"
_FORMAT = "waygraph-store"
NODES, EDGES, VECTORS, MANIFEST = "nodes.parquet", "edges.parquet", "vectors.parquet", "manifest.json"
TABLES = (NODES, EDGES, VECTORS)
#: Only in versions that have something to say there.
RECOGNITION = "recognition.parquet"
LINEAGE = "lineage.parquet"


#: Held by a garbage collection while it deletes blobs.
GC_CLAIM = "gc.claim"
_BUCKET = re.compile(r"[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]")


def local_path(location: str) -> Path:
    """The folder that a location (a path or a `file://` URL) names; StoreError for other URLs."""
    if "://" not in location:
        return Path(location).expanduser().absolute()
    parts = urlsplit(location)
    if parts.scheme != "file" or parts.netloc not in {"", "localhost"}:
        raise StoreError(f"Nothing is kept at {parts.scheme}:// addresses.", hint=_LOCATIONS)
    return Path(unquote(parts.path))


def bucket_and_prefix(location: str) -> tuple[str, str] | None:
    """What an `s3://bucket/prefix` URL names; None for other locations.

    Raises
    ------
    StoreError
        When it is one, but holds something else than a bucket and a prefix.

    >>> bucket_and_prefix("s3://maps-of-us/team/a/"), bucket_and_prefix("/data/maps")
    (('maps-of-us', 'team/a'), None)
    """
    if not location.lower().startswith("s3://"):
        return None
    bucket, _, prefix = location[len("s3://") :].partition("/")
    if "@" in bucket:
        # Not repeated: it may be a key.
        raise StoreError("The store's URL holds credentials, which would end up in reports.", hint=_CREDENTIALS)
    if not _BUCKET.fullmatch(bucket):
        raise StoreError(f"'{location}' names no bucket.", hint="Write s3://bucket or s3://bucket/prefix.")
    prefix = prefix.strip("/")
    if "?" in prefix or "#" in prefix or "//" in prefix or {".", ".."} & set(prefix.split("/")):
        raise StoreError(f"'{location}' is more than a bucket and a prefix.", hint=_CREDENTIALS)
    return bucket, prefix


_LOCATIONS = "A store is a local folder, or s3://bucket/prefix."
_CREDENTIALS = (
    "Endpoint, region and credentials come from AWS_ENDPOINT_URL, AWS_REGION, AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY."
)


def marker_content() -> bytes:
    """What the marker of a new store says."""
    return f"{json.dumps({'format': _FORMAT, 'schema': SCHEMA})}\n".encode()


def check_marker(content: bytes, path: str) -> None:
    """Refuse a marker that is not ours, or of a newer schema (StoreError)."""
    try:
        marker = json.loads(content)
        is_ours = isinstance(marker, dict) and marker.get("format") == _FORMAT
        if is_ours:
            check_schema(marker, path)
    except (ValueError, TypeError) as error:
        raise damaged(path, str(error)) from error
    if not is_ours:
        raise StoreError(f"{path} is not the marker of a waygraph store.", hint="Choose another folder for the store.")


def head_path(site: str) -> str:
    """The file that names a site's published versions."""
    return f"sites/{checked_site_key(site)}/{HEAD}"


def claim_path(site: str, number: int) -> str:
    """The file whose holder may write a version."""
    return f"sites/{checked_site_key(site)}/claims/{number}"


def version_folder(site: str, number: int) -> str:
    """The folder of a version."""
    return f"sites/{checked_site_key(site)}/versions/{number}"


_HINTS = {
    errno.EACCES: "Change its permissions or use another folder.",
    errno.EPERM: "Change its permissions or use another folder.",
    errno.EROFS: "Its file system is mounted read-only: use another folder.",
    errno.ENOSPC: "The disk is full: make room and run the command again.",
    errno.EFBIG: "Files may not be that large here (ulimit -f, or the file system's limit): raise it.",
    errno.EDQUOT: "The quota is used up: make room and run the command again.",
    errno.ENOTDIR: "Part of the path is a file: use another folder.",
    errno.EEXIST: "Part of the path is a file: use another folder.",
}


#: What object stores say, and pyarrow and boto3 repeat, in texts alone.
_TEXT_HINTS = (
    (
        re.compile("AccessDenied|ACCESS_DENIED|Forbidden|status 403|AllAccessDisabled"),
        "Does the bucket's policy allow it?",
    ),
    (
        re.compile("InvalidAccessKeyId|SignatureDoesNotMatch|INVALID_ACCESS_KEY_ID|credentials", re.IGNORECASE),
        _CREDENTIALS,
    ),
    (re.compile("NoSuchBucket|NO_SUCH_BUCKET"), "Make the bucket first; waygraph makes none."),
    (
        re.compile("QuotaExceeded|InsufficientStorage|InsufficientCapacity|StorageFull|status 507", re.IGNORECASE),
        "Make room, and run the command again.",
    ),
    (
        re.compile("NETWORK_CONNECTION|Could not connect|timed? ?out|SlowDown", re.IGNORECASE),
        "Can AWS_ENDPOINT_URL be reached?",
    ),
)


@contextmanager
def explained(doing: str) -> Iterator[None]:
    """Turn failures of a disk or an object store into StoreErrors that say what was being done."""
    try:
        yield
    except OSError as error:
        reason = str(error.strerror or error).rstrip(".")
        known = _HINTS.get(error.errno or 0) or next((hint for text, hint in _TEXT_HINTS if text.search(reason)), None)
        raise StoreError(f"Cannot {doing}: {reason}.", hint=known or "Check the store's place.") from error
