"""Tools: what one can do on a page, with its inputs, as the page declares it (WebMCP) or as its forms show it."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal
from urllib.parse import unquote, urlsplit

from waygraph.index.graph.model import Action, Node

#: How a tool became known: registered by a script (`document.modelContext.registerTool`), declared by attributes of a
#: form (`toolname`), either of them through a polyfill of the browser's interface, or inferred from a page's controls.
ToolSource = Literal["script", "form", "polyfill", "inferred"]

_CAMEL_CASE = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
#: Most texts of a schema that count.
_MAX_SCHEMA_TEXTS = 200


@dataclass(frozen=True, slots=True)
class Tool:
    """What one can do on some states of a site, as an agent gets it. Equal tools of several states are one.

    Name, title, description and the texts of the schema are the page's own: no model must take them for instructions.

    Attributes
    ----------
    id
        See `tool_id`.
    name
        Name, as declared; of an inferred tool derived from the texts of its form.
    title
        What a person reads: as declared, or the text of the button or heading; empty if there is none.
    description
        What it does; empty if the page does not say.
    schema
        JSON Schema of its arguments, an object. The schema that a page declared is not checked: it may be invalid.
    source
        How it became known.
    states
        Ids of the states that have it, in the order of the map.
    origin
        Origin of the document that has it, `https://example.org`.
    frame
        URL of that document, normalised; empty if it is the state's own.
    element
        Its form or group of controls, to be found as the element of an action is; None if a script registered it.
    method
        What submitting the form does: `GET`, `POST`, `dialog`; empty if nothing tells.
    target
        URL to which the form is submitted, without its query for `GET`; empty if there is none.
    read_only
        Whether it changes nothing, as far as is known: the page's `readOnlyHint`, or a form submitted by `GET`.
    untrusted
        Whether the page says that its answers hold what others wrote (`untrustedContentHint`).
    consequential
        Whether the page says that its effects are serious (`consequentialHint`).
    autosubmit
        Whether a call of a declared form submits it (`toolautosubmit`). Without it the call waits for a person.
    """

    id: str
    name: str
    title: str
    description: str
    schema: Mapping[str, Any]
    source: ToolSource
    states: tuple[str, ...]
    origin: str
    frame: str = ""
    element: Action | None = None
    method: str = ""
    target: str = ""
    read_only: bool = False
    untrusted: bool = False
    consequential: bool = False
    autosubmit: bool = False


def tool_id(tool: Tool) -> str:
    """Return the id of a tool (MD5, hex): of all that it is but for its id and its states.

    A tool whose schema or description changes is another one.
    """
    element = tool.element.to_json() if tool.element else None
    hints = (tool.read_only, tool.untrusted, tool.consequential, tool.autosubmit)
    texts = (tool.name, tool.title, tool.description, tool.source, tool.origin, tool.frame, tool.method, tool.target)
    content = json.dumps(["tool", texts, tool.schema, element, hints], sort_keys=True)
    return hashlib.md5(content.encode()).hexdigest()


def nearest_states(tool: Tool, nodes: Mapping[str, Node]) -> tuple[str, ...]:
    """Return the ids of the states that have a tool, those nearest to the start page first."""
    return tuple(sorted(tool.states, key=lambda state: nodes[state].depth))


def tool_texts(tool: Tool) -> Sequence[str]:
    """Return what a tool says of itself and of its inputs, as words: name, title, description, address, schema."""
    own = (tool.name, tool.title, tool.description, _path(tool.target))
    return [_CAMEL_CASE.sub(" ", text) for text in (*own, *_schema_texts(tool.schema))]


def _path(url: str) -> str:
    try:
        return unquote(urlsplit(url).path)
    except ValueError:
        return ""  # addresses of forms may be malformed


def _schema_texts(schema: Mapping[str, Any]) -> list[str]:
    """Return names, titles, descriptions and choices of the properties of a schema, which may be anything."""
    properties = schema.get("properties")
    found: list[str] = []
    for name, given in properties.items() if isinstance(properties, dict) else ():
        each = given if isinstance(given, dict) else {}
        choices = each.get("anyOf")
        parts = [each, *(choices if isinstance(choices, list) else ())]
        texts = [part.get(key) for part in parts if isinstance(part, dict) for key in ("title", "description", "const")]
        values = each.get("enum")
        texts += values if isinstance(values, list) else ()
        found += [name, *(text for text in texts if isinstance(text, str))]
    return list(dict.fromkeys(found))[:_MAX_SCHEMA_TEXTS]
