"""What a visited page is recognised by: its record, the step of a replay that expects it, and its elements."""

from __future__ import annotations

from collections import Counter
from itertools import takewhile

from msgspec import structs

from waygraph.agents.observation.elements import ObservedElement
from waygraph.agents.observation.page_observation import PageObservation
from waygraph.agents.search.tree import RecordedState, SearchTree, TreeNode
from waygraph.index.graph import Action, Evidence, PathStep
from waygraph.index.graph.recognition import shared_fraction
from waygraph.pipeline.browser.page.features import Features, features
from waygraph.pipeline.browser.page.replay import same_or_equivalent
from waygraph.pipeline.browser.page.snapshot import Snapshot
from waygraph.pipeline.explore.identity.features import feature_change

#: Features and elements that are compared, as many as maps keep of a state.
_SAMPLE = 96
#: Features that an action in the page added or removed, and that must be there or not.
_MAX_CHANGED = 48
#: Share of a state that a page must show so that the rest may still come.
_PART = 0.5


def record_state(snapshot: Snapshot) -> RecordedState:
    """Return the record of a page."""
    return RecordedState(
        snapshot=snapshot.id,
        url=snapshot.url,
        address=snapshot.raw_url,
        title=snapshot.title,
        features=dict(sorted(features(snapshot).items())),
        elements=sorted(element[:12] for element in snapshot.structure),
    )


def step_to(tree: SearchTree, node: TreeNode, action: Action) -> PathStep:
    """Return the step of a replay that leads to a node.

    Parameters
    ----------
    tree
        The search.
    node
        The node.
    action
        The action of the step.

    Returns
    -------
    PathStep
        The step. A page of another snapshot counts as the state if it shows most of its texts and elements, everything
        that in-page actions added on the way to it, and nothing that they removed or that those after it add.
    """
    state = node.state
    return PathStep(action, state.snapshot, state.url, 0.0, evidence=_evidence(tree, node))


def _evidence(tree: SearchTree, node: TreeNode) -> Evidence:
    own = Counter(node.state.features)
    shows: dict[str, int] = {}
    hides: dict[str, int] = {}
    for change in changes_before(tree, node):
        for feature, count in _largest(change):
            (shows if count > 0 else hides)[feature] = own[feature]
    for child in tree.nodes:
        if child.parent == node.id and child.state.url == node.state.url:
            change = _change_to(tree, child)
            hides.update({feature: own[feature] for feature, count in _largest(change) if count > 0})
            shows.update({feature: own[feature] for feature, count in _largest(change) if count < 0})
    return Evidence(shows, hides, tuple(sorted(own)[:_SAMPLE]), tuple(node.state.elements[:_SAMPLE]))


def changes_before(tree: SearchTree, node: TreeNode) -> list[Features]:
    """Return the changes that actions made from each page with the node's URL on the way to it, the nearest first.

    Only what gestures changed counts, and not what has become another on the page between them: a tip that is replaced
    every few seconds, a count that comes late.

    Parameters
    ----------
    tree
        The search.
    node
        The node.

    Returns
    -------
    list of Counter
        The counts of added and removed texts and elements, without those that were both.
    """
    changes: list[Features] = []
    total: Features = Counter()
    way = list(takewhile(lambda each: each.state.url == node.state.url, tree.ancestry(node.id)))
    for each in way[:-1]:
        total.update(_change_to(tree, each))
        changes.append(Counter({feature: count for feature, count in total.items() if count}))
    return changes


def _change_to(tree: SearchTree, node: TreeNode) -> Features:
    if node.change is not None or node.parent is None:
        return Counter(node.change or {})
    return feature_change(Counter(tree.nodes[node.parent].state.features), Counter(node.state.features))


def _largest(change: Features) -> list[tuple[str, int]]:
    return sorted(change.items())[:_MAX_CHANGED]


def shows_state(snapshot: Snapshot, step: PathStep) -> bool:
    """Whether a page shows the state that a step of a replay expects.

    A page with the same elements must have the changes of in-page actions as well: some change texts alone.
    """
    if not same_or_equivalent(snapshot, step):
        return False
    shown, evidence = features(snapshot), step.evidence
    return evidence is None or (
        all(shown[name] >= count for name, count in evidence.shows.items())
        and all(shown[name] <= count for name, count in evidence.hides.items())
    )


def shows_part(snapshot: Snapshot, step: PathStep) -> bool:
    """Whether a page has the URL of the state that a step expects, and shows half of its texts and controls."""
    evidence = step.evidence
    has_part = evidence is not None and shared_fraction(evidence.features, features(snapshot)) >= _PART
    return snapshot.url == step.expected_url and has_part


def same_page(first: RecordedState, second: RecordedState) -> bool:
    """Whether two pages show the same elements, and the same texts with their counts."""
    return first.snapshot == second.snapshot and first.features == second.features


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

    found = [each for each in observation.elements if named(each)]
    exact = [
        each
        for each in found
        if structs.replace(each.candidate.action, kind=gesture.kind, value=gesture.value) == gesture
    ]
    exact = exact or [each for each in found if each.candidate.action.nth == gesture.nth]
    return exact[0] if exact else found[0] if len(found) == 1 else None
