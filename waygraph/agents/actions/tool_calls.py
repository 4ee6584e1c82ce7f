"""Actions as tool calls: JSON schemas for models that call functions, and the calls that they answer with."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from typing import Any, Literal

from waygraph.agents.actions.types import ACTION_TYPES, ActionSyntaxError, AgentAction, make_action

#: `openai` for the Chat Completions API and what is compatible with it, `anthropic` for the Messages API.
ToolStyle = Literal["openai", "anthropic"]
_MAX_CHARS = 100_000


def tool_schemas(allowed: Collection[str] | None = None, *, style: ToolStyle = "openai") -> list[dict[str, Any]]:
    """Return the definitions of the actions as tools, generated from their types.

    Parameters
    ----------
    allowed
        Names of the actions; None: all.
    style
        The API that the definitions are for.

    Returns
    -------
    list of dict
        One definition for each action.
    """
    tools = []
    for name, kind in ACTION_TYPES.items():
        if allowed is not None and name not in allowed:
            continue
        schema = kind.model_json_schema()
        properties = {key: _without_title(value) for key, value in schema["properties"].items() if key != "action"}
        parameters = {
            "type": "object",
            "properties": properties,
            "required": [key for key in schema.get("required", ()) if key != "action"],
            "additionalProperties": False,
        }
        description = (kind.__doc__ or "").strip()
        if style == "anthropic":
            tools.append({"name": name, "description": description, "input_schema": parameters})
        else:
            function = {"name": name, "description": description, "parameters": parameters}
            tools.append({"type": "function", "function": function})
    return tools


def _without_title(schema: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in schema.items() if key != "title"}


def parse_tool_call(call: object, allowed: Collection[str] | None = None) -> AgentAction:
    """Parse a tool call.

    >>> parse_tool_call({"name": "click", "arguments": '{"element": "12"}'})
    ClickAction(action='click', element='12', button='left', double=False)

    Parameters
    ----------
    call
        JSON text or an object: `{"name", "arguments"}`, OpenAI's `{"function": {...}}`, Anthropic's
        `{"name", "input"}`, or the action itself, `{"action": "click", "element": "12"}`. Arguments may be JSON text.
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
    given = _object(call, "The tool call")
    if "action" in given:
        return make_action(str(given["action"]), {k: v for k, v in given.items() if k != "action"}, allowed)
    if "function" in given:
        given = _object(given["function"], "The function of the tool call")
    name = given.get("name")
    if not isinstance(name, str):
        raise ActionSyntaxError("The tool call has no name of an action.")
    arguments: object = next((given[key] for key in ("arguments", "input", "parameters") if key in given), {})
    values = _object(arguments if arguments not in ("", None) else {}, f"The arguments of {name[:60]}")
    return make_action(name, {key: value for key, value in values.items() if key != "action"}, allowed)


def _object(value: object, what: str) -> Mapping[str, Any]:
    if isinstance(value, str):
        if len(value) > _MAX_CHARS:
            raise ActionSyntaxError(f"{what} must not have more than {_MAX_CHARS} characters.")
        try:
            value = json.loads(value)
        except (ValueError, RecursionError) as error:
            raise ActionSyntaxError(f"{what} must be a JSON object.") from error
    if not isinstance(value, Mapping) or not all(isinstance(key, str) for key in value):
        raise ActionSyntaxError(f"{what} must be a JSON object.")
    return value
