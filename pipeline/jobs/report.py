"""What happened to each site of a run, and what does that make the run's exit code?"""

from __future__ import annotations

from collections import Counter
from typing import Literal, Self

from pydantic import BaseModel, ConfigDict, computed_field

from waygraph.errors import SiteUnreachable, SomeSitesFailed, WaygraphError

INTERRUPTED = 130
"""Exit code of a run that was told to stop: 128 + SIGINT, as shells report it."""


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


class Publication(_Record):
    """The account of encoding and publishing one site."""

    version: int
    encoded: int
    """States whose vectors were computed."""
    reused: int
    """States whose vectors were taken from an equal state, of this or of the previous version."""
    encode_seconds: float
    publish_seconds: float


class SiteOutcome(_Record):
    """What happened to one site."""

    site: str
    start_url: str
    status: Literal["published", "failed", "interrupted"]
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

    @computed_field  # type: ignore[prop-decorator]  # mypy: decorators on properties
    @property
    def totals(self) -> Totals:
        """Sums over the sites."""
        status = Counter(site.status for site in self.sites)
        found = [site.exploration for site in self.sites if site.status == "published" and site.exploration]
        return Totals(
            sites=len(self.sites),
            published=status["published"],
            failed=status["failed"],
            interrupted=status["interrupted"],
            states=sum(exploration.states for exploration in found),
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
        if any(s.status == "published" for s in self.sites):
            return SomeSitesFailed.exit_code
        return codes.pop() if len(codes) == 1 else SiteUnreachable.exit_code
