"""Comparison of two versions of a map, without what the exploration of either found to be noise."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import asdict
from functools import cache
from typing import Any

from waygraph.core.errors import NotFound, StoreError
from waygraph.index.graph.diff import ComparedMap, EdgeVerdict, MapDiff, diff_maps
from waygraph.index.store import MapVersion, Store
from waygraph.pipeline.browser.page.features import text_features
from waygraph.pipeline.explore.checkpoint.journal_codec import Unreadable
from waygraph.pipeline.explore.records.capture import SiteCapture
from waygraph.pipeline.explore.refresh.exploration_record import ExplorationRecord


def compare_versions(store: Store, old: MapVersion, new: MapVersion | SiteCapture) -> MapDiff:
    """Compare a version with a later version, or with a capture that will become one."""
    if isinstance(new, SiteCapture):
        report: Mapping[str, Any] = {"record": new.report.record, "refresh": asdict(new.refresh)}
    else:
        report = new.manifest.report
    unstable: dict[tuple[str, ...], EdgeVerdict] = {
        (state, action, *element): verdict
        for state, action, verdict, *element in report.get("refresh", {}).get("unstable", ())
    }
    return diff_maps(_side(store, old, old.manifest.report), _side(store, new, report), unstable)


def _side(store: Store, version: MapVersion | SiteCapture, report: Mapping[str, Any]) -> ComparedMap:
    record = load_exploration_record(store, report)

    @cache
    def noise(url: str) -> Collection[str]:
        return record.noise(url) if record is not None else ()

    return ComparedMap(version.graph, version.observations, version.recognition, text_features, noise, version.tools)


def load_exploration_record(store: Store, report: Mapping[str, Any]) -> ExplorationRecord | None:
    """Return the exploration record of a version, or None if it is missing or of another format."""
    digest = report.get("record")
    if not isinstance(digest, str) or not digest:
        return None
    try:
        return ExplorationRecord.parse(store.blobs.get(digest))
    except (NotFound, StoreError, Unreadable):
        return None
