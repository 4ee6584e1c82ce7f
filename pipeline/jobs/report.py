"""What happened to each site of a run, and what does that make the run's exit code?"""

from __future__ import annotations

from collections import Counter
from typing import Literal, Self

from pydantic import BaseModel, ConfigDict, computed_field

from waygraph.errors import SiteUnreachable, SomeSitesFailed, WaygraphError

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


class Totals(_Record):
    """Sums over the sites of a run."""

    sites: int
    published: int
    unchanged: int
    failed: int
    interrupted: int
    states: int
    edges: int


class RunReport(_Record):
    """What a bulk run did."""

    run_id: str
    store: str
    started: str
    """ISO 8601, UTC."""
    finished: str
    seconds: float
    interrupted: bool
    phases: dict[str, float]
    """Seconds: `ray_start`, `encoder_ready` (from the start of the run, beside exploring), `work`, `stop`."""
    duplicates: tuple[str, ...]
    """URLs that were left out because their site was already named."""
    sites: tuple[SiteOutcome, ...]
    encoding: EncodingReport | None = None
    """Nothing when the encoders' own account was lost with them."""

    @property
    def location(self) -> str:
        """Where it is kept."""
        return f"{self.store.rstrip('/')}/runs/{self.run_id}/report.json"

    @computed_field  # type: ignore[prop-decorator]  # mypy: decorators on properties
    @property
    def totals(self) -> Totals:
        """Sums over the sites."""
        status = Counter(site.status for site in self.sites)
        made = [site for site in self.sites if site.status == "published"]
        found = [site.exploration for site in made if site.exploration]
        return Totals(
            sites=len(self.sites),
            published=status["published"],
            unchanged=status["unchanged"],
            failed=status["failed"],
            interrupted=status["interrupted"],
            states=sum(site.publication.states for site in made if site.publication),
            edges=sum(exploration.edges for exploration in found),
        )

    @computed_field  # type: ignore[prop-decorator]  # mypy: decorators on properties
    @property
    def exit_code(self) -> int:
        """0: every site published; 5: some failed; all failed: their common exit code, else 4; 130: interrupted."""
        if self.interrupted or any(s.status == "interrupted" for s in self.sites):
            return INTERRUPTED
        codes = {s.error.exit_code for s in self.sites if s.error}
        if not codes:
            return 0
        if any(s.status in {"published", "unchanged"} for s in self.sites):
            return SomeSitesFailed.exit_code
        return codes.pop() if len(codes) == 1 else SiteUnreachable.exit_code
