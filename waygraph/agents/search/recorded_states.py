"""Records of visited pages: what is kept of one, whether two are equal, and where its elements are."""

from __future__ import annotations

import dataclasses
import re
from collections import Counter
from collections.abc import Collection

from msgspec import structs

from waygraph.agents.observation.elements import ObservedElement
from waygraph.agents.observation.page_observation import PageObservation
from waygraph.agents.search.tree import RecordedState, TreeNode
from waygraph.core.urls import is_random_token
from waygraph.index.graph import Action
from waygraph.pipeline.browser.page.features import Features, features
from waygraph.pipeline.browser.page.snapshot import Snapshot
from waygraph.pipeline.explore.identity.features import feature_change

_WORD = re.compile(r"[A-Za-z0-9]+(?:-[A-Za-z0-9]+)*")


def state_features(snapshot: Snapshot) -> Features:
    """Count the texts and elements of a page, random-looking words in them masked.

    A page that shows the id of something that is not saved yet (a flow that was added to an editor) shows another one
    when the same clicks are replayed.

    Parameters
    ----------
    snapshot
        The page.

    Returns
    -------
    Counter
        The counts of features, see `waygraph.pipeline.browser.page.features`.
    """
    segments = tuple(structs.replace(each, text=_masked(each.text)) for each in snapshot.segments)
    candidates = tuple(
        structs.replace(each, action=structs.replace(each.action, name=_masked(each.action.name)))
        for each in snapshot.candidates
    )
    return features(dataclasses.replace(snapshot, segments=segments, candidates=candidates))


def _masked(text: str) -> str:
    return _WORD.sub(lambda word: "*" if is_random_token(word[0]) else word[0], text)


def record_state(snapshot: Snapshot) -> RecordedState:
    """Return the record of a page."""
    return RecordedState(
        snapshot=snapshot.id,
        url=snapshot.url,
        address=snapshot.raw_url,
        title=snapshot.title,
        features=dict(sorted(state_features(snapshot).items())),
        elements=sorted(element[:12] for element in snapshot.structure),
    )


def note_unstable(node: TreeNode, seen: RecordedState) -> None:
    """Note what a page that shows a node's state shows otherwise than when it was recorded.

    Nothing was done to it in between: a tip that is replaced every few seconds, a clock in words.

    Parameters
    ----------
    node
        The node.
    seen
        The record of the page, at the URL of the node or another one.
    """
    if seen.url == node.state.url:
        change = feature_change(Counter(node.state.features), Counter(seen.features))
        node.unstable = sorted({*node.unstable, *change})


def same_page(first: RecordedState, second: RecordedState, unstable: Collection[str] = ()) -> bool:
    """Whether two pages show the same elements, and the same texts with their counts.

    Parameters
    ----------
    first
        The record of a page.
    second
        That of the other one.
    unstable
        Features that come and go by themselves, which are not compared.

    Returns
    -------
    bool
        Whether they do.
    """
    change = feature_change(Counter(first.features), Counter(second.features))
    return first.snapshot == second.snapshot and change.keys() <= {*unstable}


def find_again(gesture: Action, observation: PageObservation) -> ObservedElement | None:
    """Return the element of a recorded gesture in another observation of its state.

    Parameters
    ----------
    gesture
        The gesture.
    observation
        The page.

    Returns
    -------
    ObservedElement or None
        The element with the same role, name, target and place; else the only one with them at another place.
    """

    def named(each: ObservedElement) -> bool:
        action = each.candidate.action
        return (action.role, action.name, action.target, action.frame) == (
            gesture.role, gesture.name, gesture.target, gesture.frame
        )  # fmt: skip

    every = [each for each in observation.elements if named(each)]
    options = [each for each in every if each.list_ref and each.candidate.action.value == gesture.value]
    found = options or [each for each in every if not each.list_ref]
    exact = [
        each
        for each in found
        if structs.replace(each.candidate.action, kind=gesture.kind, value=gesture.value) == gesture
    ]
    exact = exact or [each for each in found if each.candidate.action.nth == gesture.nth]
    return exact[0] if exact else found[0] if len(found) == 1 else None
