"""How does an exploration use what an earlier one found? It recalls, asks again, compares, and keeps a record."""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable, Collection, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace
from itertools import chain

from index.graph import PathStep
from index.graph.diff import standing
from pipeline.browser.script import page_script_hash
from pipeline.browser.snapshot import Snapshot
from pipeline.explore.capture import RefreshSummary
from pipeline.explore.journal import Journal
from pipeline.explore.level import Item
from pipeline.explore.loads import Loader, TakeCapture
from pipeline.explore.looks import Looks
from pipeline.explore.outages import is_outage
from pipeline.explore.refresh.noise import Restless, news
from pipeline.explore.refresh.recall import Recall, Recalled
from pipeline.explore.refresh.record import Contents, KeptLoad, KeptOutcome, write
from pipeline.explore.state import Load, State
from pipeline.explore.worker import Outcome, Worker

#: Gives what a URL shows, through the loader of whoever wants to know, with a referrer.
LoadUrl = Callable[[str, Loader, str], Awaitable[Load]]

#: A page that seems to have changed is looked at so often in all, to tell that from noise.
_LOOKS = 3
#: Unstable actions that a summary names.
_NAMED = 200


class Visit:
    """One exploration's dealings with the one before. Of a site that is new, there is nothing to recall.

    Parameters
    ----------
    recall : answers instead of the site.
    """

    def __init__(self, recall: Recall, *, looks: Looks, journal: Journal, counters: Counter[str]) -> None:
        self._recall = recall
        self._looks = looks
        self._journal = journal
        self._counters = counters
        self._drawn: dict[str, set[str]] = {}
        """What turned out to be noise, by URL."""

    async def ask(self, url: str, loader: Loader, referrer: str) -> Load:
        """What loading a normalised URL shows, now or by what is recalled."""
        if (known := self._recall.load(url)) is not None:
            self._counters["refresh/recalled_loads"] += 1
            await self._adopt(known.look)
            return known
        load = await loader.load(url, referrer)
        kept = self._recall.in_place_of(url, load, self._looks.seen(load.look) if load.look else None)
        if kept is None:
            return load
        self._counters["refresh/kept_loads"] += 1
        await self._adopt(kept.look)
        return kept

    async def perform(
        self,
        worker: Worker,
        item: Item,
        way: Sequence[PathStep] | None,
        *,
        look: str,
        load: LoadUrl,
        reachable: bool = True,
    ) -> Outcome:
        """What an item's action on its state brings about, now or by what is recalled.

        Parameters
        ----------
        look : key of the look of the item's state.
        load : what a URL shows, for actions that asked for one.
        reachable : whether the page that the state is on was there in this run.
        """
        state, candidate = self._looks.seen(look), item.candidate
        before = self._recall.unchanged(state, look, candidate)
        if (known := self._recall.outcome(before, candidate, reachable=reachable)) is not None:
            return await self._recalled(known, state, worker, load)

        async def again() -> Outcome:
            self._counters["refresh/second_tries"] += 1
            await worker.start_over()
            return await worker.perform(state, candidate, way)

        outcome = await worker.perform(state, candidate, way)
        if (kept := self._recall.in_place_of_action(state.id, candidate, outcome)) is not None:
            return await self._recalled(kept, state, worker, load)
        return await self._recall.checked(state, candidate, outcome, look=self._looks.seen, again=again)

    async def _recalled(self, known: Recalled, state: Snapshot, worker: Worker, load: LoadUrl) -> Outcome:
        outcome = known.outcome
        if outcome.source == "kept":
            self._counters["refresh/kept_actions"] += 1
        else:
            self._counters["refresh/recalled_actions"] += 1
        if known.url:
            shown = await load(known.url, worker.loader, state.raw_url)
            return replace(outcome.led_to(shown, state.id), ms=outcome.ms)
        if outcome.look:
            await self._adopt(outcome.look)
        elif outcome.node_id:
            outcome = replace(outcome, node_id=state.id)
        return outcome

    async def _adopt(self, look: str) -> None:
        await self._looks.adopt(look, *self._recall.captured(look))

    # ---- at the end ----------------------------------------------------------------------------------------------

    async def examine(
        self,
        states: Mapping[str, State],
        loads: Mapping[str, Load],
        loader: Loader,
        noise: Callable[[str], AbstractSet[str]],
    ) -> None:
        """Look again at pages that seem to have changed, and learn what turns out to be noise.

        Parameters
        ----------
        noise : features that are known to come and go by themselves, by URL.
        """
        if not self._recall.record.loads:
            return  # explored for the first time
        shown: list[Snapshot] = []

        async def keep(seen: Snapshot, _: TakeCapture) -> str:
            shown.append(seen)
            return ""

        # Of a known state, the looks that are kept are all the same one.
        fresh = loader.seeing(keep)
        pairs = self._pairs(states)
        try:
            for url, load in loads.items():
                known = self._recall.record.loads.get(url)
                old = self._recall.record.look(known.load.look) if known is not None and known.load.look else None
                if old is None or load.source or not load.look:
                    continue
                new = self._looks.seen(load.look)
                both = [(old, new), *self._decoded(pairs.pop(new.url, ()))]
                shown[:], drawn = [new], {*noise(new.url), *self._recall.record.noise(new.url)}
                for count in range(2, _LOOKS + 1):
                    if not any(news(*pair, drawn) for pair in both):
                        break
                    self._counters["refresh/second_looks"] += 1
                    await fresh.load(url)
                    if len(shown) < count:
                        break  # it cannot be loaded any more
                    restless = Restless(shown)
                    drawn.update(*(news(new, each) for each in shown))
                    drawn.update(*(restless.drawn(each) for each in (*shown, *chain.from_iterable(both))))
                self._drawn.setdefault(new.url, set()).update(drawn)
        finally:
            await fresh.close()

    def _pairs(self, states: Mapping[str, State]) -> dict[str, list[tuple[str, str]]]:
        """By URL, keys of the looks, then and now, at states that were known before and look different now."""
        found: dict[str, list[tuple[str, str]]] = {}
        for node_id, state in states.items():
            key = self._recall.record.states.get(node_id, "")
            if key not in {"", state.look}:
                found.setdefault(state.url, []).append((key, state.look))
        return found

    def _decoded(self, keys: Iterable[tuple[str, str]]) -> Iterator[tuple[Snapshot, Snapshot]]:
        for then, now in keys:
            if (old := self._recall.record.look(then)) is not None:
                yield old, self._looks.seen(now)

    def record(
        self,
        states: Mapping[str, State],
        loads: Mapping[str, Load],
        noise: Mapping[str, Collection[str]],
        is_public: Callable[[str], bool],
    ) -> bytes:
        """What the next exploration recalls.

        Parameters
        ----------
        noise : features that come and go by themselves, by URL; what was known before is added.
        """
        before = self._recall.record
        noise = {url: {*found, *before.noise(url), *self._drawn.get(url, ())} for url, found in sorted(noise.items())}
        contents = Contents(
            about={"script": page_script_hash()},
            states={node_id: state.look for node_id, state in states.items()},
            loads={url: self._kept_load(url, load, noise) for url, load in sorted(loads.items())},
            outcomes=self._kept_outcomes(states),
            look=self._looks.seen,
            blobs=self._looks.blobs,
            noise={url: found for url, found in noise.items() if found},
        )
        return write(contents, is_public)

    def _kept_load(self, url: str, load: Load, noise: Mapping[str, Collection[str]]) -> KeptLoad:
        known = self._recall.record.loads.get(url)
        changed = False
        if known is not None and not load.source and known.load.look != load.look:
            old = self._recall.record.look(known.load.look) if known.load.look else None
            new = self._looks.seen(load.look) if load.look else None
            changed = old is None or new is None or bool(news(old, new, frozenset(noise.get(new.url, ()))))
        return KeptLoad(replace(load, source=""), self._recall.load_track(url, load, changed=changed))

    def _kept_outcomes(self, states: Mapping[str, State]) -> Iterator[KeptOutcome]:
        for state, candidate, outcome in self._journal.performed():
            if state in states and not outcome.left_out[0]:
                track = self._recall.outcome_track(state, candidate, outcome)
                plain = replace(outcome, source="", verdict="")
                yield KeptOutcome(states[state].look, state, candidate.action, candidate.handler, plain, track)

    def summary(self, loads: Mapping[str, Load]) -> RefreshSummary:
        """What asking again showed."""
        actions, verdicts, sampled = Counter[str](), Counter[str](), Counter[bool]()
        unstable: list[tuple[str, str, str, str]] = []
        for state, candidate, outcome in self._journal.performed():
            if outcome.left_out[0]:
                continue
            actions[outcome.source or "asked"] += 1
            if not outcome.verdict:
                continue
            verdicts[outcome.verdict] += 1
            if self._recall.is_uniform(state, candidate):
                sampled[outcome.verdict != "same"] += 1
            if outcome.verdict in {"session_dependent", "non_deterministic"} and len(unstable) < _NAMED:
                unstable.append((state, str(candidate.action), outcome.verdict, standing(candidate.action)))
        rate, most = estimate(sampled[True], sampled.total())
        unasked = (actions["recalled"] + actions["kept"]) / max(1, actions.total())
        return RefreshSummary(
            loads=dict(sorted(Counter(load.source or "asked" for load in loads.values()).items())),
            actions=dict(sorted(actions.items())),
            verdicts=dict(sorted(verdicts.items())),
            sampled=sampled.total(),
            differed=sampled[True],
            stale=round(rate * unasked, 4),
            stale_at_most=round(most * unasked, 4),
            unstable=tuple(unstable),
            outages=sum(load.source == "kept" or self._is_lost(url, load) for url, load in loads.items()),
        )

    def _is_lost(self, url: str, load: Load) -> bool:
        """Whether a page that was there before met an outage, and is not kept any more."""
        known = self._recall.record.loads.get(url)
        return known is not None and bool(known.load.node_id) and is_outage(load.problem)


def estimate(differed: int, sampled: int) -> tuple[float, float]:
    """A share and its upper limit with 95% confidence (Wilson), from a sample of equal chances.

    >>> estimate(0, 0)
    (0.0, 1.0)
    >>> [round(value, 3) for value in estimate(2, 50)]
    [0.04, 0.135]
    """
    if not sampled:
        return 0.0, 1.0
    z, p = 1.96, differed / sampled
    middle = p + z * z / (2 * sampled)
    spread = z * ((p * (1 - p) + z * z / (4 * sampled)) / sampled) ** 0.5
    return p, min(1.0, (middle + spread) / (1 + z * z / sampled))
