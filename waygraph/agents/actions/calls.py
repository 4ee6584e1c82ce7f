"""Actions as function calls in text: BrowserGym's and WebOperator's grammar, `fill('12', 'lamp', press_enter=True)`."""

from __future__ import annotations

import ast
import warnings
from collections.abc import Collection, Mapping
from typing import Any

from waygraph.agents.actions.types import (
    ACTION_TYPES,
    ActionSyntaxError,
    AgentAction,
    check_available,
    example_names,
    make_action,
)

#: Names that other frameworks use: the action, and its fields by position.
_SIGNATURES: Mapping[str, tuple[str, tuple[str, ...]]] = {
    "click": ("click", ("element", "button")), "dblclick": ("click", ("element", "button")),
    "type": ("type", ("element", "text", "press_enter")), "fill": ("type", ("element", "text", "press_enter")),
    "clear": ("type", ("element",)), "select": ("select", ("element", "option")),
    "select_option": ("select", ("element", "option")), "press": ("press", ("element", "key")),
    "keyboard_press": ("press", ("key",)), "hover": ("hover", ("element",)),
    "scroll": ("scroll", ("direction", "element")), "goto": ("goto", ("url",)), "go_back": ("go_back", ()),
    "go_forward": ("go_forward", ()), "go_home": ("go_home", ()), "new_tab": ("new_tab", ("url",)),
    "tab_focus": ("tab_focus", ("tab",)), "tab_close": ("close_tab", ()), "close_tab": ("close_tab", ()),
    "show": ("show", ("part",)), "note": ("note", ("text",)), "stop": ("stop", ("answer",)),
    "send_msg_to_user": ("stop", ("answer",)),
    "report_infeasible": ("stop", ("answer",)), "branch": ("branch", ("plan", "intent")),
    "prune": ("prune", ("plan", "reason")), "navigate": ("navigate", ("site", "query", "thinking")),
    "use_tool": ("use_tool", ("site", "tool", "arguments")),
    "accept": ("accept", ("text",)), "dismiss": ("dismiss", ()),
}  # fmt: skip
_KEYWORDS = {
    "bid": "element", "id": "element", "element_id": "element", "value": "text", "press_enter_after": "press_enter",
    "enter": "press_enter", "options": "option", "key_comb": "key", "index": "tab", "page_id": "tab", "domain": "site",
}  # fmt: skip
_EXAMPLE_VALUES = {"click": "'12'", "stop": "'answer'"}
_MAX_CHARS = 100_000


def parse_call(text: str, allowed: Collection[str] | None = None) -> AgentAction:
    """Parse one function call. Its arguments must be literals; nothing is evaluated.

    >>> parse_call("fill('12', 'blue lamp', press_enter_after=True)")
    TypeAction(action='type', element='12', text='blue lamp', press_enter=True)

    Parameters
    ----------
    text
        What the model wrote, with or without a fence of backticks.
    allowed
        Names of the actions that may be used; None: all.

    Returns
    -------
    AgentAction
        The action.

    Raises
    ------
    ActionSyntaxError
        If it is no action; the message is one sentence for the model.
    """
    name, arguments, keywords = _read_call(text, allowed)
    action, fields = _SIGNATURES.get(name, (name, ()))
    check_available(action, allowed)
    if name == "press" and len(arguments) == 1:
        fields = ("key",)
    if name == "scroll" and len(arguments) == 2 and all(isinstance(each, int | float) for each in arguments):
        return make_action("scroll", {"direction": _direction(*arguments)}, allowed)
    if len(arguments) > len(fields):
        usage = ", ".join(fields)
        raise ActionSyntaxError(
            f"{name} takes at most {len(fields)} values, and was given {len(arguments)}: {name}({usage})."
        )
    values = dict(zip(fields, arguments, strict=False))
    for keyword, value in keywords.items():
        field = keyword if keyword in ACTION_TYPES[action].model_fields else _KEYWORDS.get(keyword, keyword)
        values["answer" if field == "text" and action == "stop" else field] = value
    if name == "clear":
        values["text"] = ""
    if name == "dblclick":
        values["double"] = True
    option = values.get("option")
    if isinstance(option, list) and len(option) == 1:
        values["option"] = option[0]
    return make_action(action, values, allowed)


def _read_call(text: str, allowed: Collection[str] | None) -> tuple[str, list[Any], dict[str, Any]]:
    source = text.strip().removeprefix("```python").strip("`").strip()
    examples = (f"{name}({_EXAMPLE_VALUES.get(name, '...')})" for name in example_names(allowed))
    problem = f"That is no function call; write one such as {' or '.join(examples)}."
    if len(source) > _MAX_CHARS:
        raise ActionSyntaxError(f"An action must not have more than {_MAX_CHARS} characters.")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # unknown escapes in the model's strings
            statements = ast.parse(source).body
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise ActionSyntaxError(problem) from error
    if len(statements) > 1:
        raise ActionSyntaxError("Only one action can be done at a time; write one function call.")
    call = statements[0].value if statements and isinstance(statements[0], ast.Expr) else None
    if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Name):
        raise ActionSyntaxError(problem)
    try:
        arguments = [ast.literal_eval(argument) for argument in call.args]
        keywords = {keyword.arg or "**": ast.literal_eval(keyword.value) for keyword in call.keywords}
    except (ValueError, TypeError, SyntaxError, RecursionError, MemoryError) as error:
        raise ActionSyntaxError(
            f"The values of {call.func.id} must be plain strings, numbers, True or False."
        ) from error
    return call.func.id, arguments, keywords


def _direction(right: float, down: float) -> str:
    """Return the direction of a scroll by pixels."""
    if abs(right) > abs(down):
        return "right" if right > 0 else "left"
    return "down" if down >= 0 else "up"
