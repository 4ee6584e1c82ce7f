"""Evidence of states: features by which each state of a map is recognised although noise changes its id."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from waygraph.core.settings import ExploreSettings
from waygraph.index.graph import Evidence
from waygraph.pipeline.browser.page.features import Features, candidate_feature, features
from waygraph.pipeline.browser.page.snapshot import Snapshot
from waygraph.pipeline.explore.identity.features import feature_change, without_volatile
from waygraph.pipeline.explore.identity.recognition import Recogniser
from waygraph.pipeline.explore.identity.thresholds import (
    EVIDENCE_SAMPLE,
    HIDDEN_FEATURES_PER_SIBLING,
    MAX_CHANGED_FEATURES,
)
from waygraph.pipeline.explore.records.state import State

#: Roles whose elements every browser shows to be clickable. Other elements are known to be clickable by their event
#: listeners only, which are recorded in the explorer's own browsers alone.
CLICKABLE_ROLES: frozenset[str] = frozenset(ExploreSettings.model_fields["roles"].default)


def build_evidence(
    states: Mapping[str, State],
    recogniser: Recogniser,
    snapshot_of: Callable[[str], Snapshot],
    is_addressable: Callable[[State], bool],
) -> dict[str, Evidence]:
    """Build the evidence of each state.

    Samples take the smallest feature hashes: a random sample that is the same in every run.

    Parameters
    ----------
    states
        States of the map, by id.
    recogniser
        Gives the noise of each URL and the changes by which in-page states were reached.
    snapshot_of
        Returns the recorded snapshot of a state, by id.
    is_addressable
        Whether loading its URL shows a state.

    Returns
    -------
    dict[str, Evidence]
        By state id. An in-page state that differs from the loaded page in no text and no element has no evidence.
    """
    states_at: dict[str, list[State]] = {}
    for state in states.values():
        states_at.setdefault(recogniser.url_key(state.url), []).append(state)
    evidence: dict[str, Evidence] = {}
    for group in states_at.values():
        volatile_elements, volatile = recogniser.noise_at(group[0].url)
        volatile = volatile.union(*(_listener_only_features(snapshot_of(state.id)) for state in group))
        shown: dict[str, Features] = {}
        elements: dict[str, tuple[str, ...]] = {}
        for state in group:
            snapshot = snapshot_of(state.id)
            shown[state.id] = without_volatile(features(snapshot), volatile)
            stable = {element[:12] for element in snapshot.structure} - volatile_elements
            elements[state.id] = tuple(sorted(stable)[:EVIDENCE_SAMPLE])
        loaded = next((state.id for state in group if is_addressable(state)), None)
        changes: dict[str, Features] = {}
        for state in group:
            recorded = recogniser.change_of(state.id)
            if recorded is not None:
                recorded = without_volatile(recorded, volatile)
            change = _change_of(state, shown, loaded, recorded)
            if change is not None:
                changes[state.id] = change
        for state in group:
            if state.id in changes:
                evidence[state.id] = _evidence_of(state.id, shown, changes, elements[state.id])
    return evidence


def _listener_only_features(snapshot: Snapshot) -> set[str]:
    """Return the elements of a snapshot that only event listeners show to be clickable. Their texts are visible."""
    visible = {
        candidate_feature(c)
        for c in snapshot.candidates
        if c.action.kind == "click" and c.action.role in CLICKABLE_ROLES
    }
    return {candidate_feature(c) for c in snapshot.candidates} - visible


def _change_of(
    state: State, shown: Mapping[str, Features], loaded: str | None, recorded: Features | None
) -> Features | None:
    """Return the features by which a state differs from the page that its URL, or the state before it, shows.

    None if it differs in no feature, although it is not that page.
    """
    if state.id == loaded:
        return Features()
    if recorded is None:
        before = loaded or (state.parent if state.parent in shown else None)
        if before is None:
            return Features()
        recorded = feature_change(shown[before], shown[state.id])
    return recorded or None


def _evidence_of(
    node_id: str, shown: Mapping[str, Features], changes: Mapping[str, Features], elements: tuple[str, ...]
) -> Evidence:
    own = shown[node_id]
    shows = {name: own[name] for name, count in _sample(changes[node_id]) if count > 0}
    hides = {name: own[name] for name, count in _sample(changes[node_id]) if count < 0}
    for other, change in changes.items():
        if other != node_id:
            added = [name for name, count in sorted(change.items()) if count > 0 and shown[other][name] > own[name]]
            hides.update(
                {name: own[name] for name in added[:HIDDEN_FEATURES_PER_SIBLING] if len(hides) < MAX_CHANGED_FEATURES}
            )
    return Evidence(shows, hides, tuple(sorted(own)[:EVIDENCE_SAMPLE]), elements)


def _sample(change: Features) -> list[tuple[str, int]]:
    return sorted(change.items())[:MAX_CHANGED_FEATURES]
