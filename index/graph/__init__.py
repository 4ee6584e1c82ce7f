"""What does a site's map look like, and how does one get from one of its states to another?"""

from index.graph.identity import change_digest, element_hash, node_id, similarity
from index.graph.model import PASSIVE, Action, ActionKind, BlockedRequest, Edge, Evidence, Merge, Node, Path, PathStep
from index.graph.multigraph import InteractionGraph
from index.graph.observation import Box, Observation, Segment, SegmentCounts
from index.graph.recognition import Recognition, is_contradicted, is_equivalent
from index.graph.urls import UrlPolicy, mask_secrets, normalize_url, parse_start_url, site_key, url_template

__all__ = [
    "PASSIVE",
    "Action",
    "ActionKind",
    "BlockedRequest",
    "Box",
    "Edge",
    "Evidence",
    "InteractionGraph",
    "Merge",
    "Node",
    "Observation",
    "Path",
    "PathStep",
    "Recognition",
    "Segment",
    "SegmentCounts",
    "UrlPolicy",
    "change_digest",
    "element_hash",
    "is_contradicted",
    "is_equivalent",
    "mask_secrets",
    "node_id",
    "normalize_url",
    "parse_start_url",
    "similarity",
    "site_key",
    "url_template",
]
