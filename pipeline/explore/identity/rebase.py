"""Rebasing of snapshots: the result of an action, as it would look in the recorded document of its state."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from msgspec import structs

from waygraph.index.graph import node_id
from waygraph.index.graph.url_tokens import mask_random_tokens
from waygraph.pipeline.browser.page.features import features
from waygraph.pipeline.browser.page.snapshot import Candidate, Snapshot
from waygraph.pipeline.explore.identity.difference import difference_key
from waygraph.pipeline.explore.identity.features import feature_change
from waygraph.pipeline.explore.records.noise import Noise


def noise_between(first: Snapshot, again: Snapshot) -> Noise:
    """Return the elements and features in which two snapshots of one state differ."""
    elements = {*first.structure} ^ {*again.structure}
    return Noise(tuple(sorted(elements)), tuple(sorted(feature_change(features(first), features(again)))))


def rebase(after: Snapshot, before: Snapshot, state: Snapshot) -> Snapshot:
    """Apply what an action changed in a document to the recorded snapshot of the state.

    A page that happens to show one more advertisement does not make the menu opened on it another state, and links
    that moved because of the advertisement are not new.

    Parameters
    ----------
    after
        Snapshot of this document after the action.
    before
        Snapshot of this document before the action.
    state
        Recorded snapshot of the state that the document shows.

    Returns
    -------
    Snapshot
        `after` itself if the action changed the URL, or if the document had no noise.
    """
    if after.url != state.url or (before.structure == state.structure and before.candidates == state.candidates):
        return after
    added, removed = {*after.structure} - {*before.structure}, {*before.structure} - {*after.structure}
    structure = tuple(sorted(({*state.structure} - removed) | added))
    candidates = tuple(_recorded_candidates(after, before, state))
    return replace(after, id=node_id(structure, after.url), structure=structure, candidates=candidates)


def _recorded_candidates(after: Snapshot, before: Snapshot, state: Snapshot) -> Iterator[Candidate]:
    """Yield the new elements of a document, and its old elements as they were recorded. Unrecorded ones are dropped."""
    old = {difference_key(candidate, "element"): _element_key(candidate) for candidate in before.candidates}
    recorded = {_element_key(candidate): candidate for candidate in state.candidates}
    for candidate in after.candidates:
        key = old.get(difference_key(candidate, "element"))
        if key is None:
            yield candidate
        elif key in recorded:
            known = recorded[key]
            # The action may have covered, uncovered, disabled or enabled the element.
            if (known.covered, known.disabled) == (candidate.covered, candidate.disabled):
                yield known
            else:
                yield structs.replace(known, covered=candidate.covered, disabled=candidate.disabled)


def _element_key(candidate: Candidate) -> tuple[Any, ...]:
    """Return the key by which elements of two documents are equal: role, name, index among equals, and target."""
    action = candidate.action
    return (action.kind, action.frame, action.role, action.name, action.nth, mask_random_tokens(action.target))
