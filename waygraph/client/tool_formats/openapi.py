"""GET forms of a site as an OpenAPI document."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from urllib.parse import urlsplit

from waygraph.client.tool_formats.names import MAX_TEXT, quoted, unique_names
from waygraph.core.json_schema import schema_problem, with_short_texts
from waygraph.core.schemas import ToolModel

#: What the forms answer.
_PAGE = {"200": {"description": "The page that the form leads to.", "content": {"text/html": {}}}}


def openapi_document(site: str, version: int, tools: Sequence[ToolModel]) -> dict[str, Any]:
    """Return the OpenAPI 3.1 document of those tools that are GET forms.

    Parameters
    ----------
    site
        Key of the site.
    version
        Version of its map.
    tools
        Its tools. Those that are no GET forms, or whose schema is invalid, are left out.

    Returns
    -------
    dict
        The document. Forms that lead to one address are one operation with the parameters of all: a parameter is
        required if each of the forms requires it. Of forms with one path on several hosts the first host's are kept.
    """
    named = [(name, tool) for name, tool in zip(unique_names(tools), tools, strict=True) if _is_get_form(tool)]
    groups: dict[str, list[tuple[str, ToolModel]]] = {}
    for name, tool in named:
        of_path = groups.setdefault(_path(_address(tool)), [])
        if not of_path or _server(_address(of_path[0][1])) == _server(_address(tool)):
            of_path.append((name, tool))
    return {
        "openapi": "3.1.0",
        "info": {"title": f"Forms of {site}", "version": str(version)},
        "paths": {path: _path_item(site, forms) for path, forms in groups.items()},
    }


def _is_get_form(tool: ToolModel) -> bool:
    is_form = tool.method == "GET" and _address(tool).startswith(("http://", "https://"))
    return is_form and not schema_problem(tool.input_schema)


def _address(tool: ToolModel) -> str:
    """Return where a form is submitted: without an address of its own, to that of its page."""
    return tool.target or tool.frame or tool.url


def _server(url: str) -> str:
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}"


def _path(url: str) -> str:
    """Return the path of a URL; braces would be parameters of the path."""
    return (urlsplit(url).path or "/").replace("{", "%7B").replace("}", "%7D")


def _path_item(site: str, forms: Sequence[tuple[str, ToolModel]]) -> dict[str, Any]:
    name, first = forms[0]
    operation: dict[str, Any] = {"operationId": name}
    if first.title:
        operation["summary"] = quoted(first.title, site)
    if first.description:
        operation["description"] = quoted(first.description, site)
    operation["parameters"] = _parameters(site, [form for _, form in forms])
    operation["responses"] = _PAGE
    operation["x-waygraph-tools"] = [form.id for _, form in forms]
    return {"servers": [{"url": _server(_address(first))}], "get": operation}


def _parameters(site: str, forms: Sequence[ToolModel]) -> list[dict[str, Any]]:
    schemas: dict[str, list[Any]] = {}
    for form in forms:
        for name, schema in form.input_schema.get("properties", {}).items():
            found = schemas.setdefault(name, [])
            if schema not in found:
                found.append(schema)
    required = set.intersection(*(set(form.input_schema.get("required", ())) for form in forms))
    return [_parameter(site, name, found, required=name in required) for name, found in schemas.items()]


def _parameter(site: str, name: str, schemas: Sequence[Any], *, required: bool) -> dict[str, Any]:
    parameter: dict[str, Any] = {"name": name, "in": "query", "required": required}
    description = schemas[0].get("description", "") if isinstance(schemas[0], dict) else ""
    if description and isinstance(description, str):
        parameter["description"] = quoted(description, site)
    short = [with_short_texts(schema, MAX_TEXT) for schema in schemas]
    parameter["schema"] = short[0] if len(short) == 1 else {"anyOf": short}
    return parameter
