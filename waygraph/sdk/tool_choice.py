"""The tool that a name stands for on the caller's page: tools of several pages may share a name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from waygraph.client.map_source import AsyncMapApi
from waygraph.core.errors import InvalidInput
from waygraph.core.schemas import ToolModel
from waygraph.core.settings import BrowserSettings
from waygraph.pipeline.browser.page.snapshot import Snapshot
from waygraph.pipeline.browser.page.view import PageView
from waygraph.sdk.page_tools import has_tool, is_named, tool_on_page
from waygraph.sdk.state_recognition import StateRecognizer
from waygraph.sdk.teleport import snapshot_options_of_map
from waygraph.sdk.tool_lookup import MAX_TOOLS, check_allowed, check_arguments, only_reads, tools_called

if TYPE_CHECKING:
    from playwright.async_api import Page

#: Most ids in a message, and digits of each.
_MAX_IDS, _ID_DIGITS = 5, 12


async def tool_for_page(
    page: Page,
    maps: AsyncMapApi,
    site: str,
    tool: str,
    arguments: Mapping[str, Any],
    *,
    allow_changes: bool,
    settings: BrowserSettings | None = None,
) -> ToolModel:
    """Return the tool that a name or an id stands for on a page, see `use_tool`; it may be called with the arguments.

    The page is looked at only for a name that several tools have, or one tool that may change something.

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
    allow_changes
        Whether the tool may change something.
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
        If several tools may be meant, or the arguments do not fit.
    ToolRefused
        If the tool may change something, and changes are not allowed.
    ToolChanged
        If the page has a tool of that name, but not as it was mapped.
    """
    found = await tools_called(maps, site, tool)
    is_id = found[0].id.startswith(tool)
    if is_id and len(found) > 1:
        raise _ambiguous(site, found, f"Several tools of '{site}' have ids that begin with {tool}.")
    if len(found) == 1:
        check_arguments(found[0], arguments)
        check_allowed(found[0], allow_changes=allow_changes)
        if is_id or only_reads(found[0]):
            return found[0]
    settings = settings or BrowserSettings()
    view = PageView(page, snapshot_options_of_map(await maps.site(site), settings), settings, owned=False)
    try:
        snapshot = await view.observe()
    finally:
        view.detach()
    if len(found) == MAX_TOOLS:
        state = (await StateRecognizer(maps, site).locate(snapshot, None, with_features=True)).state
        if state is not None:
            own = (await maps.tools(site, state=state.node_id, tool=tool, limit=MAX_TOOLS)).tools
            found = list({each.id: each for each in (*own, *found)}.values())
    chosen = choose_tool(site, found, snapshot)
    check_arguments(chosen, arguments)
    check_allowed(chosen, allow_changes=allow_changes)
    return chosen


def choose_tool(site: str, found: Sequence[ToolModel], snapshot: Snapshot) -> ToolModel:
    """Return the one of the tools of a name that is meant on a page.

    It is the tool that the page has. A page that has none of that name leaves only what is one tool in several places:
    tools that read, and are equal but for the place of their form; it is the first of them.

    Parameters
    ----------
    site
        Key of the site.
    found
        The tools, those of states near the start page first.
    snapshot
        The page.

    Returns
    -------
    ToolModel
        The tool.

    Raises
    ------
    InvalidInput
        If several are meant.
    ToolChanged
        If the page has a tool of that name, but not as it was mapped.
    """
    here = {tool_on_page(snapshot, tool): tool for tool in reversed(found) if has_tool(snapshot, tool)}
    if len(here) == 1:
        return next(iter(here.values()))
    if here:
        raise _ambiguous(site, list(here.values()), f"{snapshot.url} has several tools called '{found[0].name}'.")
    for tool in found:
        if is_named(snapshot, tool):
            tool_on_page(snapshot, tool)  # raises what has changed
    first = found[0]
    is_one = all(only_reads(tool) and _without_place(tool) == _without_place(first) for tool in found[1:])
    if not is_one or len(found) >= MAX_TOOLS:
        raise _ambiguous(site, found, f"Several tools of '{site}' are called '{first.name}'.")
    return first


def _without_place(tool: ToolModel) -> ToolModel:
    return tool.model_copy(update={"id": "", "states": [], "state_count": 0, "url": "", "element": None})


def _ambiguous(site: str, tools: Sequence[ToolModel], message: str) -> InvalidInput:
    ids = ", ".join(tool.id[:_ID_DIGITS] for tool in tools[:_MAX_IDS])
    return InvalidInput(message, hint=f"Use an id: {ids}. Their inputs: waygraph tools {site} --format json")
