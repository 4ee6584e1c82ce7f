"""Merging of the script results of cross-origin frames into the result of the document around them.

The in-page script returns flat lists, see `parse_snapshot`. Merging shifts the numbers in the inner lists, inserts
candidates and texts at the place of the frame in document order, and prepends the frame's path to the inner paths.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any

#: Result of the in-page script as parsed JSON, see `parse_snapshot`.
ScriptResult = dict[str, Any]

#: Keys that the in-page script returns once and then resets.
_RESET_KEYS = ("opened", "tabs", "stopped", "dialogs")


class ResetValues:
    """Sum of the values that the in-page script resets after each call, over repeated calls to the same page."""

    def __init__(self) -> None:
        self._values: ScriptResult = {}
        self._capped = False

    def add(self, result: ScriptResult) -> None:
        """Add the values of one call."""
        self._capped = self._capped or result["settled"]["capped"]
        for key in _RESET_KEYS:
            self._values[key] = self._values.get(key, type(result[key])()) + result[key]

    def apply_to(self, result: ScriptResult) -> None:
        """Replace the values of the last call by the sums."""
        result.update(self._values)
        result["settled"]["capped"] |= self._capped


def merge_activity(outer: ScriptResult, inner: ScriptResult) -> None:
    """Add the dialogs, tabs and so on of a frame to those of the page."""
    for key in _RESET_KEYS:
        outer[key] = outer[key] + inner[key]
    outer["settled"]["capped"] |= inner["settled"]["capped"]


def merge_digests(digest: str, inner: Sequence[str]) -> str:
    """Combine the digest of a document with those of its cross-origin frames."""
    return hashlib.md5("\n".join([digest, *inner]).encode()).hexdigest()[:16]


def graft(outer: ScriptResult, inner: ScriptResult, place: Mapping[str, Any] | None) -> None:
    """Insert the result of a frame into the result of the document around it.

    Parameters
    ----------
    outer
        Result of the document around the frame; it is changed in place.
    inner
        Result of the frame.
    place
        Where the frame is: its `path` (XPaths of frames, outermost first, its own last), and how many `candidates` and
        `segments` precede it. None: the frame is not exposed, and only its storage counts.
    """
    storage = outer["storage"].setdefault("frames", {})
    key = inner["url"].partition("?")[0].partition("#")[0]
    for area, items in inner["storage"].items():
        storage.update({f"{key} {area} {name}": value for name, value in items.items()})
    if place is None:
        return
    documents, places = len(outer["documents"]), len(outer["parents"])
    outer["documents"] += [[*place["path"], *path] for path in inner["documents"]]
    outer["steps"] = "\n".join(filter(None, (outer["steps"], inner["steps"])))
    outer["parents"] += [parent - documents if parent < 0 else parent + places for parent in inner["parents"]]
    outer["unexposed"] += [number + places for number in inner["unexposed"]]
    at = place["candidates"]
    outer["candidates"][at:at] = [shift_candidate(entry, places, documents) for entry in inner["candidates"]]
    if outer["banner"] and outer["banner"][0] >= at:
        outer["banner"][0] += len(inner["candidates"])
    if place.get("outline"):
        _graft_outline(outer["outline"], inner["outline"], place, added=len(inner["candidates"]))
    at = place["segments"]
    outer["segments"][at:at] = inner["segments"]
    outer["hidden"] += inner["hidden"]
    outer["links"] += inner["links"]
    outer["linksCut"] += inner["linksCut"]
    outer["tools"] += [_tool_inside(tool, place["path"], inner["url"]) for tool in inner["tools"]]
    outer["toolsCut"] += inner["toolsCut"]
    outer["schemasCut"] += inner["schemasCut"]
    outer["cut"] |= inner["cut"]
    outer["password"] |= inner["password"]
    outer["login"] |= inner["login"]
    outer["ms"] += inner["ms"]


def _graft_outline(outer: list[list[Any]], inner: list[list[Any]], place: Mapping[str, Any], *, added: int) -> None:
    """Insert the accessibility tree of a frame below the frame's own node, see `js/outline.js`."""
    at, depth, first = place["outline"]["at"], place["outline"]["depth"], place["candidates"]
    for row in outer:
        if row[4] >= first:
            row[4] += added
    outer[at:at] = [
        [row_depth + depth, role, name, states, candidate + first if candidate >= 0 else -1]
        for row_depth, role, name, states, candidate in inner
    ]


def _tool_inside(tool: Mapping[str, Any], path: Sequence[str], url: str) -> dict[str, Any]:
    """Return a tool of a frame as one of the page around it, see `js/tools.js`."""
    element = tool["element"]
    placed = {**element, "frame": [*path, *element["frame"]]} if element else None
    return {**tool, "element": placed, "url": tool["url"] or url}


def shift_candidate(entry: list[Any], places: int, documents: int) -> list[Any]:
    """Shift the numbers of place and document in a candidate, see `flattened` in `js/snapshot.js`."""
    kind, value, role, name, place, document, *more = entry
    return [kind, value, role, name, place + places, document + documents, *more]
