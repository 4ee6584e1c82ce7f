"""Record of a run of the greedy baseline."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal

#: `stopped`: the page is nearer to the task than anything that it offers. `exhausted`: nothing is left to try.
#: `step_limit`: the steps are used up.
RunEnd = Literal["stopped", "exhausted", "step_limit"]


@dataclass(frozen=True, slots=True)
class GreedyStep:
    """An action of the baseline.

    Attributes
    ----------
    state
        Node id of the state in which it was done.
    url
        URL of that state.
    action
        The action as text.
    score
        Nearness of the element's text to the task; 0 for actions on no element.
    page_score
        Nearness of the page itself.
    status
        Status of the report.
    message
        The report.
    """

    state: str
    url: str
    action: str
    score: float
    page_score: float
    status: str
    message: str


@dataclass(frozen=True, slots=True)
class GreedyRun:
    """A run of the baseline.

    Attributes
    ----------
    task
        The task.
    end
        Why it ended.
    url
        Where it ended.
    state
        Node id of the state where it ended.
    answer
        The text of the last page that is nearest to the task.
    steps
        All actions.
    """

    task: str
    end: RunEnd
    url: str
    state: str
    answer: str
    steps: tuple[GreedyStep, ...]

    def to_json(self) -> dict[str, Any]:
        """Return a plain JSON object."""
        return asdict(self)
