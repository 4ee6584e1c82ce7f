"""What people read of a tool and its inputs."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from waygraph.index.graph.tool import Tool

#: Between the words of a name such as `compareVersions` or `compare_versions`.
_BETWEEN_WORDS = re.compile(r"[_-]+|(?<=[a-z0-9])(?=[A-Z])")
#: Titles of choices of one input that are read. Long lists (countries, time zones) say no more about what a tool does.
_MAX_CHOICES = 6


def read_texts(tool: Tool) -> tuple[str, ...]:
    """Return what people read of a tool: name, title, description, labels of inputs and choices. Each once."""
    return tuple(dict.fromkeys(text for text in _texts(tool) if text))


def _texts(tool: Tool) -> Iterator[str]:
    # The name of an inferred tool is made from its title.
    if tool.source != "inferred" or not tool.title:
        yield _BETWEEN_WORDS.sub(" ", tool.name)
    yield tool.title
    yield tool.description
    yield from _inputs(tool.schema)


def _inputs(schema: Mapping[str, Any]) -> Iterator[str]:
    """Yield what people read of each input of a schema, which may be anything, and the titles of its choices."""
    properties = schema.get("properties")
    for name, given in properties.items() if isinstance(properties, dict) else ():
        each = given if isinstance(given, dict) else {}
        labels = (each.get("title"), each.get("description"), name)
        yield next((label for label in labels if isinstance(label, str) and label), "")
        choices = each.get("anyOf")
        for choice in choices[:_MAX_CHOICES] if isinstance(choices, list) else ():
            title = choice.get("title") if isinstance(choice, dict) else None
            if isinstance(title, str):
                yield title
