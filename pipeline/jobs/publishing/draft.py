"""How does an explored site become a draft of a map? The one place that says which field comes from where."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from index.store import EncoderInfo, MapDraft, MapVersion
from index.vectors.multivector import EncodedPage
from pipeline.encode.called import with_names
from pipeline.encode.counts import count_segments
from pipeline.encode.protocol import Encoder
from pipeline.encode.registry import public_name
from pipeline.explore.capture import SiteCapture
from waygraph.settings import Settings

#: Of a map that nobody searches.
NOT_ENCODED = EncoderInfo("none", 1, "none")
#: What a report says of how its version came about: what was refreshed, copied or encoded anew, and by which run.
_OF_ONE_VERSION = frozenset({"refresh", "rollback_to", "reencoded_from", "run_id"})


def draft_of(
    capture: SiteCapture,
    settings: Settings,
    *,
    pages: Mapping[str, EncodedPage],
    encoder: EncoderInfo = NOT_ENCODED,
    run_id: str = "",
) -> MapDraft:
    """A draft of what was explored.

    Parameters
    ----------
    pages : vectors by node id.
    run_id : of the run that publishes it, for its report.
    """
    return MapDraft(
        site=capture.site,
        start_url=capture.start_url,
        graph=capture.graph,
        observations=dict(capture.observations),
        pages=dict(pages),
        encoder=encoder,
        capture=dict(capture.profile),
        report={**({"run_id": run_id} if run_id else {}), **asdict(capture.report)},
        partial=capture.report.partial,
        settings={**recorded(settings), **capture.settings, "domain": capture.domain},
        recognition=capture.recognition,
    )


def reencoded_draft(
    version: MapVersion, settings: Settings, *, pages: Mapping[str, EncodedPage], encoder: EncoderInfo, run_id: str
) -> MapDraft:
    """A draft of what is published already, with other vectors: graph, looks and the account of exploring stay."""
    manifest = version.manifest
    return MapDraft(
        site=manifest.site,
        start_url=manifest.start_url,
        graph=version.graph,
        observations=version.observations,
        pages=dict(pages),
        encoder=encoder,
        capture=manifest.capture,
        report={**report_of_content(manifest.report), "run_id": run_id, "reencoded_from": manifest.version},
        partial=manifest.partial,
        settings={**manifest.settings, "encode": recorded(settings)["encode"]},
        recognition=version.recognition,
        lineage=version.lineage,
    )


def report_of_content(report: Mapping[str, Any]) -> dict[str, Any]:
    """What a version's report says of its content: the account of exploring. How a copy of it came about is its own."""
    return {name: value for name, value in report.items() if name not in _OF_ONE_VERSION}


def encoded_draft(capture: SiteCapture, settings: Settings, encoder: Encoder) -> MapDraft:
    """A draft that is encoded here and now, without Ray."""
    observations = with_names(capture.graph, capture.observations.values())
    context = encoder.prepare_site(count_segments(observations))
    vectors = encoder.encode_pages(observations, context)
    return draft_of(
        capture,
        settings,
        pages={seen.node_id: page for seen, page in zip(observations, vectors, strict=True)},
        encoder=EncoderInfo(encoder.name, encoder.dim, encoder.fingerprint, context),
    )


def recorded(settings: Settings) -> dict[str, Any]:
    """The settings that shaped a map; paths of this machine are nobody else's business."""
    return {
        "explore": settings.explore.model_dump(mode="json", exclude={"storage_state", "rules"}),
        "encode": {
            **settings.encode.model_dump(
                mode="json", exclude={"weights", "threads", "device", "token_budget", "compile"}
            ),
            "encoder": public_name(settings.encode.encoder),
        },
    }
