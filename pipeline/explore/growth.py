"""How does the graph grow? Outcomes are taken into it in canonical order, by rules that know nothing of browsers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from index.graph import Action, Edge, Merge
from pipeline.browser.snapshot import Snapshot
from pipeline.browser.view import TAKES_NO_POINTER
from pipeline.explore.account import Account
from pipeline.explore.capture import Failure, Skip
from pipeline.explore.difference import action_key, shows_more
from pipeline.explore.identity import CameBy, Recogniser
from pipeline.explore.identity.siblings import Siblings
from pipeline.explore.identity.traps import Traps
from pipeline.explore.level import Item
from pipeline.explore.looks import Looks
from pipeline.explore.policy import Refusal
from pipeline.explore.scope import Scope
from pipeline.explore.state import Load, State
from pipeline.explore.worker import Outcome


class Growth:
    """The states and edges found so far. Not aware of workers: `commit` is called in canonical order.

    Parameters
    ----------
    recogniser : tells looks at known states from looks at new ones.
    traps : notices groups of states that only lead to more of themselves.
    siblings : notices elements that all do the same.
    looks : everything that was seen; which look counts as a state's is decided here.
    """

    def __init__(
        self,
        scope: Scope,
        account: Account,
        recogniser: Recogniser,
        traps: Traps,
        looks: Looks,
        *,
        siblings: Siblings,
        max_states: int,
    ) -> None:
        self._scope = scope
        self._account = account
        self._recogniser = recogniser
        self._traps = traps
        self._siblings = siblings
        self._looks = looks
        self._max_states = max_states
        self.states: dict[str, State] = {}
        self.edges: list[Edge] = []
        self._made_by: dict[str, Action] = {}
        self.merges: dict[str, Merge] = {}
        """Looks that were taken for a known state, by their own id."""

    def learn(self, first: Snapshot, again: Snapshot) -> None:
        """Two looks at one page that nothing was done to: what differs changes by itself."""
        self._recogniser.learn(first, again)

    def begin(self, look: str) -> State:
        """Take the start state; `look` is the key of what was seen."""
        seen = self._looks.seen(look)
        self._recogniser.place(seen, source=None, came_by="load")
        return self._add(seen, look, 0, None, "load")

    def canonical(self, node_id: str) -> str:
        """The state that a look with this id was taken for; the id itself when it is no other's."""
        merge = self.merges.get(node_id)
        return merge.kept if merge is not None else node_id

    def made_by(self, node_id: str) -> Action | None:
        """The action that showed a state first, on its parent; nothing for the start."""
        return self._made_by.get(node_id)

    def agrees(self, seen: Snapshot, node_id: str, came_by: CameBy) -> bool:
        """Whether a page that should show a state does, noise aside."""
        return node_id in self.states and self._recogniser.agrees(seen, node_id, came_by=came_by)

    def commit(self, item: Item, outcome: Outcome, depth: int) -> bool:
        """Take one outcome into the graph; False ends the level, at a cap."""
        known = len(self.states)
        goes_on = self._take(item, outcome, depth)
        if outcome.node_id or TAKES_NO_POINTER in outcome.problem:
            brought = len(self.states) > known or outcome.had_effects
            self._siblings.tried(item.state_id, item.candidate, brought=brought)
        return goes_on

    def _take(self, item: Item, outcome: Outcome, depth: int) -> bool:
        source, action, account = item.state_id, item.candidate.action, self._account
        if outcome.left_out[0]:
            self._account_for(item, Refusal(*outcome.left_out))
            return True
        if not outcome.node_id:
            self._fail(item, outcome)
            return True
        target = self.canonical(outcome.node_id)
        seen = None if target in self.states else self._looks.seen(outcome.look)
        reason = self._why_no_edge(source, target, outcome, seen, is_probe=action.kind != "click")
        if reason is None and seen is not None:
            target = self._place(seen, source, outcome)
            # What turned out to be the state itself may still be no edge.
            reason = self._why_no_edge(source, target, outcome, None, is_probe=action.kind != "click")
        is_new = seen is not None and target == seen.id
        if reason is None and seen is not None and is_new:
            reason = self._traps.refuse_seen(seen, self._looks.get(source), _came_by(outcome))
            if reason is None and self._is_repeated(source, action) and not shows_more(seen, self._chain(source)):
                reason = Refusal("trap", "the same again, and nothing that was not shown before")
        if reason is not None:
            self._account_for(item, reason)
            return True
        if seen is not None and is_new:
            if len(self.states) >= self._max_states:
                account.stopped_by = "max_states"
                return False
            is_repeated = self._is_repeated(source, action)
            self._add(seen, outcome.look, depth, source, _came_by(outcome), is_repeated=is_repeated)
            self._made_by[seen.id] = action
        account.counters["guard/blocked"] += len(outcome.blocked)
        account.counters["guard/observed"] += len(outcome.observed)
        for url in outcome.other_tabs:
            account.skip(Skip(source, "second_tab", str(action), url))
        self.edges.append(
            Edge(
                source=source,
                target=target,
                action=action,
                cost_ms=round(outcome.ms, 1),
                opens_tab=outcome.opens_tab,
                blocked=tuple(sorted({*outcome.blocked, *outcome.observed})),
                dialogs=outcome.dialogs,
            )
        )
        return True

    def take_probe(self, state: State, load: Load) -> None:
        """Take note of what loading the URL of a state showed, when that is the state but for noise."""
        shown = self.canonical(load.node_id)
        if shown not in self.states and self._recogniser.is_page_of(seen := self._looks.seen(load.look), state.id):
            self._merge(Merge(state.id, shown, "reload", seen.url))

    def _place(self, seen: Snapshot, source: str, outcome: Outcome) -> str:
        """The state that `seen` is: a known one, or its own."""
        self._recogniser.note_noise(self.states[source].url, outcome.noise)
        placement = self._recogniser.place(
            seen,
            source=self._looks.get(source),
            came_by=_came_by(outcome),
            changed=dict(outcome.changed) if outcome.noise else None,
        )
        if placement.merge is not None:
            self._merge(placement.merge)
        return placement.node_id

    def _merge(self, merge: Merge) -> None:
        self.merges[merge.merged] = merge
        self._account.counters[f"merge/{merge.reason}"] += 1

    def _is_repeated(self, source: str, action: Action) -> bool:
        """Whether a state was made by the very action that is now done on it."""
        made_by = self._made_by.get(source)
        return made_by is not None and action_key(made_by, "element") == action_key(action, "element")

    def _chain(self, node_id: str) -> Iterator[Snapshot]:
        """Looks at a state and at those it came from by doing the same again and again."""
        while True:
            yield self._looks.get(node_id)
            parent, made_by = self.states[node_id].parent, self._made_by.get(node_id)
            if parent is None or made_by is None:
                return
            if not self._is_repeated(parent, made_by):
                yield self._looks.get(parent)
                return
            node_id = parent

    def _add(
        self, seen: Snapshot, look: str, depth: int, parent: str | None, came_by: CameBy, *, is_repeated: bool = False
    ) -> State:
        state = self.states[seen.id] = State.of(seen, look, depth, parent)
        self._looks.choose(state)
        self._recogniser.add(seen, came_by)
        self._traps.visited(seen, self._looks.get(parent) if parent else None, came_by, is_repeated=is_repeated)
        return state

    def _fail(self, item: Item, outcome: Outcome) -> None:
        action = item.candidate.action
        if TAKES_NO_POINTER in outcome.problem and self._is_repeated(item.state_id, action):
            # It lies below what it had opened: a person would not think of using it again.
            self._account.counters["repeat/covered"] += 1
            return
        self._account.fail(Failure(item.state_id, str(action), outcome.problem), item.index)

    def _account_for(self, item: Item, reason: Refusal) -> None:
        source, action, account = item.state_id, str(item.candidate.action), self._account
        if reason.reason == "no_effect":
            account.counters["hover/no_effect"] += 1
        elif reason.reason.startswith("http_") or reason.reason in {"not_html", "not_loaded"}:
            account.fail(Failure(source, action, f"{reason.reason} {reason.detail}".strip()), item.index)
        else:
            account.skip(Skip(source, reason.reason, action, reason.detail), item.index)

    def _why_no_edge(
        self, source: str, target: str, outcome: Outcome, seen: Snapshot | None, *, is_probe: bool
    ) -> Refusal | None:
        if target == source:
            if outcome.refused:
                url, reason = outcome.refused[0]
                return Refusal(reason, url)
            if outcome.downloads:
                return Refusal("download", outcome.downloads[0])
            if is_probe and not outcome.blocked and not outcome.dialogs:
                return Refusal("no_effect")
        if seen is None:
            return None
        if not seen.raw_url.startswith(("http:", "https:")):
            return Refusal("not_loaded", seen.raw_url)
        if refusal := self._scope.refuse_url(seen.raw_url):
            return refusal
        if seen.status >= 400:
            return Refusal(f"http_{seen.status}", seen.url)
        return None if seen.is_page else Refusal("not_html", f"{seen.content_type} {seen.url}")

    # ---- checkpoints ---------------------------------------------------------------------------------------------

    def remember(self) -> dict[str, Any]:
        """What a resumed run must know besides states and edges, as plain JSON."""
        return {
            "merges": [[m.kept, m.merged, m.reason, m.url] for m in self.merges.values()],
            "recogniser": self._recogniser.remember(),
            "traps": self._traps.remember(),
            "siblings": self._siblings.remember(),
        }

    def recall(self, memory: Mapping[str, Any], states: Iterable[State], edges: Iterable[Edge]) -> None:
        """Take over what `remember` gave."""
        for state in states:
            self.states[state.id] = state
            self._looks.choose(state)
        for edge in edges:
            self.edges.append(edge)
            if edge.target in self.states and self.states[edge.target].parent == edge.source:
                self._made_by.setdefault(edge.target, edge.action)
        self.merges.update((merged, Merge(kept, merged, reason, url)) for kept, merged, reason, url in memory["merges"])
        self._recogniser.recall(memory["recogniser"])
        self._traps.recall(memory["traps"])
        self._siblings.recall(memory.get("siblings", {}))


def _came_by(outcome: Outcome) -> CameBy:
    return "load" if outcome.loaded else "in_page"
