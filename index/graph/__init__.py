"""Interaction graphs: states and edges, their identity, recognition, cheapest paths, comparison and export."""

from waygraph.core.urls import UrlPolicy, mask_secrets, normalize_url, parse_start_url, site_key, url_template
from waygraph.index.graph.description import Description
from waygraph.index.graph.identity import change_digest, element_hash, lead_id, node_id, similarity
from waygraph.index.graph.model import (
    PASSIVE_KINDS,
    Action,
    ActionKind,
    BlockedRequest,
    Edge,
    Evidence,
    Lead,
    Merge,
    Node,
    Path,
    PathStep,
)
from waygraph.index.graph.multigraph import InteractionGraph
from waygraph.index.graph.observation import HIDDEN_ROLE, Box, Observation, Segment, SegmentCounts
from waygraph.index.graph.recognition import Recognition, is_contradicted, is_equivalent
from waygraph.index.graph.tool import Tool, ToolSource, nearest_states, tool_id

__all__ = [
    "HIDDEN_ROLE",
    "PASSIVE_KINDS",
    "Action",
    "ActionKind",
    "BlockedRequest",
    "Box",
    "Description",
    "Edge",
    "Evidence",
    "InteractionGraph",
    "Lead",
    "Merge",
    "Node",
    "Observation",
    "Path",
    "PathStep",
    "Recognition",
    "Segment",
    "SegmentCounts",
    "Tool",
    "ToolSource",
    "UrlPolicy",
    "change_digest",
    "element_hash",
    "is_contradicted",
    "is_equivalent",
    "lead_id",
    "mask_secrets",
    "nearest_states",
    "node_id",
    "normalize_url",
    "parse_start_url",
    "similarity",
    "site_key",
    "tool_id",
    "url_template",
]
