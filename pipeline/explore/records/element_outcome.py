"""Outcome of an element or URL that the explorer discovered."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Status = Literal["done", "pending", "skipped", "failed"]


@dataclass(frozen=True, slots=True)
class ElementOutcome:
    """Outcome of an element or URL. The field names are stored.

    Attributes
    ----------
    state
        Id of the state that shows it.
    element
        Its description.
    status
        `done`, `pending`, `skipped` or `failed`.
    reason
        Why it was skipped or failed.
    detail
        What decided that.
    item
        Index in its round if it was a work item; None if it was decided before, by a policy or a cap.
    rule
        See `Skip`.
    target
        See `Skip`.
    xpath
        See `Skip`.
    """

    state: str
    element: str
    status: Status
    reason: str = ""
    detail: str = ""
    item: int | None = None
    rule: str = ""
    target: str = ""
    xpath: str = ""
