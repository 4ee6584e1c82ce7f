"""The action `navigate`: find a page in the map of a site, and walk the current tab there."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from waygraph.agents.actions.performer import Performed
from waygraph.agents.actions.safety import ActionGate
from waygraph.agents.actions.tabs import AgentTabs
from waygraph.agents.actions.types import NavigateAction
from waygraph.core.schemas import MAX_INTENT_CHARS
from waygraph.core.settings import BrowserSettings
from waygraph.sdk.facade import AsyncWaygraph


@dataclass(frozen=True, slots=True)
class SelectedPage:
    """The page that was selected for a query.

    Attributes
    ----------
    node_id
        The state or lead; None: none of those that were found fits.
    url
        Its URL.
    reason
        Why, in words; may be empty.
    is_doubtful
        Whether the map most likely has no page that fits.
    """

    node_id: str | None
    url: str = ""
    reason: str = ""
    is_doubtful: bool = False


class PageSelector(Protocol):
    """Searches a map for the page that an agent wants, and chooses among what is found."""

    async def select(self, maps: AsyncWaygraph, action: NavigateAction) -> SelectedPage:
        """Return the page that is meant.

        Parameters
        ----------
        maps
            The maps.
        action
            Site, query, and what the page is wanted for.

        Returns
        -------
        SelectedPage
            The page, or none.

        Raises
        ------
        WaygraphError
            If there is no such map, or the service or a model does not answer.
        """
        ...


class DefaultSelector:
    """Selects as `navigate` of the SDK does by default."""

    async def select(self, maps: AsyncWaygraph, action: NavigateAction) -> SelectedPage:
        """Return the page that is meant; see `PageSelector.select`."""
        found = await maps.navigate(action.site, action.query, intent=action.thinking[:MAX_INTENT_CHARS])
        url = next((hit.url for hit in found.candidates if hit.node_id == found.node_id), "")
        return SelectedPage(found.node_id, url, found.reason, bool(found.nothing_matches))


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
    selector
        Chooses among the pages that a search finds.
    """

    def __init__(
        self, maps: AsyncWaygraph, gate: ActionGate, settings: BrowserSettings, selector: PageSelector
    ) -> None:
        self._maps = maps
        self._selector = selector
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
        found = await self._selector.select(self._maps, action)
        if found.node_id is None:
            message = f"The map of {action.site} has no page that fits '{action.query}'; use the search of the site."
            return Performed(message, failed=True)
        if found.url:
            await self._gate.check_url(action, found.url)
        view = tabs.current
        view.forget_earlier_actions()
        result = await self._maps.teleport(view.page, action.site, found.node_id, settings=self._settings)
        tabs.adopt(result.page)
        if not result.arrived:
            problem = result.problem or "the site differs from its map"
            message = f"The page for '{action.query}' was not reached: {problem} You are at {result.url}."
            return Performed(message, failed=True)
        doubt = " The map may have no page that fits it." if found.is_doubtful else ""
        return Performed(f"Arrived at the page for '{action.query}'.{doubt}")
