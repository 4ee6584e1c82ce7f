"""What changed between two versions of a map, noise aside, and how does one become the successor of the other?"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import asdict, replace
from functools import cache
from typing import Any

from index.graph.diff import EdgeVerdict, MapDiff, Side, compare
from index.graph.succession import composed
from index.store import MapDraft, MapVersion, Store
from pipeline.browser.features import text_features
from pipeline.explore.capture import SiteCapture
from pipeline.explore.journal_codec import Unreadable
from pipeline.explore.refresh import Record
from pipeline.jobs.publishing.draft import report_of_content
from waygraph.errors import NotFound, StoreError
from waygraph.spelling import spellable

#: Unstable actions that the outcome of a site shows; the manifest has all of them.
_SHOWN_UNSTABLE = 20


def changes(store: Store, old: MapVersion, new: MapVersion | SiteCapture) -> MapDiff:
    """Compare a version with a later one, or with what is about to become one."""
    if isinstance(new, SiteCapture):
        report: Mapping[str, Any] = {"record": new.report.record, "refresh": asdict(new.refresh)}
    else:
        report = new.manifest.report
    unstable: dict[tuple[str, ...], EdgeVerdict] = {
        (state, action, *place): verdict
        for state, action, verdict, *place in report.get("refresh", {}).get("unstable", ())
    }
    return compare(_side(store, old, old.manifest.report), _side(store, new, report), unstable)


def _side(store: Store, version: MapVersion | SiteCapture, report: Mapping[str, Any]) -> Side:
    record = record_named(store, report)

    @cache
    def noise(url: str) -> Collection[str]:
        return record.noise(url) if record is not None else ()

    return Side(version.graph, version.observations, version.recognition, text_features, noise)


def record_named(store: Store, report: Mapping[str, Any]) -> Record | None:
    """What a version keeps of its exploration; nothing when that was made by another waygraph, or is lost."""
    digest = report.get("record")
    if not isinstance(digest, str) or not digest:
        return None
    try:
        return Record.parse(store.blobs.get(digest))
    except (NotFound, StoreError, Unreadable):
        return None


def refreshed(draft: MapDraft, previous: MapVersion, capture: SiteCapture, diff: MapDiff) -> MapDraft:
    """The draft of a refresh: it knows what became of older states, and its report says what changed."""
    account = {"of": previous.manifest.version, **asdict(capture.refresh), **diff.counts(), "broken": len(diff.broken)}
    return replace(succeeding(draft, previous, diff), report={**draft.report, "refresh": account})


def refresh_account(report: Mapping[str, Any]) -> dict[str, Any]:
    """What the report of a version says of the refresh that made it, for the outcome of its site."""
    account = dict(report.get("refresh") or {})
    if unstable := account.get("unstable"):
        account["unstable"] = [[spellable(str(part)) for part in each] for each in unstable[:_SHOWN_UNSTABLE]]
    return account


def rolled_back(version: MapVersion, current: MapVersion, diff: MapDiff) -> MapDraft:
    """A draft of an older version that is to be published anew.

    Parameters
    ----------
    current : the version that it replaces.
    diff : of `current` to `version`.
    """
    manifest = version.manifest
    draft = MapDraft(
        site=manifest.site,
        start_url=manifest.start_url,
        graph=version.graph,
        observations=version.observations,
        pages=version.pages,
        encoder=manifest.encoder,
        capture=manifest.capture,
        report={**report_of_content(manifest.report), "rollback_to": manifest.version},
        partial=manifest.partial,
        settings=manifest.settings,
        recognition=version.recognition,
    )
    return succeeding(draft, current, diff)


def succeeding(draft: MapDraft, previous: MapVersion, diff: MapDiff) -> MapDraft:
    """The draft with what became of the states of all versions up to `previous`."""
    gone = previous.graph.nodes.keys() - diff.successors
    known = composed(previous.lineage, diff.successors, live=draft.graph.nodes, gone=gone)
    return replace(draft, lineage=known)
