"""How far each site of the exam is mapped, so that the pages that answer its tasks are in the map."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Mapping:
    """Limits of the exploration of a site; it starts at `bench.tasks.serving.TaskSite.start`, with the site's session.

    Attributes
    ----------
    depth : number of actions from the start page.
    max_states : most states.
    trap_budget : `explore.trap_budget`. With the default, pages alike are left after a handful as a trap: a needle
        among 500 of them is in the map only if the budget is larger.
    """

    depth: int
    max_states: int
    trap_budget: int = 5


#: Mapping by site, in the order in which they are mapped.
MAPS = {
    "demo_shop": Mapping(3, 500),
    "fossil": Mapping(3, 300),
    "wagtail": Mapping(3, 200),
    "skerrywatch": Mapping(2, 700, trap_budget=1000),
    "node_red": Mapping(3, 100),
    "python_docs": Mapping(2, 600),
    "gentelella": Mapping(3, 180),
    "dokuwiki": Mapping(3, 250),
    "jupyterlab": Mapping(3, 100),
    "fernleigh": Mapping(2, 700, trap_budget=1000),
    "korvat": Mapping(3, 180),
}
