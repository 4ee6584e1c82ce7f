"""What did a site answer when it was explored before? Asked by the explorer in place of a browser."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from index.graph import Action, UrlPolicy, normalize_url, similarity
from index.graph.tokens import PageNames
from pipeline.browser.features import features
from pipeline.browser.snapshot import Candidate, Snapshot
from pipeline.browser.view import TAKES_NO_POINTER
from pipeline.explore.identity import change
from pipeline.explore.journal_records import Blobs
from pipeline.explore.outages import is_outage
from pipeline.explore.refresh.noise import in_order, news
from pipeline.explore.refresh.record import KeptOutcome, Record, Track, element, place_of
from pipeline.explore.refresh.sample import Plan
from pipeline.explore.state import Load, Source
from pipeline.explore.worker import Outcome

#: An in-page action shows what it showed when so much of the structure is the same.
_ALIKE = 0.9


@dataclass(frozen=True, slots=True)
class Recalled:
    """What an action brought about before.

    Attributes
    ----------
    url : the document that it asked for; what this shows is asked for by itself. Empty: the page stayed.
    """

    outcome: Outcome
    url: str


@dataclass(frozen=True, slots=True)
class _Shown:
    """What an action brought about, and what was seen before and after it, if that is known."""

    outcome: Outcome
    before: Snapshot | None
    after: Snapshot | None

    def changed(self, noise: AbstractSet[str]) -> Mapping[str, int]:
        """Features that the action added and removed."""
        if self.outcome.changed or self.before is None or self.after is None:
            found = dict(self.outcome.changed)
        else:
            found = dict(change(features(self.before), features(self.after)))
        return {name: count for name, count in found.items() if name not in noise}


class Recall:
    """Answers from a record what `plan` does not ask again.

    Parameters
    ----------
    grace : refreshes in a row in which an outage keeps the old answer.
    name : says what is recalled, and how much of it is asked again: a run goes on only with the journal of its own.
    """

    def __init__(
        self, record: Record, plan: Plan, *, url_policy: UrlPolicy, grace: int = 0, name: str = "nothing"
    ) -> None:
        self.record = record
        self.plan = plan
        self.name = name
        self._url_policy = url_policy
        self._grace = grace
        self._exact: dict[Any, int] = {}
        self._in_state: dict[Any, int] = {}
        self._links: dict[Any, int] = {}
        self._urls: dict[str, list[str]] = {}
        for url, kept in record.loads.items():
            if kept.load.look:
                self._urls.setdefault(kept.load.look, []).append(url)
        for number, known in enumerate(record.outcomes):
            place = place_of(known.action, known.handler)
            self._exact.setdefault((known.look, place), number)
            self._in_state.setdefault((known.state, place), number)
            if self._is_plain_link(known):
                self._links.setdefault(_link(known.action), number)

    @classmethod
    def nothing(cls, url_policy: UrlPolicy) -> Recall:
        """Of a site that was not explored before."""
        return cls(Record({}), Plan(), url_policy=url_policy)

    # ---- instead of a browser ------------------------------------------------------------------------------------

    def load(self, url: str) -> Load | None:
        """What loading a normalised URL showed, unless it is asked again."""
        known = self.record.loads.get(url)
        if known is None or self.plan.loads is None or url in self.plan.loads:
            return None
        if not known.load.node_id or self.record.look(known.load.look) is None:
            return None
        return replace(known.load, source="recalled")

    def outcome(self, look: str, candidate: Candidate, *, reachable: bool = True) -> Recalled | None:
        """What acting on an element of a state with this look brought about, unless it is asked again.

        A plain link is known by what it says and where it leads, wherever on the page it stands.

        Parameters
        ----------
        reachable : False: the state cannot be shown now. What is to be asked again keeps the old answer then.
        """
        number = self._exact.get((look, element(candidate)))
        if number is None and not candidate.handler:
            number = self._links.get(_link(candidate.action))
        if number is None:
            return None
        outcome = self.record.outcomes[number].outcome
        failed = bool(outcome.problem) and TAKES_NO_POINTER not in outcome.problem  # which will fail again
        is_asked = failed or self.plan.outcomes is None or number in self.plan.outcomes
        if is_asked and reachable:
            return None
        return self._answer(outcome, candidate.action, "kept" if is_asked else "recalled")

    def _answer(self, outcome: Outcome, action: Action, source: Source) -> Recalled | None:
        url = self._asked_for(outcome, action)
        if outcome.loaded and not url:
            return None
        if not outcome.loaded and outcome.look and self.record.look(outcome.look) is None:
            return None
        return Recalled(replace(outcome, source=source, verdict=""), url)

    def captures(self) -> Mapping[str, Blobs]:
        """Captures of looks that need not be taken again when a page looks the same; none when everything is asked."""
        return {} if self.plan.everything else self.record.captures

    def captured(self, look: str) -> tuple[Snapshot, Blobs | None]:
        """A look that an answer named, and its captures."""
        seen = self.record.look(look)
        if seen is None:
            raise KeyError(look)
        return seen, self.record.blobs(look)

    # ---- what was asked again ------------------------------------------------------------------------------------

    def in_place_of(self, url: str, load: Load, seen: Snapshot | None) -> Load | None:
        """The old answer when loading a URL met an outage, for a few refreshes."""
        known = self.record.loads.get(url)
        if known is None or not known.load.node_id or known.track.misses >= self._grace:
            return None
        if not is_outage(load.problem, seen.status if seen else 0) or self.record.look(known.load.look) is None:
            return None
        return replace(known.load, source="kept")

    def in_place_of_action(self, state: str, candidate: Candidate, outcome: Outcome) -> Recalled | None:
        """The old answer when an action on a state (its id) met an outage, for a few refreshes.

        What the document shows that it asked for is another matter: `in_place_of`.
        """
        known = self._before(state, candidate)
        if known is None or known.outcome.problem or known.track.misses >= self._grace:
            return None
        if outcome.loaded or not is_outage(outcome.problem):
            return None
        return self._answer(known.outcome, candidate.action, "kept")

    async def checked(
        self,
        state: Snapshot,
        candidate: Candidate,
        outcome: Outcome,
        *,
        look: Callable[[str], Snapshot],
        again: Callable[[], Awaitable[Outcome]],
    ) -> Outcome:
        """Compare what an action brought about with what it did before; when that differs, do it again, from anew.

        Parameters
        ----------
        look : gives what was seen in this run.
        again : does the same in a fresh session.
        """
        known = self._before(state.id, candidate)
        if known is None or (is_outage(outcome.problem) and not known.outcome.problem):
            return outcome
        source = self.record.look(known.look)
        before = _Shown(known.outcome, source, self.record.look(known.outcome.look) or source)

        def shown(each: Outcome) -> _Shown:
            return _Shown(each, state, look(each.look) if each.look else state)

        if self._same(before, shown(outcome)):
            return replace(outcome, verdict="same")
        second, third = shown(await again()), shown(await again())
        if not self._same(second, third):
            return replace(outcome, verdict="non_deterministic")
        return replace(outcome, verdict="differs" if self._same(shown(outcome), second) else "session_dependent")

    def unchanged(self, state: Snapshot, look: str, candidate: Candidate) -> str:
        """The key of the old look at a state when a new look, with this key, differs from it in noise alone.

        An element that others are called like is known by its place. Where the order of what is shown is another one,
        its place may be another's by now: the page then counts as changed for this element.
        """
        old = self.record.states.get(state.id, "")
        if old in {"", look}:
            return look
        before = self.record.look(old)
        noise = self.record.noise(state.url)
        if before is None or news(before, state, noise):
            return look
        return look if _is_one_of_many(candidate, state) and not in_order(before, state, noise) else old

    def _before(self, state: str, candidate: Candidate) -> KeptOutcome | None:
        number = self._in_state.get((state, element(candidate)))
        if number is None and not candidate.handler:
            number = self._links.get(_link(candidate.action))
        return None if number is None else self.record.outcomes[number]

    @cached_property
    def _names(self) -> PageNames:
        """What names pages in the older map: one URL of each of its pages tells."""
        nodes = {kept.load.node_id: url for url, kept in self.record.loads.items()}
        return PageNames(url for node_id, url in nodes.items() if node_id in self.record.states)

    def _same(self, a: _Shown, b: _Shown) -> bool:
        if bool(a.outcome.problem) != bool(b.outcome.problem) or a.outcome.loaded != b.outcome.loaded:
            return False
        if a.outcome.problem or a.after is None or b.after is None:
            return bool(a.outcome.problem) or a.after is b.after
        if a.after.url != b.after.url and self._names.of(a.after.url) != self._names.of(b.after.url):
            return False
        if a.outcome.loaded or a.after.id == b.after.id:
            return True  # what a document shows is the document's business, not the link's
        if similarity(a.after.structure, b.after.structure) >= _ALIKE:
            return True
        return a.changed(self.record.noise(a.after.url)) == b.changed(self.record.noise(a.after.url))

    # ---- what is kept of it --------------------------------------------------------------------------------------

    def load_track(self, url: str, load: Load, *, changed: bool) -> Track:
        """The history of a URL, with this run."""
        known = self.record.loads.get(url)
        return _next(known.track if known else None, load.source, changed=changed)

    def outcome_track(self, state: str, candidate: Candidate, outcome: Outcome) -> Track:
        """The history of an action, with this run."""
        known = self._before(state, candidate)
        changed = outcome.verdict not in {"", "same"}
        return _next(known.track if known else None, outcome.source, changed=changed)

    def is_uniform(self, state: str, candidate: Candidate) -> bool:
        """Whether an action is in the part of the sample that was drawn with equal chances."""
        number = self._in_state.get((state, element(candidate)))
        return number in self.plan.uniform

    # ---- the documents that actions asked for --------------------------------------------------------------------

    def _asked_for(self, outcome: Outcome, action: Action) -> str:
        if not outcome.loaded:
            return ""
        urls = self._urls.get(outcome.look, [])
        target = normalize_url(action.target, self._url_policy) if action.target else ""
        return target if target in urls or not urls else urls[0]

    def _is_plain_link(self, known: KeptOutcome) -> bool:
        outcome, action = known.outcome, known.action
        asked_more = (*outcome.blocked, *outcome.observed, *outcome.refused, *outcome.dialogs, *outcome.other_tabs)
        if known.handler or not action.target or not outcome.loaded or asked_more or outcome.problem:
            return False
        return normalize_url(action.target, self._url_policy) in self._urls.get(outcome.look, ())


def _is_one_of_many(candidate: Candidate, state: Snapshot) -> bool:
    """Whether a state has other elements that only their place tells from this one."""
    label = _label(candidate)
    return sum(_label(other) == label for other in state.candidates) > 1


def _label(candidate: Candidate) -> tuple[str, ...]:
    return (*_link(candidate.action), candidate.handler)


def _link(action: Action) -> tuple[str, ...]:
    return (action.kind, action.value, action.role, action.name, action.target)


def _next(known: Track | None, source: str, *, changed: bool) -> Track:
    if known is None:
        return Track()
    if source == "recalled":
        return replace(known, age=known.age + 1)
    if source == "kept":
        return replace(known, age=known.age + 1, misses=known.misses + 1)
    return Track(0, known.checks + 1, known.changes + changed, 0)
