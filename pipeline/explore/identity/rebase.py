"""How would what an action showed look in the recorded document, not in this one that differs from it in noise?"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from msgspec import structs

from index.graph import node_id
from index.graph.tokens import untokened
from pipeline.browser.features import features
from pipeline.browser.snapshot import Candidate, Snapshot
from pipeline.explore.difference import difference_key
from pipeline.explore.identity.features import change


@dataclass(frozen=True, slots=True)
class Noise:
    """In what two looks at one state differ: hashes of elements, and features (texts, elements by role and name)."""

    elements: tuple[str, ...] = ()
    features: tuple[str, ...] = ()

    @classmethod
    def between(cls, first: Snapshot, again: Snapshot) -> Noise:
        """What came and went between two looks."""
        elements = {*first.structure} ^ {*again.structure}
        return cls(tuple(sorted(elements)), tuple(sorted(change(features(first), features(again)))))

    def __bool__(self) -> bool:
        return bool(self.elements or self.features)


NO_NOISE = Noise()


def rebase(seen: Snapshot, before: Snapshot, state: Snapshot) -> Snapshot:
    """What the action led to, seen from the recorded look of its state.

    Where the URL changed, the page is taken as it is. A page that happens to show an advertisement more does not make
    the menu that is opened on it another state, and links that moved because of it are not new ones.

    Parameters
    ----------
    seen, before : this document after the action and before it.
    state : the recorded look of the state that it shows.
    """
    if seen.url != state.url or (before.structure == state.structure and before.candidates == state.candidates):
        return seen
    added, removed = {*seen.structure} - {*before.structure}, {*before.structure} - {*seen.structure}
    structure = tuple(sorted(({*state.structure} - removed) | added))
    candidates = tuple(_recorded(seen, before, state))
    return replace(seen, id=node_id(structure, seen.url), structure=structure, candidates=candidates)


def _recorded(seen: Snapshot, before: Snapshot, state: Snapshot) -> Iterator[Candidate]:
    """Elements that the document had before as they were recorded; those that were not, left out; all new ones."""
    had = {difference_key(candidate, "element"): _alike(candidate) for candidate in before.candidates}
    recorded = {_alike(candidate): candidate for candidate in state.candidates}
    for candidate in seen.candidates:
        key = had.get(difference_key(candidate, "element"))
        if key is None:
            yield candidate
        elif key in recorded:
            # Whether something lies over it, or it takes no input, is what the action may have changed.
            known, now = recorded[key], (candidate.covered, candidate.disabled)
            same = (known.covered, known.disabled) == now
            yield known if same else structs.replace(known, covered=candidate.covered, disabled=candidate.disabled)


def _alike(candidate: Candidate) -> tuple[Any, ...]:
    """What makes an element of two documents the same: role, name, which of those alike it is, where it leads."""
    action = candidate.action
    return (action.kind, action.frame, action.role, action.name, action.nth, untokened(action.target))
