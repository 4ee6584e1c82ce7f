"""What is wrong with a call of a tool is said before any page is touched."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from tests.stores import SITE, draft
from waygraph.core.errors import InvalidInput, NotFound, ToolRefused, WaygraphError
from waygraph.index.graph import Action, Tool, tool_id
from waygraph.index.store import Store
from waygraph.sdk.local import StoreMap
from waygraph.sdk.use_tool import use_tool

ORIGIN = f"http://{SITE}"
FORM = Action("submit", role="form", css="#f")
ANY = {"type": "object"}
ONE = {"type": "object", "properties": {"q": {"type": "string"}}}
TOOLS = [
    Tool("", "bad", "", "", {"type": 7}, "script", (), ORIGIN, read_only=True),
    Tool("", "text", "", "", {"type": "string"}, "script", (), ORIGIN, read_only=True),
    Tool("", "close", "", "", ANY, "inferred", (), ORIGIN, element=FORM, method="dialog"),
    Tool("", "bye", "", "", ANY, "inferred", (), ORIGIN, element=FORM, method="GET", target=f"{ORIGIN}/logout",
         read_only=True),
    Tool("", "find", "", "", ONE, "inferred", (), ORIGIN, element=FORM, method="GET", read_only=True),
]  # fmt: skip


@pytest.fixture
def maps(tmp_path: Path) -> Iterator[StoreMap]:
    store = Store.open(str(tmp_path / "maps"), create=True)
    plain = draft(store)
    tools = [replace(tool, states=(next(iter(plain.graph.nodes)),)) for tool in TOOLS]
    store.publish(replace(plain, tools={tool_id(tool): replace(tool, id=tool_id(tool)) for tool in tools}))
    with StoreMap(store.location) as source:
        yield source


def test_a_form_takes_no_other_arguments_than_its_fields(maps: StoreMap) -> None:
    with pytest.raises(InvalidInput, match="Arguments of 'find': page: the form has no such field"):
        asyncio.run(use_tool(None, maps, SITE, "find", {"q": "tea", "page": 2}))


@pytest.mark.parametrize(
    ("tool", "error", "message"),
    [
        ("unknown", NotFound, "has no tool 'unknown'"),
        ("", NotFound, "has no tool"),
        ("bad", InvalidInput, "no JSON Schema of an object: its type is 7"),
        ("text", InvalidInput, "its type is 'string'"),
        ("close", ToolRefused, "does not say that it only reads"),
        ("bye", ToolRefused, "is sent to http://shop.example:8000/logout"),
    ],
)
def test_a_call_that_cannot_be_made_is_refused_with_a_hint(
    maps: StoreMap, tool: str, error: type[WaygraphError], message: str
) -> None:
    with pytest.raises(error, match=message) as caught:
        asyncio.run(use_tool(None, maps, SITE, tool, {}))
    assert caught.value.hint
