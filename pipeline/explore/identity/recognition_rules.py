"""Rules by which a snapshot counts as a known state, as pure functions.

`waygraph.pipeline.explore.identity.recognition.Recogniser.place` applies them in this order. The first rule that
matches decides, and its name is the reason of the merge.

1. Exact id: the snapshot has the id of a known state. No merge.
2. `reload`: a document was loaded from the URL of a state that was loaded before. One URL shows one page.
3. `volatile_parameters`: the same, and the URLs differ in volatile parts (`is_same_page`).
4. `volatile`: an action in the page reached the URL of a known state, and only noise differs (`differs_in_noise_only`);
   or it changed the page as for a known state, and mostly noise differs (`in_page_rule`).
5. `same_change`: an action in a page with noise changed it exactly as for a known state (`in_page_rule`).
6. `same_content`: everything but the URL is equal (`waygraph.pipeline.explore.identity.features.content_key`).
7. `equivalent`: skeleton mode only (`waygraph.pipeline.explore.identity.skeleton`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from waygraph.index.graph import similarity
from waygraph.pipeline.browser.page.features import Features, features, text_features
from waygraph.pipeline.browser.page.snapshot import Snapshot
from waygraph.pipeline.explore.identity.features import feature_change, without_volatile
from waygraph.pipeline.explore.identity.thresholds import SAME_PAGE_SIMILARITY, STAND_IN_SIMILARITY, UNKNOWN_NOISE_SHARE

#: How a snapshot was reached: by loading a document, or by an action that kept the document.
Arrival = Literal["load", "in_page"]


@dataclass(slots=True)
class UrlNoise:
    """Known noise of one URL: elements and features that come and go although nothing is done.

    Attributes
    ----------
    elements
        First 12 characters of element hashes.
    features
        Features, see `waygraph.pipeline.browser.page.features`.
    """

    elements: set[str] = field(default_factory=set)
    features: set[str] = field(default_factory=set)


class InPageChange(NamedTuple):
    """What in-page actions changed since a page was reached.

    Attributes
    ----------
    anchor
        Id of the state that the page showed before the first of these actions.
    features
        Features that were added (positive counts) and removed (negative counts), without noise.
    """

    anchor: str
    features: Features


def is_same_page(known: Snapshot, snapshot: Snapshot) -> bool:
    """Return whether two loads show one page when their URLs differ in volatile parts only."""
    if similarity(known.structure, snapshot.structure) < SAME_PAGE_SIMILARITY:
        return False
    # Pages of one template share their structure, so pages with other titles must also share their texts.
    return (
        known.title == snapshot.title
        or similarity(text_features(known), text_features(snapshot)) >= SAME_PAGE_SIMILARITY
    )


def is_size_explained(size: int, known_size: int, noise: UrlNoise) -> bool:
    """Return whether two snapshots differ in no more elements than are known as noise."""
    return abs(size - known_size) <= len(noise.elements)


def differs_in_noise_only(known: Snapshot, snapshot: Snapshot, noise: UrlNoise) -> bool:
    """Return whether every element and feature in which two snapshots differ is known as noise."""
    if not is_size_explained(len(snapshot.structure), len(known.structure), noise):
        return False
    if any(element[:12] not in noise.elements for element in _differing_elements(known, snapshot)):
        return False
    return not without_volatile(feature_change(features(known), features(snapshot)), noise.features)


def in_page_rule(
    known: Snapshot, snapshot: Snapshot, noise: UrlNoise, *, changed: bool, left_anchor: bool
) -> Literal["volatile", "same_change"] | None:
    """Return the rule by which an in-page snapshot is a known state that in-page actions changed in the same way.

    Parameters
    ----------
    known
        Snapshot of the known state.
    snapshot
        Snapshot after the action.
    noise
        Known noise of their URL.
    changed
        Whether actions changed any feature since the page was reached.
    left_anchor
        Whether the action started from another state than the one the page showed first. Returning to what the page
        showed first counts as a change; that an action changed no feature does not.

    Returns
    -------
    Literal["volatile", "same_change"] | None
        None if the snapshot is another state.
    """
    differing = _differing_elements(known, snapshot)
    unknown = sum(element[:12] not in noise.elements for element in differing)
    if unknown <= (0 if changed else UNKNOWN_NOISE_SHARE * len(differing)):
        return "volatile"
    if (changed or left_anchor) and is_size_explained(len(snapshot.structure), len(known.structure), noise):
        return "same_change"
    return None


def shows_change(known: Snapshot, snapshot: Snapshot, change: Mapping[str, int]) -> bool:
    """Return whether a snapshot shows every added feature of a state, and no removed feature more often than it.

    Parameters
    ----------
    known
        Snapshot of the state.
    snapshot
        Snapshot of the page that should show it.
    change
        Features by which the state differs from its page as loaded, without noise.

    Returns
    -------
    bool
        False if any of these features is missing, or is there although it was removed.
    """
    shown, expected = features(snapshot), features(known)
    return all(
        shown[name] >= expected[name] if count > 0 else shown[name] <= expected[name] for name, count in change.items()
    )


def is_similar_page(known: Snapshot, snapshot: Snapshot, arrival: Arrival) -> bool:
    """Return whether a page is similar enough to stand in for a known state; a page that was loaded may differ more."""
    least = SAME_PAGE_SIMILARITY if arrival == "load" else STAND_IN_SIMILARITY
    return similarity(known.structure, snapshot.structure) >= least


def _differing_elements(known: Snapshot, snapshot: Snapshot) -> set[str]:
    return {*snapshot.structure} ^ {*known.structure}
