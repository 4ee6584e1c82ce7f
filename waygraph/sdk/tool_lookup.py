"""Tools of a map that a caller may mean, and whether one may be called with arguments. Touches no page."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from waygraph.client.map_source import AsyncMapApi
from waygraph.core.errors import InvalidInput, NotFound, ToolRefused
from waygraph.core.json_schema import argument_problems, schema_problem
from waygraph.core.schemas import ToolModel
from waygraph.core.text import shortened
from waygraph.sdk.tool_guard import names_change

#: Most tools of one name that are looked up.
MAX_TOOLS = 500
#: Longest name of an argument in a message.
_MAX_NAME = 100


async def tools_called(maps: AsyncMapApi, site: str, tool: str) -> list[ToolModel]:
    """Return the tools of a site with an id or a name, at most 500, those of states near the start page first.

    Parameters
    ----------
    maps
        The maps.
    site
        Key of the site.
    tool
        Id of the tool, the beginning of one (8 digits or more), or, if no id begins so, its name.

    Returns
    -------
    list of ToolModel
        One tool at least.

    Raises
    ------
    NotFound
        If the site is not mapped, or has no such tool.
    """
    found = (await maps.tools(site, tool=tool, limit=MAX_TOOLS)).tools if tool else []
    if not found:
        raise NotFound(f"'{site}' has no tool '{tool}'.", hint=f"List them with: waygraph tools {site}")
    return found


def check_arguments(tool: ToolModel, arguments: Mapping[str, Any]) -> None:
    """Check arguments against the schema of a tool.

    Parameters
    ----------
    tool
        The tool.
    arguments
        Its inputs, as JSON values.

    Raises
    ------
    InvalidInput
        If the schema is invalid, or an argument does not fit it; the message names the field.
    """
    if problem := schema_problem(tool.input_schema):
        raise InvalidInput(
            f"The schema of the tool '{tool.name}' is no JSON Schema of an object: {problem}.",
            hint="Its page must declare another one; then refresh the map.",
        )
    problems = argument_problems(tool.input_schema, arguments)
    known = tool.input_schema.get("properties")
    if tool.source == "inferred" and isinstance(known, dict):
        problems += [
            f"{shortened(name, _MAX_NAME)}: the form has no such field" for name in arguments if name not in known
        ]
    if problems:
        raise InvalidInput(f"Arguments of '{tool.name}': {'; '.join(problems)}.", hint="Its schema says what it takes.")


def check_allowed(tool: ToolModel, *, allow_changes: bool) -> None:
    """Raise `ToolRefused` if a tool may change something, and changes are not allowed."""
    if allow_changes or only_reads(tool):
        return
    why = f"its form is sent to {tool.target}" if tool.target else "it does not say that it only reads"
    raise ToolRefused(f"The tool '{tool.name}' may change something: {why}.", hint="Pass allow_changes=True.")


def only_reads(tool: ToolModel) -> bool:
    """Return whether a tool changes nothing, as far as is known: its address names no change either."""
    return tool.read_only and not (tool.target and names_change(tool.target))
