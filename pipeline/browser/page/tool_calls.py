"""Calls of a page's tools: a declared one through the browser or a polyfill, and a form by its controls."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from waygraph.index.graph import Action
from waygraph.pipeline.browser.page.evaluate import parse_script_result
from waygraph.pipeline.browser.page.script import WAYGRAPH
from waygraph.pipeline.browser.page.snapshot import PageTool
from waygraph.pipeline.browser.page.view import PageView

#: The windows of a page that can be read from its main one.
_WINDOWS = """function windows(win) {
  const found = [win];
  for (let i = 0; i < win.frames.length; i++) {
    try { if (win.frames[i].document) found.push(...windows(win.frames[i])); } catch {}
  }
  return found;
}"""

#: Calls a declared tool. Frames of the page's origin are included; the browser's own object lists their tools, a
#: polyfill's only those of its document. The browser takes an object as input, polyfills JSON.
_EXECUTE = (
    """async ({name, description, frames, input, limit, timeout}) => {
  const squeezed = (text) => String(text ?? "").replace(/\\s+/g, " ").trim();
  const isIn = (win) => {
    if (!frames) return win === window;
    try { return win !== window && frames.includes(win.location.href); } catch { return false; }
  };
  const windows = """
    + _WINDOWS
    + """;
  for (const win of windows(window)) {
    for (const context of new Set([win.document.modelContext, win.navigator.modelContext])) {
      if (typeof context?.getTools !== "function" || typeof context.executeTool !== "function") continue;
      let tools = [];
      try { tools = Array.from(await context.getTools()); } catch {}  // another provider may have the tool
      const tool = tools.find((one) => one?.name === name && isIn(one.window ?? win)
        && squeezed(one.description).startsWith(description.slice(0, 100)));
      if (!tool) continue;
      const isNative = Function.prototype.toString.call(context.executeTool).includes("[native code]");
      const signal = AbortSignal.timeout(timeout);  // a tool that takes it ends with the call
      try {
        const answer = await context.executeTool(tool, isNative ? input : JSON.stringify(input), {signal});
        const text = typeof answer === "string" ? answer : JSON.stringify(answer) ?? "";
        return {found: true, answer: text.slice(0, limit).toWellFormed(), isCut: text.length > limit};
      } catch (error) {
        if (signal.aborted) return {found: true, isLate: true};
        return {found: true, error: String(error?.message ?? error).slice(0, 1000).toWellFormed()};
      }
    }
  }
  return {found: false};
}"""
)

#: Time for a tool to end after its time is over, in seconds.
_ABORT_S = 0.5


@dataclass(frozen=True, slots=True)
class ToolAnswer:
    """What the page answered to the call of a declared tool.

    Attributes
    ----------
    found
        Whether the page, or a polyfill in it, offers the tool to be called.
    answer
        The answer as text, JSON as a rule.
    error
        What the tool threw; empty if it answered.
    is_cut
        Whether the answer was longer.
    is_late
        Whether the tool ended because its time was over.
    """

    found: bool
    answer: str = ""
    error: str = ""
    is_cut: bool = False
    is_late: bool = False


@dataclass(frozen=True, slots=True)
class FilledForm:
    """What became of the values for a form's controls.

    Attributes
    ----------
    found
        Whether the form is on the page.
    missing
        Properties that it has no control for.
    rejected
        Properties whose values a control does not take, with the reasons.
    """

    found: bool
    missing: Sequence[str]
    rejected: Sequence[tuple[str, str]]


@dataclass(frozen=True, slots=True)
class SubmittedForm:
    """What became of the submission of a form that was filled.

    Attributes
    ----------
    found
        Whether it is still on the page.
    submitted
        Whether it was submitted, or its button pressed.
    prevented
        Whether a script took the submission, and the browser sent nothing.
    leaves
        Whether the page was being left before: a field had submitted the form by itself, for example.
    invalid
        If it is incomplete, the properties that lack a valid value.
    pressed
        Name of the button that was pressed and does not submit by itself; empty if there was none.
    choices
        Names of several such buttons, of which none was pressed.
    """

    found: bool
    submitted: bool
    prevented: bool
    leaves: bool
    invalid: Sequence[str]
    pressed: str
    choices: Sequence[str]


async def execute_tool(
    view: PageView,
    name: str,
    description: str,
    arguments: Mapping[str, Any],
    *,
    frame: str,
    timeout_s: float,
    max_chars: int,
) -> ToolAnswer:
    """Call a tool that the page declares.

    Parameters
    ----------
    view
        The page.
    name
        Name of the tool.
    description
        Its description: a tool of another one is not called.
    arguments
        Its input.
    frame
        Canonical URL of the frame that declares it; empty: the page itself does.
    timeout_s
        Longest time that the tool may take, in seconds.
    max_chars
        Longest answer.

    Returns
    -------
    ToolAnswer
        The answer.

    Raises
    ------
    PageFailure
        If the page does not respond, or the tool takes longer.
    PlaywrightError
        If the page navigates away.
    """
    frames = None
    if frame:
        urls = await view.call(f"() => ({_WINDOWS})(window).map((one) => one.location.href)", None)
        frames = [url for url in urls if view.normalize(url) == frame]
    call = {
        "name": name, "description": description, "frames": frames, "input": dict(arguments), "limit": max_chars,
        "timeout": timeout_s * 1000,
    }  # fmt: skip
    result = await view.call(_EXECUTE, call, timeout_s + _ABORT_S)
    return ToolAnswer(
        found=result["found"],
        answer=result.get("answer", ""),
        error=result.get("error", ""),
        is_cut=result.get("isCut", False),
        is_late=result.get("isLate", False),
    )


async def fill_form(view: PageView, tool: PageTool, element: Action, arguments: Mapping[str, Any]) -> FilledForm:
    """Fill the controls of a tool's form, as a person would; it is not submitted.

    Parameters
    ----------
    view
        The page.
    tool
        The tool. A form that is sent elsewhere, or takes other inputs, is not its form.
    element
        The tool's form.
    arguments
        Its inputs.

    Returns
    -------
    FilledForm
        What became of the values.

    Raises
    ------
    PageFailure
        If the page does not respond.
    PlaywrightError
        If the page navigates away.
    """
    schema = tool.schema if tool.source == "inferred" and "properties" in tool.schema else ""
    expected = {"method": tool.method, "target": tool.target, "schema": schema}
    call = f"([form, values, expected]) => {WAYGRAPH}.fillTool(form, values, expected)"
    result = parse_script_result(await view.call(call, [element.to_json(), dict(arguments), expected]))
    return FilledForm(result["found"], result["missing"], [(name, reason) for name, reason in result["rejected"]])


async def reset_form(view: PageView, element: Action) -> None:
    """Take back what was filled into the form of a tool."""
    await view.call(f"(form) => {WAYGRAPH}.resetTool(form)", element.to_json())


async def submit_form(view: PageView) -> SubmittedForm:
    """Submit the form that was filled, unless the browser finds it incomplete, or the page is being left."""
    # Submissions by scripts begin in a task of their own.
    call = f"() => new Promise((done) => setTimeout(done)).then(() => {WAYGRAPH}.submitTool())"
    return SubmittedForm(**parse_script_result(await view.call(call, None)))
