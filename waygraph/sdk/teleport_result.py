"""Result of a teleport: its outcome and the trace of its steps."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, Literal

from typing_extensions import TypeVar

from waygraph.pipeline.browser.page.replay import ReplayedStep

if TYPE_CHECKING:
    from playwright.async_api import Page

#: A page of Playwright's async API, or of its sync API.
AnyPage = TypeVar("AnyPage", default="Page")

#: `arrived`: the page has the id of the target, or of another snapshot of it from exploration.
#: `arrived_equivalent`: the page differs from those in noise, and shows everything that distinguishes the target from
#: other states; or the last step changed a recognised page exactly as the map says.
#: `arrived_unmapped`: the target is a lead, a page that was not visited; URL, status, and title or headings fit what is
#: known of it, see `waygraph.sdk.lead_arrival`.
#: `arrived_elsewhere`: the walk ended on another state of the map.
#: `failed`: it ended on a page that the map does not know, or could not continue.
Outcome = Literal["arrived", "arrived_equivalent", "arrived_unmapped", "arrived_elsewhere", "failed"]


@dataclass(frozen=True, slots=True)
class TeleportStep:
    """One step of the walk: its action, the expected state and the state that followed."""

    action: str
    expected_node_id: str
    seen_node_id: str
    seen_url: str
    rung: str
    ms: float
    agrees: bool
    problem: str

    @classmethod
    def of(cls, walked: ReplayedStep) -> TeleportStep:
        """Return the trace entry of a step that was tried."""
        return cls(
            action=", ".join(map(str, (*walked.step.openers, walked.step.action))),
            expected_node_id=walked.step.expected_node_id,
            seen_node_id=walked.seen_node_id,
            seen_url=walked.seen_url,
            rung=walked.rung,
            ms=round(walked.ms, 1),
            agrees=walked.agrees,
            problem=walked.problem,
        )

    def to_json(self) -> dict[str, Any]:
        """Return the fields of the step."""
        return {name: getattr(self, name) for name in self.__slots__}

    def __str__(self) -> str:
        return (
            f"{self.action} -> {self.seen_url} ({self.ms:.0f} ms)" if self.agrees else f"{self.action}: {self.problem}"
        )


@dataclass(frozen=True, slots=True)
class TeleportResult(Generic[AnyPage]):
    """How a teleport ended.

    Attributes
    ----------
    outcome
        See `Outcome`.
    node_id
        The state that the page shows, if the map has it; with `arrived_unmapped` the lead.
    url
        The page's URL.
    steps
        All actions of all plans, in order.
    replans
        Number of times the page was located again after a walk, to verify the arrival or to plan a new path.
    problem
        Why the walk did not arrive; empty if it did.
    page
        The page where the walk ended; a new tab if a step opened one.
    """

    outcome: Outcome
    node_id: str | None
    url: str
    steps: tuple[TeleportStep, ...]
    replans: int
    problem: str
    page: AnyPage

    @property
    def arrived(self) -> bool:
        """Whether the page was verified to show the target, as far as the target is known."""
        return self.outcome in {"arrived", "arrived_equivalent", "arrived_unmapped"}

    def to_json(self) -> dict[str, Any]:
        """Return the result without the live page."""
        names = [name for name in self.__slots__ if name not in {"page", "steps"}]
        return {**{name: getattr(self, name) for name in names}, "steps": [step.to_json() for step in self.steps]}
