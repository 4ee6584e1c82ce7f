"""Budget for sibling elements: points of a chart, regions of a map, icons of table rows, links to parts of a long page.

When enough siblings brought nothing, the others are skipped with the reason `alike`. Switch it off with
`explore.alike_budget: 0`.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Collection, Iterator, Mapping

from waygraph.core.urls import is_part_of
from waygraph.pipeline.browser.page.snapshot import Candidate
from waygraph.pipeline.explore.identity.thresholds import SIBLING_BUDGET_PER_RESULT, SIBLING_PATH_STEPS
from waygraph.pipeline.explore.policies.policy import Refusal

_NUMBER = re.compile(r"\[\d+\]")


class SiblingBudget:
    """Counter of sibling elements that were acted on without a result, per group of siblings.

    Elements of one state are siblings if they have neither a name nor a target, and kind of action, role, tag,
    classes, handlers and path are equal except for one number of the path. A name distinguishes an element from all
    others. Links to parts of their own page (`#install`) are siblings whatever their names, if role, tag, handlers and
    path without its numbers are equal: they scroll, unless a script makes a tab of them. An element with a result lets
    two more of its siblings be tried.

    Deterministic: `record_result` must be called in the order of commits. A refused element stays refused.

    Parameters
    ----------
    budget
        Number of siblings that may bring nothing; 0 means unlimited.
    """

    def __init__(self, budget: int) -> None:
        self._budget = budget
        self._spent: dict[str, dict[str, int]] = {}

    def keep(self, states: Collection[str]) -> None:
        """Forget the counts of all states but these, whose elements are not all acted on."""
        self._spent = {state_id: counts for state_id, counts in self._spent.items() if state_id in states}

    def refuse(self, state_id: str, candidate: Candidate, page: str = "") -> Refusal | None:
        """Return why an element of a state with the URL `page` is not acted on; None if it is."""
        counts = self._spent.get(state_id, {})
        if self._budget and any(counts.get(group, 0) >= self._budget for group in sibling_groups(candidate, page)):
            return Refusal("alike", f"{self._budget} siblings brought nothing new")
        return None

    def record_result(self, state_id: str, candidate: Candidate, page: str = "", *, brought: bool) -> None:
        """Count an element that was acted on; `brought` says whether the action showed anything unknown."""
        counts = self._spent.setdefault(state_id, {})
        for group in sibling_groups(candidate, page):
            counts[group] = max(0, counts.get(group, 0) + (-SIBLING_BUDGET_PER_RESULT if brought else 1))

    def to_checkpoint(self) -> dict[str, dict[str, int]]:
        """Return the counts by state, as plain JSON."""
        return {state_id: dict(counts) for state_id, counts in self._spent.items() if counts}

    def load_checkpoint(self, checkpoint: Mapping[str, Mapping[str, int]]) -> None:
        """Restore what `to_checkpoint` returned."""
        self._spent = {state_id: dict(counts) for state_id, counts in checkpoint.items()}


def sibling_groups(candidate: Candidate, page: str) -> Iterator[str]:
    """Yield the names of an element's sibling groups: one for each number of its path that may count the siblings.

    A link to a part of `page` has a single group. `#` alone is the address of links that are buttons.
    """
    action = candidate.action
    if is_part_of(action.target, page) and not action.target.endswith("#"):
        yield _digest(action.kind, action.role, candidate.tag, candidate.handler, _NUMBER.sub("[*]", action.xpath))
        return
    if action.name or action.target:
        return
    shared = (action.kind, action.value, action.role, action.css, *action.frame)
    shared = (*shared, candidate.tag, candidate.icon, candidate.handler)
    for number in list(_NUMBER.finditer(action.xpath))[-SIBLING_PATH_STEPS:]:
        path = f"{action.xpath[: number.start()]}[*]{action.xpath[number.end() :]}"
        yield _digest(*shared, path)


def _digest(*texts: str) -> str:
    return hashlib.md5("\0".join(texts).encode(errors="replace"), usedforsecurity=False).hexdigest()[:16]
