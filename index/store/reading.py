"""Reading of published versions; every file is checked against its hash."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager

import pyarrow as pa

from waygraph.core.errors import NotFound
from waygraph.index.graph import Description, InteractionGraph, Lead, Observation
from waygraph.index.graph.recognition import NO_RECOGNITION
from waygraph.index.store import tables
from waygraph.index.store.contents import StoreContents
from waygraph.index.store.descriptions import read_descriptions
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
    VECTORS_FILE,
    manifest_path,
    version_folder,
)
from waygraph.index.store.leads import read_leads
from waygraph.index.store.lineage import read_lineage
from waygraph.index.store.manifest import Manifest, damaged_file
from waygraph.index.store.recognition import read_recognition
from waygraph.index.store.version_files import parse_table
from waygraph.index.vectors.multivector import EncodedPage


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
        raise damaged_file(f"{store.location}/{path}", "its content does not match its hash")
    return Manifest.from_bytes(content, f"{store.location}/{path}")


def read_version(store: StoreContents, site: str, version: int | None) -> MapVersion:
    """Read a version (None: the current one) with its states, edges and vectors."""
    manifest = read_manifest(store, site, version)
    nodes, edges, vectors = (_read_table(store, manifest, name) for name in (NODES_FILE, EDGES_FILE, VECTORS_FILE))
    with _damage_reported(store, manifest, "its tables cannot be read"):
        states, observations = tables.read_nodes(nodes)
        graph = InteractionGraph(states, tables.read_edges(edges))
        pages = tables.read_pages(vectors, manifest.encoder.dim)
        recognition, lineage = NO_RECOGNITION, dict[str, str]()
        if RECOGNITION_FILE in manifest.files:
            recognition = read_recognition(_read_table(store, manifest, RECOGNITION_FILE))
        if LINEAGE_FILE in manifest.files:
            lineage = read_lineage(_read_table(store, manifest, LINEAGE_FILE))
        leads, lead_pages = dict[str, Lead](), dict[str, EncodedPage]()
        if LEADS_FILE in manifest.files:
            leads = read_leads(_read_table(store, manifest, LEADS_FILE))
        if LEAD_VECTORS_FILE in manifest.files:
            lead_pages = tables.read_pages(_read_table(store, manifest, LEAD_VECTORS_FILE), manifest.encoder.dim)
        descriptions = dict[str, Description]()
        if DESCRIPTIONS_FILE in manifest.files:
            descriptions = read_descriptions(_read_table(store, manifest, DESCRIPTIONS_FILE))
    return MapVersion(manifest, graph, observations, pages, recognition, lineage, leads, lead_pages, descriptions)


def read_observations(store: StoreContents, site: str, version: int | None) -> dict[str, Observation]:
    """Read the observations of a version (None: the current one)."""
    manifest = read_manifest(store, site, version)
    nodes = _read_table(store, manifest, NODES_FILE)
    with _damage_reported(store, manifest, "its table of states cannot be read"):
        _, observations = tables.read_nodes(nodes)
    return observations


def blobs_of_version(store: StoreContents, site: str, version: int) -> set[str]:
    """Read the content hashes of all blobs that a version names."""
    manifest = read_manifest(store, site, version)
    nodes = _read_table(store, manifest, NODES_FILE)
    with _damage_reported(store, manifest, "its table of states cannot be read"):
        named = tables.blobs_of_nodes(nodes)
    return named | blobs_of_report(manifest.report)


def read_version_files(store: StoreContents, site: str, version: int) -> dict[str, bytes]:
    """Read all files of a version by name."""
    manifest = read_manifest(store, site, version)
    folder = version_folder(site, version)
    files = {MANIFEST_FILE: _read_published(store, site, version, f"{folder}/{MANIFEST_FILE}")}
    for name, entry in manifest.files.items():
        content = _read_published(store, site, version, f"{folder}/{name}")
        if hashlib.sha256(content).hexdigest() != entry.sha256:
            raise damaged_file(f"{store.location}/{folder}/{name}", "its content does not match its hash")
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
        if version not in store.read_head(site)[1].versions:
            raise NotFound(f"Version {version} of '{site}' was removed meanwhile.", hint="Open the site again.")
        raise damaged_file(f"{store.location}/{path}", "it is missing")
    return content


@contextmanager
def _damage_reported(store: StoreContents, manifest: Manifest, problem: str) -> Iterator[None]:
    """Report a table that cannot be converted as a damaged version (StoreError)."""
    try:
        yield
    except (pa.ArrowException, KeyError, TypeError, ValueError) as error:
        folder = f"{store.location}/{version_folder(manifest.site, manifest.version)}"
        raise damaged_file(folder, f"{problem} ({error})") from error
