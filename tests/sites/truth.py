"""Compare an exploration with a site's hand-written graph: precision and recall of states, recall of edges."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from waygraph.index.graph import InteractionGraph, Observation


@dataclass(frozen=True, slots=True)
class Shown:
    """How a person would know a state: a URL path that matches as a whole, texts that are shown, texts that are not.

    The path is a regular expression over path, query and fragment, since tokens in URLs are not known beforehand.
    """

    path: str
    shows: tuple[str, ...] = ()
    hides: tuple[str, ...] = ()

    def is_like(self, target: str, said: str) -> bool:
        """Whether a state with this path, saying this, is meant."""
        return (
            re.fullmatch(self.path, target) is not None
            and all(text in said for text in self.shows)
            and not any(text in said for text in self.hides)
        )


@dataclass(frozen=True)
class TrueGraph:
    """States by name, and edges as (source, name of the element, target)."""

    states: Mapping[str, Shown]
    edges: frozenset[tuple[str, str, str]] = frozenset()

    def __or__(self, other: TrueGraph) -> TrueGraph:
        return TrueGraph({**self.states, **other.states}, self.edges | other.edges)


@dataclass(frozen=True, slots=True)
class Measure:
    """How well an exploration agrees with a truth. `extra` are states that are none, or another one again."""

    missing: tuple[str, ...]
    extra: tuple[str, ...]
    missing_edges: tuple[tuple[str, str, str], ...]
    state_precision: float
    state_recall: float
    edge_recall: float
    members: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def __str__(self) -> str:
        return (
            f"states: precision {self.state_precision:.3f}, recall {self.state_recall:.3f}; "
            f"edges: recall {self.edge_recall:.3f}\n"
            f"missing: {list(self.missing)}\nextra: {list(self.extra)}\nmissing edges: {list(self.missing_edges)}"
        )


def measure(
    truth: TrueGraph, graph: InteractionGraph, observations: Mapping[str, Observation], base: str, *, within: str = ""
) -> Measure:
    """Compare an explored graph with a truth.

    Parameters
    ----------
    base : address of the site, with its final slash.
    within : a regular expression over paths; states elsewhere are not judged. Empty: all are.
    """
    names: dict[str, str] = {}
    found: dict[str, list[str]] = {}
    extra: list[str] = []
    for node in graph.nodes.values():
        target = "/" + node.url.removeprefix(base)
        seen = observations[node.id]
        said = " | ".join((seen.title, *(segment.text for segment in seen.segments)))
        name = next((name for name, shown in truth.states.items() if shown.is_like(target, said)), None)
        if name is not None:
            names[node.id] = name
            found.setdefault(name, []).append(node.id)
        is_extra = name is None or len(found[name]) > 1
        if is_extra and (not within or re.search(within, target)):
            extra.append(f"{target} ({name or 'unknown'}): {said[:120]}")
    walked = {
        (names[edge.source], edge.action.name, names[edge.target])
        for edge in graph.edges
        if edge.source in names and edge.target in names
    }
    missing_edges = sorted(truth.edges - walked)
    return Measure(
        missing=tuple(name for name in truth.states if name not in found),
        extra=tuple(extra),
        missing_edges=tuple(missing_edges),
        state_precision=len(found) / max(len(found) + len(extra), 1),
        state_recall=len(found) / max(len(truth.states), 1),
        edge_recall=1 - len(missing_edges) / len(truth.edges) if truth.edges else 1.0,
        members={name: tuple(ids) for name, ids in found.items()},
    )
