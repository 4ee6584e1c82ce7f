"""Outcome of an element or URL that the explorer discovered."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Literal

from waygraph.index.graph import Edge

#: Reason of an element whose action sent a request that may change something.
SENDS = "sends"
#: Reason of a link whose address was loaded in place of a click.
BY_ADDRESS = "by_address"

Status = Literal["done", "pending", "skipped", "failed"]


@dataclass(frozen=True, slots=True)
class ElementOutcome:
    """Outcome of an element or URL. The field names are stored.

    Attributes
    ----------
    state
        Id of the state that shows it.
    element
        Its description.
    status
        `done`, `pending`, `skipped` or `failed`.
    reason
        Why it was skipped or failed; `sends` for an action that sent a request that may change something; `by_address`
        for a link that takes no pointer, whose address was loaded.
    detail
        What decided that.
    item
        Index in its round if it was a work item; None if it was decided before, by a policy or a cap.
    rule
        See `Skip`.
    target
        See `Skip`.
    xpath
        See `Skip`.
    """

    state: str
    element: str
    status: Status
    reason: str = ""
    detail: str = ""
    item: int | None = None
    rule: str = ""
    target: str = ""
    xpath: str = ""


def with_details(outcomes: Iterable[ElementOutcome], edges: Collection[Edge]) -> Iterator[ElementOutcome]:
    """Add to elements that were acted on what the action sent that may change something, or that it was no click.

    Parameters
    ----------
    outcomes
        Outcomes of elements.
    edges
        Edges of the map, with the requests that were stopped, or in the mode `observe` let pass.

    Yields
    ------
    ElementOutcome
        The outcomes, in order.
    """
    sends = {(edge.source, str(edge.action)): edge.blocked for edge in edges if edge.blocked}
    performed = {(edge.source, str(edge.action)) for edge in edges if not edge.inherited}
    loaded = {(edge.source, str(edge.action)) for edge in edges if edge.inherited} - performed
    for outcome in outcomes:
        key = (outcome.state, outcome.element)
        if outcome.status != "done":
            yield outcome
        elif key in loaded:
            yield replace(outcome, reason=BY_ADDRESS)
        elif requests := sends.get(key, ()):
            yield replace(outcome, reason=SENDS, detail=", ".join(f"{each.method} {each.url}" for each in requests))
        else:
            yield outcome
