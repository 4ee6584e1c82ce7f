"""Checkpoints of a crawl: collect the state of its parts, and restore it in a resumed run."""

from __future__ import annotations

import logging

from waygraph.pipeline.explore.checkpoint.journal_records import Checkpoint, Resumed
from waygraph.pipeline.explore.engine.frontier import Frontier
from waygraph.pipeline.explore.engine.graph_builder import GraphBuilder
from waygraph.pipeline.explore.engine.loader import Loads
from waygraph.pipeline.explore.engine.revert import RevertRatesByLevel
from waygraph.pipeline.explore.policies.robots import RobotsPolicy
from waygraph.pipeline.explore.records.stats import ExplorationStats

log = logging.getLogger(__name__)


class Checkpointer:
    """Collect and restore everything that decides how a crawl continues, except snapshots and captures.

    Parameters
    ----------
    graph
        States and edges.
    frontier
        Pending elements.
    stats
        Statistics.
    loads
        Results of loaded URLs.
    rates
        Success rates of reverting.
    robots
        robots.txt by host; None if it is not respected.
    """

    def __init__(
        self,
        graph: GraphBuilder,
        frontier: Frontier,
        stats: ExplorationStats,
        *,
        loads: Loads,
        rates: RevertRatesByLevel,
        robots: RobotsPolicy | None,
    ) -> None:
        self._graph = graph
        self._frontier = frontier
        self._stats = stats
        self._loads = loads
        self._rates = rates
        self._robots = robots
        self._kept_states = self._kept_edges = 0

    def checkpoint(self) -> Checkpoint:
        """Return what was committed since the last checkpoint, and the state of all parts."""
        graph = self._graph
        states = tuple(graph.states.values())[self._kept_states :]
        edges = tuple(graph.edges[self._kept_edges :])
        self._kept_states, self._kept_edges = len(graph.states), len(graph.edges)
        return Checkpoint(
            states=states,
            edges=edges,
            fates=self._stats.take_fates(),
            counters=self._stats.counters,
            memories={
                "account": self._stats.to_checkpoint(),
                "growth": graph.to_checkpoint(),
                "frontier": self._frontier.to_checkpoint(),
                "rates": self._rates.to_checkpoint(),
                "robots": self._robots.to_checkpoint() if self._robots is not None else [],
            },
        )

    async def load_checkpoint(self, resumed: Resumed) -> None:
        """Restore what an earlier process found."""
        for url, load in resumed.loads.items():
            self._loads.add(url, load)
        self._graph.load_checkpoint(resumed.memories["growth"], resumed.states, resumed.edges)
        self._frontier.load_checkpoint(resumed.memories["frontier"], self._graph.states)
        self._stats.load_checkpoint(resumed.memories["account"], resumed.counters)
        self._rates.load_checkpoint(resumed.memories["rates"])
        if self._robots is not None:
            await self._robots.load_checkpoint(resumed.memories["robots"])
        self._kept_states, self._kept_edges = len(resumed.states), len(resumed.edges)
        log.info("explore/resumed %s: %d states, round %d", self._stats.start_url, self._kept_states, resumed.round)
