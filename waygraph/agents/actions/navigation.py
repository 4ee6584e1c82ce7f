"""The action `navigate`: find a page in the map of a site, and walk the current tab there."""

from __future__ import annotations

from waygraph.agents.actions.performer import Performed
from waygraph.agents.actions.safety import ActionGate
from waygraph.agents.actions.tabs import AgentTabs
from waygraph.agents.actions.types import NavigateAction
from waygraph.core.settings import BrowserSettings
from waygraph.sdk.facade import AsyncWaygraph


class MapNavigator:
    """Performs `navigate` with the maps of a service or a store.

    Parameters
    ----------
    maps
        The maps.
    gate
        Asked whether the page that was found is in the scope of the task.
    settings
        Timing of the walk.
    """

    def __init__(self, maps: AsyncWaygraph, gate: ActionGate, settings: BrowserSettings) -> None:
        self._maps = maps
        self._gate = gate
        self._settings = settings

    async def navigate(self, action: NavigateAction, tabs: AgentTabs) -> Performed:
        """Search the map, walk the current tab there, and verify the arrival.

        Parameters
        ----------
        action
            The action.
        tabs
            The tabs; the one where the walk ends becomes the current one.

        Returns
        -------
        Performed
            It has failed if the map has no fitting page, or the page was not reached.

        Raises
        ------
        ActionRefused
            If the page is outside of the scope.
        WaygraphError
            If there is no such map, or the service does not answer.
        """
        found = await self._maps.navigate(action.site, action.query, intent=action.thinking)
        if found.node_id is None:
            message = f"The map of {action.site} has no page that fits '{action.query}'; use the search of the site."
            return Performed(message, failed=True)
        target = next((hit for hit in found.candidates if hit.node_id == found.node_id), None)
        if target is not None:
            await self._gate.check_url(action, target.url)
        view = tabs.current
        view.forget_earlier_actions()
        result = await self._maps.teleport(view.page, action.site, found.node_id, settings=self._settings)
        tabs.adopt(result.page)
        if not result.arrived:
            problem = result.problem or "the site differs from its map"
            return Performed(f"The page for '{action.query}' was not reached: {problem}", failed=True)
        doubt = " The map may have no page that fits it." if found.nothing_matches else ""
        return Performed(f"Went to the page for '{action.query}'.{doubt}")
