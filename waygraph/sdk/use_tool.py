"""Use a tool of a site's pages: walk to a state that has it, check it and the arguments, call it under the guard."""

from __future__ import annotations

import asyncio
import json
import logging
import time
from collections.abc import Coroutine, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar

from playwright.async_api import Error as PlaywrightError

from waygraph.client.map_source import AsyncMapApi, ThreadedMapSource
from waygraph.core.errors import TeleportFailed, ToolChanged, ToolFailed, ToolRefused
from waygraph.core.schemas import ToolModel
from waygraph.core.settings import BrowserSettings
from waygraph.index.graph import BlockedRequest
from waygraph.pipeline.browser.page.evaluate import PageUnresponsive
from waygraph.pipeline.browser.page.snapshot import PageTool, Snapshot
from waygraph.pipeline.browser.page.tool_calls import ToolAnswer, execute_tool, fill_form, reset_form, submit_form
from waygraph.pipeline.browser.page.view import PageView
from waygraph.sdk.page_tools import has_tool, tool_on_page
from waygraph.sdk.state_recognition import StateRecognizer
from waygraph.sdk.teleport import snapshot_options_of_map, teleport
from waygraph.sdk.tool_guard import CallGuard, names_change
from waygraph.sdk.tool_lookup import check_arguments, tool_called
from waygraph.sdk.tool_result import ToolOutcome, ToolResult

if TYPE_CHECKING:
    from playwright.async_api import Page
    from playwright.sync_api import Page as SyncPage

    from waygraph.client.map_source import AsyncMapSource, MapSource

log = logging.getLogger(__name__)
T = TypeVar("T")

