"""Layout of a store: names of files and folders, and the marker that identifies a store."""

from __future__ import annotations

import json

from waygraph.core.errors import StoreError
from waygraph.index.store.backends.commit import Commit
from waygraph.index.store.backends.failures import translate_errors
from waygraph.index.store.manifest import SCHEMA_NUMBER, check_schema, damaged_file
from waygraph.index.store.names import validate_site_key

MARKER_FILE = "store.json"
_FORMAT = "waygraph-store"

#: Register of each site that names its published versions.
HEAD = "HEAD"

NODES_FILE = "nodes.parquet"
EDGES_FILE = "edges.parquet"
VECTORS_FILE = "vectors.parquet"
TABLE_FILES = (NODES_FILE, EDGES_FILE, VECTORS_FILE)
MANIFEST_FILE = "manifest.json"
#: Only in versions with merges, represented pages or evidence.
RECOGNITION_FILE = "recognition.parquet"
#: Only in versions that have earlier versions.
LINEAGE_FILE = "lineage.parquet"
#: Only in versions with leads; a waygraph that does not know leads ignores both.
LEADS_FILE = "leads.parquet"
LEAD_VECTORS_FILE = "lead_vectors.parquet"
#: Only in versions with tools.
TOOLS_FILE = "tools.parquet"
TOOL_VECTORS_FILE = "tool_vectors.parquet"
#: Only in versions with generated descriptions; a waygraph that does not know them ignores it.
DESCRIPTIONS_FILE = "descriptions.parquet"

#: Claim that a garbage collection holds while it deletes blobs.
GC_CLAIM = "gc.claim"
#: Of a store on a disk: room for the writes of a garbage collection.
RESERVE_FILE = "reserve"


def marker_content() -> bytes:
    """Return the content of a new store's marker."""
    return f"{json.dumps({'format': _FORMAT, 'schema': SCHEMA_NUMBER})}\n".encode()


def check_marker(content: bytes, path: str) -> None:
    """Reject a marker of another program or of a newer schema (StoreError)."""
    try:
        marker = json.loads(content)
        is_store = isinstance(marker, dict) and marker.get("format") == _FORMAT
        if is_store:
            check_schema(marker, path)
    except (ValueError, TypeError) as error:
        raise damaged_file(path, str(error)) from error
    if not is_store:
        raise StoreError(f"{path} is not the marker of a waygraph store.", hint="Choose another folder for the store.")


def check_present(commit: Commit, location: str) -> None:
    """Raise StoreError unless the marker of an opened store is there: a volume that is not mounted is an empty folder.

    Call it before absence is reported: otherwise all sites, versions and blobs of such a store seem to be removed.
    """
    with translate_errors(f"read the store {location}"):
        content = commit.read(MARKER_FILE)
    if content is None:
        raise StoreError(
            f"The store cannot be read: its marker {MARKER_FILE} is gone.",
            hint="Is the volume mounted, and the location unchanged?",
        )
    check_marker(content, f"{location}/{MARKER_FILE}")


def head_path(site: str) -> str:
    """Return the path of the register that names a site's published versions."""
    return f"sites/{validate_site_key(site)}/{HEAD}"


def claim_path(site: str, number: int) -> str:
    """Return the path of the claim on a version number, whose holder may write the version."""
    return f"sites/{validate_site_key(site)}/claims/{number}"


def version_folder(site: str, number: int) -> str:
    """Return the folder of a version."""
    return f"sites/{validate_site_key(site)}/versions/{number}"


def manifest_path(site: str, number: int) -> str:
    """Return the path of a version's manifest."""
    return f"{version_folder(site, number)}/{MANIFEST_FILE}"
