"""What did agents report of steps that they walked? Fresh failures are routed around, all is kept for maintenance."""

from __future__ import annotations

import logging
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass

from index.catalog import OpenMap
from index.graph import Action, Edge, PathStep
from index.store.feedback import FeedbackNotes
from waygraph.errors import StoreError
from waygraph.schemas import ActionModel, FeedbackAnswer, WalkedStep

log = logging.getLogger("ray.serve.waygraph")

#: Failed steps remembered per site: a caller who reports nonsense can make paths longer, and no more.
MOST_FAILURES = 2_000

#: A step of a map: from where (empty for a goto, which starts anywhere), by which action, to which state.
_Step = tuple[str, Action, str]


@dataclass(frozen=True, slots=True)
class Avoided:
    """What a path had better not use: edges of the map, and states that must not be loaded by their URL."""

    edges: tuple[Edge, ...] = ()
    gotos: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.edges or self.gotos)

    def holds(self, source: str | None, step: PathStep) -> bool:
        """Whether a step that is done in a state is one of these."""
        if step.action.kind == "goto" and step.expected_node_id in self.gotos:
            return True
        return any(
            (edge.source, edge.target, edge.action) == (source, step.expected_node_id, step.action)
            for edge in self.edges
        )

    def __add__(self, other: Avoided) -> Avoided:
        return Avoided(self.edges + other.edges, self.gotos + other.gotos)


class Feedback:
    """Keeps what agents reported about one store's maps. Thread-safe.

    Parameters
    ----------
    fresh_seconds : so long a failed step is avoided, unless somebody walks it well before.
    """

    def __init__(self, fresh_seconds: float, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._fresh_seconds = fresh_seconds
        self._clock = clock
        self._lock = threading.Lock()
        self._failed: dict[str, OrderedDict[_Step, float]] = {}
        self._unwritable = ""

    def take(self, opened: OpenMap, walked: Iterable[WalkedStep], notes: FeedbackNotes) -> FeedbackAnswer:
        """Take a report on one site; steps that its current version does not hold are counted, and not kept."""
        known: list[tuple[_Step, WalkedStep]] = []
        unknown = 0
        for each in walked:
            if (step := _step(opened, each)) is None:
                unknown += 1
            else:
                known.append((step, each))
        until = self._clock() + self._fresh_seconds
        with self._lock:
            failed = self._failed.setdefault(opened.site, OrderedDict())
            for step, each in known:
                failed.pop(step, None)
                if each.outcome != "ok":
                    failed[step] = until
            while len(failed) > MOST_FAILURES:
                failed.popitem(last=False)
        if known:
            self._note(opened, [each for _, each in known], notes)
        return FeedbackAnswer(taken=len(known), unknown=unknown)

    def avoided(self, opened: OpenMap) -> Avoided:
        """The steps of a map that failed lately."""
        now = self._clock()
        with self._lock:
            failed = self._failed.get(opened.site)
            if not failed:
                return Avoided()
            while failed and next(iter(failed.values())) <= now:
                failed.popitem(last=False)
            steps = list(failed)
        found = Avoided()
        for source, action, target in steps:
            found += avoided(opened, source or None, action, target)
        return found

    def _note(self, opened: OpenMap, walked: list[WalkedStep], notes: FeedbackNotes) -> None:
        """Write the report down for maintenance. A store that cannot be written is said once, not with every report."""
        try:
            notes.add(opened.site, opened.version, [each.model_dump(mode="json") for each in walked])
        except StoreError as error:
            if error.message != self._unwritable:
                log.warning("reports of agents are not kept: %s", error)
            self._unwritable = error.message
        else:
            self._unwritable = ""


def avoided(opened: OpenMap, source: str | None, action: Action, target: str | None = None) -> Avoided:
    """What a step stands for in a map: the edges that it may be, and for a `goto` the states that its URL loads."""
    edges = tuple(
        edge
        for edge in _edges(opened, source)
        if edge.action == action and target in {None, opened.recognition.canonical(edge.target), edge.target}
    )
    if action.kind != "goto":
        return Avoided(edges)
    return Avoided(edges, tuple(opened.loaded_by(action.url)))


def hidden(opened: OpenMap, actions: Collection[Action]) -> Avoided:
    """The edges that elements stand for which a browser does not show, in whatever state they are."""
    if not actions:
        return Avoided()
    unseen = {_sought(action) for action in actions}
    return Avoided(tuple(edge for edge in opened.graph.edges if _sought(edge.action) in unseen))


def _sought(action: Action) -> tuple[str, ...]:
    """What an element is known by on every page that has it, such as an entry of the menu."""
    return action.kind, action.role, action.name, action.target, action.value


def _edges(opened: OpenMap, source: str | None) -> Iterator[Edge]:
    state = None if source is None else opened.recognition.canonical(source)
    if state is not None and state in opened.graph:
        yield from opened.graph.edges_from(state)


def _step(opened: OpenMap, walked: WalkedStep) -> _Step | None:
    action = action_of(walked.action)
    target = opened.recognition.canonical(walked.target)
    if not avoided(opened, walked.source, action, target):
        return None
    source = "" if action.kind == "goto" or walked.source is None else opened.recognition.canonical(walked.source)
    return source, action, target


def action_of(model: ActionModel) -> Action:
    """The action that a caller sent."""
    return Action.from_json(model.model_dump())
