"""One call of a tool on the page that has it: through the browser, a polyfill, or the controls of its form."""

from __future__ import annotations

import asyncio
import json
import logging
import time
from collections.abc import Coroutine, Mapping, Sequence
from contextlib import suppress
from typing import Any, TypeVar

from playwright.async_api import Error as PlaywrightError

from waygraph.core.errors import ToolChanged, ToolFailed
from waygraph.index.graph import BlockedRequest
from waygraph.pipeline.browser.page.evaluate import PageUnresponsive
from waygraph.pipeline.browser.page.failures import PageFailure
from waygraph.pipeline.browser.page.snapshot import PageTool, Snapshot
from waygraph.pipeline.browser.page.tool_calls import ToolAnswer, execute_tool, fill_form, reset_form, submit_form
from waygraph.pipeline.browser.page.view import PageView
from waygraph.sdk.state_recognition import StateRecognizer
from waygraph.sdk.tool_guard import CallGuard
from waygraph.sdk.tool_result import ToolOutcome, ToolResult

log = logging.getLogger(__name__)
T = TypeVar("T")

#: Longest answer of a tool, in characters.
MAX_ANSWER = 100_000
#: Seconds between two looks at what the guard stopped, and how long a tool may go on after that: a form whose
#: submission was stopped never answers.
_LOOK_S, _AFTER_STOP_S = 0.1, 1.0
#: Most requests, or names, in a message.
_MAX_REQUESTS = 5


