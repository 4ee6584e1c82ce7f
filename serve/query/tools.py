"""Answers about tools: what one can do on the states of a map."""

from __future__ import annotations

import re
from collections.abc import Mapping

from waygraph.core.schemas import ToolsAnswer, ToolsRequest
from waygraph.index.catalog.catalog import OpenMap
from waygraph.index.graph import Tool
from waygraph.serve.query.answers import tool_model
from waygraph.serve.query.node_ids import resolve_node_id

#: Least number of digits of an abbreviated tool id: a shorter one may be a name.
MIN_PREFIX = 8
_ID = re.compile(r"[0-9a-f]{32}")


def tools_answer(opened: OpenMap, request: ToolsRequest) -> ToolsAnswer:
    """Return the tools of a map that a request asks for.

    Parameters
    ----------
    opened
        The map.
    request
        Which tools.

    Returns
    -------
    ToolsAnswer
        A part of the tools that fit, and the number of all.

    Raises
    ------
    NotFound
        If the map does not have the state.
    InvalidInput
        If several states have the prefix.
    """
    state = resolve_node_id(opened, request.state) if request.state else ""
    called = _called(opened.tools, request.tool) if request.tool else opened.tools.values()
    fitting = [tool for tool in called if not state or state in tool.states]
    shown = fitting[request.first : request.first + request.limit]
    return ToolsAnswer(
        site=opened.site,
        version=opened.version,
        tools=[tool_model(tool, opened.graph.nodes[tool.states[0]].load_url) for tool in shown],
        total=len(fitting),
    )


def _called(tools: Mapping[str, Tool], text: str) -> list[Tool]:
    """Return the tools that a text means. A page chooses the names of its tools: none of them counts as an id."""
    if _ID.fullmatch(text):
        return [tools[text]] if text in tools else []
    begun = [tool for tool in tools.values() if tool.id.startswith(text)] if len(text) >= MIN_PREFIX else []
    return begun or [tool for tool in tools.values() if tool.name == text]
