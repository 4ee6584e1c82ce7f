"""The frontier: elements that are new in a state and that no policy refuses, and the rounds of work made of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any

from waygraph.core.settings import ExploreSettings
from waygraph.index.graph import PASSIVE_KINDS, Action
from waygraph.pipeline.browser.page.snapshot import Candidate, Snapshot
from waygraph.pipeline.explore.checkpoint.snapshot_store import SnapshotStore
from waygraph.pipeline.explore.engine.graph_builder import GraphRules
from waygraph.pipeline.explore.engine.novelty import ItemKind, item_kind, places
from waygraph.pipeline.explore.engine.order import ExplorationOrder, PendingItem
from waygraph.pipeline.explore.engine.round import WorkItem
from waygraph.pipeline.explore.identity.difference import split_candidates
from waygraph.pipeline.explore.policies.explain import refusal_to_skip
from waygraph.pipeline.explore.policies.policy import ElementPolicy, Refusal
from waygraph.pipeline.explore.records.capture import Skip
from waygraph.pipeline.explore.records.element_outcome import ElementOutcome
from waygraph.pipeline.explore.records.state import State
from waygraph.pipeline.explore.records.stats import ExplorationStats

#: States whose elements are placed in memory.
_CACHED_STATES = 64


class Frontier:
    """Collect work items and plan rounds of them.

    Parameters
    ----------
    policies
        Reasons to leave elements alone, applied in order.
    stats
        Statistics of the exploration.
    snapshots
        Snapshots of states.
    rules
        Traps, sibling budgets, and the skeleton, which refuses links to pages like visited ones.
    settings
        Structural difference and the cap of activations.
    made_by
        Returns the action on its parent that showed a state first.
    order
        Which pending items come next.
    """

    def __init__(
        self,
        policies: Sequence[ElementPolicy],
        stats: ExplorationStats,
        snapshots: SnapshotStore,
        *,
        rules: GraphRules,
        settings: ExploreSettings,
        made_by: Callable[[str], Action | None],
        order: ExplorationOrder,
    ) -> None:
        self._policies = policies
        self._stats = stats
        self._snapshots = snapshots
        self._traps = rules.traps
        self._siblings = rules.siblings
        self._dead_links = rules.dead_links
        self._skeleton = rules.skeleton
        self._session_values = rules.session_values
        self._settings = settings
        self._made_by = made_by
        self._order = order
        self._states: dict[str, State] = {}
        """States whose elements were added, by id, in the order of adding."""
        self._places_in = lru_cache(maxsize=_CACHED_STATES)(self._find_places)
        self._pending: dict[int, int] = {}
        """Pending elements of a state: by its place in `_states`, a bit for each place among the candidates."""
        self._forms: set[str] = set()
        """Search forms whose submission was added."""

    @property
    def pending(self) -> int:
        """Number of elements that are known and not planned."""
        return self._order.pending

    def states_with_pending(self) -> set[str]:
        """Return the states of which elements are known and not planned."""
        ids = list(self._states)
        return {ids[place] for place in self._pending}

    def begin(self, start: Snapshot) -> None:
        """Note the start page."""
        self._order.begin(start)

    def add(self, state: State) -> None:
        """Add the new elements of a state, in document order, unless they are refused."""
        seen = self._snapshots.get(state.id)
        trapped = self._traps.refuse_state(state.id)
        place = len(self._states)
        self._states[state.id] = state
        numbers = {id(candidate): number for number, candidate in enumerate(seen.candidates)}
        for candidate in self._new(state, seen):
            if candidate.listener == "page" and self._siblings.is_exhausted(candidate):
                self._stats.counters["items/left_alone"] += 1
                continue
            refusal = trapped or self.refuse(candidate, seen) or self._refuse_more(candidate) or self._probe(candidate)
            if refusal is not None:
                self._count_unvisited(candidate, refusal)
                self._stats.skip(refusal_to_skip(state.id, candidate, refusal))
                continue
            number = numbers[id(candidate)]
            self._pending[place] = self._pending.get(place, 0) | 1 << number
            self._order.add(self._pending_item(place, number, candidate, state))

    def count_untried(self, state: State) -> None:
        """Count the new elements of a state at the depth limit, by kind, unless they are refused."""
        seen = self._snapshots.get(state.id)
        for candidate in self._new(state, seen):
            if self.refuse(candidate, seen) is None:
                action = candidate.action
                kind = "link" if action.kind == "click" and action.target else action.kind
                self._stats.counters[f"depth_limit/{kind}"] += 1

    def is_added(self, state_id: str) -> bool:
        """Return whether the elements of a state were added."""
        return state_id in self._states

    def next_round(self, states: int) -> list[WorkItem]:
        """Return the items of the next round, by state and element; empty if none is left.

        Parameters
        ----------
        states
            Number of states found so far.

        Returns
        -------
        list of WorkItem
            States in the order in which they were added, elements in document order.
        """
        taken = self._order.take(states, self._settings.max_states - states)
        for item in taken:
            self._pending[item.state] &= ~(1 << item.element)
            if not self._pending[item.state]:
                del self._pending[item.state]
        ids = list(self._states)
        budget = max(0, self._settings.max_activations - self._stats.planned)
        for item in taken[budget:]:
            self._stats.skip(Skip(ids[item.state], "max_activations", str(item.candidate.action)))
            self._stats.stopped_by = "max_activations"
        planned = taken[:budget]
        self._stats.planned += len(planned)
        return [WorkItem(i, ids[item.state], item.candidate) for i, item in enumerate(planned)]

    def learn(self, item: WorkItem, found: Snapshot | None) -> None:
        """Learn from the committed result of an item. `found` is the new state that it led to, if any."""
        source = self._states[item.state_id]
        self._stats.gain += self._order.learn(self._kind(item.candidate, source), found)

    def expected_gain(self, count: int, unperformed: Sequence[WorkItem], not_added: Iterable[State]) -> float:
        """Return the expected gain of that many further items together, see `ExplorationOrder`.

        Parameters
        ----------
        count
            Number of items.
        unperformed
            Items that were planned and not performed. They count as pending.
        not_added
            States whose elements will be added. They count as pending unless they are refused.

        Returns
        -------
        float
            About the number of pages of new kinds.
        """
        places = {state_id: place for place, state_id in enumerate(self._states)} if unperformed else {}
        planned = [
            # Negative numbers, so that none is that of another element.
            self._pending_item(places[item.state_id], -1 - item.index, item.candidate, self._states[item.state_id])
            for item in unperformed
        ]
        return self._order.expected_gain(count, planned, self._found_in(not_added))

    def _found_in(self, states: Iterable[State]) -> Iterator[PendingItem]:
        for place, state in enumerate(states, start=len(self._states)):
            seen = self._snapshots.get(state.id)
            if self._traps.refuse_state(state.id):
                continue
            for number, candidate in enumerate(self._split(state, seen)[0]):
                if candidate.form in self._forms or self._siblings.is_exhausted(candidate):
                    continue
                if self.refuse(candidate, seen) or self._refuse_more(candidate):
                    continue
                yield self._pending_item(place, number, candidate, state)

    def _pending_item(self, place: int, number: int, candidate: Candidate, state: State) -> PendingItem:
        return PendingItem(place, number, candidate, self._kind(candidate, state))

    def _kind(self, candidate: Candidate, state: State) -> ItemKind:
        return item_kind(candidate, self._places_in(state.id)[candidate.action], state.url, state.depth)

    def _find_places(self, state_id: str) -> dict[Action, str]:
        seen = self._snapshots.get(state_id)
        return dict(zip((candidate.action for candidate in seen.candidates), places(seen), strict=True))

    def unplanned(self) -> Iterator[ElementOutcome]:
        """Yield the elements that were never planned, since a limit ended the run."""
        for item, state in self._unplanned():
            action = item.candidate.action
            yield ElementOutcome(state.id, str(action), "pending", target=action.target, xpath=action.xpath)

    def _unplanned(self) -> Iterator[tuple[PendingItem, State]]:
        states = list(self._states.values())
        for place in sorted(self._pending):
            state, elements = states[place], self._pending[place]
            for number, candidate in enumerate(self._snapshots.get(state.id).candidates):
                if elements >> number & 1:
                    yield self._pending_item(place, number, candidate, state), state

    def _new(self, state: State, seen: Snapshot) -> list[Candidate]:
        new, old = self._split(state, seen)
        self._stats.counters["diff/saved"] += sum(1 for c in old if self.refuse(c, seen) is None)
        return new

    def _split(self, state: State, seen: Snapshot) -> tuple[list[Candidate], list[Candidate]]:
        """Return the elements of a state that are new compared with its parent, and the others."""
        parent = self._snapshots.get(state.parent) if state.parent else None
        new, old = split_candidates(seen, parent, self._settings.diff, self._made_by(state.id))
        if state.parent and self._session_of(state) != self._session_of(self._states[state.parent]):
            # What links lead to in the session of the parent says nothing here.
            kept = {id(candidate) for candidate in old if not candidate.action.target}
            new = [candidate for candidate in seen.candidates if id(candidate) not in kept]
            old = [candidate for candidate in old if id(candidate) in kept]
        return new, old

    def _session_of(self, state: State) -> str:
        return self._session_values.session_of(state.left)

    def refuse(self, candidate: Candidate, snapshot: Snapshot) -> Refusal | None:
        """Return why a policy leaves an element alone; None if it does not."""
        return next((no for policy in self._policies if (no := policy.refuse(candidate, snapshot))), None)

    def _refuse_more(self, candidate: Candidate) -> Refusal | None:
        """Return a reason from what was found so far. Such reasons may arise while a round is explored."""
        url = candidate.action.target
        if candidate.action.kind in PASSIVE_KINDS or not url.startswith(("http:", "https:")):
            return None
        return (
            (None if candidate.handler else self._dead_links.refuse(url))
            or self._traps.refuse_link(url)
            or (self._skeleton.refuse_link(url) if self._skeleton else None)
        )

    def _probe(self, candidate: Candidate) -> Refusal | None:
        """Note the search form that an element submits; refuse a form that was noted before.

        One page of results stands for all results of a form.
        """
        if candidate.form and candidate.form in self._forms:
            return Refusal("same_form", candidate.form)
        if candidate.form:
            self._forms.add(candidate.form)
        return None

    def refuse_now(self, item: WorkItem) -> Refusal | None:
        """Return why a planned item is not wanted any more. Has no side effects, since workers call it at any time."""
        return (
            self._traps.refuse_state(item.state_id)
            or self._refuse_more(item.candidate)
            or self._siblings.refuse(item.state_id, item.candidate, self._states[item.state_id].url)
        )

    def refuse_at_last(self, item: WorkItem) -> Refusal | None:
        """Return the same when the item is committed, and count what is not visited."""
        if refusal := self.refuse_now(item):
            self._count_unvisited(item.candidate, refusal)
        return refusal

    def _count_unvisited(self, candidate: Candidate, refusal: Refusal) -> None:
        if refusal.reason == "skeleton" and self._skeleton is not None:
            self._skeleton.count_unvisited(candidate.action.target)

    # ---- checkpoints ---------------------------------------------------------------------------------------------

    def to_checkpoint(self) -> dict[str, Any]:
        """Return the pending elements and what was learned, as plain JSON."""
        return {
            "added": list(self._states),
            "pending": [[place, f"{elements:x}"] for place, elements in self._pending.items()],
            "forms": sorted(self._forms),
            "order": self._order.to_checkpoint(),
        }

    def load_checkpoint(self, checkpoint: Mapping[str, Any], states: Mapping[str, State]) -> None:
        """Restore what `to_checkpoint` returned. `states` are all states by id."""
        self._states = {state_id: states[state_id] for state_id in checkpoint["added"]}
        self._pending = {place: int(elements, 16) for place, elements in checkpoint["pending"]}
        self._forms = set(checkpoint.get("forms", ()))  # checkpoints of earlier versions have none
        self._order.load_checkpoint(checkpoint["order"], (item for item, _ in self._unplanned()))
