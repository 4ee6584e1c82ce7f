"""What must not be touched? Each policy is one small class that says why an element is left alone, or nothing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from pipeline.browser.snapshot import Candidate, Snapshot


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why an element is not activated.

    Attributes
    ----------
    reason : code of the reason: `external`, `hazard`, `robots`, `rule`, ...
    detail : what about the element decided it: a word of its name, its target.
    rule : which rule that was, for people who want to write another one; `--explain-skips` shows it.
    """

    reason: str
    detail: str = ""
    rule: str = ""


class Policy(Protocol):
    """One reason to leave elements alone. Policies are asked in order; the first refusal counts."""

    def refuse(self, candidate: Candidate, seen: Snapshot) -> Refusal | None:
        """Say why `candidate`, an element of the state `seen`, must not be activated."""
        ...
