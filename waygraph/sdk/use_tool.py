"""Use a tool of a site's pages: walk to a state that has it, check it and the arguments, call it under the guard."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from waygraph.client.map_source import AsyncMapApi, ThreadedMapSource
from waygraph.core.errors import InvalidInput, TeleportFailed, ToolRefused
from waygraph.core.settings import BrowserSettings
from waygraph.pipeline.browser.page.failures import FailureKind, PageFailure
from waygraph.pipeline.browser.page.view import PageView
from waygraph.sdk.page_tools import has_tool, tool_on_page
from waygraph.sdk.state_recognition import StateRecognizer
from waygraph.sdk.teleport import snapshot_options_of_map, teleport
from waygraph.sdk.teleport_result import TeleportStep
from waygraph.sdk.tool_call import ToolCall
from waygraph.sdk.tool_choice import tool_for_page
from waygraph.sdk.tool_lookup import only_reads
from waygraph.sdk.tool_result import ToolResult

if TYPE_CHECKING:
    from playwright.async_api import Page
    from playwright.sync_api import Page as SyncPage

    from waygraph.client.map_source import AsyncMapSource, MapSource

#: Longest time that a tool may take to answer, in seconds.
TIMEOUT_S = 30.0
#: Whether a service worker takes requests and messages of the page.
_HAS_WORKER = """async () => {
  try { return Boolean(navigator.serviceWorker?.controller || await navigator.serviceWorker?.getRegistration()); }
  catch { return false; }
}"""


async def use_tool(
    page: Page,
    source: MapSource | AsyncMapSource,
    site: str,
    tool: str,
    arguments: Mapping[str, Any],
    *,
    allow_changes: bool = False,
    allow_goto: bool = True,
    timeout_s: float = TIMEOUT_S,
    settings: BrowserSettings | None = None,
) -> ToolResult:
    """Use a tool of a mapped site in `page`.

    If the page has the tool, it is used there; else the page walks to a state that has it, of several the one nearest
    to the start page. A tool that may change something and that several states have is not walked to: it may change
    what its page shows. Tools that scripts declare, and declared forms with `toolautosubmit`, are called through the
    browser, or a polyfill. Other forms are filled and submitted, except declared ones that may change something: these
    stay filled, for a person.

    The network guard stops requests of the call that could change something, by their method or their address, as it
    does while exploring; documents and the requests of tabs that the tool opens are included. With `allow_changes` they
    pass and are reported, unless the tool says that it only reads. A tool that still runs when the call ends, and may
    change nothing, is ended: its page is loaded anew. Service workers are bypassed.

    Not guarded are messages over WebSockets, of which only those over new connections of the page are reported;
    redirects of the first request of a tab; messages to service workers; and what the page does after the call.

    Parameters
    ----------
    page
        The caller's Playwright page.
    source
        The maps. A blocking source is called in threads.
    site
        Key of the site.
    tool
        Id of the tool, the beginning of one (8 digits or more), or, if no id begins so, its name. Of several tools
        with the name it is the one that the page has. If it has none, they must only read and be equal but for the
        place of their form: it is the one nearest to the start page.
    arguments
        Its inputs, as JSON values.
    allow_changes
        Whether tools may be used that change something, as far as is known: all but those that say that they only
        read, and forms submitted by GET.
    allow_goto
        Whether URLs may be loaded to walk to the tool.
    timeout_s
        Longest time that the tool may take to answer, in seconds.
    settings
        Timing of snapshots; None uses the defaults.

    Returns
    -------
    ToolResult
        The answer, or the state that was arrived at.

    Raises
    ------
    NotFound
        If the site is not mapped or has no such tool.
    InvalidInput
        If several tools may be meant, several states that the page does not show have one that may change something,
        the tool's schema is invalid, or the arguments do not fit it.
    ToolRefused
        If the tool may change something, or a service worker of the page could, and changes are not allowed.
    TeleportFailed
        If no state that has the tool was reached.
    ToolChanged
        If the page no longer has the tool, or with other inputs. With a name, this is so for the caller's page, too.
    ToolFailed
        If the tool throws, does not answer in time, or its form does not take the values. The message names what was
        sent before.
    PageFailure
        If the page is closed, or does not respond.
    """
    settings = settings or BrowserSettings()
    maps = source if isinstance(source, AsyncMapApi) else ThreadedMapSource(source)
    found = await tool_for_page(page, maps, site, tool, arguments, allow_changes=allow_changes, settings=settings)
    if page.is_closed():
        raise PageFailure("The page is closed.", FailureKind.BROWSER_LOST, hint="Open another page, and pass that one.")
    detail = await maps.site(site)
    options = snapshot_options_of_map(detail, settings)
    view = PageView(page, options, settings, owned=False)
    try:
        snapshot = await view.observe()
        steps: tuple[TeleportStep, ...] = ()
        if not has_tool(snapshot, found):
            if found.state_count > 1 and not only_reads(found):
                raise InvalidInput(
                    f"'{found.name}' may change something, and {found.state_count} states have it.",
                    hint="Walk to the one that is meant, and use it there: it may change what its page shows.",
                )
            walked = await teleport(page, maps, detail.site, found.states[0], allow_goto=allow_goto, settings=settings)
            steps = walked.steps
            if walked.page != page:
                view.detach()
                view = PageView(walked.page, options, settings, owned=False)
            snapshot = await view.observe()
            if not walked.arrived and not has_tool(snapshot, found):
                raise TeleportFailed(
                    f"No page with the tool '{found.name}' was reached: {walked.problem}", hint="Refresh the map."
                )
        shown = tool_on_page(snapshot, found)
        if not allow_changes and await view.call(_HAS_WORKER, None):
            raise ToolRefused(
                f"A service worker controls {snapshot.url}. What '{found.name}' has it send is not guarded.",
                hint="Pass allow_changes=True, or use a browser context with service_workers='block'.",
            )
        call = ToolCall(view, shown, arguments, is_enforced=only_reads(found) or not allow_changes, timeout_s=timeout_s)
        return replace(await call.run(snapshot, StateRecognizer(maps, detail.site)), steps=steps)
    finally:
        view.detach()


def use_tool_sync(
    page: SyncPage,
    source: MapSource,
    site: str,
    tool: str,
    arguments: Mapping[str, Any],
    **options: Any,  # noqa: ANN401 - typed in `use_tool`
) -> ToolResult[SyncPage]:
    """Use a tool in a page of Playwright's sync API; parameters, result and errors are those of `use_tool`."""
    from waygraph.sdk.sync_page import run, unwrap  # noqa: PLC0415 - the async API needs no greenlets

    result: ToolResult[Any] = run(page, lambda awaitable: use_tool(awaitable, source, site, tool, arguments, **options))
    return replace(result, page=unwrap(result.page))
