"""Tools that were inferred, as WebMCP declarations: what the owner of a site could paste to declare them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from html import escape
from typing import Any

from waygraph.client.tool_formats.names import unique_names
from waygraph.core.schemas import ToolModel

#: What would end a script or begin a comment in HTML.
_MARKUP = re.compile("[<>&\u2028\u2029]")


def webmcp_declarations(site: str, tools: Sequence[ToolModel]) -> str:
    """Return attributes for forms and a script for what is no form, as HTML with comments.

    Parameters
    ----------
    site
        Key of the site.
    tools
        Its tools. Those that pages declare already are left out.

    Returns
    -------
    str
        The HTML. Names, titles and descriptions are the texts of the site, to be improved by its owner.
    """
    named = [(name, tool) for name, tool in zip(unique_names(tools), tools, strict=True) if tool.source == "inferred"]
    blocks = [f"<!-- Tools of {_comment(site)} -->"]
    blocks += ["\n".join(_declaration(name, tool)) for name, tool in named]
    return "\n\n".join(blocks) + "\n"


def _declaration(name: str, tool: ToolModel) -> Iterator[str]:
    where = tool.frame or tool.url
    states = f"on {tool.state_count} states" if tool.state_count > 1 else "on one state"
    at = tool.element.css or tool.element.xpath if tool.element is not None else ""
    yield f"<!-- {_comment(where)}, {states}{f': {_comment(at)}' if at else ''} -->"
    yield from _form(name, tool) if tool.method else _script(name, tool)


def _form(name: str, tool: ToolModel) -> Iterator[str]:
    description = _attribute(tool.description or tool.title or tool.name)
    # Who calls a form that reads needs no person to submit it.
    submit = " toolautosubmit" if tool.method == "GET" else ""
    yield f'<form toolname="{name}" tooldescription="{description}"{submit}>'
    for field, schema in _properties(tool).items():
        text = schema.get("description") or schema.get("title") or field
        element = "select" if "enum" in schema else "input"
        yield f'  <{element} name="{_attribute(field)}" toolparamdescription="{_attribute(str(text))}">'
    yield "</form>"


def _script(name: str, tool: ToolModel) -> Iterator[str]:
    definition = {
        "name": name,
        **({"title": tool.title} if tool.title else {}),
        "description": tool.description or tool.title or tool.name,
        "inputSchema": tool.input_schema,
        **({"annotations": {"readOnlyHint": True}} if tool.read_only else {}),
    }
    yield "<script>"
    yield "document.modelContext?.registerTool({"
    yield f"  ...{_script_json(definition)},"
    yield "  // Call the function of the page that its button calls, and return what came of it."
    yield '  async execute(input) { throw new Error("not implemented"); },'
    yield "});"
    yield "</script>"


def _properties(tool: ToolModel) -> dict[str, dict[str, Any]]:
    found = tool.input_schema.get("properties", {})
    return {name: each for name, each in found.items() if isinstance(each, dict)} if isinstance(found, dict) else {}


def _attribute(text: str) -> str:
    return escape(" ".join(text.split()))


def _comment(text: str) -> str:
    """Return a text that does not end a comment."""
    return escape(text.replace("--", "- -"), quote=False)


def _script_json(value: object) -> str:
    """Return JSON for a script in HTML, whose text cannot end it."""
    text = json.dumps(value, ensure_ascii=False)
    return _MARKUP.sub(lambda found: f"\\u{ord(found[0]):04x}", text)
