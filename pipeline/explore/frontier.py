"""Which work does a level hold? The new elements of its states, in canonical order, that no policy refuses."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from index.graph import PASSIVE, Action
from pipeline.browser.snapshot import Candidate, Snapshot
from pipeline.explore.account import Account
from pipeline.explore.capture import Skip
from pipeline.explore.difference import split_candidates
from pipeline.explore.explain import refused
from pipeline.explore.identity import Skeleton
from pipeline.explore.identity.siblings import Siblings
from pipeline.explore.identity.traps import Traps
from pipeline.explore.level import Item
from pipeline.explore.looks import Looks
from pipeline.explore.policy import Policy, Refusal
from pipeline.explore.state import State
from waygraph.settings import ExploreSettings


class Frontier:
    """Plans the work of levels.

    Parameters
    ----------
    policies : reasons to leave elements alone, asked in order.
    skeleton : refuses links to pages like those that were visited; nothing visits them all.
    made_by : the action that showed a state first, on its parent.
    """

    def __init__(
        self,
        policies: Sequence[Policy],
        account: Account,
        looks: Looks,
        *,
        traps: Traps,
        siblings: Siblings,
        skeleton: Skeleton | None,
        settings: ExploreSettings,
        made_by: Callable[[str], Action | None],
    ) -> None:
        self._policies = policies
        self._account = account
        self._looks = looks
        self._traps = traps
        self._siblings = siblings
        self._skeleton = skeleton
        self._settings = settings
        self._made_by = made_by

    def items(self, states: Iterable[State]) -> list[Item]:
        """Work of one level: states as they were found, elements in document order."""
        items: list[Item] = []
        account = self._account
        budget = self._settings.max_activations - account.planned
        for state in states:
            seen = self._looks.get(state.id)
            trapped = self._traps.refuse_state(state.id)
            for candidate in self._new(state, seen):
                refusal = trapped or self._refusal(candidate, seen) or self._refuse_more(candidate)
                if refusal is not None:
                    self._note(candidate, refusal)
                    account.skip(refused(state.id, candidate, refusal))
                elif len(items) >= budget:
                    account.skip(Skip(state.id, "max_activations", str(candidate.action)))
                    account.stopped_by = "max_activations"
                else:
                    items.append(Item(len(items), state.id, candidate))
        account.planned += len(items)
        return items

    def _new(self, state: State, seen: Snapshot) -> list[Candidate]:
        parent = self._looks.get(state.parent) if state.parent else None
        new, old = split_candidates(seen, parent, self._settings.diff, self._made_by(state.id))
        self._account.counters["diff/saved"] += sum(1 for c in old if self._refusal(c, seen) is None)
        return new

    def _refusal(self, candidate: Candidate, seen: Snapshot) -> Refusal | None:
        return next((no for policy in self._policies if (no := policy.refuse(candidate, seen))), None)

    def _refuse_more(self, candidate: Candidate) -> Refusal | None:
        """Reasons that what was found so far gives; they may come up while a level is worked on."""
        url = candidate.action.target
        if candidate.action.kind in PASSIVE or not url.startswith(("http:", "https:")):
            return None
        return self._traps.refuse_link(url) or (self._skeleton.refuse_link(url) if self._skeleton else None)

    def refuse_now(self, item: Item) -> Refusal | None:
        """Why an item that was planned is not wanted any more. Changes nothing: workers ask at any time."""
        return (
            self._traps.refuse_state(item.state_id)
            or self._refuse_more(item.candidate)
            or self._siblings.refuse(item.state_id, item.candidate)
        )

    def refuse_at_last(self, item: Item) -> Refusal | None:
        """The same when the item's turn to be committed has come: what is not visited is counted."""
        if refusal := self.refuse_now(item):
            self._note(item.candidate, refusal)
        return refusal

    def _note(self, candidate: Candidate, refusal: Refusal) -> None:
        if refusal.reason == "skeleton" and self._skeleton is not None:
            self._skeleton.leave(candidate.action.target)
