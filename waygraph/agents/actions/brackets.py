"""The bracket grammar of WebArena, AgentOccam and WebNavigator: `click [12]`, `type [5] [lamp] [1]`, `stop [42]`."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping

from waygraph.agents.actions.types import (
    ACTION_TYPES,
    ActionSyntaxError,
    AgentAction,
    check_available,
    example_names,
    make_action,
)

#: Names that the papers use, and ours for the same action.
_ALIASES = {
    "fill": "type", "select_option": "select", "choose": "select", "page_focus": "tab_focus", "focus_tab": "tab_focus",
    "tab_close": "close_tab", "page_close": "close_tab", "optimal_navigate": "navigate", "open_tab": "new_tab",
    "back": "go_back", "forward": "go_forward", "home": "go_home", "finish": "stop", "answer": "stop",
    "open": "show", "expand": "show",
}  # fmt: skip
#: Fields by position. The last one takes everything up to the last bracket.
_FIELDS: Mapping[str, tuple[str, ...]] = {
    "click": ("element",), "type": ("element", "text"), "select": ("element", "option"), "press": ("key",),
    "hover": ("element",), "scroll": ("direction",), "goto": ("url",), "new_tab": ("url",), "tab_focus": ("tab",),
    "show": ("part",), "note": ("text",), "stop": ("answer",), "branch": ("plan", "intent"),
    "prune": ("plan", "reason"), "navigate": ("site", "query"),
    "use_tool": ("site", "tool", "arguments"), "go_back": (), "go_forward": (), "go_home": (),
    "close_tab": (), "accept": ("text",), "dismiss": (),
}  # fmt: skip
_OPTIONAL = {"new_tab": 0, "stop": 0, "accept": 0}
#: Fields whose values have no brackets.
_SHORT = frozenset({"element", "part", "tab", "direction"})
_NAME = re.compile(r"([a-zA-Z_]+)\s*:?\s*")
_FENCE = re.compile(r"\A```(?:[a-z]*\n)?(.*)```\Z", re.DOTALL)
_LABEL = re.compile(r"\A(?:action|in summary, the next action i will perform is)\s*:\s*", re.IGNORECASE)
#: A value that is not the last, such as an id.
_FIRST = re.compile(r"\s*\[([^\[\]]*)\]\s*")
#: Such a value, and the last one, as models that take the brackets for a placeholder's write them.
_BARE_FIRST = re.compile(r"\s*(\w[^\s\[\]]*)(?:\s+|\Z)")
_BARE_LAST = re.compile(r"(?=[\w\"'])[^\[\]\n]+")
#: Actions that a word of prose behind their name must not become.
_BRACKETED = frozenset({"accept", "new_tab", *_ALIASES})
#: What may be the flag of `type`, or the end of its text.
_BARE_FLAG = re.compile(r"(?:\A|[\s=])[01]\Z")
_ENTER = re.compile(r"\s*\[\s*(?:press_enter_after\s*=\s*)?([01])\s*\]\s*\Z")
_MAX_CHARS = 100_000


def parse_brackets(text: str, allowed: Collection[str] | None = None) -> AgentAction:
    """Parse one action in brackets.

    A fence of backticks and the label "Action:" around it are ignored. The last value may contain brackets. As in
    the papers, `type` presses Enter unless its third value is 0. Brackets may be left out where this is not ambiguous.

    >>> parse_brackets("type [5] [a [very] blue lamp] [0]")
    TypeAction(action='type', element='5', text='a [very] blue lamp', press_enter=False)
    >>> parse_brackets("click 12")
    ClickAction(action='click', element='12', button='left', double=False)

    Parameters
    ----------
    text
        What the model wrote.
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
    if len(text) > _MAX_CHARS:
        raise ActionSyntaxError(f"An action must not have more than {_MAX_CHARS} characters.")
    body = text.strip()
    fence = _FENCE.match(body)
    body = _LABEL.sub("", fence[1] if fence else body).strip()
    match = _NAME.match(body)
    if match is None:
        usages = " or ".join(ACTION_TYPES[name].usage.replace("[id]", "[12]") for name in example_names(allowed))
        raise ActionSyntaxError(f"There is no action; write one such as {usages}.")
    written, rest = match[1].lower(), body[match.end() :]
    name = _ALIASES.get(written, written)
    check_available(name, allowed)
    if written in _BRACKETED and rest and not rest.startswith("["):
        raise ActionSyntaxError(f"The action {name} cannot be read: write {ACTION_TYPES[name].usage}.")
    if written == "optimal_navigate":
        thinking, rest = _take_first(name, rest)
        return make_action(name, {**_values(name, rest), "thinking": thinking}, allowed)
    if name == "type":
        enter = _ENTER.search(rest)
        before = rest[: enter.start()] if enter else ""
        # `type [5] [1]` types 1.
        if enter and (before.count("[") >= 2 or (before and not before.startswith("["))):
            return make_action(name, {**_values(name, before), "press_enter": enter[1]}, allowed)
        return make_action(name, {**_values(name, rest), "press_enter": written == "type"}, allowed)
    if name == "press" and (pair := _FIRST.match(rest)) and rest[pair.end() :].startswith("["):
        return make_action(name, {"element": pair[1], **_values(name, rest[pair.end() :])}, allowed)
    if name == "scroll":
        values = _values(name, rest)
        return make_action(name, {"direction": values["direction"].lower().removeprefix("direction=")}, allowed)
    return make_action(name, _values(name, rest), allowed)


def describe_actions(allowed: Collection[str] | None = None) -> str:
    """Return one line for each action, to be put into a prompt."""
    return "\n".join(
        f"`{kind.usage}`: {(kind.__doc__ or '').strip()}"
        for name, kind in ACTION_TYPES.items()
        if allowed is None or name in allowed
    )


def _values(name: str, rest: str) -> dict[str, str]:
    fields = _FIELDS[name]
    rest = rest.strip()
    if not rest and len(fields) > _OPTIONAL.get(name, len(fields)):
        return {}
    if not fields:
        if rest not in {"", "[]"}:
            raise ActionSyntaxError(f"The action {name} takes no value, and only one action can be done at a time.")
        return {}
    values = {}
    for field in fields[:-1]:
        values[field], rest = _take_first(name, rest)
    if fields[-1] in _SHORT:
        values[fields[-1]], rest = _take_first(name, rest)
        if rest:
            raise ActionSyntaxError(
                f"Write {ACTION_TYPES[name].usage} and nothing else; only one action can be done at a time."
            )
        return values
    if _BARE_LAST.fullmatch(rest) and not (name == "type" and _BARE_FLAG.search(rest)):
        values[fields[-1]] = rest[1:-1] if rest[0] == rest[-1] in "\"'" and len(rest) > 1 else rest
    elif rest.startswith("[") and rest.endswith("]"):
        values[fields[-1]] = rest[1:-1]
    else:
        raise ActionSyntaxError(f"The action {name} cannot be read: write {ACTION_TYPES[name].usage} and nothing else.")
    return values


def _take_first(name: str, rest: str) -> tuple[str, str]:
    match = _FIRST.match(rest) or _BARE_FIRST.match(rest)
    if match is None:
        raise ActionSyntaxError(f"The action {name} cannot be read: write {ACTION_TYPES[name].usage}.")
    return match[1].strip(), rest[match.end() :]
