"""Where does everything lie in a store, and how are failures of the disk explained?"""

from __future__ import annotations

import errno
import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import unquote, urlsplit

from index.store.manifest import SCHEMA, check_schema, checked_site_key, damaged
from waygraph.errors import StoreError

MARKER = "store.json"
_FORMAT = "waygraph-store"
NODES, EDGES, VECTORS, MANIFEST = "nodes.parquet", "edges.parquet", "vectors.parquet", "manifest.json"
TABLES = (NODES, EDGES, VECTORS)
#: Only in versions that have something to say there.
RECOGNITION = "recognition.parquet"


def local_path(location: str) -> Path:
    """The folder that a location (a path or a `file://` URL) names; StoreError for other URLs."""
    parts = urlsplit(location)
    if "://" not in location:
        return Path(location).expanduser().absolute()
    if parts.scheme != "file" or parts.netloc not in {"", "localhost"}:
        raise StoreError(f"Stores at {parts.scheme}:// are not supported yet.", hint="Use a local folder.")
    return Path(unquote(parts.path))


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
    return f"sites/{checked_site_key(site)}/HEAD"


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
    errno.EDQUOT: "The quota is used up: make room and run the command again.",
    errno.ENOTDIR: "Part of the path is a file: use another folder.",
    errno.EEXIST: "Part of the path is a file: use another folder.",
}


@contextmanager
def explained(doing: str) -> Iterator[None]:
    """Turn failures of the disk into StoreErrors that say what was being done."""
    try:
        yield
    except OSError as error:
        hint = _HINTS.get(error.errno or 0, "Check the folder and the disk.")
        raise StoreError(f"Cannot {doing}: {error.strerror or error}.", hint=hint) from error
