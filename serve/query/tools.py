"""Answers about tools: what one can do on the states of a map."""

from __future__ import annotations

from waygraph.core.schemas import ActionModel, ToolModel, ToolsAnswer, ToolsRequest
from waygraph.index.catalog.catalog import OpenMap
from waygraph.index.graph import Tool
from waygraph.serve.query.node_ids import resolve_node_id

#: States of a tool in an answer: a site's search form is on all of its pages.
MAX_STATES = 20
#: Least number of digits of an abbreviated tool id: a shorter one may be a name.
MIN_PREFIX = 8


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
    fitting = [
        tool
        for tool in opened.tools.values()
        if (not state or state in tool.states) and (not request.tool or _is_called(tool, request.tool))
    ]
    shown = fitting[request.first : request.first + request.limit]
    return ToolsAnswer(
        site=opened.site,
        version=opened.version,
        tools=[tool_model(opened, tool) for tool in shown],
        total=len(fitting),
    )


def tool_model(opened: OpenMap, tool: Tool) -> ToolModel:
    """Return one tool."""
    return ToolModel(
        id=tool.id,
        name=tool.name,
        title=tool.title,
        description=tool.description,
        input_schema=dict(tool.schema),
        source=tool.source,
        states=list(tool.states[:MAX_STATES]),
        state_count=len(tool.states),
        url=opened.graph.nodes[tool.states[0]].load_url,
        origin=tool.origin,
        frame=tool.frame,
        element=ActionModel.model_validate(tool.element.to_json()) if tool.element is not None else None,
        method=tool.method,
        target=tool.target,
        read_only=tool.read_only,
        untrusted=tool.untrusted,
        consequential=tool.consequential,
        autosubmit=tool.autosubmit,
    )


def _is_called(tool: Tool, text: str) -> bool:
    return tool.name == text or (len(text) >= MIN_PREFIX and tool.id.startswith(text))
