"""Adding the state that a page shows to the tree: whether it is a new one, and whether the search goes on from it."""

from __future__ import annotations

from collections import Counter

from waygraph.agents.actions.session import AgentSession
from waygraph.agents.observation.page_observation import PageObservation
from waygraph.agents.search.browser_storage import read_storage
from waygraph.agents.search.dialog_states import page_behind
from waygraph.agents.search.expected_state import unstable_at
from waygraph.agents.search.lookahead import MapLookahead
from waygraph.agents.search.recorded_states import record_state, same_page
from waygraph.agents.search.tree import RecordedState, SearchTree, TreeNode
from waygraph.pipeline.explore.identity.features import feature_change


class Arrivals:
    """Adds states to a tree.

    Parameters
    ----------
    session
        The browser session.
    lookahead
        The map; None: there is none.
    max_depth
        Limit of a node's distance from the root, in actions.
    """

    def __init__(self, session: AgentSession, lookahead: MapLookahead | None, max_depth: int) -> None:
        self._session = session
        self._map = lookahead
        self._max_depth = max_depth

    async def arrive(
        self,
        tree: SearchTree,
        observation: PageObservation,
        *,
        parent: int | None,
        candidate: int | None,
        before: PageObservation | None = None,
    ) -> TreeNode:
        """Add the state that is observed.

        Parameters
        ----------
        tree
            The search.
        observation
            The page, or the dialog that it shows.
        parent
            The node that it was reached from; None: the search begins here.
        candidate
            The action that led to it.
        before
            The page of that action right before it; None: it is not known.

        Returns
        -------
        TreeNode
            The node.
        """
        state = record_state(observation.snapshot)
        unstable = unstable_at(tree, state.url)
        same = [each for each in tree.live_nodes() if each.same_as is None and same_page(each.state, state, unstable)]
        node = tree.add_node(state, parent=parent, candidate=candidate)
        if observation.dialog is not None:
            # Its page does not respond until it is answered, and has not changed. What an equal question is about
            # depends on that page.
            node.dialog, node.change, node.loads = str(observation.dialog), {}, "no"
            same = []
        else:
            if before is not None and candidate is not None and tree.candidates[candidate].gesture is not None:
                seen = record_state(before.snapshot)
                if parent is not None and same_page(seen, state, unstable):
                    same.insert(0, tree.nodes[parent])
                node.change = _change(seen, state)
            elif parent is not None and tree.nodes[parent].dialog:
                node.change = _change(page_behind(tree, tree.nodes[parent]).state, state)
            node.storage = await read_storage(self._session.tabs.current)
            if self._map is not None:
                node.map_state = await self._map.recognize(observation.snapshot)
        node.problem = self._problem(tree, node, observation)
        if same and not node.problem:
            node.same_as = same[0].id
        return node

    def _problem(self, tree: SearchTree, node: TreeNode, observation: PageObservation) -> str:
        """Return why nothing is tried in a state; empty if things are."""
        scope = self._session.options.scope
        if observation.snapshot.status >= 400:
            return f"The server answered with the error {observation.snapshot.status}."
        if scope is not None and scope.refuse_url(observation.url) is not None:
            return "It is outside of the site of the task."
        is_too_far = len(list(tree.ancestry(node.id))) > self._max_depth + 1
        return "It is too far from the root." if is_too_far else ""


def _change(before: RecordedState, after: RecordedState) -> dict[str, int] | None:
    """Return the features that a page has gained, and those that it has lost (negative); None: it is another page."""
    if before.url != after.url:
        return None
    return dict(sorted(feature_change(Counter(before.features), Counter(after.features)).items()))
