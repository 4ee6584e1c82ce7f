"""Publish a map with a given number of states, each with a screenshot of another colour."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tests.patch_encoder import picture
from waygraph.index.graph import Action, Box, Edge, InteractionGraph, Node, Observation, Segment, node_id
from waygraph.index.store import EncoderInfo, MapDraft, Store

Colour = tuple[int, int, int]


def colours(number: int) -> list[Colour]:
    """Return distinct colours that `PatchEncoder` encodes without a fault."""
    return [(50 + i % 200, 100, 50 + i // 200) for i in range(number)]


def observations_of(store: Store, site: str, shown: Sequence[Colour]) -> dict[str, Observation]:
    """Return observations of states, with their screenshots stored as blobs."""
    urls = [f"http://{site}/{i}" for i in range(len(shown))]
    return {
        node_id([], url): Observation(
            node_id([], url),
            url,
            f"Page {i}",
            (Segment(f"Text {i}", "text", Box(0, 0, 10, 10)),),
            store.blobs.put(picture(colour)),
        )
        for i, (url, colour) in enumerate(zip(urls, shown, strict=True))
    }


def publish(
    store: Store,
    site: str,
    shown: Sequence[Colour],
    *,
    run_id: str = "",
    settings: Mapping[str, Any] | None = None,
    stopped_by: str = "",
) -> int:
    """Publish a map without vectors. It is partial if `stopped_by` names a reason."""
    observations = observations_of(store, site, shown)
    graph = InteractionGraph(Node(o.node_id, o.url, o.title, (), 0, True) for o in observations.values())
    first, last = next(iter(observations)), next(reversed(observations))
    graph.add_edge(Edge(first, last, Action("click", role="link", name="Last"), 10.0))
    return store.publish(
        MapDraft(
            site=site,
            start_url=f"http://{site}/0",
            graph=graph,
            observations=observations,
            pages={},
            encoder=EncoderInfo("none", 1, "none"),
            report={"seconds": 1.5, "run_id": run_id, "stopped_by": stopped_by},
            partial=bool(stopped_by),
            settings=dict(settings or {"explore": {"depth": 1}, "domain": "example"}),
        )
    )
