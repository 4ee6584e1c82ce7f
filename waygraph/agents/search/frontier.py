"""The frontier: adding proposed actions, merging equal ones, and keeping its budget."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from waygraph.agents.search.search_actions import SearchAction, describe, loaded_url, merge_key
from waygraph.agents.search.tree import CandidateStatus, SearchTree, TreeCandidate
from waygraph.core.urls import WITH_FRAGMENT, normalize_url
from waygraph.index.graph import Action

#: An action that was performed this often is tried again only when nothing else is left.
MAX_REPEATS = 3


@dataclass(frozen=True, slots=True)
class Proposal:
    """A valid action that a generator proposes in a state.

    Attributes
    ----------
    action
        The action.
    gesture
        The gesture on its element; None for actions on none.
    context
        Name of the generator.
    score
        Its score by the generator; None: the reward judges it.
    thinking
        Why, in words.
    is_destructive
        Whether it would change data.
    outcome
        Id in the map of the state that it leads to; empty: unknown.
    view
        The part of the page that it was proposed for; empty: the whole page.
    dialog
        The dialog that it answers, see `dialog_key`; empty: none.
    """

    action: SearchAction
    gesture: Action | None
    context: str
    score: float | None = None
    thinking: str = ""
    is_destructive: bool = False
    outcome: str = ""
    view: str = ""
    dialog: str = ""

    @property
    def key(self) -> str:
        """What equal actions have in common."""
        return merge_key(self.action, self.gesture, self.dialog)


@dataclass(frozen=True, slots=True)
class MergedProposal:
    """Equal proposals of several generators.

    Attributes
    ----------
    best
        The best one.
    contexts
        Names of all generators.
    merged
        The other proposals and why each is the same, for people.
    """

    best: Proposal
    contexts: tuple[str, ...]
    merged: tuple[str, ...] = ()

    @property
    def weight(self) -> int:
        """Factor of the value. Sources of walks ask one map, so that their agreement is no further evidence."""
        return 1 if self.best.action.action == "visit" else len(self.contexts)


def merge(proposals: Iterable[Proposal], *, merging: bool = True) -> list[MergedProposal]:
    """Merge equal proposals, in the order in which each was proposed first.

    A click and a walk over the map to the same known state are equal as well: the click is kept.

    Parameters
    ----------
    proposals
        The proposals in one state.
    merging
        Whether equal ones are merged; otherwise each is one of its own.

    Returns
    -------
    list of MergedProposal
        The distinct ones.
    """
    if not merging:
        return [MergedProposal(each, (each.context,)) for each in proposals]
    by_key: dict[str, list[Proposal]] = {}
    for each in proposals:
        by_key.setdefault(each.key, []).append(each)
    walks = {group[0].outcome: group for group in by_key.values() if group[0].action.action == "visit"}
    led_to = {group[0].outcome for group in by_key.values() if group[0].outcome and group[0].action.action != "visit"}
    merged = []
    for group in by_key.values():
        best = max(group, key=lambda each: each.score or 0.0)
        is_walk = best.action.action == "visit"
        if is_walk and best.outcome in led_to:
            continue
        others = [f"{_named(each)}: the same action" for each in group if each is not best]
        if not is_walk:
            replaced = walks.get(best.outcome, ())
            others += [f"{_named(each)}: leads to the same state, by the map" for each in replaced]
        merged.append(MergedProposal(best, tuple(dict.fromkeys(each.context for each in group)), tuple(others)))
    return merged


def _named(proposal: Proposal) -> str:
    return f"{describe(proposal.action, proposal.gesture)} of {proposal.context}"


def add(tree: SearchTree, node: int, scored: Iterable[tuple[MergedProposal, float]]) -> list[TreeCandidate]:
    """Add the proposals of a state to the frontier.

    Parameters
    ----------
    tree
        The search.
    node
        The state.
    scored
        Proposals with the value of each; a candidate's score is the value times its weight.

    Returns
    -------
    list of TreeCandidate
        The candidates. An action is added as dropped if it changed data before, or may have: it is known to and was
        tried, or the process ended while it was performed.
    """
    added = []
    changes = [
        each
        for each in tree.candidates
        if each.changed or each.status is CandidateStatus.INTERRUPTED or (each.is_destructive and was_tried(each))
    ]
    deeds = {(url, each.key) for each in changes for url in _urls_around(tree, each)}
    # A link or an address does the same wherever it is; a button "Delete" does not.
    addressed = {each.key for each in changes if address_shown(tree, each)}
    for merged, value in scored:
        best = merged.best
        candidate = TreeCandidate(
            id=len(tree.candidates),
            node=node,
            action=best.action,
            gesture=best.gesture.to_json() if best.gesture is not None else None,
            key=best.key,
            text=describe(best.action, best.gesture),
            score=round(value * merged.weight, 6),
            contexts=list(merged.contexts),
            thinking=best.thinking,
            is_destructive=best.is_destructive,
            outcome=best.outcome,
            merged=list(merged.merged),
        )
        if candidate.key in addressed or (tree.nodes[node].state.url, candidate.key) in deeds:
            drop(candidate, "it changed data before, or may have")
        tree.candidates.append(candidate)
        added.append(candidate)
    return added


def address_shown(tree: SearchTree, candidate: TreeCandidate) -> str:
    """Return the address that an action shows, if it is known before; empty: it is not."""
    return loaded_url(candidate.action, candidate.recorded, tree.nodes[candidate.node].state.address)


def _urls_around(tree: SearchTree, candidate: TreeCandidate) -> set[str]:
    """Return the URLs before and after an action: a form that was sent is often shown again at another URL."""
    nodes = [candidate.node] if candidate.result is None else [candidate.node, candidate.result]
    return {tree.nodes[node].state.url for node in nodes}


_TRIED = frozenset({
    CandidateStatus.BEGUN, CandidateStatus.INTERRUPTED, CandidateStatus.DONE, CandidateStatus.FAILED,
})  # fmt: skip


def was_tried(candidate: TreeCandidate) -> bool:
    """Whether an action was performed, or may have been before the process ended."""
    return candidate.status in _TRIED


def is_repeated(tree: SearchTree, candidate: TreeCandidate) -> bool:
    """Whether an equal action was performed `MAX_REPEATS` times since data was changed last."""
    equal = (each for each in tree.candidates if each.key == candidate.key and tree.is_live(each.node))
    return sum(was_tried(each) for each in equal) >= MAX_REPEATS


def drop(candidate: TreeCandidate, reason: str) -> None:
    """Remove an action from the frontier."""
    candidate.status, candidate.reason = CandidateStatus.DROPPED, reason


def clear(tree: SearchTree, reason: str) -> None:
    """Remove everything from the frontier."""
    for each in tree.queued:
        drop(each, reason)


def drop_visited(tree: SearchTree) -> None:
    """Remove actions that lead to a state that was visited since: by the map, or by the URL of a link or a `goto`."""
    states, urls = {each.map_state for each in tree.live_nodes()}, visited_urls(tree)
    for each in tree.queued:
        target = address_shown(tree, each)
        if each.outcome and each.outcome in states:
            drop(each, "the state that it leads to was visited")
        elif target and normalize_url(target, WITH_FRAGMENT) in urls:
            drop(each, "the page that it leads to was visited")


def drop_elsewhere(tree: SearchTree, current: int | None) -> None:
    """Remove actions of other states than the one that the page shows, answers excepted."""
    for each in tree.queued:
        if each.node != current and not each.is_stop:
            drop(each, "the search does not return to earlier states")


def visited_urls(tree: SearchTree) -> frozenset[str]:
    """Return the normalised URLs of the pages that were visited, with their fragments.

    Besides those that the browser showed, they are those that were loaded: some pages replace their fragment.

    Parameters
    ----------
    tree
        The search.

    Returns
    -------
    frozenset of str
        The URLs.
    """
    urls: set[str] = set()
    for node in tree.live_nodes():
        urls.add(node.state.full_url)
        if node.candidate is not None:
            target = address_shown(tree, tree.candidates[node.candidate])
            if target and normalize_url(target) == node.state.url:
                urls.add(normalize_url(target, WITH_FRAGMENT))
    return frozenset(urls)


def reduce(tree: SearchTree, is_reachable: Callable[[int], bool]) -> int:
    """Reduce the frontier to its budget, before other actions are added.

    In this order, while there are too many: actions of states that no way leads back to; all but the best answer, the
    best destructive action and the best repeated one; the lower ones of equal actions; the lowest ones.

    Parameters
    ----------
    tree
        The search.
    is_reachable
        Whether a way leads back to a node.

    Returns
    -------
    int
        Number of actions that were removed.
    """
    before = len(tree.queued)
    if before <= tree.budget:
        return 0
    for each in tree.queued:
        if each.action.action != "visit" and not is_reachable(each.node):
            drop(each, "no way leads back to its state")
    for kind in (_is_stop, _is_destructive, lambda each: is_repeated(tree, each)):
        _drop_lowest(tree, [each for each in tree.queued if kind(each)], keep=1, reason="the frontier keeps the best")
    for key in dict.fromkeys(each.key for each in tree.queued):
        _drop_lowest(
            tree, [each for each in tree.queued if each.key == key], keep=1, reason="an equal action is better"
        )
    _drop_lowest(tree, tree.queued, keep=tree.budget, reason="the frontier is full")
    removed = before - len(tree.queued)
    tree.prunes += bool(removed)
    return removed


def _is_stop(candidate: TreeCandidate) -> bool:
    return candidate.is_stop


def _is_destructive(candidate: TreeCandidate) -> bool:
    return candidate.is_destructive


def _drop_lowest(tree: SearchTree, candidates: list[TreeCandidate], *, keep: int, reason: str) -> None:
    """Drop the lowest candidates while the frontier is larger than its budget and more than `keep` of them are left."""
    lowest = sorted(candidates, key=lambda each: (each.score, -each.id))
    for each in lowest[: max(0, min(len(candidates) - keep, len(tree.queued) - tree.budget))]:
        drop(each, reason)
