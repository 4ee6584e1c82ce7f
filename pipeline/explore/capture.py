"""What exploring one site yields: the graph, what each state looked like, and the run's account of itself."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from index.graph import InteractionGraph, Observation, Recognition


class BlobSink(Protocol):
    """Where captured screenshots, DOMs and accessibility snapshots go while a site is explored."""

    def put(self, content: bytes) -> str:
        """Store `content` once, under its SHA-256 (hex), and return that. Safe to call from many processes."""
        ...


@dataclass(frozen=True, slots=True)
class Skip:
    """An element or URL that was seen and deliberately not visited.

    Attributes
    ----------
    node_id : the state that shows it.
    detail : what about it decided that; `rule` says which rule did, for people who want to write another one.
    target, xpath : link target and full XPath of the element, what rules can be written about.
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
    """A work item that was tried and did not work."""

    node_id: str
    action: str
    reason: str


@dataclass(frozen=True, slots=True)
class ExploreProgress:
    """Where a running exploration stands; sent whenever a work item is done."""

    site: str
    depth: int
    states: int
    edges: int
    activations: int
    pending: int
    skipped: int
    failed: int


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
class ExploreReport:
    """A run's account of itself.

    Attributes
    ----------
    counters : flat `area/name` keys, all documented in docs/counters.md.
    skips, failures : the first of each.
    pending : work items that were left when a limit ended the run.
    advice : requests whose stopping seems to have broken a page, and the rules that would let them through.
    fates : content hash of the table of all elements and what became of them (`index.store.fates`).
    explored : when exploring ended (ISO 8601, UTC). It stays with the map when that is published anew.
    record : content hash of what the next exploration of the site recalls (`pipeline.explore.refresh.record`).
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


@dataclass(frozen=True, slots=True)
class RefreshSummary:
    """What asking again showed.

    Attributes
    ----------
    loads, actions : how many answers there are, by who gave them (`asked`, `recalled`, `kept`).
    verdicts : of actions that were asked again, how what they led to compares with before.
    sampled, differed : of actions that were drawn with equal chances, how many were asked, and differed.
    stale : expected share of stale edges in the map; of those that were asked again none is.
    stale_at_most : its upper limit with 95% confidence.
    unstable : actions that were session-dependent or non-deterministic: state, action, verdict, and where its element
        stands. Older versions lack the last.
    outages : pages that were there before and could not be had now (`pipeline.explore.outages`).
    notes : what a person should know of it, such as in what it could not be done as the map was made.
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
    """One explored site, ready to be encoded and published. Plain data: it travels between Ray actors.

    Attributes
    ----------
    domain : the registrable domain that was taken for the site, if one was.
    refresh : what comparing with an earlier exploration showed.
    refreshes : the version that was recalled, when the map is to be its successor.
    settings : what the manifest says beside the settings of the run, or in place of them: `visitor` (see
        `pipeline.explore.visitor`), `rules` (digest of the user's rules for the site), `explore`.
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
