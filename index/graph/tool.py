"""Tools: what one can do on a page, with its inputs, as the page declares it (WebMCP) or as its forms show it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from waygraph.index.graph.model import Action, Node

#: How a tool became known: registered by a script (`document.modelContext.registerTool`), declared by attributes of a
#: form (`toolname`), either of them through a polyfill of the browser's interface, or inferred from a page's controls.
ToolSource = Literal["script", "form", "polyfill", "inferred"]


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
