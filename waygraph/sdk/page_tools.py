"""Comparison of a tool of the map with the tools that a page has now."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from waygraph.core.errors import ToolChanged
from waygraph.core.schemas import ToolModel
from waygraph.core.text import shortened
from waygraph.pipeline.browser.page.snapshot import PageTool, Snapshot

#: Longest message about a change, in characters: it names what the page declares.
_MAX_MESSAGE_CHARS = 500


def has_tool(snapshot: Snapshot, tool: ToolModel) -> bool:
    """Return whether a page has a tool as it was mapped."""
    return any(_is_named(shown, tool) and not _changes(shown, tool) for shown in snapshot.tools)


def tool_on_page(snapshot: Snapshot, tool: ToolModel) -> PageTool:
    """Return the tool of a page that is a tool of the map.

    Parameters
    ----------
    snapshot
        The page.
    tool
        The tool, as it was mapped.

    Returns
    -------
    PageTool
        The same tool, with the same inputs.

    Raises
    ------
    ToolChanged
        If the page has no such tool, or one of this name that takes or does something else.
    """
    named = [shown for shown in snapshot.tools if _is_named(shown, tool)]
    for shown in named:
        if not _changes(shown, tool):
            return shown
    if named:
        said = shortened("; ".join(_changes(named[0], tool)), _MAX_MESSAGE_CHARS)
        raise ToolChanged(f"The tool '{tool.name}' of {snapshot.url} has changed: {said}.", hint="Refresh the map.")
    others = shortened(", ".join(dict.fromkeys(shown.name for shown in snapshot.tools)), _MAX_MESSAGE_CHARS)
    raise ToolChanged(
        f"{snapshot.url} has no tool '{tool.name}' any more.",
        hint=f"It has: {others}." if others else "It has none; a browser without WebMCP knows none that are declared.",
    )


def _is_named(shown: PageTool, tool: ToolModel) -> bool:
    return (shown.name, shown.frame, shown.origin) == (tool.name, tool.frame, tool.origin)


def _changes(shown: PageTool, tool: ToolModel) -> list[str]:
    """Return in which ways a tool takes or does something else than it did."""
    schema = json.loads(shown.schema)
    found = [
        f"its {what} is {now or 'gone'}, and was {before or 'none'}"
        for what, now, before in (
            ("method", shown.method, tool.method),
            ("address", shown.target, tool.target),
            ("declaration", shown.source, tool.source),
        )
        if now != before
    ]
    if shown.read_only != tool.read_only:
        found.append("it says that it only reads" if shown.read_only else "it no longer says that it only reads")
    return found if schema == tool.input_schema else [*found, *_schema_changes(schema, tool.input_schema)]


def _schema_changes(now: Mapping[str, Any], before: Mapping[str, Any]) -> list[str]:
    after, earlier = _properties(now), _properties(before)
    found = [
        f"{what} {', '.join(names)}"
        for what, names in (
            ("new input:", [name for name in after if name not in earlier]),
            ("gone input:", [name for name in earlier if name not in after]),
            ("other input:", [name for name in after if name in earlier and after[name] != earlier[name]]),
            ("now required:", [name for name in _required(now) if name not in _required(before)]),
            ("no longer required:", [name for name in _required(before) if name not in _required(now)]),
        )
        if names
    ]
    return found or ["its schema is another one"]


def _properties(schema: Mapping[str, Any]) -> dict[str, Any]:
    found = schema.get("properties")
    return found if isinstance(found, dict) else {}


def _required(schema: Mapping[str, Any]) -> list[str]:
    found = schema.get("required")
    return [str(name) for name in found] if isinstance(found, list) else []
