"""Reading of published versions; every file is checked against its hash."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager

import pyarrow as pa

from waygraph.core.errors import NotFound
from waygraph.index.graph import InteractionGraph, Observation
from waygraph.index.store import table_checks as checks
from waygraph.index.store import tables
from waygraph.index.store.contents import StoreContents
from waygraph.index.store.descriptions import DESCRIPTION_SCHEMA, read_descriptions
from waygraph.index.store.draft import MapVersion, blobs_of_report
from waygraph.index.store.layout import (
    DESCRIPTIONS_FILE,
    EDGES_FILE,
    LEAD_VECTORS_FILE,
    LEADS_FILE,
    LINEAGE_FILE,
    MANIFEST_FILE,
    NODES_FILE,
    RECOGNITION_FILE,
    TOOL_VECTORS_FILE,
    TOOLS_FILE,
    VECTORS_FILE,
    manifest_path,
    version_folder,
)
from waygraph.index.store.leads import LEAD_SCHEMA, read_leads
from waygraph.index.store.lineage import LINEAGE_SCHEMA, read_lineage
from waygraph.index.store.manifest import Manifest, damaged_file
from waygraph.index.store.recognition import RECOGNITION_SCHEMA, read_recognition
from waygraph.index.store.tools import TOOL_SCHEMA, read_tools
from waygraph.index.store.version_files import parse_table


def read_manifest(store: StoreContents, site: str, version: int | None) -> Manifest:
    """Read the manifest of a version (None: the current one)."""
    current, head = store.mapped_head(site)
    number = current if version is None else version
    if number not in head.versions:
        known = ", ".join(map(str, sorted(head.versions)))
        raise NotFound(f"'{site}' has no version {number}.", hint=f"Published versions: {known}.")
    path = manifest_path(site, number)
    content = _read_published(store, site, number, path)
    if hashlib.sha256(content).hexdigest() != head.versions[number]:
        raise damaged_file(f"{store.location}/{path}", "its content does not match its hash", reason="checksum")
    return parse_manifest(content, site, number, f"{store.location}/{path}")


def parse_manifest(content: bytes, site: str, number: int, path: str) -> Manifest:
    """Parse the manifest of a version, which must say that it is one of this version (StoreError)."""
    manifest = Manifest.from_bytes(content, path)
    if (manifest.site, manifest.version) != (site, number):
        what = f"it is of version {manifest.version} of '{manifest.site}'"
        raise damaged_file(path, what, reason="manifest")
    return manifest


def read_version(store: StoreContents, site: str, version: int | None) -> MapVersion:
    """Read a version (None: the current one) with its states, edges and vectors."""
    manifest = read_manifest(store, site, version)
    counts, dim = manifest.counts, manifest.encoder.dim
    with _checked_table(store, manifest, NODES_FILE) as table:
        state_ids = checks.check_nodes(table, manifest)
        states, observations = tables.read_nodes(table)
    with _checked_table(store, manifest, EDGES_FILE) as table:
        checks.check_edges(table, manifest, state_ids)
        graph = InteractionGraph(states, tables.read_edges(table))
    with _checked_table(store, manifest, VECTORS_FILE) as table:
        checks.check_pages(table, state_ids, dim, pages=counts.pages, rows=counts.rows)
        pages = tables.read_pages(table, dim)
    with _checked_table(store, manifest, RECOGNITION_FILE, RECOGNITION_SCHEMA) as table:
        checks.check_recognition(table, state_ids)
        recognition = read_recognition(table)
    with _checked_table(store, manifest, LEADS_FILE, LEAD_SCHEMA) as table:
        lead_ids = checks.check_leads(table, manifest, state_ids)
        leads = read_leads(table)
    with _checked_table(store, manifest, LEAD_VECTORS_FILE, tables.VECTOR_SCHEMA) as table:
        checks.check_pages(table, lead_ids, dim, pages=counts.leads)
        lead_pages = tables.read_pages(table, dim)
    with _checked_table(store, manifest, LINEAGE_FILE, LINEAGE_SCHEMA) as table:
        checks.check_lineage(table, pa.concat_arrays([state_ids, lead_ids]))
        lineage = read_lineage(table)
    with _checked_table(store, manifest, DESCRIPTIONS_FILE, DESCRIPTION_SCHEMA) as table:
        checks.check_descriptions(table, pa.concat_arrays([state_ids, lead_ids]))
        descriptions = read_descriptions(table)
    with _checked_table(store, manifest, TOOLS_FILE, TOOL_SCHEMA) as table:
        tool_ids = checks.check_tools(table, manifest, state_ids)
        tools = read_tools(table)
    with _checked_table(store, manifest, TOOL_VECTORS_FILE, tables.VECTOR_SCHEMA) as table:
        checks.check_pages(table, tool_ids, dim, pages=counts.tools)
        tool_pages = tables.read_pages(table, dim)
    return MapVersion(
        manifest, graph, observations, pages, recognition, lineage, leads, lead_pages, descriptions, tools, tool_pages
    )


def read_observations(store: StoreContents, site: str, version: int | None) -> dict[str, Observation]:
    """Read the observations of a version (None: the current one)."""
    manifest = read_manifest(store, site, version)
    with _checked_table(store, manifest, NODES_FILE) as table:
        checks.check_nodes(table, manifest)
        _, observations = tables.read_nodes(table)
    return observations


def blobs_of_version(store: StoreContents, site: str, version: int) -> set[str]:
    """Read the content hashes of all blobs that a version names."""
    manifest = read_manifest(store, site, version)
    with _checked_table(store, manifest, NODES_FILE) as table:
        checks.check_nodes(table, manifest)
        named = tables.blobs_of_nodes(table)
    return named | blobs_of_report(manifest.report)


def read_version_files(store: StoreContents, site: str, version: int) -> dict[str, bytes]:
    """Read all files of a version by name."""
    manifest = read_manifest(store, site, version)
    folder = version_folder(site, version)
    files = {MANIFEST_FILE: _read_published(store, site, version, f"{folder}/{MANIFEST_FILE}")}
    for name, entry in manifest.files.items():
        content = _read_published(store, site, version, f"{folder}/{name}")
        if hashlib.sha256(content).hexdigest() != entry.sha256:
            path = f"{store.location}/{folder}/{name}"
            raise damaged_file(path, "its content does not match its hash", reason="checksum")
        files[name] = content
    return files


def _read_table(store: StoreContents, manifest: Manifest, name: str) -> pa.Table:
    path = f"{version_folder(manifest.site, manifest.version)}/{name}"
    content = _read_published(store, manifest.site, manifest.version, path)
    return parse_table(content, manifest.files.get(name), f"{store.location}/{path}")


def _read_published(store: StoreContents, site: str, version: int, path: str) -> bytes:
    """Read a file of a published version."""
    content = store.read_file(path)
    if content is None:
        store.check_present()
        if version not in store.read_head(site)[1].versions:
            raise NotFound(f"Version {version} of '{site}' was removed meanwhile.", hint="Open the site again.")
        raise damaged_file(f"{store.location}/{path}", "it is missing", reason="missing")
    return content


@contextmanager
def _checked_table(
    store: StoreContents, manifest: Manifest, name: str, schema: pa.Schema | None = None
) -> Iterator[pa.Table]:
    """Yield a table of a version; one that cannot be checked or converted in the block is damaged (StoreError).

    Parameters
    ----------
    store
        The store.
    manifest
        Manifest of the version.
    name
        Name of the table's file.
    schema
        Columns of an empty table in place of one that the version does not have; None: every version has it.

    Yields
    ------
    pa.Table
        The table.
    """
    table = _read_table(store, manifest, name) if schema is None or name in manifest.files else schema.empty_table()
    try:
        yield table
    except (pa.ArrowException, LookupError, TypeError, ValueError, RecursionError) as error:
        path = f"{store.location}/{version_folder(manifest.site, manifest.version)}/{name}"
        raise damaged_file(path, str(error), reason="table") from error
