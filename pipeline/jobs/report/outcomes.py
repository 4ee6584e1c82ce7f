"""Records of outcomes: what happened to each site of a run, and their totals."""

from __future__ import annotations

from typing import Any, Literal, Self

from pydantic import BaseModel, ConfigDict, computed_field, model_validator

from waygraph.core.errors import WaygraphError

INTERRUPTED = 130
"""Exit code of an interrupted run: 128 + SIGINT, as shells report it."""


SiteStatus = Literal["published", "unchanged", "failed", "interrupted"]
"""`unchanged`: the published version equals what the run would have published."""


TURN_ENDED = "end_of_turn"
"""`Exploration.stopped_by` of an exploration whose turn ended. The site continues in another turn (docs/runs.md)."""


class ReportRecord(BaseModel):
    """Base of all records of reports."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)


class ErrorRecord(ReportRecord):
    """A `WaygraphError` in a report."""

    type: str
    title: str
    message: str
    hint: str
    exit_code: int

    @classmethod
    def of(cls, error: WaygraphError) -> Self:
        """Return the record of an error."""
        return cls(
            type=error.slug, title=error.title, message=error.message, hint=error.hint, exit_code=error.exit_code
        )


class DepthRecord(ReportRecord):
    """Discovery at one depth (WebNavigator, figure 3)."""

    depth: int
    states: int
    activations: int
    seconds: float
    states_per_minute: float


class RoundRecord(ReportRecord):
    """Discovery in one round of work, or in several consecutive ones."""

    states: int
    activations: int
    seconds: float
    gain: float
    """About the number of pages of new kinds; 0 in the order `breadth`."""


class FailedItem(ReportRecord):
    """A work item that failed."""

    node_id: str
    action: str
    reason: str


class Exploration(ReportRecord):
    """Summary of the exploration of one site, sent from the explorer to the driver in place of the capture."""

    site: str = ""
    """Key of the explored site, to which the start page led. Empty in reports of earlier versions."""
    states: int
    edges: int
    """Edges whose action was performed."""
    inherited_edges: int
    """Edges inherited from the parent state, not performed."""
    seconds: float
    waited_for_encoders: float = 0.0
    """Seconds among `seconds` spent waiting for the encoder queue, summed over pages."""
    partial: bool
    stopped_by: str
    depths: tuple[DepthRecord, ...]
    counters: dict[str, int]
    skipped: dict[str, int]
    """Elements and URLs that were skipped, by reason."""
    failed: dict[str, int]
    """Failed work items, by reason."""
    failures: tuple[FailedItem, ...]
    """The first failures in full."""
    advice: tuple[str, ...] = ()
    """Stopped requests that seem to have broken a page, and the rules that would allow them."""
    stopped: dict[str, int] = {}
    """Requests of actions that may change something, as "POST https://...", with the number of actions. They
    were stopped, or in the mode `observe` let pass."""
    sent_by_visits: tuple[str, ...] = ()
    """Requests and messages by POST and WebSocket that pages sent while loading, and that were let pass."""
    over_budget: tuple[str, ...] = ()
    """Pages whose scripts requested more addresses than they may; what these answer is missing in their states."""
    rounds: tuple[RoundRecord, ...] = ()
    """Discovery by round; of long explorations several rounds are one record."""
    expected_gain: float = 0.0
    """About the number of pages of new kinds that the next 50 actions would find; 0 if nothing is left to do."""


class StateWithoutVectors(ReportRecord):
    """A state of the map that no search finds."""

    node_id: str
    url: str
    reason: str


class Publication(ReportRecord):
    """Summary of encoding and publishing one site."""

    site: str = ""
    """Key of the map, to which the start page led. Empty in reports of earlier versions."""
    version: int
    encoded: int
    """States whose vectors were computed."""
    reused: int
    """States with the vectors of an equal state of this or the previous version."""
    encode_seconds: float
    """Counted from the end of the exploration; see `streamed`."""
    publish_seconds: float
    states: int
    streamed: int = 0
    """States among `encoded` that were encoded during the exploration, or by an interrupted run."""
    without_vectors: int = 0
    """States that could not be encoded. Paths lead to them, searches do not find them."""
    failures: tuple[StateWithoutVectors, ...] = ()
    """The first of these states."""
    refresh: dict[str, Any] = {}
    """Summary of a refresh: requested and reused answers, changes, and the age of reused answers. The manifest of the
    version has the same; here it outlives the version."""


class EncodingReport(ReportRecord):
    """Totals of the encoders of a run."""

    encoder: str
    actors_started: int
    actors_lost: int
    """Actors that died or failed unexpectedly."""
    actors_at_once: int
    batches: int
    splits: int
    """Batches that were split after their actors died."""
    states: int
    unencodable: int
    fed_seconds: float
    """Time with a batch, summed over actors."""
    busy_seconds: float
    """The part of it in which encoders computed."""

    @model_validator(mode="before")
    @classmethod
    def _without_computed(cls, given: dict[str, Any]) -> dict[str, Any]:
        return {name: value for name, value in given.items() if name != "idle_share"}

    @computed_field  # type: ignore[prop-decorator]  # mypy: decorators on properties
    @property
    def idle_share(self) -> float:
        """Share of the time with assigned work in which encoders computed nothing."""
        return round(max(0.0, 1 - self.busy_seconds / self.fed_seconds), 4) if self.fed_seconds else 0.0


class SiteOutcome(ReportRecord):
    """Outcome of one site."""

    site: str
    start_url: str
    status: SiteStatus
    attempts: int = 0
    seconds: float = 0.0
    """From the begin of its exploration until it was published or failed."""
    exploration: Exploration | None = None
    publication: Publication | None = None
    error: ErrorRecord | None = None

    @property
    def map(self) -> str:
        """Key of the published map: of another site if the start page led there."""
        return (self.publication.site if self.publication is not None else "") or self.site


class Totals(ReportRecord):
    """Sums over the sites of a run."""

    sites: int = 0
    published: int = 0
    unchanged: int = 0
    failed: int = 0
    interrupted: int = 0
    states: int = 0
    edges: int = 0


class Quartiles(ReportRecord):
    """Quartiles of a set of numbers."""

    least: float
    lower: float
    median: float
    upper: float
    most: float
    total: float
    count: int


class DepthFindings(ReportRecord):
    """Discovery at one depth, over all sites that reached it (WebNavigator, figure 3)."""

    depth: int
    sites: int
    states: int
    activations: int
    seconds: float
    velocity: Quartiles
    """New states per minute of exploring, over sites that spent time at this depth."""


class Reason(ReportRecord):
    """A reason, its count, and its first occurrence."""

    reason: str
    count: int
    sites: int
    example: str = ""


class Promising(ReportRecord):
    """A site at which a larger budget would find most that is new."""

    site: str
    states: int
    stopped_by: str
    expected_gain: float
    """See `Exploration.expected_gain`."""
    rounds: tuple[RoundRecord, ...]


class Findings(ReportRecord):
    """Totals of all outcomes. The size does not depend on the number of sites."""

    totals: Totals = Totals()
    error_codes: tuple[int, ...] = ()
    """Distinct exit codes of site errors, sorted."""
    depths: tuple[DepthFindings, ...] = ()
    states_per_site: Quartiles | None = None
    states_histogram: tuple[tuple[int, int], ...] = ()
    """By powers of two: lower bound of the number of states, and number of sites."""
    seconds_per_site: Quartiles | None = None
    seconds_histogram: tuple[tuple[int, int], ...] = ()
    """The same for seconds from the begin of a site until its outcome."""
    errors: tuple[Reason, ...] = ()
    """Reasons of failed sites by kind of error, the most frequent first."""
    stopped: tuple[Reason, ...] = ()
    """Limits that made maps partial."""
    skipped: tuple[Reason, ...] = ()
    """Reasons of skipped elements and URLs."""
    failed: tuple[Reason, ...] = ()
    """Reasons of failed elements."""
    promising: tuple[Promising, ...] = ()
    """Sites that a limit stopped, those first at which further actions are expected to find most that is new."""
    retried: int = 0
    """Sites with a retry after a failed attempt. Resuming an interrupted attempt is not a retry."""
    encoded: int = 0
    reused: int = 0
    without_vectors: int = 0


class Invocation(ReportRecord):
    """One invocation of a run: its start and duration. For a killed one the last known duration."""

    started: str
    seconds: float


StoppedBy = Literal["", "signal", "max_total_states", "max_total_seconds", "error"]
