"""Refresh: an exploration that reuses answers of an earlier one, asks a sample again, compares, and writes a record.

A first exploration runs through the same class, with an empty prior exploration.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable, Collection, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from functools import partial
from itertools import chain

from msgspec.structs import replace

from waygraph.index.graph import PathStep
from waygraph.index.graph.diff import element_location
from waygraph.pipeline.browser.page.script import page_script_hash
from waygraph.pipeline.browser.page.snapshot import Snapshot
from waygraph.pipeline.browser.session import TakeCapture
from waygraph.pipeline.explore.checkpoint.journal import Journal
from waygraph.pipeline.explore.checkpoint.snapshot_store import SnapshotStore
from waygraph.pipeline.explore.engine.loader import Loader
from waygraph.pipeline.explore.engine.outages import is_outage
from waygraph.pipeline.explore.engine.round import WorkItem
from waygraph.pipeline.explore.engine.worker import Worker
from waygraph.pipeline.explore.identity.thresholds import SNAPSHOTS_OF_CHANGED_PAGE
from waygraph.pipeline.explore.records.capture import RefreshSummary
from waygraph.pipeline.explore.records.outcome import ActionOutcome
from waygraph.pipeline.explore.records.state import Load, State
from waygraph.pipeline.explore.refresh.exploration_record import (
    RecordContents,
    RecordedLoad,
    RecordedOutcome,
    write_record,
)
from waygraph.pipeline.explore.refresh.noise import UnstableRegions, changed_features
from waygraph.pipeline.explore.refresh.prior_exploration import PriorExploration, ReusedOutcome

#: Loads a URL through a worker's loader, with a referrer, or returns the result that is already known.
LoadUrl = Callable[[str, Loader, str], Awaitable[Load]]

#: Unstable actions that a summary lists.
_MAX_LISTED_ACTIONS = 200


class Refresh:
    """Loads and actions of one exploration, answered by the prior exploration or by the site.

    Parameters
    ----------
    prior
        The prior exploration, with the plan of what is asked again.
    snapshots
        Snapshots of this run.
    journal
        Journal of this run.
    counters
        Counters of this run, see docs/counters.md.
    """

    def __init__(
        self, prior: PriorExploration, *, snapshots: SnapshotStore, journal: Journal, counters: Counter[str]
    ) -> None:
        self._prior = prior
        self._snapshots = snapshots
        self._journal = journal
        self._counters = counters
        self._found_noise: dict[str, set[str]] = {}
        """Features that `find_noise` found, by URL."""

    # ---- answers -------------------------------------------------------------------------------------------------

    async def load(self, url: str, address: str, loader: Loader, referrer: str) -> Load:
        """Return the result of loading a page: reused, new, or kept in an outage.

        Parameters
        ----------
        url
            Normalised URL of the page.
        address
            URL to request.
        loader
            Requests it.
        referrer
            Value of the `Referer` header; empty for none.

        Returns
        -------
        Load
            The result, with its source.
        """
        if (reused := self._prior.reused_load(url)) is not None:
            self._counters["refresh/recalled_loads"] += 1
            await self._adopt(reused.snapshot_key)
            return reused
        load = await loader.load(address, referrer)
        kept = self._prior.kept_load(url, load, self._snapshots.read(load.snapshot_key) if load.snapshot_key else None)
        if kept is None:
            return load
        self._counters["refresh/kept_loads"] += 1
        await self._adopt(kept.snapshot_key)
        return kept

    async def perform(
        self,
        worker: Worker,
        item: WorkItem,
        route: Sequence[PathStep] | None,
        *,
        snapshot_key: str,
        load_url: LoadUrl,
        is_reachable: bool = True,
    ) -> ActionOutcome:
        """Return the outcome of an item's action: reused, new with a verdict, or kept in an outage.

        Parameters
        ----------
        worker
            Performs the action.
        item
            The work item.
        route
            Route to its state; None if there is none.
        snapshot_key
            Key of the snapshot of the item's state.
        load_url
            Loads the documents that actions request.
        is_reachable
            Whether the page that the route starts from could be loaded in this run.

        Returns
        -------
        ActionOutcome
            With its source, and a verdict if there is a recorded outcome to compare with.
        """
        state, candidate = self._snapshots.read(snapshot_key), item.candidate
        recorded_key = self._prior.recorded_key(state, snapshot_key, candidate)
        reused = self._prior.reused_outcome(recorded_key, candidate, is_reachable=is_reachable)
        if reused is not None:
            return await self._reuse(reused, state, worker, load_url)

        async def repeat() -> ActionOutcome:
            self._counters["refresh/second_tries"] += 1
            await worker.start_over()
            return await worker.perform(state, candidate, route)

        outcome = await worker.perform(state, candidate, route)
        if (kept := self._prior.kept_outcome(state.id, candidate, outcome)) is not None:
            return await self._reuse(kept, state, worker, load_url)
        return await self._prior.with_verdict(
            state, candidate, outcome, snapshot_of=self._snapshots.read, repeat=repeat
        )

    async def _reuse(self, reused: ReusedOutcome, state: Snapshot, worker: Worker, load_url: LoadUrl) -> ActionOutcome:
        outcome = reused.outcome
        if outcome.source == "kept":
            self._counters["refresh/kept_actions"] += 1
        else:
            self._counters["refresh/recalled_actions"] += 1
        if reused.url:
            load = await load_url(reused.url, worker.loader, state.raw_url)
            return replace(outcome.led_to(load, state.id), ms=outcome.ms)
        if outcome.snapshot_key:
            await self._adopt(outcome.snapshot_key)
        elif outcome.node_id:
            outcome = replace(outcome, node_id=state.id)
        return outcome

    async def _adopt(self, snapshot_key: str) -> None:
        await self._snapshots.adopt(snapshot_key, *self._prior.snapshot_and_captures(snapshot_key))

    # ---- noise, after the last round -----------------------------------------------------------------------------

    async def find_noise(
        self,
        states: Mapping[str, State],
        loads: Mapping[str, Load],
        loader: Loader,
        noise_at: Callable[[str], AbstractSet[str]],
    ) -> None:
        """Load pages that seem to have changed again, and find which of the changes are noise.

        Parameters
        ----------
        states
            States of the map, by id.
        loads
            Results of loads in this run, by normalised URL.
        loader
            Loader of a worker that has finished.
        noise_at
            Returns the features that are known as noise of a URL.
        """
        if not self._prior.record.loads:
            return  # A first exploration.
        taken: list[Snapshot] = []

        async def take(snapshot: Snapshot, _: TakeCapture) -> str:
            taken.append(snapshot)
            return ""

        # A loader of its own, since the snapshot store keeps one snapshot of a known state.
        fresh_loader = loader.saving_to(take)

        async def load_again(url: str) -> Snapshot | None:
            taken.clear()
            await fresh_loader.load(url)
            return taken[0] if taken else None

        changed_states = self._changed_states(states)
        try:
            for url, old, new in self._pages_asked_again(loads):
                pairs = [(old, new), *self._snapshot_pairs(changed_states.pop(new.url, ()))]
                known = {*noise_at(new.url), *self._prior.record.noise(new.url)}
                noise = await self._noise_of_page(pairs, known, partial(load_again, loads[url].address or url))
                self._found_noise.setdefault(new.url, set()).update(noise)
        finally:
            await fresh_loader.close()

    def _pages_asked_again(self, loads: Mapping[str, Load]) -> Iterator[tuple[str, Snapshot, Snapshot]]:
        """Yield URL, recorded snapshot and new snapshot of each page that the site was asked for again."""
        for url, load in loads.items():
            recorded = self._prior.record.loads.get(url)
            if recorded is None or not recorded.load.snapshot_key or load.source or not load.snapshot_key:
                continue
            old = self._prior.record.snapshot(recorded.load.snapshot_key)
            if old is not None:
                yield url, old, self._snapshots.read(load.snapshot_key)

    async def _noise_of_page(
        self,
        pairs: Sequence[tuple[Snapshot, Snapshot]],
        known: AbstractSet[str],
        load_again: Callable[[], Awaitable[Snapshot | None]],
    ) -> set[str]:
        """Load a page again until its changes are explained by noise, or it has been loaded often enough.

        Parameters
        ----------
        pairs
            Recorded and new snapshots of the page as loaded (first), and of its other states that changed.
        known
            Features that are known as noise of the page.
        load_again
            Loads the page; returns None if it cannot be loaded any more.

        Returns
        -------
        set[str]
            Features that are noise, with the known ones.
        """
        new = pairs[0][1]
        taken, noise = [new], set(known)
        while len(taken) < SNAPSHOTS_OF_CHANGED_PAGE and any(changed_features(*pair, noise) for pair in pairs):
            self._counters["refresh/second_looks"] += 1
            again = await load_again()
            if again is None:
                break
            taken.append(again)
            regions = UnstableRegions(taken)
            noise.update(*(changed_features(new, each) for each in taken))
            noise.update(*(regions.noise_in(each) for each in (*taken, *chain.from_iterable(pairs))))
        return noise

    def _changed_states(self, states: Mapping[str, State]) -> dict[str, list[tuple[str, str]]]:
        """Return, by URL, the old and the new snapshot key of each recorded state that looks different now."""
        keys: dict[str, list[tuple[str, str]]] = {}
        for node_id, state in states.items():
            recorded = self._prior.record.states.get(node_id, "")
            if recorded not in {"", state.snapshot_key}:
                keys.setdefault(state.url, []).append((recorded, state.snapshot_key))
        return keys

    def _snapshot_pairs(self, keys: Iterable[tuple[str, str]]) -> Iterator[tuple[Snapshot, Snapshot]]:
        for old_key, new_key in keys:
            if (old := self._prior.record.snapshot(old_key)) is not None:
                yield old, self._snapshots.read(new_key)

    # ---- record for the next refresh -----------------------------------------------------------------------------

    def to_record(
        self,
        states: Mapping[str, State],
        loads: Mapping[str, Load],
        noise: Mapping[str, Collection[str]],
        is_public: Callable[[str], bool],
        *,
        at: str = "",
    ) -> bytes:
        """Return the record of this exploration, which the next refresh reuses.

        Parameters
        ----------
        states
            States of the map, by id.
        loads
            Results of loads in this run, by normalised URL.
        noise
            Features that are known as noise, by URL. Noise of the prior exploration is added.
        is_public
            Whether the JSON of an entry contains no secret.
        at
            When this exploration began, in the form of `ListedPage.lastmod`.

        Returns
        -------
        bytes
            The file, see `ExplorationRecord`.
        """
        prior = self._prior.record
        noise = {
            url: {*features, *prior.noise(url), *self._found_noise.get(url, ())}
            for url, features in sorted(noise.items())
        }
        contents = RecordContents(
            about={"script": page_script_hash(), "at": at},
            states={node_id: state.snapshot_key for node_id, state in states.items()},
            loads={url: self._recorded_load(url, load, noise, at) for url, load in sorted(loads.items())},
            outcomes=self._recorded_outcomes(states),
            snapshot=self._snapshots.read,
            blobs=self._snapshots.blobs,
            noise={url: features for url, features in noise.items() if features},
        )
        return write_record(contents, is_public)

    def _recorded_load(self, url: str, load: Load, noise: Mapping[str, Collection[str]], at: str) -> RecordedLoad:
        recorded = self._prior.record.loads.get(url)
        changed = False
        if recorded is not None and not load.source and recorded.load.snapshot_key != load.snapshot_key:
            old = self._prior.record.snapshot(recorded.load.snapshot_key) if recorded.load.snapshot_key else None
            new = self._snapshots.read(load.snapshot_key) if load.snapshot_key else None
            changed = old is None or new is None or bool(changed_features(old, new, frozenset(noise.get(new.url, ()))))
        asked = recorded.asked if recorded is not None and load.source else at
        return RecordedLoad(replace(load, source=""), self._prior.load_history(url, load, changed=changed), asked)

    def _recorded_outcomes(self, states: Mapping[str, State]) -> Iterator[RecordedOutcome]:
        for state_id, candidate, outcome in self._journal.performed():
            if state_id in states and not outcome.skipped.reason:
                history = self._prior.outcome_history(state_id, candidate, outcome)
                plain = replace(outcome, source="", verdict="")
                snapshot_key = states[state_id].snapshot_key
                yield RecordedOutcome(snapshot_key, state_id, candidate.action, candidate.handler, plain, history)

    # ---- summary -------------------------------------------------------------------------------------------------

    def summary(self, loads: Mapping[str, Load]) -> RefreshSummary:
        """Return how many answers were reused, asked again or kept, and the verdicts of the re-asked ones."""
        actions, verdicts, sampled = Counter[str](), Counter[str](), Counter[bool]()
        unstable: list[tuple[str, str, str, str]] = []
        for state_id, candidate, outcome in self._journal.performed():
            if outcome.skipped.reason:
                continue
            actions[outcome.source or "asked"] += 1
            if not outcome.verdict:
                continue
            verdicts[outcome.verdict] += 1
            if self._prior.is_in_uniform_sample(state_id, candidate):
                sampled[outcome.verdict != "same"] += 1
            if outcome.verdict in {"session_dependent", "non_deterministic"} and len(unstable) < _MAX_LISTED_ACTIONS:
                action = candidate.action
                unstable.append((state_id, str(action), outcome.verdict, element_location(action)))
        stale, stale_at_most = estimate_share(sampled[True], sampled.total())
        unasked = (actions["recalled"] + actions["kept"]) / max(1, actions.total())
        return RefreshSummary(
            loads=dict(sorted(Counter(load.source or "asked" for load in loads.values()).items())),
            actions=dict(sorted(actions.items())),
            verdicts=dict(sorted(verdicts.items())),
            sampled=sampled.total(),
            differed=sampled[True],
            stale=round(stale * unasked, 4),
            stale_at_most=round(stale_at_most * unasked, 4),
            unstable=tuple(unstable),
            outages=sum(load.source == "kept" or self._is_lost(url, load) for url, load in loads.items()),
        )

    def _is_lost(self, url: str, load: Load) -> bool:
        """Return whether a recorded page met an outage and its recorded answer is no longer kept."""
        recorded = self._prior.record.loads.get(url)
        return recorded is not None and bool(recorded.load.node_id) and is_outage(load)


def estimate_share(differed: int, sampled: int) -> tuple[float, float]:
    """Return a share and its upper limit at 95% confidence (Wilson score interval), from a uniform sample.

    >>> estimate_share(0, 0)
    (0.0, 1.0)
    >>> [round(value, 3) for value in estimate_share(2, 50)]
    [0.04, 0.135]
    """
    if not sampled:
        return 0.0, 1.0
    z, p = 1.96, differed / sampled
    center = p + z * z / (2 * sampled)
    spread = z * ((p * (1 - p) + z * z / (4 * sampled)) / sampled) ** 0.5
    return p, min(1.0, (center + spread) / (1 + z * z / sampled))
