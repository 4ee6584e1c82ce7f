"""Paths to leads: the path to the state that shows the link and a click on it, or loading the URL.

No element leads to a page that only a sitemap or markup that is not shown names: the only path there loads its URL.
"""

from __future__ import annotations

from collections.abc import Callable, Collection

from waygraph.core.errors import NoPath
from waygraph.index.graph.model import Action, Edge, Lead, Path, PathStep
from waygraph.index.graph.path_costs import DEFAULT_LOAD_MS, INHERITED_PENALTY_MS, edge_cost_ms, goto_cost_ms


def lead_edge(lead: Lead) -> Edge:
    """Return the action of a lead as an edge that was never performed. No graph contains it."""
    return Edge(source=lead.state, target=lead.id, action=lead.action, cost_ms=DEFAULT_LOAD_MS, inherited=True)


def paths_to_lead(
    lead: Lead,
    source: str | None,
    path_to_state: Callable[[], Path],
    *,
    allow_goto: bool,
    avoid: Collection[Edge] = (),
    avoid_gotos: Collection[str] = (),
) -> list[Path]:
    """Return the paths to a page that was not visited, the cheaper one first; of equal ones the click.

    The last step of each is unverified, and costs what an inherited edge costs besides.

    Parameters
    ----------
    lead
        The page.
    source
        Id of the state to start from; None: anywhere.
    path_to_state
        Returns the cheapest path from `source` to the state that shows the link; raises NoPath.
    allow_goto
        Whether the URL of the page may be loaded.
    avoid
        Edges not to use; `lead_edge` among them: the link.
    avoid_gotos
        Ids of states and leads that must not be loaded by their URL.

    Returns
    -------
    list of Path
        One or two paths.

    Raises
    ------
    NoPath
        If a policy refuses the page, or there is no path under these conditions.
    """
    if lead.refusal:
        raise NoPath(
            f"The page {lead.url} was not visited, and no path leads there: its links are left alone ({lead.refusal}).",
            hint=f"State '{lead.state}' shows the link.",
        )
    found: list[Path] = []
    click = lead_edge(lead)
    is_avoided = any(
        (edge.source, edge.target, edge.action) == (click.source, click.target, click.action) for edge in avoid
    )
    problem: NoPath | None = None
    if not lead.is_linked:
        problem = NoPath(
            f"No element leads to the page {lead.url}, which was not visited: only loading its URL does.",
            hint="Allow goto.",
        )
    elif not is_avoided:
        try:
            found.append(_and_click(path_to_state(), lead, edge_cost_ms(click)))
        except NoPath as error:
            problem = error
    if allow_goto and lead.id not in avoid_gotos:
        cost = goto_cost_ms(0) + INHERITED_PENALTY_MS
        step = PathStep(Action(kind="goto", url=lead.load_url), lead.id, lead.url, cost, inherited=True, lead=lead)
        found.append(Path(source, lead.id, (step,), cost))
    if not found:
        raise problem or NoPath(
            f"The map holds no path to the page {lead.url}, which was not visited, under these conditions.",
            hint="Allow goto, or avoid fewer steps.",
        )
    return sorted(found, key=lambda path: path.cost_ms)


def _and_click(path: Path, lead: Lead, cost_ms: float) -> Path:
    click = PathStep(lead.action, lead.id, lead.url, cost_ms, inherited=True, lead=lead)
    return Path(path.source, lead.id, (*path.steps, click), round(path.cost_ms + cost_ms, 3))
