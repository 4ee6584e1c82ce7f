"""What does a state show that the rest of its site does not? What the frame of a site says proves no page of it."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace

from index.graph import Evidence, InteractionGraph
from index.graph.tokens import PageNames

#: Of the site's other URLs, at most this share may show what counts as a state's own.
SHOWN_ELSEWHERE = 0.2


@dataclass(frozen=True, slots=True)
class _Shown:
    """What is known of one URL: sampled features, and up to which hash the sample is complete."""

    features: frozenset[str]
    known_to: str


def with_own(graph: InteractionGraph, evidence: Mapping[str, Evidence]) -> dict[str, Evidence]:
    """The evidence of a map's states, with `own`, `alone` and `named` filled in.

    URLs that differ in what looks drawn at random alone are one page's, unless that names it, see `PageNames`.

    Features are sampled by the smallest hashes, so a feature that is missing in another URL's sample says something
    only where that sample reaches so far: shares are estimated among the URLs of which that is known.
    """
    longest = max((len(its.features) for its in evidence.values()), default=0)
    names = PageNames(node.url for node in graph.nodes.values())
    grouped: dict[str, list[Evidence]] = {}
    for node_id, its in evidence.items():
        grouped.setdefault(names.of(graph.nodes[node_id].url), []).append(its)
    pages = {url: _shown(members, longest) for url, members in grouped.items()}
    showing = Counter(name for page in pages.values() for name in page.features)
    reach = sorted(page.known_to for page in pages.values())
    structures: dict[tuple[str, ...], set[str]] = {}
    for node in graph.nodes.values():
        structures.setdefault(node.structure, set()).add(names.of(node.url))

    def is_own(name: str) -> bool:
        others = showing[name] - 1
        known = max(len(reach) - bisect_left(reach, name) - 1, others)
        return known > 0 and others <= SHOWN_ELSEWHERE * known

    own = {name for name in showing if is_own(name)}
    return {
        node_id: replace(
            its,
            own=tuple(name for name in its.features if name in own),
            alone=len(structures[graph.nodes[node_id].structure]) == 1,
            named=names.is_told(graph.nodes[node_id].url),
        )
        for node_id, its in evidence.items()
    }


#: Above every hash: a sample that holds everything is complete.
_ALL = "~"


def _shown(members: list[Evidence], longest: int) -> _Shown:
    known_to = min(its.features[-1] if its.features and len(its.features) == longest else _ALL for its in members)
    return _Shown(frozenset(name for its in members for name in its.features), known_to)
