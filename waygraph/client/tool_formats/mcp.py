"""Tools of a site as tool definitions of the Model Context Protocol."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from waygraph.client.tool_formats.names import MAX_TEXT, quoted, unique_names
from waygraph.core.json_schema import schema_problem, with_short_texts
from waygraph.core.schemas import ToolModel
from waygraph.core.text import shortened


def mcp_tools(site: str, tools: Sequence[ToolModel]) -> list[dict[str, Any]]:
    """Return tool definitions as an MCP server lists them.

    Parameters
    ----------
    site
        Key of the site.
    tools
        Its tools.

    Returns
    -------
    list of dict
        Name (unique), title, description, `inputSchema` and annotations. `_meta` holds the id by which `use_tool` calls
        the tool. A schema that is invalid is left out: any arguments are accepted.
    """
    return [_definition(site, name, tool) for name, tool in zip(unique_names(tools), tools, strict=True)]


def _definition(site: str, name: str, tool: ToolModel) -> dict[str, Any]:
    definition: dict[str, Any] = {"name": name}
    if tool.title:
        definition["title"] = shortened(tool.title, MAX_TEXT)
    # The title counts as well: a form often has no other text.
    definition["description"] = quoted(tool.description or tool.title or tool.name, site)
    valid = not schema_problem(tool.input_schema)
    schema = with_short_texts(tool.input_schema, MAX_TEXT) if valid else {}
    definition["inputSchema"] = {**schema, "type": "object"}
    # A tool that is not read-only counts as destructive unless it says otherwise, and none does.
    hints = {"destructiveHint": True} if tool.consequential else {}
    definition["annotations"] = {"readOnlyHint": tool.read_only, **hints, "openWorldHint": True}
    definition["_meta"] = {"waygraph/id": tool.id, "waygraph/source": tool.source, "waygraph/url": tool.url}
    return definition
