"""Drafts of maps from captures and versions: the only place that maps their fields."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict
from typing import Any

from waygraph.core.settings import Settings
from waygraph.index.graph import Description, InteractionGraph, Lead, Observation, Tool
from waygraph.index.store import EncoderInfo, MapDraft, MapVersion
from waygraph.index.vectors.multivector import EncodedPage
from waygraph.pipeline.encode.protocol import Encoder
from waygraph.pipeline.encode.runtime.model_files import public_name
from waygraph.pipeline.encode.text.anchor_text import with_anchor_texts
from waygraph.pipeline.encode.text.lead_text import rounded_page, unvisited_pages
from waygraph.pipeline.encode.text.tool_text import tool_observations
from waygraph.pipeline.encode.text_counts import count_segments
from waygraph.pipeline.explore.records.capture import SiteCapture
from waygraph.pipeline.jobs.encoding.site_vectors import EncodedMap

#: A map without vectors.
NOT_ENCODED = EncodedMap(encoder=EncoderInfo("none", 1, "none"), pages={})
#: Report fields about the origin of one version: refreshed, rolled back, re-encoded, described, and by which run.
_VERSION_FIELDS = frozenset({"refresh", "rollback_to", "reencoded_from", "described_from", "run_id"})


def draft_from_capture(
    capture: SiteCapture,
    settings: Settings,
    vectors: EncodedMap = NOT_ENCODED,
    *,
    run_id: str = "",
    descriptions: Mapping[str, Description] | None = None,
) -> MapDraft:
    """Return the draft of a capture.

    Parameters
    ----------
    capture
        The explored site.
    settings
        Settings to record.
    vectors
        Its vectors.
    run_id
        Run that publishes it, for its report.
    descriptions
        Descriptions of an earlier version that still hold.

    Returns
    -------
    MapDraft
        Ready to publish.
    """
    return MapDraft(
        site=capture.site,
        start_url=capture.start_url,
        graph=capture.graph,
        observations=dict(capture.observations),
        pages=dict(vectors.pages),
        encoder=vectors.encoder,
        capture=dict(capture.profile),
        report={**({"run_id": run_id} if run_id else {}), **asdict(capture.report)},
        partial=capture.report.partial,
        settings={**recorded_settings(settings), **capture.settings, "domain": capture.domain},
        recognition=capture.recognition,
        leads=dict(capture.leads),
        lead_pages=dict(vectors.lead_pages),
        descriptions=dict(descriptions or {}),
        tools=dict(capture.tools),
        tool_pages=dict(vectors.tool_pages),
    )


def draft_from_version(version: MapVersion, settings: Settings, vectors: EncodedMap, *, run_id: str = "") -> MapDraft:
    """Return the draft of a published version with other vectors. Graph, observations and report stay."""
    manifest = version.manifest
    return MapDraft(
        site=manifest.site,
        start_url=manifest.start_url,
        graph=version.graph,
        observations=version.observations,
        pages=dict(vectors.pages),
        encoder=vectors.encoder,
        capture=manifest.capture,
        report={**content_report(manifest.report), "run_id": run_id, "reencoded_from": manifest.version},
        partial=manifest.partial,
        settings={**manifest.settings, "encode": recorded_settings(settings)["encode"]},
        recognition=version.recognition,
        lineage=version.lineage,
        leads=version.leads,
        lead_pages=dict(vectors.lead_pages),
        descriptions=version.descriptions,
        tools=version.tools,
        tool_pages=dict(vectors.tool_pages),
    )


def described_draft(
    version: MapVersion,
    descriptions: Mapping[str, Description],
    pages: Mapping[str, EncodedPage],
    lead_pages: Mapping[str, EncodedPage],
) -> MapDraft:
    """Return the draft of a published version with other descriptions and the vectors that go with them."""
    manifest = version.manifest
    return MapDraft(
        site=manifest.site,
        start_url=manifest.start_url,
        graph=version.graph,
        observations=version.observations,
        pages=dict(pages),
        encoder=manifest.encoder,
        capture=manifest.capture,
        report={**content_report(manifest.report), "described_from": manifest.version},
        partial=manifest.partial,
        settings=manifest.settings,
        recognition=version.recognition,
        lineage=version.lineage,
        leads=version.leads,
        lead_pages=dict(lead_pages),
        descriptions=dict(descriptions),
        tools=version.tools,
        tool_pages=version.tool_pages,
    )


def content_report(report: Mapping[str, Any]) -> dict[str, Any]:
    """Return the part of a report that describes the content of a version, without its origin."""
    return {name: value for name, value in report.items() if name not in _VERSION_FIELDS}


def encode_map(
    graph: InteractionGraph,
    observations: Iterable[Observation],
    leads: Iterable[Lead],
    tools: Iterable[Tool],
    encoder: Encoder,
) -> EncodedMap:
    """Encode the states, leads and tools of a map in this process without Ray.

    Parameters
    ----------
    graph
        States and edges, whose names describe where they lead.
    observations
        What the states show.
    leads
        Known pages that were not visited.
    tools
        What one can do on the states.
    encoder
        The encoder.

    Returns
    -------
    EncodedMap
        The vectors; those of leads and tools are rounded, and not all of them have some.
    """
    states = with_anchor_texts(graph, observations)
    unvisited = unvisited_pages(leads, states).values()
    offered = tool_observations(tools, graph)
    context = encoder.prepare_site(count_segments(states))
    vectors = iter(encoder.encode_pages([*states, *unvisited, *offered], context))
    return EncodedMap(
        pages={each.node_id: next(vectors) for each in states},
        lead_pages={each.node_id: rounded_page(next(vectors)) for each in unvisited},
        tool_pages={each.node_id: rounded_page(next(vectors)) for each in offered},
        encoder=EncoderInfo(encoder.name, encoder.dim, encoder.fingerprint, context),
    )


def encode_draft(capture: SiteCapture, settings: Settings, encoder: Encoder) -> MapDraft:
    """Return the draft of a capture, encoded in this process without Ray."""
    leads, tools = capture.leads.values(), capture.tools.values()
    encoded = encode_map(capture.graph, capture.observations.values(), leads, tools, encoder)
    return draft_from_capture(capture, settings, encoded)


def recorded_settings(settings: Settings) -> dict[str, Any]:
    """Return the settings that shaped a map, without local paths."""
    return {
        "explore": settings.explore.model_dump(mode="json", exclude={"storage_state", "rules"}),
        "encode": {
            **settings.encode.model_dump(
                mode="json", exclude={"weights", "threads", "device", "token_budget", "compile"}
            ),
            "encoder": public_name(settings.encode.encoder),
        },
    }
