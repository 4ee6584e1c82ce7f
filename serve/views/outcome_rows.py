"""Outcomes of elements of a published version: from their table, or from the version's report if it has none."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from waygraph.index.store import Manifest, Store
from waygraph.index.store.element_outcomes import read_element_outcomes


def table_name(manifest: Manifest) -> str:
    """Return the content hash of a version's table of element outcomes; empty if it was published without one."""
    return str(manifest.report.get("fates", ""))


def outcome_rows(store: Store, manifest: Manifest) -> Iterable[Mapping[str, Any]]:
    """Return the outcomes of all elements of a version, as rows of `waygraph.index.store.element_outcomes`.

    Parameters
    ----------
    store
        The store.
    manifest
        Manifest of the version.

    Returns
    -------
    iterable of mapping
        The rows. Without a table these are the skipped, failed and pending elements that the report lists.
    """
    name = table_name(manifest)
    return read_element_outcomes(store.blobs.get(name)) if name else rows_of_report(manifest.report)


def rows_of_report(report: Mapping[str, Any]) -> Iterator[dict[str, str]]:
    """Yield the outcomes that a report lists, as rows of the table of element outcomes."""
    for status, name in (("skipped", "skips"), ("failed", "failures"), ("pending", "pending")):
        listed = report.get(name)
        for entry in listed if isinstance(listed, list | tuple) else ():
            if isinstance(entry, Mapping):
                named = {key: str(value) for key, value in entry.items()}
                element = named.get("element") or named.get("action", "")
                yield {**named, "state": named.get("node_id", ""), "element": element, "status": status}
