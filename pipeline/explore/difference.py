"""Where could a state lead that its parent does not? The structural difference (WebNavigator 3.1)."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import Literal

from index.graph import Action
from pipeline.browser.snapshot import Candidate, Snapshot

Mode = Literal["element", "paper", "off"]

#: What is chosen by a click stays chosen by another one.
CHOICES = frozenset({"tab", "option", "menuitemradio", "radio"})


def difference_key(candidate: Candidate, mode: Mode) -> Hashable:
    """What makes two elements the same for differencing.

    The paper compares element hashes alone, which are positional: two pages of one template look alike, and the second
    one's content would never be explored. `element` also compares role, name and link target.
    """
    return action_key(candidate.action, mode)


def action_key(action: Action, mode: Mode) -> Hashable:
    """The same for the element that an action is for."""
    place = (action.kind, action.value, action.frame, action.xpath)
    return place if mode == "paper" else (*place, action.role, action.name, action.target)


def split_candidates(
    state: Snapshot, parent: Snapshot | None, mode: Mode, made_by: Action | None = None
) -> tuple[list[Candidate], list[Candidate]]:
    """Elements of `state` that its parent lacks, and those that it has too, both in document order.

    What is covered in the parent (by an invitation, say) could not be acted on there: it is new where it is not.

    Parameters
    ----------
    made_by : the action on the parent that showed `state`. Its element counts as new when it may have more to show.
    """
    if parent is None or mode == "off":
        return list(state.candidates), []
    known = {difference_key(candidate, mode) for candidate in parent.candidates if not candidate.covered}
    if made_by is not None and may_show_more(state, parent, made_by):
        known.discard(action_key(made_by, mode))
    new = [candidate for candidate in state.candidates if difference_key(candidate, mode) not in known]
    old = [candidate for candidate in state.candidates if difference_key(candidate, mode) in known]
    return new, old


def may_show_more(state: Snapshot, parent: Snapshot, made_by: Action) -> bool:
    """Whether doing the same again may lead on ("next", "load more"): the page stayed, and shows what it did not."""
    return (
        made_by.kind == "click"
        and made_by.role not in CHOICES
        and state.url == parent.url
        and shows_more(state, [parent])
    )


def shows_more(state: Snapshot, before: Iterable[Snapshot]) -> bool:
    """Whether a state has texts or elements (by what they are, not by where) that none of these has."""
    known = {thing for seen in before for thing in _things(seen)}
    return any(thing not in known for thing in _things(state))


def _things(seen: Snapshot) -> Iterable[Hashable]:
    yield from ((segment.role, segment.text) for segment in seen.segments)
    for candidate in seen.candidates:
        action = candidate.action
        yield (action.kind, action.value, action.role, action.name, action.target)
