"""Distinctive features of states: those that the rest of the site, with the same layout, does not show."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace

from waygraph.index.graph import Evidence, InteractionGraph
from waygraph.index.graph.url_tokens import PageNames

#: A feature is a state's own if at most this share of the site's other URLs show it.
SHOWN_ELSEWHERE_SHARE = 0.2

#: Greater than every feature hash: the range of a sample that holds all features.
_UNBOUNDED = "~"


@dataclass(frozen=True, slots=True)
class _UrlSample:
    """Sampled features of one URL, and the feature hash up to which the sample is complete."""

    features: frozenset[str]
    complete_to: str


def add_distinctive_features(graph: InteractionGraph, evidence: Mapping[str, Evidence]) -> dict[str, Evidence]:
    """Return the evidence of a map's states with `own`, `alone` and `named` filled in.

    URLs that differ in random-looking parts only belong to one page, unless such a part identifies it (`PageNames`).

    Features are sampled by their smallest hashes, so a feature that is missing from another URL's sample is known to be
    absent only within the range of that sample. Shares are therefore estimated among the URLs whose samples reach the
    feature.
    """
    sample_size = max((len(its.features) for its in evidence.values()), default=0)
    names = PageNames(node.url for node in graph.nodes.values())
    by_page: dict[str, list[Evidence]] = {}
    for node_id, its in evidence.items():
        by_page.setdefault(names.of(graph.nodes[node_id].url), []).append(its)
    pages = [_joined_sample(members, sample_size) for members in by_page.values()]
    frequencies = Counter(name for page in pages for name in page.features)
    ranges = sorted(page.complete_to for page in pages)
    pages_by_structure: dict[tuple[str, ...], set[str]] = {}
    for node in graph.nodes.values():
        pages_by_structure.setdefault(node.structure, set()).add(names.of(node.url))

    def is_own(name: str) -> bool:
        others = frequencies[name] - 1
        known = max(len(ranges) - bisect_left(ranges, name) - 1, others)
        return known > 0 and others <= SHOWN_ELSEWHERE_SHARE * known

    own = {name for name in frequencies if is_own(name)}
    return {
        node_id: replace(
            its,
            own=tuple(name for name in its.features if name in own),
            alone=len(pages_by_structure[graph.nodes[node_id].structure]) == 1,
            named=names.has_significant_tokens(graph.nodes[node_id].url),
        )
        for node_id, its in evidence.items()
    }


def _joined_sample(members: list[Evidence], sample_size: int) -> _UrlSample:
    """Join the samples of a page's states. A sample that is not full holds all features."""
    complete_to = min(
        its.features[-1] if its.features and len(its.features) == sample_size else _UNBOUNDED for its in members
    )
    return _UrlSample(frozenset(name for its in members for name in its.features), complete_to)
