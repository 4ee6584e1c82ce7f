"""Building of the graph: outcomes become states and edges in canonical order, without any browser."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

from msgspec import structs

from waygraph.core.urls import UrlPolicy, linked_url
from waygraph.index.graph import Action, Edge, Merge
from waygraph.pipeline.browser.page.snapshot import Snapshot
from waygraph.pipeline.explore.checkpoint.snapshot_store import SnapshotStore
from waygraph.pipeline.explore.engine.dead_links import DeadLinks
from waygraph.pipeline.explore.engine.outages import failure_kind
from waygraph.pipeline.explore.engine.round import WorkItem
from waygraph.pipeline.explore.engine.varying import has_other_texts, session_effect
from waygraph.pipeline.explore.identity import Arrival, Placement, Recogniser
from waygraph.pipeline.explore.identity.difference import action_key, shows_new_content
from waygraph.pipeline.explore.identity.drawn_pages import DrawnPages
from waygraph.pipeline.explore.identity.session_values import SessionValues, Trial
from waygraph.pipeline.explore.identity.siblings import SiblingBudget
from waygraph.pipeline.explore.identity.skeleton import Skeleton
from waygraph.pipeline.explore.identity.traps import TrapDetector
from waygraph.pipeline.explore.policies.policy import Refusal
from waygraph.pipeline.explore.policies.scope import Scope
from waygraph.pipeline.explore.records.capture import Failure, Skip
from waygraph.pipeline.explore.records.outcome import VARIES, ActionOutcome
from waygraph.pipeline.explore.records.state import LeftValues, Load, State
from waygraph.pipeline.explore.records.stats import ExplorationStats


@dataclass(frozen=True, slots=True)
class GraphRules:
    """Rules that decide what becomes a state.

    Attributes
    ----------
    scope
        URLs that belong to the site.
    recogniser
        Whether a snapshot shows a known state.
    traps
        Groups of states that only lead to more of their kind.
    siblings
        Elements of a list that all do the same.
    max_states
        Cap of the number of states.
    dead_links
        Links that are not followed any more.
    skeleton
        Which page stands for others; None: none does.
    url_policy
        Which parts of a URL name a page.
    session_values
        Which stored values decide what pages show.
    """

    scope: Scope
    recogniser: Recogniser
    traps: TrapDetector
    siblings: SiblingBudget
    max_states: int
    dead_links: DeadLinks
    skeleton: Skeleton | None
    url_policy: UrlPolicy
    session_values: SessionValues


@dataclass(frozen=True, slots=True)
class _NewState:
    """A page that becomes a state.

    Attributes
    ----------
    snapshot
        What it shows.
    placement
        That it is no known state.
    is_repeated
        Whether the action that led to it is the one that led to its parent.
    """

    snapshot: Snapshot
    placement: Placement
    is_repeated: bool = False


@dataclass(frozen=True, slots=True)
class _Transition:
    """An edge that will be added.

    Attributes
    ----------
    target
        Id of the state that it leads to.
    new_state
        That state, if it is added too; None if it is known.
    """

    target: str
    new_state: _NewState | None = None


class GraphBuilder:
    """The states and edges found so far. `commit` must be called in canonical order.

    Parameters
    ----------
    rules
        What becomes a state.
    stats
        Statistics of the exploration.
    snapshots
        All snapshots. The graph builder chooses the snapshot of each state.
    """

    def __init__(self, rules: GraphRules, stats: ExplorationStats, snapshots: SnapshotStore) -> None:
        self._scope = rules.scope
        self._url_policy = rules.url_policy
        self._stats = stats
        self._recogniser = rules.recogniser
        self._traps = rules.traps
        self._siblings = rules.siblings
        self._dead_links = rules.dead_links
        self._drawn_pages = DrawnPages()
        self._session_values = rules.session_values
        self._snapshots = snapshots
        self._max_states = rules.max_states
        self.states: dict[str, State] = {}
        self.edges: list[Edge] = []
        self._made_by: dict[str, Action] = {}
        self._depths: dict[str, int] = {}
        self._targets: dict[str, list[str]] = {}
        self._round = (0, 0)
        """Number of states and of edges before the round began."""
        self.merges: dict[str, Merge] = {}
        """Snapshots that were merged into a known state, by their own id."""
        self._arrivals: dict[int, LeftValues] = {}
        """By the number of an edge, what walking it left, where that is not what its target left when it was found."""
        self._addresses: dict[str, str] = {}
        """By normalised URL of a state, the form in which it was found first."""

    def learn(self, first: Snapshot, again: Snapshot) -> None:
        """Learn noise from two snapshots of one page without an action between them."""
        self._recogniser.learn(first, again)

    def begin(self, snapshot_key: str) -> State:
        """Add the start state, whose snapshot has the key `snapshot_key`."""
        seen = self._snapshots.read(snapshot_key)
        placement = self._recogniser.place(seen, source=None, arrival="load")
        return self._add(_NewState(seen, placement), snapshot_key, 0, None, ActionOutcome(loaded=True))

    def depth(self, node_id: str) -> int:
        """Return the number of performed actions on the shortest known path from the start page to a state."""
        return self._depths[node_id]

    def begin_round(self) -> None:
        """Begin a round of work: remember what is known."""
        self._round = (len(self.states), len(self.edges))

    def before_round(self) -> tuple[dict[str, State], list[Edge]]:
        """Return the states and edges that were known when the round began."""
        states, edges = self._round
        return dict(islice(self.states.items(), states)), self.edges[:edges]

    def session_of(self, node_id: str) -> str:
        """Return the name of the session in which the actions of a state were performed; empty for the prepared one."""
        return self._session_values.session_of(self.states[node_id].left)

    def keeps_session(self, number: int) -> bool:
        """Return whether walking an edge leaves the session in which the actions of its target were performed."""
        left, target = self._arrivals.get(number), self.states[self.edges[number].target]
        session_of = self._session_values.session_in_round
        return left is None or session_of(left) == session_of(target.left)

    def canonical(self, node_id: str) -> str:
        """Return the state that a snapshot id was merged into, or the id itself."""
        merge = self.merges.get(node_id)
        return merge.kept if merge is not None else node_id

    def made_by(self, node_id: str) -> Action | None:
        """Return the action on its parent that showed a state first, None for the start state."""
        return self._made_by.get(node_id)

    def agrees(self, seen: Snapshot, node_id: str, arrival: Arrival) -> bool:
        """Return whether a snapshot shows a state, up to noise."""
        return node_id in self.states and self._recogniser.matches(seen, node_id, arrival=arrival)

    def commit(self, item: WorkItem, outcome: ActionOutcome) -> bool:
        """Commit one outcome. Return False if a cap ends the run here."""
        if outcome.is_double:
            double = structs.replace(item.candidate.action, kind="dblclick")
            item = replace(item, candidate=structs.replace(item.candidate, action=double))
        known = len(self.states)
        is_below_cap = self._commit(item, outcome)
        if outcome.node_id or _takes_no_pointer(outcome):
            # What is sent for each click at a listener of a list counts the clicks: it tells nothing of the item.
            had_effects = outcome.showed_more if item.candidate.listener else outcome.had_effects
            brought = len(self.states) > known or had_effects
            page = self.states[item.state_id].url
            self._siblings.record_result(item.state_id, item.candidate, page, brought=brought)
        return is_below_cap

    def _commit(self, item: WorkItem, outcome: ActionOutcome) -> bool:
        if outcome.skipped.reason:
            self._record_refusal(item, Refusal(*outcome.skipped))
            return True
        if not outcome.node_id:
            self._fail(item, outcome)
            return True
        decision = self._decide(item, outcome)
        if isinstance(decision, Refusal):
            self._record_refusal(item, decision)
            return True
        if decision.new_state is not None and len(self.states) >= self._max_states:
            self._stats.stopped_by = "max_states"
            return False
        self._apply(decision, item, outcome)
        return True

    def _decide(self, item: WorkItem, outcome: ActionOutcome) -> _Transition | Refusal:
        """Return the state that an action led to, or why it makes no edge.

        Adds neither states nor edges. Noise is learned, and a snapshot of a known state is merged into it.
        """
        source, action = item.state_id, item.candidate.action
        target = self.canonical(outcome.node_id)
        if target in self.states:
            return (
                self._refuse_edge(source, target, action, outcome)
                or self._refuse_other_session(target, outcome)
                or _Transition(target)
            )
        seen = self._snapshots.read(outcome.snapshot_key)
        if refusal := self._refuse_page(seen, source, action, _arrival(outcome)):
            if not outcome.by_address:  # a click might have been handled by a script
                self._dead_links.note(action.target, seen.raw_url, seen.status)
            return refusal
        placement = self._place(seen, source, action, outcome)
        if placement.node_id != seen.id:
            # It may have been merged into the source state.
            return self._refuse_edge(source, placement.node_id, action, outcome) or _Transition(placement.node_id)
        if refusal := self._traps.refuse_snapshot(seen, self._snapshots.get(source), _arrival(outcome)):
            return refusal
        is_repeated = self._is_repeated(source, action)
        if is_repeated and not shows_new_content(seen, self._chain(source)):
            return Refusal("trap", "repeating the action showed no new content")
        return _Transition(seen.id, _NewState(seen, placement, is_repeated=is_repeated))

    def _apply(self, transition: _Transition, item: WorkItem, outcome: ActionOutcome) -> None:
        """Add the edge of an action, and the state that it led to if that is new."""
        source, action, stats = item.state_id, item.candidate.action, self._stats
        if transition.new_state is not None:
            depth = self._depths[source] + 1
            self._add(transition.new_state, outcome.snapshot_key, depth, source, outcome)
            self._made_by[transition.target] = action
        stats.counters["guard/blocked"] += len(outcome.blocked)
        stats.counters["guard/observed"] += len(outcome.observed)
        for url in outcome.other_tabs:
            stats.skip(Skip(source, "second_tab", str(action), url))
        if outcome.node_id and outcome.left != self.states[transition.target].left and source != transition.target:
            self._arrivals[len(self.edges)] = outcome.left
        self._add_edge(
            Edge(
                source=source,
                target=transition.target,
                action=action,
                cost_ms=round(outcome.ms, 1),
                inherited=outcome.by_address,
                opens_tab=outcome.opens_tab,
                blocked=tuple(sorted({*outcome.blocked, *outcome.observed})),
                dialogs=outcome.dialogs,
            )
        )

    def _add_edge(self, edge: Edge) -> None:
        """Add an edge, and shorten the distances of the states behind it."""
        self.edges.append(edge)
        self._targets.setdefault(edge.source, []).append(edge.target)
        queue = deque([(edge.target, self._depths[edge.source] + 1)])
        while queue:
            node_id, depth = queue.popleft()
            if depth < self._depths.get(node_id, depth + 1):
                self._depths[node_id] = depth
                queue.extend((target, depth + 1) for target in self._targets.get(node_id, ()))

    def take_probe(self, state: State, load: Load) -> None:
        """Merge the snapshot that loading a state's URL showed, if it differs from the state in noise only."""
        shown = self.canonical(load.node_id)
        if shown not in self.states and self._recogniser.is_reload_of(
            seen := self._snapshots.read(load.snapshot_key), state.id
        ):
            self._merge(Merge(state.id, shown, "reload", seen.url))

    def _place(self, seen: Snapshot, source: str, action: Action, outcome: ActionOutcome) -> Placement:
        """Find the state that a snapshot shows, and record its merge if that is a known state."""
        self._recogniser.note_noise(self.states[source].url, outcome.noise)
        self._learn_session(seen, action, outcome)
        placement = self._recogniser.place(
            seen,
            source=self._snapshots.get(source),
            arrival=_arrival(outcome),
            changed=dict(outcome.changed) if outcome.noise else None,
            session=self._session_values.session_of(outcome.left),
        )
        if placement.merge is not None:
            self._merge(placement.merge)
        return placement

    def _learn_session(self, seen: Snapshot, action: Action, outcome: ActionOutcome) -> None:
        """Learn from a redirect that left values, to a page that shows something else since then."""
        untried = self._session_values.untried(outcome.left)
        loaded = self._recogniser.loaded_state(seen.url) if outcome.persists and untried else None
        if loaded is not None and not self._recogniser.is_reload_of(seen, loaded):
            known = self._snapshots.get(loaded)
            effect = session_effect(known, seen, known, switch=action.target)
            self._session_values.learn(Trial(frozenset(), untried, effect))

    def _refuse_other_session(self, target: str, outcome: ActionOutcome) -> Refusal | None:
        """Return why a load in another session makes no edge: a known state has its id, and shows another page.

        Ids tell structures apart, not texts: the same page in another language.
        """
        if not outcome.loaded or self._session_values.session_of(outcome.left) == self.session_of(target):
            return None
        seen, known = self._snapshots.read(outcome.snapshot_key), self._snapshots.get(target)
        return Refusal(VARIES, seen.title) if has_other_texts(known, seen) else None

    def _merge(self, merge: Merge) -> None:
        self.merges[merge.merged] = merge
        self._stats.counters[f"merge/{merge.reason}"] += 1

    def _is_repeated(self, source: str, action: Action) -> bool:
        """Return whether a state was found by the same action that is now performed on it."""
        made_by = self._made_by.get(source)
        return made_by is not None and action_key(made_by, "element") == action_key(action, "element")

    def _chain(self, node_id: str) -> Iterator[Snapshot]:
        """Yield the snapshots of a state and of its ancestors that the same action led to, one after the other."""
        while True:
            yield self._snapshots.get(node_id)
            parent, made_by = self.states[node_id].parent, self._made_by.get(node_id)
            if parent is None or made_by is None:
                return
            if not self._is_repeated(parent, made_by):
                yield self._snapshots.get(parent)
                return
            node_id = parent

    def _add(self, new: _NewState, snapshot_key: str, depth: int, parent: str | None, outcome: ActionOutcome) -> State:
        seen, arrival = new.snapshot, _arrival(outcome)
        address = self._addresses.setdefault(seen.url, linked_url(seen.raw_url, self._url_policy))
        written = address if address != seen.url else ""
        state = State.of(seen, snapshot_key, depth, parent, address=written, left=outcome.left)
        self._session_values.note(state.left)
        self.states[seen.id] = state
        self._stats.counters["settle/stored_waiting"] += state.waiting
        self._depths[seen.id] = depth
        self._snapshots.choose(state)
        self._recogniser.add(seen, new.placement, arrival, self._session_values.session_of(state.left))
        parent_snapshot = self._snapshots.get(parent) if parent else None
        self._traps.add_state(seen, parent_snapshot, arrival, is_repeated=new.is_repeated)
        return state

    def _fail(self, item: WorkItem, outcome: ActionOutcome) -> None:
        action = item.candidate.action
        if _takes_no_pointer(outcome) and self._is_repeated(item.state_id, action):
            # What the element opened covers it: repeating the action is not possible for a person either.
            self._stats.counters["repeat/covered"] += 1
            return
        self._stats.fail(Failure(item.state_id, str(action), outcome.problem), item.index)

    def _record_refusal(self, item: WorkItem, reason: Refusal) -> None:
        source, action, stats = item.state_id, str(item.candidate.action), self._stats
        if reason.reason == "no_effect":
            stats.counters["hover/no_effect"] += 1
        elif reason.reason.startswith("http_") or reason.reason in {"not_html", "not_loaded"}:
            stats.fail(Failure(source, action, f"{reason.reason} {reason.detail}".strip()), item.index)
        else:
            target = item.candidate.action.target
            stats.skip(Skip(source, reason.reason, action, reason.detail, target=target), item.index)

    def _refuse_edge(self, source: str, target: str, action: Action, outcome: ActionOutcome) -> Refusal | None:
        """Return why an action that led to a known state makes no edge: it stayed at its state without an effect."""
        if target != source:
            return None
        if outcome.refused:
            url, reason = outcome.refused[0]
            return Refusal(reason, url)
        if outcome.downloads:
            return Refusal("download", outcome.downloads[0])
        is_probe = action.kind != "click"
        return Refusal("no_effect") if is_probe and not outcome.blocked and not outcome.dialogs else None

    def _refuse_page(self, seen: Snapshot, source: str, action: Action, arrival: Arrival) -> Refusal | None:
        """Return why a page becomes no state."""
        if not seen.raw_url.startswith(("http:", "https:")):
            return Refusal("not_loaded", seen.raw_url)
        if refusal := self._scope.refuse_url(seen.raw_url):
            return refusal
        if seen.status >= 400:
            shown = self._snapshots.get(source)
            # The status of a document stays, whatever a script then draws.
            is_same_document = arrival == "in_page" and shown.status == seen.status
            if not is_same_document and not self._drawn_pages.is_page(seen, shown, action):
                return Refusal(f"http_{seen.status}", seen.url)
            self._stats.counters["explore/drawn_pages"] += 1
            return None
        return None if seen.is_page else Refusal("not_html", f"{seen.content_type} {seen.url}")

    # ---- checkpoints ---------------------------------------------------------------------------------------------

    def to_checkpoint(self) -> dict[str, Any]:
        """Return what a resumed run needs besides states and edges, as plain JSON."""
        return {
            "round": list(self._round),
            "merges": [[m.kept, m.merged, m.reason, m.url] for m in self.merges.values()],
            "recogniser": self._recogniser.to_checkpoint(),
            "traps": self._traps.to_checkpoint(),
            "siblings": self._siblings.to_checkpoint(),
            "dead_links": self._dead_links.to_checkpoint(),
            "drawn_pages": self._drawn_pages.to_checkpoint(),
            "session_values": self._session_values.to_checkpoint(),
            "arrivals": [[number, left] for number, left in self._arrivals.items()],
        }

    def load_checkpoint(self, memory: Mapping[str, Any], states: Iterable[State], edges: Iterable[Edge]) -> None:
        """Restore the result of `to_checkpoint`, with states and edges."""
        for state in states:
            self.states[state.id] = state
            self._addresses.setdefault(state.url, state.load_url)
            self._snapshots.choose(state)
            if state.parent is None:
                self._depths[state.id] = state.depth
        for edge in edges:
            self._add_edge(edge)
            if edge.target in self.states and self.states[edge.target].parent == edge.source:
                self._made_by.setdefault(edge.target, edge.action)
        states_before, edges_before = memory["round"]
        self._round = (states_before, edges_before)
        self.merges.update((merged, Merge(kept, merged, reason, url)) for kept, merged, reason, url in memory["merges"])
        self._recogniser.load_checkpoint(memory["recogniser"])
        self._traps.load_checkpoint(memory["traps"])
        self._siblings.load_checkpoint(memory.get("siblings", {}))
        self._dead_links.load_checkpoint(memory.get("dead_links", ()))
        self._drawn_pages.load_checkpoint(memory["drawn_pages"])
        self._session_values.load_checkpoint(memory["session_values"], (state.left for state in self.states.values()))
        self._arrivals = {number: tuple((a, k, v) for a, k, v in left) for number, left in memory["arrivals"]}


def _takes_no_pointer(outcome: ActionOutcome) -> bool:
    kind = failure_kind(outcome)
    return kind is not None and kind.takes_no_pointer


def _arrival(outcome: ActionOutcome) -> Arrival:
    return "load" if outcome.loaded else "in_page"
