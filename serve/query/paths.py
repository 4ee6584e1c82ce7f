"""Paths of an opened map that avoid the steps that a caller or recent reports exclude."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from waygraph.core.errors import NoPath
from waygraph.core.schemas import AvoidedStep, PathAnswer
from waygraph.index.catalog.catalog import OpenMap
from waygraph.index.graph import Path
from waygraph.index.graph.alternatives import k_cheapest_paths
from waygraph.index.graph.lead_paths import paths_to_lead
from waygraph.serve.query import answers
from waygraph.serve.query.avoidance import AvoidedParts, action_of, parts_of_hidden_elements, parts_of_step

#: Returns the cheapest path from a state (None: from anywhere) to a state or lead. Raises `NoPath` if there is none.
FindPath = Callable[[str | None, str], PathAnswer]


def path_search(
    opened: OpenMap,
    recent_failures: AvoidedParts,
    *,
    allow_goto: bool,
    avoid: Sequence[AvoidedStep],
    alternatives: int = 0,
) -> FindPath:
    """Return a function that finds paths under these conditions.

    Parameters
    ----------
    opened
        The map.
    recent_failures
        Parts that agents recently reported as failed. They are used only if there is no other path.
    allow_goto
        Whether a step may load a URL.
    avoid
        Steps that the paths must not use.
    alternatives
        Most further paths to return.

    Returns
    -------
    FindPath
        Finds the cheapest path under these conditions; raises `NoPath` if there is none.
    """
    steps = [(step.source, action_of(step.action)) for step in avoid]
    forbidden = parts_of_hidden_elements(
        opened, [action for source, action in steps if source is None and action.kind != "goto"]
    )
    forbidden = sum((parts_of_step(opened, source, action) for source, action in steps), forbidden)
    canonical = opened.recognition.canonical

    def cheapest(source: str | None, target: str, avoided: AvoidedParts) -> list[Path]:
        start = None if source is None else canonical(source)
        if (lead := opened.leads.get(target)) is None:
            return to_state(start, canonical(target), 1 + alternatives, avoided)
        found = paths_to_lead(
            lead,
            start,
            lambda: to_state(start, lead.state, 1, avoided)[0],
            allow_goto=allow_goto,
            avoid=avoided.edges,
            avoid_gotos=avoided.gotos,
        )
        return found[: 1 + alternatives]

    def to_state(start: str | None, target: str, count: int, avoided: AvoidedParts) -> list[Path]:
        return k_cheapest_paths(
            opened.path_finder,
            opened.graph,
            start,
            target,
            count,
            allow_goto=allow_goto,
            avoid=avoided.edges,
            avoid_gotos=avoided.gotos,
        )

    def find(source: str | None, target: str) -> PathAnswer:
        try:
            first, *others = cheapest(source, target, forbidden + recent_failures)
        except NoPath:
            if not recent_failures:
                raise
            first, *others = cheapest(source, target, forbidden)
        return answers.path_answer(opened, first, recent_failures.contains, others)

    return find
