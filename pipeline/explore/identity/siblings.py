"""Budget for sibling elements: points of a chart, icons of table rows, links to parts of a long page, delegated items.

When enough siblings brought nothing, the others are skipped with the reason `alike`. Switch it off with
`explore.alike_budget: 0`.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Collection, Iterable, Iterator, Mapping

from waygraph.core.urls import is_part_of
from waygraph.pipeline.browser.page.snapshot import Candidate
from waygraph.pipeline.explore.identity.thresholds import (
    PAGE_LISTENER_COST,
    SIBLING_BUDGET_PER_RESULT,
    SIBLING_PATH_STEPS,
    SITE_BUDGETS,
)
from waygraph.pipeline.explore.policies.policy import Refusal

_NUMBER = re.compile(r"\[\d+\]")
#: In place of a state: what counts for the whole site.
_SITE = ""


class SiblingBudget:
    """Counter of sibling elements that were acted on without a result, per group of siblings.

    Elements of one state are siblings if they have neither a name nor a target, and kind of action, role, tag,
    classes, handlers and path are equal except for one number of the path. A name distinguishes an element from all
    others. Links to parts of their own page (`#install`) are siblings whatever their names, if role, tag, handlers and
    path without its numbers are equal: they scroll, unless a script makes a tab of them. An element with a result lets
    two more of its siblings be tried.

    Items that only a listener around them may mean (`Candidate.listener`) are siblings as such links are, and also
    across the site: most listeners of a whole page only watch.

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
        self._spent = {key: counts for key, counts in self._spent.items() if key in states or key == _SITE}

    def refuse(self, state_id: str, candidate: Candidate, page: str = "") -> Refusal | None:
        """Return why an element of a state with the URL `page` is not acted on; None if it is."""
        counts = self._spent.get(state_id, {})
        if self._budget and any(counts.get(group, 0) >= self._budget for group in sibling_groups(candidate, page)):
            return Refusal("alike", f"{self._budget} siblings brought nothing new")
        if self.is_exhausted(candidate):
            return Refusal("alike", "a listener around it brought nothing on this site")
        return None

    def is_exhausted(self, candidate: Candidate) -> bool:
        """Return whether items of such lists brought nothing wherever they were tried."""
        counts, budget = self._spent.get(_SITE, {}), self._budget * SITE_BUDGETS
        return bool(budget) and any(counts.get(group, 0) >= budget for group, _ in _site_groups(candidate))

    def record_result(self, state_id: str, candidate: Candidate, page: str = "", *, brought: bool) -> None:
        """Count an element that was acted on; `brought` says whether the action showed anything unknown."""
        self._count(state_id, ((group, 1) for group in sibling_groups(candidate, page)), brought=brought)
        if candidate.listener:
            self._count(_SITE, _site_groups(candidate), brought=brought)

    def _count(self, key: str, groups: Iterable[tuple[str, int]], *, brought: bool) -> None:
        counts = self._spent.setdefault(key, {})
        for group, cost in groups:
            counts[group] = max(0, counts.get(group, 0) + cost * (-SIBLING_BUDGET_PER_RESULT if brought else 1))

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
    if candidate.listener:
        yield _digest("listener", candidate.tag, _NUMBER.sub("[*]", action.xpath))
        return
    if action.name or action.target:
        return
    shared = (action.kind, action.value, action.role, action.css, *action.frame)
    shared = (*shared, candidate.tag, candidate.icon, candidate.handler)
    for number in list(_NUMBER.finditer(action.xpath))[-SIBLING_PATH_STEPS:]:
        path = f"{action.xpath[: number.start()]}[*]{action.xpath[number.end() :]}"
        yield _digest(*shared, path)


def _site_groups(candidate: Candidate) -> Iterator[tuple[str, int]]:
    """Yield the groups of an item across the site, its place and its listener, and the cost of one without a result."""
    if candidate.listener:
        place = _digest("listener", candidate.tag, _NUMBER.sub("[*]", candidate.action.xpath))
        yield place, PAGE_LISTENER_COST if candidate.listener == "page" else 1
    if candidate.listener == "page":
        yield "page", 1


def _digest(*texts: str) -> str:
    return hashlib.md5("\0".join(texts).encode(errors="replace"), usedforsecurity=False).hexdigest()[:16]
