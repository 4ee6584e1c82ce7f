"""Resolution of node ids that callers send: abbreviated ids, ids of other snapshots, and ids of earlier versions."""

from __future__ import annotations

from waygraph.core.errors import Gone, InvalidInput, NotFound, Superseded
from waygraph.index.catalog.catalog import OpenMap

#: Least number of digits of an abbreviated node id.
MIN_PREFIX = 4


def resolve_node_id(opened: OpenMap, node_id: str) -> str:
    """Return the id of the state or lead that a node id stands for.

    Parameters
    ----------
    opened
        The map.
    node_id
        A state's or lead's id or a unique prefix of one (4 digits or more), or the id of another snapshot of a state.

    Returns
    -------
    str
        The full id of the state or lead.

    Raises
    ------
    Superseded
        If a state of an earlier version has another id now, or the page of an earlier lead was visited.
    Gone
        If a state of an earlier version is not in this one.
    NotFound
        If the map has no such state.
    InvalidInput
        If several states have this prefix.
    """
    canonical = opened.recognition.canonical
    if canonical(node_id) in opened.graph:
        return canonical(node_id)
    if node_id in opened.leads:
        return node_id
    if (successor := opened.lineage.get(node_id, opened.visited_leads.get(node_id))) is not None:
        raise _earlier_state(opened, node_id, successor)
    ids = (*opened.graph.nodes, *opened.recognition.merges, *opened.leads) if len(node_id) >= MIN_PREFIX else ()
    matching = sorted({canonical(each) for each in ids if each.startswith(node_id)})
    if len(matching) > 1:
        raise InvalidInput(f"{len(matching)} states of '{opened.site}' begin with {node_id}.", hint="Add more digits.")
    if not matching:
        raise NotFound(
            f"'{opened.site}' version {opened.version} has no state {node_id}.",
            hint="Search again: a new version of the map may have dropped this one.",
        )
    return matching[0]


def _earlier_state(opened: OpenMap, node_id: str, successor: str) -> NotFound:
    if not successor:
        return Gone(
            f"State {node_id} of '{opened.site}' is gone.", hint="An earlier version of the map had it: search again."
        )
    return Superseded(
        f"State {node_id} of '{opened.site}' is {successor} now.", successor=successor, hint="Request that one."
    )
