"""Comparison of a tool of the map with the tools that a page has now."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from msgspec.structs import replace

from waygraph.core.errors import ToolChanged
from waygraph.core.json_schema import comparable_schema
from waygraph.core.schemas import ToolModel
from waygraph.core.text import mask_numbers, shortened
from waygraph.pipeline.browser.page.snapshot import PageTool, Snapshot

#: Longest message about a change, in characters: it names what the page declares.
_MAX_MESSAGE_CHARS = 500


def has_tool(snapshot: Snapshot, tool: ToolModel) -> bool:
    """Return whether a page has a tool as it was mapped."""
    return any(_is_named(shown, tool) and not _changes(shown, tool) for shown in snapshot.tools)


def is_named(snapshot: Snapshot, tool: ToolModel) -> bool:
    """Return whether a page has a tool of the name of a mapped one, in the same document."""
    return any(_is_named(shown, tool) for shown in snapshot.tools)


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
        The same tool, with the same inputs. How it is submitted is what the map says, which may know more of scripts.

    Raises
    ------
    ToolChanged
        If the page has no such tool, or one of this name that takes or does something else.
    """
    named = [shown for shown in snapshot.tools if _is_named(shown, tool)]
    for shown in named:
        if not _changes(shown, tool):
            return replace(shown, method=tool.method, target=tool.target, read_only=tool.read_only)
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
    # In a page that was loaded before waygraph's script, it is unknown that a script takes the submission.
    is_same_submission = (tool.method, tool.target, shown.method, shown.target) == ("", "", "GET", "")
    compared: list[tuple[str, str, str]] = [("declaration", shown.source, tool.source)]
    if not is_same_submission:
        compared += [("method", shown.method, tool.method), ("address", shown.target, tool.target)]
    found = [
        f"its {what} is {now or 'gone'}, and was {before or 'none'}" for what, now, before in compared if now != before
    ]
    # Items of a site may have tools of one name that take the same, and say what they do with which item.
    for what, text, earlier in ("title", shown.title, tool.title), ("description", shown.description, tool.description):
        if mask_numbers(text) != mask_numbers(earlier):
            found.append(f"its {what} is another one")
    if shown.read_only != tool.read_only and not is_same_submission:
        found.append("it says that it only reads" if shown.read_only else "it no longer says that it only reads")
    if tool.source != "form":
        now, before = comparable_schema(schema), comparable_schema(tool.input_schema)
        return found if now == before else [*found, *_schema_changes(now, before)]
    # Without WebMCP, no schema of a declared form is derived: it is inferred, with fields that browsers leave out.
    now, before = _form_shape(schema), _form_shape(tool.input_schema)
    known = {
        name: value for name, value in now["properties"].items() if name in {*before["properties"], *now["required"]}
    }
    now = {**now, "properties": known}
    return found if now == before else [*found, *_schema_changes(now, before)]


def _form_shape(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return what the schemas of one form have in common, as browsers derive it and as it is inferred."""

    def shape(given: object) -> object:
        if not isinstance(given, dict):
            return given
        choices = given.get("enum")
        kept: dict[str, object] = {"type": given.get("type"), "items": shape(given.get("items"))}
        return {**kept, "enum": sorted(map(str, choices))} if isinstance(choices, list) else kept

    properties = {name: shape(given) for name, given in _properties(schema).items()}
    return {"properties": properties, "required": sorted(_required(schema))}


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
