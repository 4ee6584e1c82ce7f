"""Drafts of versions that follow another one, and summaries of what changed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, replace
from typing import Any

from waygraph.core.text import replace_surrogates
from waygraph.index.graph.diff import MapDiff
from waygraph.index.graph.state_matching import compose_lineage
from waygraph.index.store import MapDraft, MapVersion
from waygraph.pipeline.explore.records.capture import SiteCapture
from waygraph.pipeline.jobs.publishing.draft import content_report

#: Number of unstable actions in the outcome of a site. The manifest has all.
_SHOWN_UNSTABLE = 20


def refreshed_draft(draft: MapDraft, previous: MapVersion, capture: SiteCapture, diff: MapDiff) -> MapDraft:
    """Add lineage and the summary of changes to the draft of a refresh."""
    summary = {"of": previous.manifest.version, **asdict(capture.refresh), **diff.counts(), "broken": len(diff.broken)}
    return replace(with_lineage(draft, previous, diff), report={**draft.report, "refresh": summary})


def refresh_summary(report: Mapping[str, Any]) -> dict[str, Any]:
    """Return the refresh summary of a version's report, for the outcome of its site."""
    summary = dict(report.get("refresh") or {})
    if unstable := summary.get("unstable"):
        summary["unstable"] = [[replace_surrogates(str(part)) for part in each] for each in unstable[:_SHOWN_UNSTABLE]]
    return summary


def rollback_draft(version: MapVersion, current: MapVersion, diff: MapDiff) -> MapDraft:
    """Return a draft that publishes an older version again.

    Parameters
    ----------
    version
        The older version.
    current
        The version that it replaces.
    diff
        Changes from `current` to `version`.

    Returns
    -------
    MapDraft
        With lineage.
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
        report={**content_report(manifest.report), "rollback_to": manifest.version},
        partial=manifest.partial,
        settings=manifest.settings,
        recognition=version.recognition,
        leads=version.leads,
        lead_pages=version.lead_pages,
        descriptions=version.descriptions,
        tools=version.tools,
        tool_pages=version.tool_pages,
    )
    return with_lineage(draft, current, diff)


def with_lineage(draft: MapDraft, previous: MapVersion, diff: MapDiff) -> MapDraft:
    """Return the draft with the lineage of the states of all versions up to `previous`."""
    gone = previous.graph.nodes.keys() - diff.successors
    lineage = compose_lineage(previous.lineage, diff.successors, live=draft.graph.nodes, gone=gone)
    return replace(draft, lineage=lineage)
