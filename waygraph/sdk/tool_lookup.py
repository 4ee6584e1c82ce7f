"""Tools of a map that a caller may mean, and whether arguments fit one. Touches no page."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from waygraph.client.map_source import AsyncMapApi
from waygraph.core.errors import InvalidInput, NotFound
from waygraph.core.json_schema import argument_problems, schema_problem
from waygraph.core.schemas import ToolModel
from waygraph.core.text import shortened

#: Most tools of one name.
_MAX_TOOLS = 500
#: Longest name of an argument in a message.
_MAX_NAME = 100


async def tools_called(maps: AsyncMapApi, site: str, tool: str) -> list[ToolModel]:
    """Return the tools of a site that a name or an id may stand for, those of states near the start page first.

    Parameters
    ----------
    maps
        The maps.
    site
        Key of the site.
    tool
        Id of the tool, the beginning of one (8 digits or more), or its name.

    Returns
    -------
    list of ToolModel
        One tool at least.

    Raises
    ------
    NotFound
        If the site is not mapped, or has no such tool.
    """
    found = (await maps.tools(site, tool=tool, limit=_MAX_TOOLS)).tools if tool else []
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
