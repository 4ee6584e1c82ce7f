"""How does the graph grow? Outcomes are taken into it in canonical order, by rules that know nothing of browsers."""

from __future__ import annotations

from collections.abc import Callable

from index.graph import Edge
from pipeline.browser.snapshot import Snapshot
from pipeline.explore.account import Account
from pipeline.explore.capture import Failure, Skip
from pipeline.explore.level import Item
from pipeline.explore.policy import Refusal
from pipeline.explore.scope import Scope
from pipeline.explore.state import State
from pipeline.explore.worker import Outcome


class Growth:
    """The states and edges found so far. Not aware of workers: `commit` is called in canonical order.

    Parameters
    ----------
    look : the first look at a state, by id.
    """

    def __init__(self, scope: Scope, account: Account, look: Callable[[str], Snapshot], *, max_states: int) -> None:
        self._scope = scope
        self._account = account
        self._look = look
        self._max_states = max_states
        self.states: dict[str, State] = {}
        self.edges: list[Edge] = []

    def begin(self, seen: Snapshot) -> State:
        """Take the start state."""
        state = self.states[seen.id] = State.of(seen, 0, None)
        return state

    def commit(self, item: Item, outcome: Outcome, depth: int) -> bool:
        """Take one outcome into the graph; False ends the level, at a cap."""
        source, action, account = item.state_id, item.candidate.action, self._account
        if not outcome.node_id:
            account.fail(Failure(source, str(action), outcome.problem), item.index)
            return True
        known = outcome.node_id in self.states
        seen = None if known else self._look(outcome.node_id)
        reason = self._why_no_edge(source, outcome, seen, is_hover=action.kind == "hover")
        if reason is not None:
            if reason.reason == "no_effect":
                account.counters["hover/no_effect"] += 1
            elif reason.reason.startswith("http_") or reason.reason in {"not_html", "not_loaded"}:
                account.fail(Failure(source, str(action), f"{reason.reason} {reason.detail}".strip()), item.index)
            else:
                account.skip(Skip(source, reason.reason, str(action), reason.detail), item.index)
            return True
        if seen is not None:
            if len(self.states) >= self._max_states:
                account.stopped_by = "max_states"
                return False
            self.states[seen.id] = State.of(seen, depth, source)
        account.counters["guard/blocked"] += len(outcome.blocked)
        for url in outcome.other_tabs:
            account.skip(Skip(source, "second_tab", str(action), url))
        self.edges.append(
            Edge(
                source=source,
                target=outcome.node_id,
                action=action,
                cost_ms=round(outcome.ms, 1),
                opens_tab=outcome.opens_tab,
                blocked=tuple(sorted(set(outcome.blocked))),
                dialogs=outcome.dialogs,
            )
        )
        return True

    def _why_no_edge(self, source: str, outcome: Outcome, seen: Snapshot | None, *, is_hover: bool) -> Refusal | None:
        if outcome.node_id == source:
            if outcome.refused:
                url, reason = outcome.refused[0]
                return Refusal(reason, url)
            if outcome.downloads:
                return Refusal("download", outcome.downloads[0])
            if is_hover:
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
