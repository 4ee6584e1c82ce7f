"""What must a resumed run know of the one before? Written down at checkpoints, taken over from the last of them."""

from __future__ import annotations

import logging

from pipeline.explore.account import Account
from pipeline.explore.growth import Growth
from pipeline.explore.journal_records import Checkpoint, Resumed
from pipeline.explore.loads import Loads
from pipeline.explore.robots import RobotsByHost
from pipeline.explore.undo import RatesByLevel

log = logging.getLogger(__name__)


class Memory:
    """Everything of an exploration that decides how it goes on, looks and captures left out."""

    def __init__(
        self, growth: Growth, account: Account, loads: Loads, rates: RatesByLevel, robots: RobotsByHost | None
    ) -> None:
        self._growth = growth
        self._account = account
        self._loads = loads
        self._rates = rates
        self._robots = robots
        self._kept_states = self._kept_edges = 0

    def checkpoint(self) -> Checkpoint:
        """What was committed since the last one, and what everybody remembers."""
        growth = self._growth
        states = tuple(growth.states.values())[self._kept_states :]
        edges = tuple(growth.edges[self._kept_edges :])
        self._kept_states, self._kept_edges = len(growth.states), len(growth.edges)
        return Checkpoint(
            states=states,
            edges=edges,
            fates=self._account.take_fates(),
            counters=self._account.counters,
            memories={
                "account": self._account.remember(),
                "growth": growth.remember(),
                "rates": self._rates.remember(),
                "robots": self._robots.remember() if self._robots is not None else [],
            },
        )

    async def recall(self, resumed: Resumed) -> None:
        """Take over what an earlier process found."""
        for url, load in resumed.loads.items():
            self._loads.know(url, load)
        self._growth.recall(resumed.memories["growth"], resumed.states, resumed.edges)
        self._account.recall(resumed.memories["account"], resumed.counters)
        self._rates.recall(resumed.memories["rates"])
        if self._robots is not None:
            await self._robots.recall(resumed.memories["robots"])
        self._kept_states, self._kept_edges = len(resumed.states), len(resumed.edges)
        log.info("explore/resumed %s: %d states, depth %d", self._account.start_url, self._kept_states, resumed.depth)
