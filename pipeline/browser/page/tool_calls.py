"""Calls of a page's tools: a declared one through the browser or a polyfill, and a form by its controls."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from waygraph.index.graph import Action
from waygraph.pipeline.browser.page.evaluate import parse_script_result
from waygraph.pipeline.browser.page.script import WAYGRAPH
from waygraph.pipeline.browser.page.view import PageView

#: Calls a declared tool. Frames of the page's origin are included; the browser's own object lists their tools, a
#: polyfill's only those of its document. The browser takes an object as input, polyfills JSON.
_EXECUTE = """async ({name, description, inFrame, input, limit}) => {
  const windows = (win) => {
    const found = [win];
    for (let i = 0; i < win.frames.length; i++) {
      try { if (win.frames[i].document) found.push(...windows(win.frames[i])); } catch {}
    }
    return found;
  };
  for (const win of windows(window)) {
    for (const context of new Set([win.document.modelContext, win.navigator.modelContext])) {
      if (typeof context?.getTools !== "function" || typeof context.executeTool !== "function") continue;
      const named = Array.from(await context.getTools()).filter((tool) => tool.name === name
        && ((tool.window ?? win) !== window) === inFrame);
      const squeezed = (text) => String(text ?? "").replace(/\\s+/g, " ").trim();
      const tool = named.find((one) => squeezed(one.description).startsWith(description.slice(0, 100))) ?? named[0];
      if (!tool) continue;
      const isNative = Function.prototype.toString.call(context.executeTool).includes("[native code]");
      try {
        const answer = await context.executeTool(tool, isNative ? input : JSON.stringify(input));
        const text = typeof answer === "string" ? answer : JSON.stringify(answer) ?? "";
        return {found: true, answer: text.slice(0, limit).toWellFormed(), isCut: text.length > limit};
      } catch (error) {
        return {found: true, error: String(error?.message ?? error).slice(0, 1000).toWellFormed()};
      }
    }
  }
  return {found: false};
}"""


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
    """

    found: bool
    answer: str = ""
    error: str = ""
    is_cut: bool = False


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
    """Whether a form was found and submitted; if it is incomplete, the properties that lack a valid value."""

    found: bool
    submitted: bool
    invalid: Sequence[str]


async def execute_tool(
    view: PageView,
    name: str,
    description: str,
    arguments: Mapping[str, Any],
    *,
    in_frame: bool,
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
        Its description, by which tools of one name in several frames are told apart.
    arguments
        Its input.
    in_frame
        Whether a frame of the page declares it, and not the page itself.
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
    call = {
        "name": name, "description": description, "inFrame": in_frame, "input": dict(arguments), "limit": max_chars,
    }  # fmt: skip
    result = await view.call(_EXECUTE, call, timeout_s)
    return ToolAnswer(
        found=result["found"],
        answer=result.get("answer", ""),
        error=result.get("error", ""),
        is_cut=result.get("isCut", False),
    )


async def fill_form(view: PageView, element: Action, arguments: Mapping[str, Any]) -> FilledForm:
    """Fill the controls of a tool's form, as a person would; it is not submitted."""
    call = f"([form, values]) => {WAYGRAPH}.fillTool(form, values)"
    result = parse_script_result(await view.call(call, [element.to_json(), dict(arguments)]))
    return FilledForm(result["found"], result["missing"], [(name, reason) for name, reason in result["rejected"]])


async def reset_form(view: PageView, element: Action) -> None:
    """Take back what was filled into the form of a tool."""
    await view.call(f"(form) => {WAYGRAPH}.resetTool(form)", element.to_json())


async def submit_form(view: PageView, element: Action) -> SubmittedForm:
    """Submit the form of a tool, unless the browser finds it incomplete."""
    result = parse_script_result(await view.call(f"(form) => {WAYGRAPH}.submitTool(form)", element.to_json()))
    return SubmittedForm(result["found"], result["submitted"], result["invalid"])
