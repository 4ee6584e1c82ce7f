"""Trials: a few links of a state are loaded with what arriving at it left in the browser, and compared.

A trial reaches the state once more. Values that differ then, such as tokens, decide nothing. With the others, links are
loaded whose result in the prepared session is needed anyway, see `SessionValues`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from collections.abc import Set as AbstractSet

from waygraph.index.graph import PathStep
from waygraph.pipeline.browser.page.snapshot import Snapshot
from waygraph.pipeline.explore.engine.loader import Loads
from waygraph.pipeline.explore.engine.varying import session_effect
from waygraph.pipeline.explore.engine.worker import Worker
from waygraph.pipeline.explore.identity.session_values import Effect, SessionValues, Trial, choose_targets
from waygraph.pipeline.explore.records.state import LeftValues, Load, State

#: Links that are loaded in a trial.
_LINKS = 3
#: Values that are tried alone after an effect.
_MAX_ALONE = 4
#: Trials of a site.
_MAX_TRIALS = 12


class SessionTrials:
    """Trials of one site, one after the other in the order of its states.

    Parameters
    ----------
    loads
        Results of loaded URLs.
    snapshot
        Returns the snapshot with a key.
    values
        What is learned.
    counters
        Counters, see docs/counters.md. They count the trials of a resumed run too.
    """

    def __init__(
        self, loads: Loads, snapshot: Callable[[str], Snapshot], values: SessionValues, counters: Counter[str]
    ) -> None:
        self._loads = loads
        self._snapshot = snapshot
        self._values = values
        self._counters = counters

    def are_needed(self, left: LeftValues) -> bool:
        """Return whether it is unknown what the values decide, and more trials may be made."""
        return bool(self._values.untried(left)) and self._counters["session/trials"] < _MAX_TRIALS

    async def run(
        self,
        worker: Worker,
        state: State,
        *,
        seen: Snapshot,
        route: tuple[PathStep, ...] | None,
        links: Iterable[str],
        shared: AbstractSet[str],
    ) -> None:
        """Make the trial of a state, and learn from it.

        Parameters
        ----------
        worker
            Reaches the state and loads the links.
        state
            The state.
        seen
            Its snapshot.
        route
            Route to it; None if there is none.
        links
            Targets of its links, in document order.
        shared
            Targets that pages of other sessions link to as well.
        """
        self._counters["session/trials"] += 1
        arrived = await worker.arrive(seen, route) if route is not None else None
        if arrived is None:
            return  # an outage says nothing about the values
        volatile = self._values.differing(state.left, arrived)
        stable = tuple(item for item in arrived if item[:2] not in volatile)
        tried, deciding = self._values.untried(stable), self._values.deciding_in_round(stable)
        effect: Effect = "none"
        for url in choose_targets(state.url, links, shared, count=_LINKS) if tried else ():
            effect = await self._effect(worker, url, (*deciding, *tried), seen)
            if effect != "none":
                tried = await self._alone(worker, url, deciding, tried)
                break
        self._values.learn(Trial(volatile, tried, effect))

    async def _alone(self, worker: Worker, url: str, deciding: LeftValues, tried: LeftValues) -> LeftValues:
        """Return the first value that has the effect alone, or all."""
        if len(tried) == 1:
            return tried
        together = await self._load(worker, url, (*deciding, *tried))
        for item in tried[:_MAX_ALONE]:
            alone = await self._load(worker, url, (*deciding, item))
            if (alone.node_id, alone.shown_url) == (together.node_id, together.shown_url):
                return (item,)
        return tried

    async def _load(self, worker: Worker, url: str, values: LeftValues) -> Load:
        return await self._loads.get(url, worker.loader, session=worker.live_session(values))

    async def _effect(self, worker: Worker, url: str, values: LeftValues, source: Snapshot) -> Effect:
        """Return what a session changes for a link. Differences that come and go with every load are no effect."""
        plain = await self._loads.get(url, worker.loader)
        other = await self._load(worker, url, values)
        if not plain.node_id or not other.node_id:
            return "none"
        if plain.shown_url != other.shown_url:
            return "page"
        first, second = self._snapshot(plain.snapshot_key), self._snapshot(other.snapshot_key)
        effect = session_effect(first, second, source)
        if effect == "none":
            return "none"
        again = await worker.loader.load(url)
        if not again.node_id or again.shown_url != plain.shown_url:
            return "none"
        if session_effect(first, self._snapshot(again.snapshot_key), source) != "none":
            return "none"
        if effect == "page":
            return effect
        if again.node_id != first.id or (session := worker.live_session(values)) is None:
            return "none"
        return effect if (await (await session.open()).load(url)).node_id == second.id else "none"
