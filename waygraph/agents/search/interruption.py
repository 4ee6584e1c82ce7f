"""Actions that were being performed when an earlier process of a search ended."""

from __future__ import annotations

from waygraph.agents.actions.types import GotoAction
from waygraph.agents.search import frontier
from waygraph.agents.search.frontier import MergedProposal, Proposal
from waygraph.agents.search.search_actions import VisitAction
from waygraph.agents.search.tree import CandidateStatus, SearchTree, StepRecord, TreeCandidate

_REASON = "the process ended while it was performed"


def settle_interrupted(tree: SearchTree) -> list[TreeCandidate]:
    """Decide what becomes of actions that were begun and have no result.

    Gestures are never repeated, since they may have changed data. If one is a click on a link, loading the link's
    address is queued in its place. Walks over the map and loads of addresses are queued again. All count as steps.

    Parameters
    ----------
    tree
        The search, as it was read from its file.

    Returns
    -------
    list of TreeCandidate
        Those that were known to change data. They may have, so nothing that was recorded before counts any more.
    """
    destructive = []
    for each in [each for each in tree.candidates if each.status is CandidateStatus.BEGUN]:
        state = tree.nodes[each.node].state
        tree.log.append(
            StepRecord(
                state=state.snapshot, url=state.url, action=each.text, status="failed", message=_REASON,
                details={"node": each.node, "candidate": each.id},
            )
        )  # fmt: skip
        if isinstance(each.action, GotoAction | VisitAction) and not each.is_destructive:
            each.status = CandidateStatus.QUEUED
            continue
        each.status, each.reason = CandidateStatus.INTERRUPTED, _REASON
        if each.is_destructive:
            destructive.append(each)
        else:
            _queue_its_target(tree, each)
    return destructive


def _queue_its_target(tree: SearchTree, candidate: TreeCandidate) -> None:
    url = frontier.address_shown(tree, candidate)
    if not url:
        return
    load = Proposal(GotoAction(url=url), None, candidate.contexts[0], outcome=candidate.outcome)
    again = MergedProposal(load, tuple(candidate.contexts))
    frontier.add(tree, candidate.node, [(again, candidate.score / again.weight)])
