"""Prior exploration: the answers of an earlier exploration that a refresh reuses in place of the browser."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from msgspec import structs

from waygraph.core.urls import UrlPolicy, normalize_url
from waygraph.index.graph import Action, similarity
from waygraph.index.graph.url_tokens import PageNames
from waygraph.pipeline.browser.page.features import features
from waygraph.pipeline.browser.page.snapshot import Candidate, Snapshot
from waygraph.pipeline.explore.checkpoint.journal_records import Blobs
from waygraph.pipeline.explore.engine.outages import failure_kind, is_outage
from waygraph.pipeline.explore.identity import feature_change
from waygraph.pipeline.explore.identity.thresholds import SAME_OUTCOME_SIMILARITY
from waygraph.pipeline.explore.records.listing import SiteListing, is_later
from waygraph.pipeline.explore.records.outcome import ActionOutcome
from waygraph.pipeline.explore.records.state import Load, Source
from waygraph.pipeline.explore.refresh.exploration_record import (
    AnswerHistory,
    ExplorationRecord,
    RecordedOutcome,
    candidate_key,
    element_key,
)
from waygraph.pipeline.explore.refresh.noise import changed_features, have_same_order
from waygraph.pipeline.explore.refresh.sample import RefreshPlan

#: Changed pages that are visited before all others.
_MAX_FIRST = 1_000


@dataclass(frozen=True, slots=True)
class ReusedOutcome:
    """Recorded outcome of an action that is used again.

    Attributes
    ----------
    outcome
        The outcome, with its source.
    url
        Document that the action requested. It is loaded, or reused, on its own. Empty if the page stayed.
    """

    outcome: ActionOutcome
    url: str


@dataclass(frozen=True, slots=True)
class _ObservedOutcome:
    """Outcome of an action, and the snapshots before and after it, if they are recorded."""

    outcome: ActionOutcome
    before: Snapshot | None
    after: Snapshot | None

    def feature_change(self, noise: AbstractSet[str]) -> Mapping[str, int]:
        """Return the features that the action added and removed, without noise."""
        if self.outcome.changed or self.before is None or self.after is None:
            change = dict(self.outcome.changed)
        else:
            change = dict(feature_change(features(self.before), features(self.after)))
        return {name: count for name, count in change.items() if name not in noise}


class PriorExploration:
    """Recorded answers of an earlier exploration, and the plan of what is asked again.

    Answers of the plan are asked again and compared. All others are reused (source `recalled`). If the site does not
    answer, the recorded answer is kept for a few refreshes (source `kept`).

    Parameters
    ----------
    record
        Record of the earlier exploration.
    plan
        What is asked again.
    url_policy
        Which parts of a URL name a page.
    grace
        Consecutive refreshes in which an outage keeps the recorded answer.
    name
        Identifies record and plan: an interrupted refresh is resumed only with the same.
    wanted
        URLs of pages that the earlier exploration did not visit and that agents reached since. They are visited first.
    replan
        Returns the plan that chooses these recorded URLs first; None: `plan` chooses in any case.
    """

    def __init__(
        self,
        record: ExplorationRecord,
        plan: RefreshPlan,
        *,
        url_policy: UrlPolicy,
        grace: int = 0,
        name: str = "nothing",
        wanted: Collection[str] = (),
        replan: Callable[[Sequence[str]], RefreshPlan] | None = None,
    ) -> None:
        self.wanted = wanted
        self.record = record
        self.plan = plan
        self.name = name
        self._url_policy = url_policy
        self._grace = grace
        self._replan = replan
        self._by_snapshot: dict[Any, int] = {}
        """Index of each outcome by the snapshot key and the element that was acted on."""
        self._by_state: dict[Any, int] = {}
        """Index of each outcome by the state id and the element."""
        self._plain_links: dict[Any, int] = {}
        """Index of the outcome of each plain link, wherever on a page it is."""
        self._urls_of: dict[str, list[str]] = {}
        """URLs that were loaded, by the snapshot key of what they showed."""
        for url, recorded in record.loads.items():
            if recorded.load.snapshot_key:
                self._urls_of.setdefault(recorded.load.snapshot_key, []).append(url)
        for number, known in enumerate(record.outcomes):
            key = element_key(known.action, known.handler)
            self._by_snapshot.setdefault((known.snapshot_key, key), number)
            self._by_state.setdefault((known.state, key), number)
            if self._is_plain_link(known):
                self._plain_links.setdefault(_link_key(known.action), number)

    @classmethod
    def empty(cls, url_policy: UrlPolicy) -> PriorExploration:
        """Return the prior exploration of a site that was not explored before."""
        return cls(ExplorationRecord({}), RefreshPlan(), url_policy=url_policy)

    def heed_dates(self, listing: SiteListing) -> int:
        """Visit first what the site says has changed since it was last asked for, the latest changes first.

        Pages that were not visited count as changed if that was after the earlier exploration. What the site says
        decides the order only: it spares no page from the sample.

        Parameters
        ----------
        listing
            What the site lists of itself.

        Returns
        -------
        int
            Number of pages that have changed.
        """
        before = str(self.record.about.get("at", ""))
        if not before:
            return 0
        dates = {normalize_url(page.url, self._url_policy): page.lastmod for page in listing.pages if page.lastmod}
        recorded = self.record.loads
        asked = {url: known.asked or before for url, known in recorded.items()}
        changed = [url for url, date in dates.items() if is_later(date, asked.get(url, before))]
        changed.sort(key=lambda url: (dates[url], url), reverse=True)
        if self._replan is not None:
            self.plan = self._replan([url for url in changed if url in recorded])
        self.wanted = (*self.wanted, *changed[:_MAX_FIRST])
        return len(changed)

    # ---- reused answers ------------------------------------------------------------------------------------------

    def reused_load(self, url: str) -> Load | None:
        """Return the recorded result of loading a normalised URL; None if it is asked for again."""
        known = self.record.loads.get(url)
        if known is None or self.plan.loads is None or url in self.plan.loads:
            return None
        if not known.load.node_id or self.record.snapshot(known.load.snapshot_key) is None:
            return None
        return structs.replace(known.load, source="recalled")

    def reused_outcome(
        self, snapshot_key: str, candidate: Candidate, *, is_reachable: bool = True
    ) -> ReusedOutcome | None:
        """Return the recorded outcome of an action; None if the action is performed again.

        A plain link is identified by its name and its target, wherever on the page it is.

        Parameters
        ----------
        snapshot_key
            Key of the snapshot of the state that is acted on.
        candidate
            Element that is acted on.
        is_reachable
            False if the state cannot be shown now. An outcome that the plan asks for again is then kept.

        Returns
        -------
        ReusedOutcome | None
            With the source `recalled`, or `kept` if the state is not reachable.
        """
        number = self._by_snapshot.get((snapshot_key, candidate_key(candidate)))
        if number is None and not candidate.handler:
            number = self._plain_links.get(_link_key(candidate.action))
        if number is None:
            return None
        outcome = self.record.outcomes[number].outcome
        if outcome.session:
            return None  # which values made this session is found out again
        is_asked = _may_work_now(outcome) or self.plan.outcomes is None or number in self.plan.outcomes
        if is_asked and is_reachable:
            return None
        return self._reuse(outcome, candidate.action, "kept" if is_asked else "recalled")

    def _reuse(self, outcome: ActionOutcome, action: Action, source: Source) -> ReusedOutcome | None:
        url = self._requested_url(outcome, action)
        if outcome.loaded and not url:
            return None
        if not outcome.loaded and outcome.snapshot_key and self.record.snapshot(outcome.snapshot_key) is None:
            return None
        return ReusedOutcome(structs.replace(outcome, source=source, verdict=""), url)

    def captures(self) -> Mapping[str, Blobs]:
        """Return the captures of snapshots, which need not be taken again of pages that look the same.

        Empty if everything is asked again.
        """
        return {} if self.plan.everything else self.record.captures

    def snapshot_and_captures(self, snapshot_key: str) -> tuple[Snapshot, Blobs | None]:
        """Return a snapshot that a reused answer names, and its captures; KeyError if it is not recorded."""
        snapshot = self.record.snapshot(snapshot_key)
        if snapshot is None:
            raise KeyError(snapshot_key)
        return snapshot, self.record.blobs(snapshot_key)

    # ---- answers kept in an outage -------------------------------------------------------------------------------

    def kept_load(self, url: str, load: Load, snapshot: Snapshot | None) -> Load | None:
        """Return the recorded result of loading a URL if loading it met an outage, for `grace` refreshes.

        Parameters
        ----------
        url
            Normalised URL.
        load
            Result of loading it now.
        snapshot
            Page that it shows now, if any.

        Returns
        -------
        Load | None
            None if the new result counts.
        """
        known = self.record.loads.get(url)
        if known is None or not known.load.node_id or known.track.misses >= self._grace:
            return None
        status = snapshot.status if snapshot else 0
        if not is_outage(load, status) or self.record.snapshot(known.load.snapshot_key) is None:
            return None
        return structs.replace(known.load, source="kept")

    def kept_outcome(self, state_id: str, candidate: Candidate, outcome: ActionOutcome) -> ReusedOutcome | None:
        """Return the recorded outcome of an action if performing it met an outage, for `grace` refreshes.

        An outage of the document that the action requested is handled by `kept_load`.

        Parameters
        ----------
        state_id
            State that was acted on.
        candidate
            Element that was acted on.
        outcome
            Outcome of performing the action now.

        Returns
        -------
        ReusedOutcome | None
            None if the new outcome counts.
        """
        known = self._recorded(state_id, candidate)
        if known is None or known.outcome.problem or known.track.misses >= self._grace:
            return None
        if outcome.loaded or not is_outage(outcome):
            return None
        return self._reuse(known.outcome, candidate.action, "kept")

    # ---- comparison with re-asked answers ------------------------------------------------------------------------

    async def with_verdict(
        self,
        state: Snapshot,
        candidate: Candidate,
        outcome: ActionOutcome,
        *,
        snapshot_of: Callable[[str], Snapshot],
        repeat: Callable[[], Awaitable[ActionOutcome]],
    ) -> ActionOutcome:
        """Return an outcome with the verdict of comparing it with the recorded one.

        If they differ, the action is repeated twice in fresh sessions. Its outcome then is `non_deterministic` (the
        repetitions differ), `session_dependent` (they agree with each other only) or `differs`.

        Parameters
        ----------
        state
            Snapshot of the state that was acted on.
        candidate
            Element that was acted on.
        outcome
            Outcome of performing the action now.
        snapshot_of
            Returns a snapshot of this run, by key.
        repeat
            Performs the action in a fresh session.

        Returns
        -------
        ActionOutcome
            Without a verdict if nothing is recorded, or an outage prevents the comparison.
        """
        known = self._recorded(state.id, candidate)
        if known is None or (is_outage(outcome) and not known.outcome.problem):
            return outcome
        source = self.record.snapshot(known.snapshot_key)
        recorded = _ObservedOutcome(known.outcome, source, self.record.snapshot(known.outcome.snapshot_key) or source)

        def observed(each: ActionOutcome) -> _ObservedOutcome:
            return _ObservedOutcome(each, state, snapshot_of(each.snapshot_key) if each.snapshot_key else state)

        if self._is_same(recorded, observed(outcome)):
            return structs.replace(outcome, verdict="same")
        second, third = observed(await repeat()), observed(await repeat())
        if not self._is_same(second, third):
            return structs.replace(outcome, verdict="non_deterministic")
        is_reproduced = self._is_same(observed(outcome), second)
        return structs.replace(outcome, verdict="differs" if is_reproduced else "session_dependent")

    def recorded_key(self, state: Snapshot, snapshot_key: str, candidate: Candidate) -> str:
        """Return the key of the recorded snapshot of a state if the new snapshot differs from it in noise only.

        If other elements have the same label, the element is identified by its position. When the page shows its
        content in another order, that position may belong to another element, and the page counts as changed.

        Parameters
        ----------
        state
            New snapshot of the state.
        snapshot_key
            Its key.
        candidate
            Element that is acted on.

        Returns
        -------
        str
            `snapshot_key` itself if the page changed, or is new.
        """
        recorded = self.record.states.get(state.id, "")
        if recorded in {"", snapshot_key}:
            return snapshot_key
        before = self.record.snapshot(recorded)
        noise = self.record.noise(state.url)
        if before is None or changed_features(before, state, noise):
            return snapshot_key
        is_ambiguous = _has_equal_labels(candidate, state) and not have_same_order(before, state, noise)
        return snapshot_key if is_ambiguous else recorded

    def _recorded(self, state_id: str, candidate: Candidate) -> RecordedOutcome | None:
        number = self._by_state.get((state_id, candidate_key(candidate)))
        if number is None and not candidate.handler:
            number = self._plain_links.get(_link_key(candidate.action))
        return None if number is None else self.record.outcomes[number]

    @cached_property
    def _page_names(self) -> PageNames:
        """The page names of the recorded map, from one URL of each page."""
        nodes = {recorded.load.node_id: url for url, recorded in self.record.loads.items()}
        return PageNames(url for node_id, url in nodes.items() if node_id in self.record.states)

    def _is_same(self, a: _ObservedOutcome, b: _ObservedOutcome) -> bool:
        if bool(a.outcome.problem) != bool(b.outcome.problem) or a.outcome.loaded != b.outcome.loaded:
            return False
        if a.outcome.problem or a.after is None or b.after is None:
            return bool(a.outcome.problem) or a.after is b.after
        if a.after.url != b.after.url and self._page_names.of(a.after.url) != self._page_names.of(b.after.url):
            return False
        if a.outcome.loaded or a.after.id == b.after.id:
            return True  # The content of a document is compared when its URL is loaded, not for each link to it.
        if similarity(a.after.structure, b.after.structure) >= SAME_OUTCOME_SIMILARITY:
            return True
        noise = self.record.noise(a.after.url)
        return a.feature_change(noise) == b.feature_change(noise)

    # ---- history for the next record -----------------------------------------------------------------------------

    def load_history(self, url: str, load: Load, *, changed: bool) -> AnswerHistory:
        """Return the history of a URL, this run included."""
        known = self.record.loads.get(url)
        return _next_history(known.track if known else None, load.source, changed=changed)

    def outcome_history(self, state_id: str, candidate: Candidate, outcome: ActionOutcome) -> AnswerHistory:
        """Return the history of an action, this run included."""
        known = self._recorded(state_id, candidate)
        changed = outcome.verdict not in {"", "same"}
        return _next_history(known.track if known else None, outcome.source, changed=changed)

    def is_in_uniform_sample(self, state_id: str, candidate: Candidate) -> bool:
        """Return whether an action is in the part of the sample that was drawn with equal chances."""
        number = self._by_state.get((state_id, candidate_key(candidate)))
        return number in self.plan.uniform

    # ---- documents that actions requested ------------------------------------------------------------------------

    def _requested_url(self, outcome: ActionOutcome, action: Action) -> str:
        if not outcome.loaded:
            return ""
        urls = self._urls_of.get(outcome.snapshot_key, [])
        target = normalize_url(action.target, self._url_policy) if action.target else ""
        if target in urls or not urls:
            return action.target
        return self.record.loads[urls[0]].load.address or urls[0]

    def _is_plain_link(self, known: RecordedOutcome) -> bool:
        """Return whether an action did nothing but request the document of its link."""
        outcome, action = known.outcome, known.action
        effects = (*outcome.blocked, *outcome.observed, *outcome.refused, *outcome.dialogs, *outcome.other_tabs)
        if known.handler or not action.target or not outcome.loaded or effects or outcome.problem:
            return False
        return normalize_url(action.target, self._url_policy) in self._urls_of.get(outcome.snapshot_key, ())


def _may_work_now(outcome: ActionOutcome) -> bool:
    """Return whether an action failed for a reason that may be over. An element that takes no input fails again."""
    kind = failure_kind(outcome)
    return kind is not None and not kind.takes_no_pointer


def _has_equal_labels(candidate: Candidate, state: Snapshot) -> bool:
    """Return whether other elements of a state differ from this one in their position only."""
    label = _label(candidate)
    return sum(_label(other) == label for other in state.candidates) > 1


def _label(candidate: Candidate) -> tuple[str, ...]:
    return (*_link_key(candidate.action), candidate.handler)


def _link_key(action: Action) -> tuple[str, ...]:
    return (action.kind, action.value, action.role, action.name, action.target)


def _next_history(known: AnswerHistory | None, source: str, *, changed: bool) -> AnswerHistory:
    if known is None:
        return AnswerHistory()
    if source == "recalled":
        return replace(known, age=known.age + 1)
    if source == "kept":
        return replace(known, age=known.age + 1, misses=known.misses + 1)
    return AnswerHistory(0, known.checks + 1, known.changes + changed, 0)
