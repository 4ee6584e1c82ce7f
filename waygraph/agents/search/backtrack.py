"""Returning to visited nodes: in a tab beside the current one, checked step by step, kept or closed as a whole."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from functools import partial

from waygraph.agents.actions.session import AgentSession
from waygraph.agents.actions.tabs import AgentTabs
from waygraph.agents.search.browser_storage import storage_set_back
from waygraph.agents.search.checkpoints import WayBack, ways_back
from waygraph.agents.search.click_spacing import ClickSpacing
from waygraph.agents.search.expected_state import ExpectedState
from waygraph.agents.search.lookahead import MapLookahead
from waygraph.agents.search.tree import BacktrackRecord, BrowserStorage, SearchTree, TreeNode
from waygraph.core.errors import BrowserFailure, WaygraphError
from waygraph.index.graph import Action
from waygraph.pipeline.browser.page.replay import replay

#: Pause before a page is looked at again that does not show the recorded state yet.
_LOOK_AGAIN_S = 0.2


class Backtracker:
    """Returns to nodes of a search.

    Parameters
    ----------
    session
        The browser session.
    lookahead
        The map; None: there is none, and only URLs are checkpoints.
    """

    def __init__(self, session: AgentSession, lookahead: MapLookahead | None) -> None:
        self._session = session
        self._map = lookahead
        self.clicks = ClickSpacing()
        """Time between clicks, also those that the search makes itself."""

    async def go_back_to(self, tree: SearchTree, target: TreeNode) -> BacktrackRecord:
        """Show a node's state in the current tab, and add a record of it to the tree.

        The ways back are tried one after the other, each in a new tab. Every step of a way must show the recorded
        state. Before a way, cookies of scripts and storage are set to what they were at its checkpoint. If a step
        shows something else, the tab is closed, and the tabs before, cookies and storage are as they were. A URL that
        shows another state than its node is not tried again; one that showed the node's state before is, once. On the
        last way, a page that shows a part of the state is looked at again for a while: it may add the rest late.

        Parameters
        ----------
        tree
            The search.
        target
            The node.

        Returns
        -------
        BacktrackRecord
            What was tried, and whether the state is shown. If it is, the session must observe before it acts.

        Raises
        ------
        PageFailure
            If the browser opens no tabs.
        """
        record = BacktrackRecord(step=tree.steps, target=target.id, tried=[], arrived=False)
        ways = ways_back(tree, target.id, with_map=self._map is not None)
        for way in ways:
            record.tried.append(str(way))
            walk = partial(self._follow, tree, way, is_last=way is ways[-1])
            record.problem = await self._try(walk, way.checkpoint.storage)
            if not record.problem:
                record.arrived = True
                break
        else:
            record.problem = record.problem or "No checkpoint is above this state."
        tree.backtracks.append(record)
        return record

    async def visit(self, state: str) -> str:
        """Walk over the map to a state in a new tab, which becomes the only one.

        Parameters
        ----------
        state
            Id of the state in the map.

        Returns
        -------
        str
            Why it was not reached, and nothing has changed; empty if it was.

        Raises
        ------
        PageFailure
            If the browser opens no tabs.
        """
        return await self._try(lambda: self._teleport(state), None)

    async def test_url(self, tree: SearchTree, node: TreeNode) -> None:
        """Load a node's URL in a tab that is closed then, and note whether it shows the state.

        Parameters
        ----------
        tree
            The search.
        node
            The node. Nothing was done at the site since it was visited.

        Raises
        ------
        PageFailure
            If the browser opens no tabs.
        """
        before = self._tabs.current
        async with self._tabs.beside(), storage_set_back(before, self._tabs.current, node.storage):
            try:
                problem = await self._load(tree, node, waits=True)
            except BrowserFailure as failure:
                problem = failure.message
        node.note_load(shows_state=not problem)

    async def _try(self, walk: Callable[[], Awaitable[str]], storage: BrowserStorage | None) -> str:
        before = self._tabs.current
        async with self._tabs.beside() as side, storage_set_back(before, self._tabs.current, storage) as stored:
            try:
                problem = await walk()
            except BrowserFailure as failure:
                problem = failure.message
            if not problem:
                side.keep()
                stored.keep()
        return problem

    async def _follow(self, tree: SearchTree, way: WayBack, *, is_last: bool) -> str:
        """Walk a way in the current tab, and return why it does not show the state. Only the last way waits for it."""
        checkpoint = way.checkpoint
        if way.kind == "map":
            problem = await self._teleport(checkpoint.map_state)
            # One state of the map may stand for pages with other texts.
            if not problem and not await self._shows(ExpectedState(tree, checkpoint), waits=is_last):
                problem = "The page of the map's state shows something else than was recorded."
        else:
            problem = await self._load(tree, checkpoint, waits=is_last)
            checkpoint.note_load(shows_state=not problem)
        for node in way.replayed:
            if problem:
                break
            gesture = tree.candidates[node.candidate].recorded if node.candidate is not None else None
            if gesture is None:
                problem = "It is no gesture."
            else:
                problem = await self._replay(ExpectedState(tree, node), gesture, waits=is_last)
        return problem

    async def _load(self, tree: SearchTree, node: TreeNode, *, waits: bool) -> str:
        """Load a node's URL in the current tab, and return why it does not show the state."""
        return await self._replay(ExpectedState(tree, node), Action(kind="goto", url=node.state.address), waits=waits)

    async def _replay(self, expected: ExpectedState, action: Action, *, waits: bool) -> str:
        """Perform an action in the current tab, and return why it does not show the state that it leads to."""
        is_load = action.kind == "goto"
        if not is_load:
            await self.clicks.wait()
        result = await replay(
            self._tabs.current, [expected.step(action)], agrees=lambda snapshot, _: expected.is_shown(snapshot)
        )
        self.clicks.note(is_load=is_load)
        self._tabs.adopt(result.view.page, result.view)
        if result.problem and waits and result.snapshot is not None and await self._shows(expected, waits=True):
            return ""
        return result.problem

    async def _shows(self, expected: ExpectedState, *, waits: bool) -> bool:
        """Whether the current tab shows a state.

        Pages add texts after they have settled: a preview that was rendered, a count of its words. With `waits`, a page
        that shows a part of the state is looked at again, for as long as a page may take to settle.
        """
        deadline = time.monotonic() + self._session.options.browser.settle_cap_ms / 1000 if waits else 0.0
        while True:
            snapshot = await self._tabs.current.observe(digest=False)
            if expected.is_shown(snapshot):
                return True
            if time.monotonic() >= deadline or not expected.is_partly_shown(snapshot):
                return False
            await asyncio.sleep(_LOOK_AGAIN_S)

    async def _teleport(self, state: str) -> str:
        if self._map is None:
            return "There is no map."
        page = self._tabs.current.page
        try:
            site = await self._map.site_of(state)
            if not site:
                return "The map has this state no more."
            result = await self._map.maps.teleport(page, site, state, settings=self._session.options.browser)
        except BrowserFailure:
            raise
        except WaygraphError as error:  # of the map
            return error.message
        self.clicks.note()
        self._tabs.adopt(result.page)
        return "" if result.arrived else result.problem or "The walk ended in another state."

    @property
    def _tabs(self) -> AgentTabs:
        return self._session.tabs
