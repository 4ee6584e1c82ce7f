"""The result of exploring one site: graph, observations, report."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from waygraph.index.graph import InteractionGraph, Lead, Observation, Recognition, Tool


class BlobSink(Protocol):
    """Storage of captured screenshots, DOMs and accessibility snapshots."""

    def put(self, content: bytes) -> str:
        """Store `content` under its SHA-256 and return the hash in hex. Safe to call from many processes."""
        ...


@dataclass(frozen=True, slots=True)
class Skip:
    """An element or URL that was deliberately skipped.

    Attributes
    ----------
    node_id
        State that shows it.
    reason
        Kind of the reason.
    element
        Description of the element.
    detail
        What decided it.
    rule
        The rule that decided it.
    target
        Link target of the element.
    xpath
        Full XPath of the element.
    """

    node_id: str
    reason: str
    element: str
    detail: str = ""
    rule: str = ""
    target: str = ""
    xpath: str = ""


@dataclass(frozen=True, slots=True)
class Failure:
    """A work item that failed."""

    node_id: str
    action: str
    reason: str


@dataclass(frozen=True, slots=True)
class ExploreProgress:
    """Progress of a running exploration, sent after every work item. `warnings` are about the session it began with."""

    site: str
    depth: int
    states: int
    edges: int
    activations: int
    pending: int
    skipped: int
    failed: int
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class DepthRow:
    """Discovery at one depth (WebNavigator, figure 3)."""

    depth: int
    states: int
    activations: int
    seconds: float

    @property
    def states_per_minute(self) -> float:
        """Discovery velocity."""
        return 60 * self.states / self.seconds if self.seconds else 0.0


@dataclass(frozen=True, slots=True)
class RoundRow:
    """Discovery in one round of work. The field names are stored.

    Attributes
    ----------
    states
        New states.
    activations
        Performed actions.
    seconds
        Duration.
    gain
        Sum of the gains of new states: about the number of pages of new kinds. 0 in the order `breadth`.
    """

    states: int
    activations: int
    seconds: float
    gain: float = 0.0


#: `ExploreReport.stopped_by` of a small map whose pages had requests stopped while they were loading.
SENDS_STOPPED = "sends_stopped"

#: Number of elements for which a report predicts the gain.
NEXT_ITEMS = 50


@dataclass(frozen=True, slots=True)
class ExploreReport:
    """The report of an exploration. The field names are stored.

    Attributes
    ----------
    start_url
        Start page.
    seconds
        Duration, over all processes that worked on it.
    partial
        Whether the run was ended early, so that the result depends on the machine's speed.
    stopped_by
        Limit that ended the run; empty if everything was explored.
    depths
        Discovery by depth.
    rounds
        Discovery by round, in order.
    expected_gain
        Expected gain of the next `NEXT_ITEMS` elements that a limit cut off; 0 if none is left, or the order does not
        predict it.
    counters
        Flat `area/name` keys, see docs/counters.md.
    skips
        The first skipped elements.
    failures
        The first failed work items.
    pending
        Number of work items left when a limit ended the run.
    advice
        Stopped requests that seem to have broken a page, and the rules that would allow them.
    sent_by_visits
        Requests and messages by POST and WebSocket that pages sent while loading, and that were let pass, as
        `method address operation`, sorted.
    over_budget
        URLs of pages whose scripts requested more addresses than they may (`MAX_SCRIPT_REQUESTS`), sorted. What they
        showed of the others is not in the map.
    fates
        Content hash of the table of all element outcomes (`waygraph.index.store.element_outcomes`).
    explored
        End of the exploration (ISO 8601, UTC). It stays with the map when that is published again.
    record
        Content hash of the exploration record, which the next refresh reuses
        (`waygraph.pipeline.explore.refresh.exploration_record`).
    """

    start_url: str
    seconds: float
    partial: bool
    stopped_by: str
    depths: tuple[DepthRow, ...]
    counters: Mapping[str, int]
    skips: tuple[Skip, ...] = ()
    failures: tuple[Failure, ...] = ()
    pending: int = 0
    fates: str = ""
    record: str = ""
    explored: str = ""
    advice: tuple[str, ...] = ()
    sent_by_visits: tuple[str, ...] = ()
    over_budget: tuple[str, ...] = ()
    rounds: tuple[RoundRow, ...] = ()
    expected_gain: float = 0.0


@dataclass(frozen=True, slots=True)
class RefreshSummary:
    """Summary of a refresh. The field names are stored.

    Attributes
    ----------
    loads
        Number of loads by origin: `asked`, `recalled` (reused), `kept` (reused because of an outage).
    actions
        Number of actions by origin.
    verdicts
        Number of repeated actions by comparison with the earlier exploration.
    sampled
        Number of actions repeated in the random sample.
    differed
        Number of these whose outcome differed.
    stale
        Expected share of stale edges in the map. Repeated edges are not stale.
    stale_at_most
        Upper limit of that share with 95% confidence.
    unstable
        Session-dependent or non-deterministic actions: state, action, verdict, and position of the element. Older
        versions lack the last.
    outages
        Number of known pages that met an outage (`waygraph.pipeline.explore.engine.outages`).
    notes
        Notes for people, such as differences to the provenance of the map.
    """

    loads: Mapping[str, int] = field(default_factory=dict)
    actions: Mapping[str, int] = field(default_factory=dict)
    verdicts: Mapping[str, int] = field(default_factory=dict)
    sampled: int = 0
    differed: int = 0
    stale: float = 0.0
    stale_at_most: float = 0.0
    unstable: tuple[tuple[str, str, str, str], ...] = ()
    outages: int = 0
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class SiteCapture:
    """One explored site, ready to be encoded and published. Plain data, sent between Ray actors.

    Attributes
    ----------
    site
        Key of the site.
    start_url
        Start page.
    graph
        The interaction graph.
    observations
        What each state shows, by node id.
    report
        Report of the exploration.
    profile
        Capture profile.
    domain
        Registrable domain that was taken as the site, if one was.
    refresh
        Comparison with an earlier exploration.
    refreshes
        Version that a refresh was made from; None for a first exploration.
    settings
        Entries of the manifest besides the settings of the run, or in place of them: `visitor` (see
        `waygraph.pipeline.explore.visitor`), `rules` (digest of the user's rules for the site), `explore`.
    recognition
        Which other snapshots count as which state.
    leads
        Known pages that were not visited, by lead id.
    tools
        What one can do on its states, by tool id.
    """

    site: str
    start_url: str
    graph: InteractionGraph
    observations: Mapping[str, Observation]
    report: ExploreReport
    profile: Mapping[str, Any] = field(default_factory=dict)
    recognition: Recognition = field(default_factory=Recognition)
    domain: str = ""
    refresh: RefreshSummary = field(default_factory=RefreshSummary)
    refreshes: int | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)
    leads: Mapping[str, Lead] = field(default_factory=dict)
    tools: Mapping[str, Tool] = field(default_factory=dict)
