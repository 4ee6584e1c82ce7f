"""The tool that a name stands for on the caller's page: tools of several pages may share a name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from waygraph.client.map_source import AsyncMapApi
from waygraph.core.errors import InvalidInput, NoPath
from waygraph.core.schemas import ToolModel
from waygraph.core.settings import BrowserSettings
from waygraph.pipeline.browser.page.snapshot import Snapshot
from waygraph.pipeline.browser.page.view import PageView
from waygraph.sdk.page_tools import has_tool, tool_on_page
from waygraph.sdk.state_recognition import StateRecognizer
from waygraph.sdk.teleport import snapshot_options_of_map
from waygraph.sdk.tool_lookup import check_arguments, tools_called

if TYPE_CHECKING:
    from playwright.async_api import Page

#: Most ids in a message, and digits of each.
_MAX_IDS, _ID_DIGITS = 5, 12
#: Most tools whose paths are compared.
_MAX_PATHS = 20


async def tool_for_page(
    page: Page,
    maps: AsyncMapApi,
    site: str,
    tool: str,
    arguments: Mapping[str, Any],
    *,
    allow_goto: bool = True,
    settings: BrowserSettings | None = None,
) -> ToolModel:
    """Return the tool that a name or an id stands for on a page, see `use_tool`; arguments are checked.

    The page is looked at only if several tools have the name.

    Parameters
    ----------
    page
        The page.
    maps
        The maps.
    site
        Key of the site.
    tool
        Id or name of the tool.
    arguments
        Its inputs.
    allow_goto
        Whether URLs may be loaded to walk to the tool.
    settings
        Timing of snapshots; None uses the defaults.

    Returns
    -------
    ToolModel
        The tool.

    Raises
    ------
    NotFound
        If the site is not mapped, or has no such tool.
    InvalidInput
        If several tools are meant, or the arguments do not fit.
    """
    found = await tools_called(maps, site, tool)
    if len(found) > 1:
        settings = settings or BrowserSettings()
        view = PageView(page, snapshot_options_of_map(await maps.site(site), settings), settings, owned=False)
        try:
            snapshot = await view.observe()
        finally:
            view.detach()
        found = [await choose_tool(maps, site, found, snapshot, allow_goto=allow_goto)]
    check_arguments(found[0], arguments)
    return found[0]


async def choose_tool(
    maps: AsyncMapApi, site: str, found: Sequence[ToolModel], snapshot: Snapshot, *, allow_goto: bool
) -> ToolModel:
    """Return the one of several tools of a name that is meant on a page.

    It is the tool that the page has. If it has none of them, and they take the same inputs and only read, or are
    submitted to one address, it is the one with the cheapest path; of several the one nearest to the start page, then
    the one with the least id.

    Parameters
    ----------
    maps
        The maps.
    site
        Key of the site.
    found
        The tools.
    snapshot
        The page.
    allow_goto
        Whether URLs may be loaded to walk to the tool.

    Returns
    -------
    ToolModel
        The tool.

    Raises
    ------
    InvalidInput
        If several are meant.
    """
    here = {tool_on_page(snapshot, tool): tool for tool in reversed(found) if has_tool(snapshot, tool)}
    if len(here) == 1:
        return next(iter(here.values()))
    if here:
        raise _ambiguous(site, list(here.values()), f"{snapshot.url} has several tools")
    first = found[0]
    is_any_right = all(
        tool.input_schema == first.input_schema
        and ((tool.read_only and first.read_only) or (tool.method, tool.target) == (first.method, first.target))
        for tool in found
    )
    if not is_any_right:
        raise _ambiguous(site, found, f"Several tools of '{site}' are")
    position = await StateRecognizer(maps, site).locate(snapshot, None, with_features=True)
    start = position.state.node_id if position.state is not None else None
    costs = []
    for tool in found[:_MAX_PATHS]:
        try:
            path = await maps.path(site, start, tool.states[0], allow_goto=allow_goto)
        except NoPath:
            continue
        costs.append((path.cost_ms, tool))
    return min(costs, key=lambda cost: cost[0])[1] if costs else first


def _ambiguous(site: str, tools: Sequence[ToolModel], what: str) -> InvalidInput:
    ids = ", ".join(tool.id[:_ID_DIGITS] for tool in tools[:_MAX_IDS])
    return InvalidInput(
        f"{what} called '{tools[0].name}'.", hint=f"Use an id: {ids}. Their inputs: waygraph tools {site} --format json"
    )
