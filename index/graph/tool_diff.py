"""Differences between the tools of two versions of a map: a verdict for every tool, and what is other about it."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

from msgspec import structs

from waygraph.core.json_schema import comparable_schema
from waygraph.core.text import mask_numbers
from waygraph.index.graph.tool import Tool
from waygraph.index.graph.url_tokens import mask_random_tokens

ToolVerdict = Literal["match", "moved", "changed", "gone", "added"]

#: Attributes of a tool whose change is one, in the order in which they are named.
_COMPARED = (
    "schema", "title", "description", "source", "origin", "frame", "method", "target",
    "read_only", "untrusted", "consequential", "autosubmit",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class ToolChange:
    """One tool before and after; None if it is not in that map.

    Attributes
    ----------
    verdict
        `match`: the same tool. `moved`: its form or control stands elsewhere, and is the same. `changed`: see
        `attributes`. `gone` and `added`: in one of the maps only.
    before
        The older tool.
    after
        The newer tool.
    attributes
        Names of the attributes of `Tool` that changed, the schema first.
    """

    verdict: ToolVerdict
    before: Tool | None = None
    after: Tool | None = None
    attributes: tuple[str, ...] = ()

    @property
    def tool(self) -> Tool:
        """The newer tool, or the older one if it is gone."""
        tool = self.after or self.before
        if tool is None:
            raise ValueError("a change of a tool has the tool before or after it")
        return tool


def diff_tools(
    old: Mapping[str, Tool], new: Mapping[str, Tool], successors: Mapping[str, str]
) -> tuple[ToolChange, ...]:
    """Compare the tools of two maps of one site.

    A tool is recognised by its name, for that is what callers use, and then by the first of these rules: all of it is
    the same; the same but for its place; on a state that has both, the same element and address of the form, the same
    address, the same element, the same frame, and the same origin. Tools that share no state are matched by their
    address, or if no other has the name. Of several, those with the most states in common are matched first. Numbers in
    titles and descriptions, also of inputs, the order of choices, and random parts of addresses are noise.

    Parameters
    ----------
    old
        Tools of the older map by id.
    new
        Tools of the newer map by id.
    successors
        States of the newer map by those of the older one.

    Returns
    -------
    tuple of ToolChange
        One for each tool: those of the older map in its order, then those that were added.
    """
    matching = _ToolMatching(list(old.values()), list(new.values()), successors)
    matching.match(lambda tool: tool.id)
    matching.match_on_states(_content)
    matching.match(_content)
    keys = (_element_and_address, _address, _element, lambda tool: (tool.origin, tool.frame), lambda tool: tool.origin)
    for key in keys:
        matching.match_on_states(partial(_named, key))
    matching.match(partial(_named, _address))
    matching.match(lambda tool: tool.name, is_single=True)
    return tuple(matching.changes())


def input_changes(change: ToolChange) -> list[str]:
    """Return the names of the inputs that differ: `+name` is new, `-name` is gone, `~name` is another one.

    A schema that a page declared may be invalid; without inputs on both sides the list is empty.
    """
    if change.before is None or change.after is None:
        return []
    before, after = _inputs(change.before.schema), _inputs(change.after.schema)
    return [
        *(f"+{name}" for name in after if name not in before),
        *(f"-{name}" for name in before if name not in after),
        *(f"~{name}" for name in before if name in after and before[name] != after[name]),
    ]


class _ToolMatching:
    """Pairs of tools of two maps, each tool in one pair at most."""

    def __init__(self, old: Sequence[Tool], new: Sequence[Tool], successors: Mapping[str, str]) -> None:
        self._old, self._new = old, new
        self._pairs: dict[int, int] = {}
        self._taken = set[int]()
        self._states = [[successors.get(state, "") for state in tool.states] for tool in old]

    def match_on_states(self, key: Callable[[Tool], Hashable]) -> None:
        """Pair tools with equal keys that are not None and a state in common: those with the most, then by id."""
        having: dict[Hashable, dict[str, list[int]]] = {}
        for value, positions in self._left(key, self._new, self._taken).items():
            by_state = having[value] = defaultdict(list)
            for after in positions:
                for state in self._new[after].states:
                    by_state[state].append(after)
        for value, positions in self._left(key, self._old, self._pairs).items():
            found = having.get(value, {})
            shared = Counter(
                (before, after)
                for before in positions
                for state in self._states[before]
                for after in found.get(state, ())
            )
            for before, after in sorted(shared, key=lambda pair: (-shared[pair], *self._ids(*pair))):
                if before not in self._pairs and after not in self._taken:
                    self._pair(before, after)

    def match(self, key: Callable[[Tool], Hashable], *, is_single: bool = False) -> None:
        """Pair tools with equal keys that are not None in their order; with `is_single`, if no other tool has it."""
        candidates = self._left(key, self._new, self._taken)
        for value, positions in self._left(key, self._old, self._pairs).items():
            others = candidates.get(value, [])
            if not is_single or len(positions) == len(others) == 1:
                for before, after in zip(positions, others, strict=False):
                    self._pair(before, after)

    def changes(self) -> Iterator[ToolChange]:
        """Yield a verdict for each tool."""
        for index, tool in enumerate(self._old):
            yield _change(tool, self._new[self._pairs[index]]) if index in self._pairs else ToolChange("gone", tool)
        for index, tool in enumerate(self._new):
            if index not in self._taken:
                yield ToolChange("added", after=tool)

    @staticmethod
    def _left(
        key: Callable[[Tool], Hashable], tools: Sequence[Tool], paired: Collection[int]
    ) -> dict[Hashable, list[int]]:
        """Return the positions of the tools that are in no pair, by key."""
        positions: dict[Hashable, list[int]] = defaultdict(list)
        for index, tool in enumerate(tools):
            if index not in paired and (value := key(tool)) is not None:
                positions[value].append(index)
        return positions

    def _ids(self, before: int, after: int) -> tuple[str, str]:
        return self._old[before].id, self._new[after].id

    def _pair(self, before: int, after: int) -> None:
        self._pairs[before] = after
        self._taken.add(after)


def _change(before: Tool, after: Tool) -> ToolChange:
    first, second = _comparable(before), _comparable(after)
    changed = tuple(name for name, one, other in zip(_COMPARED, first, second, strict=True) if one != other)
    if changed:
        return ToolChange("changed", before, after, changed)
    return ToolChange("match" if before.element == after.element else "moved", before, after)


def _comparable(tool: Tool) -> tuple[Any, ...]:
    """Return the values of the compared attributes, without noise."""
    values = {name: getattr(tool, name) for name in _COMPARED}
    # Equal values in JSON: True is no 1, and an order of names is none.
    values["schema"] = json.dumps(comparable_schema(tool.schema), sort_keys=True)
    values.update({name: mask_numbers(values[name]) for name in ("title", "description")})
    values.update({name: mask_random_tokens(values[name]) for name in ("frame", "target")})
    return tuple(values.values())


def _content(tool: Tool) -> Hashable:
    element = structs.replace(tool.element, xpath="", nth=0) if tool.element else None
    return (tool.name, _comparable(tool), element)


def _named(key: Callable[[Tool], Hashable], tool: Tool) -> Hashable:
    value = key(tool)
    return None if value is None else (tool.name, value)


def _element(tool: Tool) -> Hashable:
    return (tool.origin, tool.element.frame, tool.element.xpath) if tool.element else None


def _element_and_address(tool: Tool) -> Hashable:
    element, address = _element(tool), _address(tool)
    return None if element is None or address is None else (element, address)


def _address(tool: Tool) -> Hashable:
    return (tool.origin, tool.method, mask_random_tokens(tool.target)) if tool.target else None


def _inputs(schema: Mapping[str, Any]) -> dict[str, str]:
    """Return the inputs of a schema as text, each with whether it is required."""
    schema = comparable_schema(schema)
    properties, required = schema.get("properties"), schema.get("required")
    if not isinstance(properties, Mapping):
        return {}
    needed = required if isinstance(required, list) else ()
    return {name: json.dumps([each, name in needed], sort_keys=True) for name, each in properties.items()}
