"""What tells each state of a map from the others, so that a page that looks a little different is recognised?"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from index.graph import Evidence
from pipeline.browser.features import Features, candidate_feature, features
from pipeline.browser.snapshot import Snapshot
from pipeline.explore.identity.features import change, without
from pipeline.explore.identity.recognise import Recogniser
from pipeline.explore.state import State
from waygraph.settings import ExploreSettings

#: Features and elements sampled of each state: a share of 0.8 is known within 0.06.
SAMPLE = 48
#: Features that must, or must not, be there; of a change that is larger, a random part.
MOST = 64
#: Elements of these roles are seen to be clickable in any page. What only listeners tell is known in our own alone.
CLICKED: frozenset[str] = frozenset(ExploreSettings.model_fields["roles"].default)
#: What is asked of a page for each other state at its URL that it must not show.
PER_SIBLING = 2


def evidence(
    states: Mapping[str, State],
    recogniser: Recogniser,
    look: Callable[[str], Snapshot],
    is_addressable: Callable[[State], bool],
) -> dict[str, Evidence]:
    """Evidence for each state; one that shows no text or element by which to know it has none.

    Features are hashes, so that the smallest are a random sample, the same one for everybody.
    """
    at: dict[str, list[State]] = {}
    for state in states.values():
        at.setdefault(recogniser.key(state.url), []).append(state)
    found: dict[str, Evidence] = {}
    for group in at.values():
        volatile_elements, volatile = recogniser.noise_at(group[0].url)
        volatile = volatile.union(*(_told_by_listeners(look(state.id)) for state in group))
        shown: dict[str, Features] = {}
        elements: dict[str, tuple[str, ...]] = {}
        for state in group:
            seen = look(state.id)
            shown[state.id] = without(features(seen), volatile)
            stable = {element[:12] for element in seen.structure} - volatile_elements
            elements[state.id] = tuple(sorted(stable)[:SAMPLE])
        loaded = next((state.id for state in group if is_addressable(state)), None)
        changes: dict[str, Features] = {}
        for state in group:
            recorded = recogniser.change_of(state.id)
            if recorded is not None:
                recorded = without(recorded, volatile)
            changed = _changed(state, shown, loaded, recorded)
            # An in-page state that differs from the loaded page in no text and no element is known by its id alone.
            if changed is not None:
                changes[state.id] = changed
        for state in group:
            if state.id in changes:
                found[state.id] = _evidence(state.id, shown, changes, elements[state.id])
    return found


def _told_by_listeners(seen: Snapshot) -> set[str]:
    """Elements of a look that somebody else's browser does not show to be elements to act on; their texts it does."""
    told = {candidate_feature(c) for c in seen.candidates if c.action.kind == "click" and c.action.role in CLICKED}
    return {candidate_feature(c) for c in seen.candidates} - told


def _changed(
    state: State, shown: Mapping[str, Features], loaded: str | None, recorded: Features | None
) -> Features | None:
    """By which features a state differs from the page that its URL, or the state before it, shows."""
    if state.id == loaded:
        return Features()
    if recorded is None:
        before = loaded or (state.parent if state.parent in shown else None)
        if before is None:
            return Features()
        recorded = change(shown[before], shown[state.id])
    return recorded or None


def _evidence(
    node_id: str, shown: Mapping[str, Features], changes: Mapping[str, Features], elements: tuple[str, ...]
) -> Evidence:
    own = shown[node_id]
    shows = {name: own[name] for name, count in _first(changes[node_id]) if count > 0}
    hides = {name: own[name] for name, count in _first(changes[node_id]) if count < 0}
    for other, changed in changes.items():
        if other != node_id:
            added = [name for name, count in sorted(changed.items()) if count > 0 and shown[other][name] > own[name]]
            hides.update({name: own[name] for name in added[:PER_SIBLING] if len(hides) < MOST})
    return Evidence(shows, hides, tuple(sorted(own)[:SAMPLE]), elements)


def _first(changed: Features) -> list[tuple[str, int]]:
    return sorted(changed.items())[:MOST]
