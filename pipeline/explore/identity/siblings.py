"""Which elements does nothing tell apart but their number, and have the first of them shown what the rest would?"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping

from pipeline.browser.snapshot import Candidate
from pipeline.explore.policy import Refusal

_NUMBER = re.compile(r"\[\d+\]")
#: The number that tells the parts of a list apart stands in one of so many last steps of their paths.
_STEPS = 5


class Siblings:
    """Points of a chart, regions of a map, icons of rows: a person who tried five of them in vain tries no more.

    Elements of one state are siblings when they have no name and no target, and kind of action, role, tag, classes,
    handlers and path are the same but for one number of the path. When `budget` more of them brought nothing than
    others made up for, the rest is left alone. What an element with a name says tells it apart from all others.

    Deterministic: `tried` is called in the order of commits, and what is left alone stays so.

    Parameters
    ----------
    budget : so many siblings may bring nothing; 0 means all.
    """

    def __init__(self, budget: int) -> None:
        self._budget = budget
        self._spent: dict[str, int] = {}

    def begin_level(self) -> None:
        """The elements of a state belong to one level."""
        self._spent.clear()

    def refuse(self, state_id: str, candidate: Candidate) -> Refusal | None:
        """Why an element need not be tried."""
        if self._budget and any(self._spent.get(group, 0) >= self._budget for group in groups(state_id, candidate)):
            return Refusal("alike", f"{self._budget} like it brought nothing new")
        return None

    def tried(self, state_id: str, candidate: Candidate, *, brought: bool) -> None:
        """Take note of an element that was acted on: whether that showed anything that was not known."""
        for group in groups(state_id, candidate):
            self._spent[group] = max(0, self._spent.get(group, 0) + (-2 if brought else 1))

    def remember(self) -> dict[str, int]:
        """What a resumed run must know, as plain JSON."""
        return dict(self._spent)

    def recall(self, memory: Mapping[str, int]) -> None:
        """Take over what `remember` gave."""
        self._spent = dict(memory)


def groups(state_id: str, candidate: Candidate) -> Iterator[str]:
    """Names of the groups of siblings that an element is in: one for each number of its path that may count them."""
    action = candidate.action
    if action.name or action.target:
        return
    same = (state_id, action.kind, action.value, action.role, action.css, *action.frame)
    same = (*same, candidate.tag, candidate.icon, candidate.handler)
    for number in list(_NUMBER.finditer(action.xpath))[-_STEPS:]:
        path = f"{action.xpath[: number.start()]}[*]{action.xpath[number.end() :]}"
        yield hashlib.md5("\0".join((*same, path)).encode(errors="replace"), usedforsecurity=False).hexdigest()[:16]