#: Longest time that a tool may take to answer, in seconds.
TIMEOUT_S = 30.0
#: Longest answer of a tool, in characters.
MAX_ANSWER = 100_000
#: Seconds between two looks at what the guard stopped, and how long a tool may go on after that: a form whose
#: submission was stopped never answers.
_LOOK_S, _AFTER_STOP_S = 0.1, 1.0
#: Most requests in a message.
_MAX_REQUESTS = 5


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

    If the page shows a state that has the tool, it is used there; else the page walks to the nearest one. Tools that
    scripts declare, and declared forms with `toolautosubmit`, are called through the browser, or a polyfill. Other
    forms are filled and submitted, except declared ones that may change something: these stay filled, for a person.

    The network guard stops requests of the call that could change something, as it does while exploring. With
    `allow_changes` they pass and are reported, unless the tool says that it only reads. Not guarded are messages over a
    WebSocket that was open before, and the first request of a tab that the tool opens.

    Parameters
    ----------
    page
        The caller's Playwright page.
    source
        The maps. A blocking source is called in threads.
    site
        Key of the site.
    tool
        Id of the tool, the beginning of one (8 digits or more), or a name that no other tool of the site has.
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
        If several tools have the name, the tool's schema is invalid, or the arguments do not fit it.
    ToolRefused
        If the tool may change something, and changes are not allowed.
    TeleportFailed
        If no state that has the tool was reached.
    ToolChanged
        If the page no longer has the tool, or with other inputs.
    ToolFailed
        If the tool throws, does not answer in time, or its form does not take the values.
    """
    settings = settings or BrowserSettings()
    maps = source if isinstance(source, AsyncMapApi) else ThreadedMapSource(source)
    found = await tool_called(maps, site, tool)
    check_arguments(found, arguments)
    _check_allowed(found, allow_changes=allow_changes)
    detail = await maps.site(site)
    options = snapshot_options_of_map(detail, settings)
    view = PageView(page, options, settings, owned=False)
    try:
        snapshot = await view.observe()
        if not has_tool(snapshot, found):
            walked = await teleport(page, maps, detail.site, found.states[0], allow_goto=allow_goto, settings=settings)
            if walked.page != page:
                view.detach()
                view = PageView(walked.page, options, settings, owned=False)
            snapshot = await view.observe()
            if not walked.arrived and not has_tool(snapshot, found):
                raise TeleportFailed(
                    f"No page with the tool '{found.name}' was reached: {walked.problem}", hint="Refresh the map."
                )
        shown = tool_on_page(snapshot, found)
        call = _Call(view, shown, arguments, is_enforced=_only_reads(found) or not allow_changes, timeout_s=timeout_s)
        return await call.run(snapshot, StateRecognizer(maps, detail.site))
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


def _check_allowed(tool: ToolModel, *, allow_changes: bool) -> None:
    if allow_changes or _only_reads(tool):
        return
    why = f"its form is sent to {tool.target}" if tool.target else "it does not say that it only reads"
    raise ToolRefused(f"The tool '{tool.name}' may change something: {why}.", hint="Pass allow_changes=True.")


def _only_reads(tool: ToolModel) -> bool:
    return tool.read_only and not (tool.target and names_change(tool.target))


class _Call:
    """One call of a tool on the page that has it.

    Parameters
    ----------
    view
        The page.
    tool
        The tool.
    arguments
        Its inputs.
    is_enforced
        Whether requests that could change something are stopped.
    timeout_s
        Longest time that the tool may take, in seconds.
    """

    def __init__(
        self, view: PageView, tool: PageTool, arguments: Mapping[str, Any], *, is_enforced: bool, timeout_s: float
    ) -> None:
        self._view = view
        self._tool = tool
        self._arguments = arguments
        self._timeout_s = timeout_s
        self._guard = CallGuard(view.page, is_enforced=is_enforced)

    async def run(self, before: Snapshot, recognizer: StateRecognizer) -> ToolResult:
        guard = self._guard
        self._view.on_settled = guard.end_visit
        try:
            await guard.attach()
            self._view.forget_earlier_actions()
            try:
                answer, is_filled = await self._perform()
            except ToolFailed:
                # A browser, too, leaves the values of a refused call in the form, where the next call sends them.
                if self._tool.element is not None:
                    with suppress(PlaywrightError, PageUnresponsive):  # the page may be gone, or hang
                        await reset_form(self._view, self._tool.element)
                raise
            snapshot = await self._view.observe()
        finally:
            await guard.detach()
        popup = await self._view.take_popup(snapshot)
        view = self._view if popup is None else self._view.of_tab(popup)
        try:
            if popup is not None:
                snapshot = await view.observe()
            position = await recognizer.locate(snapshot, None, with_features=True)
        finally:
            if popup is not None:
                view.detach()
        stopped = guard.take()
        outcome: ToolOutcome = "answered" if answer is not None and answer.answer else "arrived"
        if snapshot.raw_url != before.raw_url:
            outcome = "arrived"
        outcome = "stopped" if stopped else "filled" if is_filled else outcome
        return ToolResult(
            outcome=outcome,
            answer=_parsed(answer.answer) if answer is not None and answer.answer else None,
            node_id=position.state.node_id if position.state is not None else None,
            url=view.page.url,
            tools=tuple(tool.name for tool in snapshot.tools),
            stopped=stopped,
            sent=tuple(guard.sent),
            problem=_problem(answer, stopped),
            page=view.page,
        )

    async def _perform(self) -> tuple[ToolAnswer | None, bool]:
        """Call the tool; return its answer, if it gives one, and whether its form waits for a person."""
        tool = self._tool
        if tool.source in {"script", "polyfill"} or (tool.source == "form" and tool.autosubmit):
            answer = await self._execute()
            if answer is None or answer.found:
                return answer, False
            if tool.element is None:
                raise ToolChanged(f"{self._view.page.url} no longer offers '{tool.name}'.", hint="Refresh the map.")
        return None, not await self._fill_and_submit()

    async def _execute(self) -> ToolAnswer | None:
        """Call a declared tool; return None if it loaded another document, or was stopped and does not go on."""
        tool = self._tool
        call = execute_tool(
            self._view, tool.name, tool.description, self._arguments, in_frame=bool(tool.frame),
            timeout_s=self._timeout_s, max_chars=MAX_ANSWER,
        )  # fmt: skip
        try:
            answer = await self._unless_stopped(call)
        except PageUnresponsive as error:
            raise ToolFailed(
                f"The tool '{tool.name}' gave no answer in {self._timeout_s:.0f} s.",
                hint="It may wait for a person, or take longer: pass a longer timeout_s.",
            ) from error
        except PlaywrightError:
            return None  # the document was replaced
        if answer is not None and answer.error:
            if self._guard.take():
                return answer  # it fails because a request of it was stopped
            raise ToolFailed(f"The tool '{tool.name}' failed: {answer.error}", hint="Check the arguments.")
        return answer

    async def _unless_stopped(self, call: Coroutine[Any, Any, T]) -> T | None:
        """Await a call; return None if it goes on for long after the guard stopped a request of it."""
        task = asyncio.ensure_future(call)
        stopped_at = 0.0
        try:
            while not task.done():
                await asyncio.wait({task}, timeout=_LOOK_S)
                if not stopped_at and self._guard.take():
                    stopped_at = time.monotonic()
                if stopped_at and time.monotonic() - stopped_at > _AFTER_STOP_S and not task.done():
                    return None
            return task.result()
        finally:
            task.cancel()

    async def _fill_and_submit(self) -> bool:
        """Fill the form, and submit it unless it waits for a person; return whether it was submitted."""
        tool = self._tool
        if tool.element is None:
            raise ToolChanged(f"The form of '{tool.name}' is not on {self._view.page.url}.", hint="Refresh the map.")
        filled = await fill_form(self._view, tool.element, self._arguments)
        if not filled.found:
            raise ToolChanged(f"The form of '{tool.name}' is not on {self._view.page.url}.", hint="Refresh the map.")
        problems = [*(f"{name}: the form has no such field" for name in filled.missing)]
        problems += [f"{name}: {reason}" for name, reason in filled.rejected]
        if problems:
            raise ToolFailed(
                f"The form of '{tool.name}' takes no such values: {'; '.join(problems)}.", hint="It was not submitted."
            )
        if tool.source != "inferred" and not tool.autosubmit and tool.method != "GET":
            return False
        try:
            submitted = await submit_form(self._view, tool.element)
        except PlaywrightError:
            return True  # the document was replaced before the script could answer
        if submitted.invalid:
            raise ToolFailed(
                f"The form of '{tool.name}' is incomplete: {', '.join(submitted.invalid)}.", hint="Pass these inputs."
            )
        if not submitted.submitted:
            raise ToolChanged(f"The form of '{tool.name}' is gone since it was filled.", hint="Call the tool again.")
        return True


def _parsed(answer: str) -> Any:  # noqa: ANN401 - JSON
    try:
        return json.loads(answer)
    except (ValueError, RecursionError):
        return answer


def _problem(answer: ToolAnswer | None, stopped: tuple[BlockedRequest, ...]) -> str:
    problems = []
    if stopped:
        sent = ", ".join(f"{each.method} {each.url}" for each in stopped[:_MAX_REQUESTS])
        problems.append(f"The guard stopped requests that could change something: {sent}.")
    if answer is not None and answer.error:
        problems.append(f"The tool failed: {answer.error}")
    if answer is not None and answer.is_cut:
        problems.append(f"The answer was cut to {MAX_ANSWER} characters.")
    return " ".join(problems)
