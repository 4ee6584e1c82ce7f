"""What a page must show to count as a visited node's state, although pages change by themselves."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from waygraph.agents.search.recorded_states import state_features
from waygraph.agents.search.tree import SearchTree, TreeNode
from waygraph.index.graph import Action, Evidence, PathStep, is_equivalent
from waygraph.index.graph.recognition import shared_fraction
from waygraph.pipeline.browser.page.features import Features
from waygraph.pipeline.browser.page.snapshot import Snapshot
from waygraph.pipeline.explore.identity.features import feature_change, without_volatile

#: Features and elements that are compared, as many as maps keep of a state.
_SAMPLE = 96
#: Features of a change that are compared.
_MAX_CHANGED = 48
#: Share of a change that a page must show. A side bar that is exchanged takes a tip with it, and brings another one.
_CHANGE_SHARE = 0.9
#: Share of a state that a page must show so that the rest may still come.
_PART = 0.5


@dataclass(frozen=True, slots=True)
class _Change:
    """A difference from another page with the same URL.

    Attributes
    ----------
    shows
        Features that the state has and the other page has not, or less often, with their counts.
    hides
        Features that the other page has and the state has not, or less often, with their counts in the state.
    """

    shows: dict[str, int]
    hides: dict[str, int]

    def is_shown(self, shown: Features) -> bool:
        """Whether a page is on the state's side of the difference."""
        right = sum(shown[name] >= count for name, count in self.shows.items())
        right += sum(shown[name] <= count for name, count in self.hides.items())
        return right >= _CHANGE_SHARE * (len(self.shows) + len(self.hides))


class ExpectedState:
    """What a page must show to count as the state of a node.

    A page with the same elements counts, and one at the same URL that has most of the texts and elements. Besides, it
    must have changed as in-page actions changed it on the way to the node, and not as those after it do. What comes and
    goes by itself is no part of a change, as far as it was seen to do so; of changes of ten features and more a tenth
    may be missing.

    Parameters
    ----------
    tree
        The search.
    node
        The node.
    """

    def __init__(self, tree: SearchTree, node: TreeNode) -> None:
        self._state = node.state
        own = Counter(node.state.features)
        sample = sorted(without_volatile(own, unstable_at(tree, node.state.url)))[:_SAMPLE]
        self._evidence = Evidence(features=tuple(sample), elements=tuple(node.state.elements[:_SAMPLE]))
        self._changes = [_changed(own, each, sign=1) for each in changes_before(tree, node)]
        self._changes += [_changed(own, each, sign=-1) for each in _changes_after(tree, node)]

    def step(self, action: Action) -> PathStep:
        """Return the step of a replay that leads to the state by an action."""
        return PathStep(action, self._state.snapshot, self._state.url, 0.0, evidence=self._evidence)

    def is_shown(self, snapshot: Snapshot) -> bool:
        """Whether a page shows the state."""
        shown = state_features(snapshot)
        is_alike = snapshot.id == self._state.snapshot or is_equivalent(
            self._evidence, self._state.url, snapshot.url, shown, snapshot.structure
        )
        return is_alike and all(change.is_shown(shown) for change in self._changes)

    def is_partly_shown(self, snapshot: Snapshot) -> bool:
        """Whether a page has the URL of the state, and shows half of its texts and controls."""
        is_part = shared_fraction(self._evidence.features, state_features(snapshot)) >= _PART
        return snapshot.url == self._state.url and is_part


def changes_before(tree: SearchTree, node: TreeNode) -> list[Features]:
    """Return the changes that actions made from each page with the node's URL on the way to it, the nearest first.

    Only what gestures changed counts, and not what has become another on the page between them: a tip that is replaced
    every few seconds, a count that comes late. Pages from above the root count too: the state still has their changes.

    Parameters
    ----------
    tree
        The search.
    node
        The node.

    Returns
    -------
    list of Counter
        The counts of added and removed texts and elements, without those that were both, and without those that come
        and go by themselves.
    """
    changes: list[Features] = []
    total: Features = Counter()
    unstable = unstable_at(tree, node.state.url)
    each = node
    while each.parent is not None and tree.nodes[each.parent].state.url == node.state.url:
        total.update(_change_to(tree, each))
        changed = Counter({feature: count for feature, count in total.items() if count})
        changes.append(without_volatile(changed, unstable))
        each = tree.nodes[each.parent]
    return changes


def unstable_at(tree: SearchTree, url: str) -> set[str]:
    """Return the features that were seen to come and go by themselves on pages with a URL."""
    return {feature for each in tree.nodes if each.state.url == url for feature in each.unstable}


def _changes_after(tree: SearchTree, node: TreeNode) -> list[Features]:
    """Return the changes that actions in the page make from a node."""
    unstable = unstable_at(tree, node.state.url)
    return [
        without_volatile(_change_to(tree, child), unstable)
        for child in tree.nodes
        if child.parent == node.id and child.state.url == node.state.url
    ]


def _change_to(tree: SearchTree, node: TreeNode) -> Features:
    if node.change is not None or node.parent is None:
        return Counter(node.change or {})
    return feature_change(Counter(tree.nodes[node.parent].state.features), Counter(node.state.features))


def _changed(own: Features, change: Features, *, sign: int) -> _Change:
    """Return how a state with these features differs from the page before a change (1), or after it (-1)."""
    largest = sorted(change.items())[:_MAX_CHANGED]
    return _Change(
        shows={feature: own[feature] for feature, count in largest if sign * count > 0},
        hides={feature: own[feature] for feature, count in largest if sign * count < 0},
    )
