"""Where could a state lead that its parent does not? The structural difference (WebNavigator 3.1)."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Literal

from pipeline.browser.snapshot import Candidate, Snapshot

Mode = Literal["element", "paper", "off"]


def difference_key(candidate: Candidate, mode: Mode) -> Hashable:
    """What makes two elements the same for differencing.

    The paper compares element hashes alone, which are positional: two pages of one template look alike, and the second
    one's content would never be explored. `element` also compares role, name and link target.
    """
    action = candidate.action
    place = (action.kind, action.value, action.frame, action.xpath)
    return place if mode == "paper" else (*place, action.role, action.name, action.target)


def split_candidates(state: Snapshot, parent: Snapshot | None, mode: Mode) -> tuple[list[Candidate], list[Candidate]]:
    """Elements of `state` that its parent lacks, and those that it has too, both in document order."""
    if parent is None or mode == "off":
        return list(state.candidates), []
    known = {difference_key(candidate, mode) for candidate in parent.candidates}
    new = [candidate for candidate in state.candidates if difference_key(candidate, mode) not in known]
    old = [candidate for candidate in state.candidates if difference_key(candidate, mode) in known]
    return new, old
