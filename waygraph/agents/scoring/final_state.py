"""The state in which a run left a task: all that its checks read."""

from __future__ import annotations

import html
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from pydantic import BaseModel, ConfigDict, JsonValue

#: Number of a page target, and of its alternative: 0 is the target itself.
TargetKey = tuple[int, int]


class FindingProblem(StrEnum):
    """Why a page target has no value."""

    UNREACHABLE = "unreachable"
    """The page did not load."""
    SCRIPT_FAILED = "script-failed"
    """The locator raised an error in the page, for example because its element is not there."""
    NOT_CONFIGURED = "not-configured"
    """The target calls a function of a site whose access was not given."""
    CALL_FAILED = "call-failed"
    """The call of the site's API failed."""


class PageFinding(BaseModel):
    """What the locator of a page target gave.

    Attributes
    ----------
    url
        URL of the page that was looked at.
    value
        The value; the page's HTML if the locator is empty.
    problem
        Why there is no value.
    detail
        Message of the error, for people.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    url: str
    value: JsonValue = None
    problem: FindingProblem | None = None
    detail: str = ""

    @property
    def text(self) -> str | None:
        """The text that is compared; None if the target could not be looked at.

        A locator that raises gives the empty text, and other values than texts are written as Python writes them
        (`None`, `['a', 'b']`), as in the evaluators whose files these are.
        """
        if self.problem is FindingProblem.SCRIPT_FAILED:
            return ""
        return None if self.problem is not None else html.unescape(str(self.value))


@dataclass(frozen=True, slots=True)
class FinalState:
    """The final state of a task.

    Attributes
    ----------
    answer
        The agent's answer; empty: it gave none.
    url
        URL of the page that the agent left.
    findings
        Values of page targets, as far as they were recorded.
    """

    answer: str
    url: str
    findings: Mapping[TargetKey, PageFinding] = field(default_factory=dict)