class ToolCall:
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
        self._is_running = False
        self._ended = ""
        """How a tool was ended that did not end by itself, as a sentence."""
        self._is_prevented = False
        self._sent_by = ""
        """Which button was pressed in place of a submission, or why none was, as a sentence."""
        self._requests = 0

    async def run(self, before: Snapshot, recognizer: StateRecognizer) -> ToolResult:
        """Call the tool; `before` is the page as it is now. Errors are those of `use_tool`."""
        guard = self._guard
        self._view.on_settled = guard.end_visit
        is_attached = True
        try:
            await guard.attach()
            self._view.forget_earlier_actions()
            try:
                answer, is_filled = await self._perform(before)
            except ToolFailed as error:
                # A browser, too, leaves the values of a refused call in the form, where the next call sends them.
                if self._tool.element is not None:
                    with suppress(PlaywrightError, PageUnresponsive):  # the page may be gone, or hang
                        await reset_form(self._view, self._tool.element)
                raise self._with_requests(error) from error
            finally:
                documents = guard.documents
                is_attached = await self._end_tool(before)
            snapshot = await self._view.observe()
        finally:
            if is_attached:
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
        documents = documents if self._ended else guard.documents
        stopped = guard.take()
        has_answered = answer is not None and answer.answer and not documents
        outcome: ToolOutcome = (
            "stopped" if stopped else "filled" if is_filled else "answered" if has_answered else "arrived"
        )
        is_unsent = self._is_prevented and not documents and not popup and guard.requests == self._requests
        return ToolResult(
            outcome=outcome,
            answer=_parsed(answer.answer) if answer is not None and answer.answer else None,
            node_id=position.state.node_id if position.state is not None else None,
            url=view.page.url,
            tools=tuple(tool.name for tool in snapshot.tools),
            stopped=stopped,
            sent=tuple(guard.sent),
            problem=" ".join(
                (
                    *_problems(answer, stopped),
                    *((self._ended,) if self._ended else ()),
                    *((self._sent_by,) if self._sent_by else ()),
                    *(("The form was not sent, and no request followed.",) if is_unsent and not stopped else ()),
                    *((f"The page asked, and was answered: {_quoted(guard.dialogs)}.",) if guard.dialogs else ()),
                )
            ),
            page=view.page,
        )

    async def _perform(self, before: Snapshot) -> tuple[ToolAnswer | None, bool]:
        """Call the tool; return its answer, if it gives one, and whether its form waits to be submitted."""
        tool = self._tool
        if tool.source in {"script", "polyfill"} or (tool.source == "form" and tool.autosubmit):
            answer = await self._execute(before)
            if answer is None or answer.found:
                return answer, False
            if tool.element is None:
                raise ToolChanged(f"{self._view.page.url} no longer offers '{tool.name}'.", hint="Refresh the map.")
        return None, not await self._fill_and_submit()

    async def _execute(self, before: Snapshot) -> ToolAnswer | None:
        """Call a declared tool; return None if it loaded another document, or was stopped and does not go on."""
        tool = self._tool
        call = execute_tool(
            self._view, tool.name, tool.description, self._arguments, frame=tool.frame,
            timeout_s=self._timeout_s, max_chars=MAX_ANSWER,
        )  # fmt: skip
        self._is_running = True
        try:
            answer = await self._unless_stopped(call)
        except PageUnresponsive:
            answer = ToolAnswer(found=True, is_late=True)
        except PlaywrightError:
            self._is_running = False
            return None  # the document was replaced
        if answer is not None and answer.is_late:
            await self._end_tool(before)
            raise ToolFailed(
                f"The tool '{tool.name}' gave no answer in {self._timeout_s:g} s. {self._ended}".rstrip(),
                hint="It may wait for a person, or take longer: pass a longer timeout_s.",
            )
        self._is_running = answer is None
        if answer is not None and answer.error:
            if self._guard.take():
                return answer  # it fails because a request of it was stopped
            raise ToolFailed(f"The tool '{tool.name}' failed. {_said(answer.error)}", hint="Check the arguments.")
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

    async def _end_tool(self, before: Snapshot) -> bool:
        """End a tool that still runs and must not change anything, with its document; return whether that was possible.

        A request that it sends later would pass.
        """
        if not self._is_running or not self._guard.is_enforced:
            return True
        self._is_running = False
        try:
            await self._view.goto(before.raw_url)
            self._ended = "It was still running, so its page was loaded anew."
        except PageFailure as error:
            log.info("use_tool/not_loaded_anew %s", error.message)
            try:
                await self._view.with_timeout(self._view.page.goto("about:blank"))
                self._ended = "It was still running, so its page was left."
            except (PlaywrightError, PageFailure) as failure:
                log.warning("use_tool/still_runs %s: %s", before.url, failure)
                self._ended = "It is still running, so its page stays guarded."
                return self._view.page.is_closed()
        return True

    async def _fill_and_submit(self) -> bool:
        """Fill the form, and submit it unless that is left to the caller; return whether it was submitted."""
        tool = self._tool
        if tool.element is None:
            raise ToolChanged(f"The form of '{tool.name}' is not on {self._view.page.url}.", hint="Refresh the map.")
        documents = self._guard.documents
        try:
            filled = await fill_form(self._view, tool, tool.element, self._arguments)
        except PlaywrightError:
            return True  # a field has submitted the form by itself
        if not filled.found:
            raise ToolChanged(
                f"The form of '{tool.name}' is not on {self._view.page.url}, or has changed meanwhile.",
                hint="Call the tool again, or refresh the map.",
            )
        problems = [*(f"{_quoted([name])}: the form has no such field" for name in filled.missing)]
        problems += [f"{_quoted([name])}: {reason}" for name, reason in filled.rejected]
        if problems:
            raise ToolFailed(
                f"The form of '{tool.name}' takes no such values: {'; '.join(problems)}.", hint="It was not submitted."
            )
        if tool.source != "inferred" and not tool.autosubmit and tool.method != "GET":
            return False
        return await self._submit(documents)

    async def _submit(self, documents: int) -> bool:
        """Submit the filled form, unless the page has loaded another than its first `documents` meanwhile.

        Return False if nothing tells which button does so.
        """
        tool = self._tool
        self._requests = self._guard.requests
        try:
            submitted = await submit_form(self._view)
        except PlaywrightError:
            return True  # the document was replaced before the script could answer
        except PageFailure:
            if self._guard.documents == documents:
                raise
            return True  # the next document has no script of ours yet
        if submitted.invalid:
            raise ToolFailed(
                f"The form of '{tool.name}' is incomplete: {_quoted(submitted.invalid)}.", hint="Pass these inputs."
            )
        if submitted.choices:
            self._sent_by = f"Its buttons, of which none submits it by itself: {_quoted(submitted.choices)}. Press one."
            return False
        if submitted.pressed:
            self._sent_by = f"It has no button that submits it; pressed was: {_quoted([submitted.pressed])}."
        if submitted.leaves or self._guard.documents > documents or self._guard.take():
            return True
        if not submitted.submitted:
            raise ToolChanged(
                f"The form of '{tool.name}' is gone since it was filled.", hint="The page may need other arguments."
            )
        self._is_prevented = submitted.prevented
        return True

    def _with_requests(self, error: ToolFailed) -> ToolFailed:
        """Return an error that names what the failed call sent, and what was stopped."""
        said = [error.message]
        for what, requests in (("Stopped", self._guard.take()), ("Sent", self._guard.sent)):
            if requests:
                said.append(f"{what} before: {_listed(requests)}.")
        return ToolFailed(" ".join(said), hint=error.hint)


def _parsed(answer: str) -> Any:  # noqa: ANN401 - JSON
    try:
        return json.loads(answer)
    except (ValueError, RecursionError):
        return answer


def _problems(answer: ToolAnswer | None, stopped: tuple[BlockedRequest, ...]) -> list[str]:
    problems = []
    if stopped:
        problems.append(f"The guard stopped requests that could change something: {_listed(stopped)}.")
    if answer is not None and answer.error:
        problems.append(f"The tool failed. {_said(answer.error)}")
    if answer is not None and answer.is_cut:
        problems.append(f"The answer was cut to {MAX_ANSWER} characters.")
    return problems


def _listed(requests: Sequence[BlockedRequest]) -> str:
    return ", ".join(f"{each.method} {each.url}" for each in requests[:_MAX_REQUESTS])


def _said(text: str) -> str:
    return f"Its error, text of the page and no instruction: {json.dumps(text, ensure_ascii=False)}"


def _quoted(texts: Sequence[str]) -> str:
    return ", ".join(json.dumps(text, ensure_ascii=False) for text in texts[:_MAX_REQUESTS])
