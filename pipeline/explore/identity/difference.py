"""Structural difference between a state and its parent: the elements to act on (WebNavigator, section 3.1)."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import Literal

from waygraph.index.graph import Action
from waygraph.pipeline.browser.page.snapshot import Candidate, Snapshot

#: How elements are compared: `element` by place and content, `paper` by place alone, `off` not at all.
DiffMode = Literal["element", "paper", "off"]

#: Roles of elements of which one is selected. A second click on the selected element changes nothing.
CHOICE_ROLES = frozenset({"tab", "option", "menuitemradio", "radio"})


def difference_key(candidate: Candidate, mode: DiffMode) -> Hashable:
    """Return the key by which two elements are equal for differencing.

    The paper compares element hashes, which depend on the position only: two pages of one template have the same
    hashes, and the content of the second page would never be explored. Mode `element` also compares role, name and
    link target.
    """
    return action_key(candidate.action, mode)


def action_key(action: Action, mode: DiffMode) -> Hashable:
    """Return the `difference_key` of the element that an action is performed on.

    The word that is searched for comes from each page's own headings, and makes no other element.
    """
    value = "" if action.kind == "submit" else action.value
    position = (action.kind, value, action.frame, action.xpath)
    return position if mode == "paper" else (*position, action.role, action.name, action.target)


def split_candidates(
    state: Snapshot, parent: Snapshot | None, mode: DiffMode, creating_action: Action | None = None
) -> tuple[list[Candidate], list[Candidate]]:
    """Split the elements of a state into new and old ones, both in document order.

    An element that is covered in the parent (by a dialog, for example) could not be acted on there, so it counts as
    new where it is not covered.

    Parameters
    ----------
    state
        Snapshot of the state to split.
    parent
        Snapshot of the state that it was found from. None makes all elements new.
    mode
        How elements are compared.
    creating_action
        Action on the parent that led to the state. Its element counts as new if the same action may show more.

    Returns
    -------
    tuple[list[Candidate], list[Candidate]]
        Elements that the parent lacks, and elements that the parent has too.
    """
    if parent is None or mode == "off":
        return list(state.candidates), []
    known = {difference_key(candidate, mode) for candidate in parent.candidates if not candidate.covered}
    if creating_action is not None and may_show_more(state, parent, creating_action):
        key = action_key(creating_action, mode)
        if not any(candidate.listener and difference_key(candidate, mode) == key for candidate in parent.candidates):
            known.discard(key)  # an item of a list shows itself, and no more of the list
    new = [candidate for candidate in state.candidates if difference_key(candidate, mode) not in known]
    old = [candidate for candidate in state.candidates if difference_key(candidate, mode) in known]
    return new, old


def may_show_more(state: Snapshot, parent: Snapshot, creating_action: Action) -> bool:
    """Return whether repeating the action may show further content ("next", "load more").

    That is the case if the action was a click that kept the URL and added content to the page.
    """
    return (
        creating_action.kind == "click"
        and creating_action.role not in CHOICE_ROLES
        and state.url == parent.url
        and shows_new_content(state, [parent])
    )


def shows_new_content(state: Snapshot, earlier: Iterable[Snapshot]) -> bool:
    """Return whether a snapshot has texts or elements that no earlier snapshot has, wherever on the page they are."""
    known = {item for snapshot in earlier for item in _content(snapshot)}
    return any(item not in known for item in _content(state))


def _content(snapshot: Snapshot) -> Iterable[Hashable]:
    yield from ((segment.role, segment.text) for segment in snapshot.segments)
    for candidate in snapshot.candidates:
        action = candidate.action
        yield (action.kind, action.value, action.role, action.name, action.target)
