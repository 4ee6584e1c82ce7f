"""Tools of a whole site, from those of its states."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import replace

from msgspec import structs

from waygraph.index.graph import Tool, tool_id
from waygraph.pipeline.browser.page.snapshot import PageTool, Snapshot


def site_tools(
    states: Iterable[str], snapshot_of: Callable[[str], Snapshot], counters: Counter[str]
) -> dict[str, Tool]:
    """Return the tools of a site by id, in the order of the states that have them first.

    A form that is on every page, but not at the same place in each, is one tool. Its path is that of the first state.

    Parameters
    ----------
    states
        Ids of the states, in the order of the map.
    snapshot_of
        Returns the snapshot of a state.
    counters
        Counters, see docs/counters.md.

    Returns
    -------
    dict
        The tools.
    """
    first: dict[PageTool, PageTool] = {}
    having: dict[PageTool, dict[str, None]] = {}
    for state in states:
        snapshot = snapshot_of(state)
        for tool in snapshot.tools:
            key = _without_place(tool)
            first.setdefault(key, tool)
            having.setdefault(key, {})[state] = None
        if snapshot.tools_cut:
            counters["tools/cut"] += snapshot.tools_cut
        if snapshot.schemas_cut:
            counters["tools/schemas_cut"] += snapshot.schemas_cut
    tools = (_tool(tool, tuple(having[key])) for key, tool in first.items())
    return {tool.id: tool for tool in tools}


def _without_place(tool: PageTool) -> PageTool:
    if tool.element is None:
        return tool
    return structs.replace(tool, element=structs.replace(tool.element, xpath="", nth=0))


def _tool(tool: PageTool, states: tuple[str, ...]) -> Tool:
    fields = {name: getattr(tool, name) for name in tool.__struct_fields__}
    described = Tool(id="", states=states, **{**fields, "schema": json.loads(tool.schema)})
    return replace(described, id=tool_id(described))
