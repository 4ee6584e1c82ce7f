"""What happened to each site of a run, and what does that make the run's exit code?"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, Self

from pydantic import BaseModel, ConfigDict, SkipValidation, computed_field, field_serializer, model_validator

from waygraph.errors import RunUnfinished, SiteUnreachable, SomeSitesFailed, WaygraphError

INTERRUPTED = 130
"""Exit code of a run that was told to stop: 128 + SIGINT, as shells report it."""


SiteStatus = Literal["published", "unchanged", "failed", "interrupted"]
"""`unchanged`: the published version is what the run would have made."""


class _Record(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)


class ErrorRecord(_Record):
    """A `WaygraphError` as reports show it."""

    type: str
    title: str
    message: str
    hint: str
    exit_code: int

    @classmethod
    def of(cls, error: WaygraphError) -> Self:
        """Record `error`."""
        return cls(
            type=error.slug, title=error.title, message=error.message, hint=error.hint, exit_code=error.exit_code
        )


class DepthRecord(_Record):
    """Discovery at one depth (WebNavigator, figure 3)."""

    depth: int
    states: int
    activations: int
    seconds: float
    states_per_minute: float


class FailedItem(_Record):
    """A work item that was tried and did not work."""

    node_id: str
    action: str
    reason: str


class Exploration(_Record):
    """The account of exploring one site. It travels from the explorer to the driver instead of the capture itself."""

    site: str = ""
    """Key of the site that its start page led to: what was explored. Empty in reports of earlier versions."""
    states: int
    edges: int
    """Edges that were walked."""
    inherited_edges: int
    """Edges taken over from the parent state, not walked."""
    seconds: float
    waited_for_encoders: float = 0.0
    """Seconds among `seconds` that handing states to encoders took, summed over the pages that waited."""
    partial: bool
    stopped_by: str
    depths: tuple[DepthRecord, ...]
    counters: dict[str, int]
    skipped: dict[str, int]
    """Elements and URLs not visited, counted by reason."""
    failed: dict[str, int]
    """Work items that did not work, counted by reason."""
    failures: tuple[FailedItem, ...]
    """The first of them, in full."""
    advice: tuple[str, ...] = ()
    """Requests whose stopping seems to have broken a page, and the rules that would let them through."""


class StateWithoutVectors(_Record):
    """A state that is in the map and cannot be found by searching."""

    node_id: str
    url: str
    reason: str


class Publication(_Record):
    """The account of encoding and publishing one site."""

    site: str = ""
    """Key of the map: that of the site that the start page led to. Empty in reports of earlier versions."""
    version: int
    encoded: int
    """States whose vectors were computed."""
    reused: int
    """States whose vectors were taken from an equal state, of this or of the previous version."""
    encode_seconds: float
    """From when its states were all known; see `streamed`."""
    publish_seconds: float
    states: int
    streamed: int = 0
    """States among `encoded` that were encoded while the site was still explored, or by a run that did not end."""
    without_vectors: int = 0
    """States that could not be encoded: paths lead to them, searches do not find them."""
    failures: tuple[StateWithoutVectors, ...] = ()
    """The first of them."""
    refresh: dict[str, Any] = {}
    """What a refresh says of itself: what was asked, kept and recalled, what changed, how stale the rest may be. The
    manifest of the version says the same; here it outlives the version."""


class EncodingReport(_Record):
    """What the encoders of a run did together."""

    encoder: str
    actors_started: int
    actors_lost: int
    """Actors that died, or failed in a way that nobody expected."""
    actors_at_once: int
    batches: int
    splits: int
    """Batches that were split after their actors had died."""
    states: int
    unencodable: int
    fed_seconds: float
    """Sum over the actors of the time in which they had a batch."""
    busy_seconds: float
    """Of that, the time in which an encoder computed."""

    @model_validator(mode="before")
    @classmethod
    def _without_computed(cls, given: dict[str, Any]) -> dict[str, Any]:
        return {name: value for name, value in given.items() if name != "idle_share"}

    @computed_field  # type: ignore[prop-decorator]  # mypy: decorators on properties
    @property
    def idle_share(self) -> float:
        """Share of the time with work at hand in which encoders computed nothing."""
        return round(max(0.0, 1 - self.busy_seconds / self.fed_seconds), 4) if self.fed_seconds else 0.0


class SiteOutcome(_Record):
    """What happened to one site."""

    site: str
    start_url: str
    status: SiteStatus
    attempts: int = 0
    seconds: float = 0.0
    """From when its explorer took it up until it was published or given up."""
    exploration: Exploration | None = None
    publication: Publication | None = None
    error: ErrorRecord | None = None

    @property
    def map(self) -> str:
        """Key of the map that was published: of another site when the start page led there."""
        return (self.publication.site if self.publication is not None else "") or self.site


class Totals(_Record):
    """Sums over the sites of a run."""

    sites: int = 0
    published: int = 0
    unchanged: int = 0
    failed: int = 0
    interrupted: int = 0
    states: int = 0
    edges: int = 0


class Quartiles(_Record):
    """How numbers are spread: of all of them, none is left out."""

    least: float
    lower: float
    median: float
    upper: float
    most: float
    total: float
    count: int


class DepthFindings(_Record):
    """Discovery at one depth, over all sites that came so deep (WebNavigator, figure 3)."""

    depth: int
    sites: int
    states: int
    activations: int
    seconds: float
    velocity: Quartiles
    """New states per minute of exploring, of each site that spent time there."""


class Reason(_Record):
    """Why something did not happen, how often, and where the first time."""

    reason: str
    count: int
    sites: int
    example: str = ""


class Findings(_Record):
    """What the outcomes of all sites are together. Its size does not depend on the number of sites."""

    totals: Totals = Totals()
    error_codes: tuple[int, ...] = ()
    """Exit codes of errors of sites, each once, sorted."""
    depths: tuple[DepthFindings, ...] = ()
    states_per_site: Quartiles | None = None
    states_histogram: tuple[tuple[int, int], ...] = ()
    """By power of two: sites with at least so many states, and less than twice as many; how many sites."""
    seconds_per_site: Quartiles | None = None
    seconds_histogram: tuple[tuple[int, int], ...] = ()
    """The same for seconds from when a site was begun until its outcome."""
    errors: tuple[Reason, ...] = ()
    """Why sites failed, by kind of error, the most frequent first."""
    stopped: tuple[Reason, ...] = ()
    """Which limits made maps partial."""
    skipped: tuple[Reason, ...] = ()
    """Elements and URLs that were left alone."""
    failed: tuple[Reason, ...] = ()
    """Elements that were tried in vain."""
    retried: int = 0
    """Sites that were tried again after a try that failed. Going on with what a stop cut short is no further try."""
    encoded: int = 0
    reused: int = 0
    without_vectors: int = 0


class Call(_Record):
    """One call of a run: when it began, and how long it worked, as far as is known of one that was killed."""

    started: str
    seconds: float


StoppedBy = Literal["", "signal", "max_total_states", "max_total_seconds", "error"]


class RunReport(_Record):
    """What a bulk run did, over all its calls."""

    run_id: str
    store: str
    work: str = "index"
    """`index`, `refresh`, `reencode`, or the function that explored instead."""
    started: str
    """ISO 8601, UTC."""
    finished: str
    seconds: float
    """Of work, all calls together."""
    calls: tuple[Call, ...] = ()
    interrupted: bool
    stopped_by: StoppedBy = ""
    """What ended this call before all sites had their outcome."""
    unfinished: int = 0
    """Sites that the next call of the same run goes on with."""
    phases: dict[str, float]
    """Seconds of this call: `ray_start`, `encoder_ready` (from the start of the run, beside exploring), `work`,
    `stop`."""
    duplicates: tuple[str, ...]
    """URLs that were left out because their site was already named."""
    encoding: EncodingReport | None = None
    """Of this call. Nothing when the encoders' own account was lost with them."""
    findings: Findings
    """Counted from the sites when it is not given."""
    sites: SkipValidation[Sequence[SiteOutcome]]
    """In the order of the list. Those of a large run are read from the report's file when they are asked for."""

    @model_validator(mode="before")
    @classmethod
    def _count(cls, given: dict[str, Any]) -> dict[str, Any]:
        from pipeline.jobs.report.findings import findings_of  # noqa: PLC0415 - it counts what is defined here

        known = {name: value for name, value in given.items() if name not in {"totals", "exit_code"}}
        if "findings" not in known:
            known["findings"] = findings_of(known["sites"])
        return known

    @field_serializer("sites")
    def _all_sites(self, sites: Sequence[SiteOutcome]) -> list[dict[str, Any]]:
        return [site.model_dump(mode="json") for site in sites]

    @property
    def location(self) -> str:
        """Where it is kept."""
        return f"{self.store.rstrip('/')}/runs/{self.run_id}/report.json"

    @computed_field  # type: ignore[prop-decorator]  # mypy: decorators on properties
    @property
    def totals(self) -> Totals:
        """Sums over the sites."""
        return self.findings.totals

    @computed_field  # type: ignore[prop-decorator]  # mypy: decorators on properties
    @property
    def exit_code(self) -> int:
        """0: all published; 5: some failed; all failed: their common code, else 4; 11: budget spent; 130: stopped."""
        if self.stopped_by.startswith("max_total"):
            return RunUnfinished.exit_code
        totals, codes = self.findings.totals, self.findings.error_codes
        if self.interrupted or totals.interrupted:
            return INTERRUPTED
        if not codes:
            return 0
        if totals.published or totals.unchanged:
            return SomeSitesFailed.exit_code
        return codes[0] if len(codes) == 1 else SiteUnreachable.exit_code
