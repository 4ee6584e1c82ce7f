"""Which of several tools of one name is meant on a page."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from waygraph.core.errors import InvalidInput, ToolChanged
from waygraph.core.schemas import ActionModel, ToolModel
from waygraph.pipeline.browser.page.snapshot import PageTool, Snapshot
from waygraph.sdk.tool_choice import choose_tool
from waygraph.sdk.tool_lookup import MAX_TOOLS

ORIGIN = "http://shop.example"
EMPTY = Snapshot("id", ORIGIN, ORIGIN, "", "text/html", 200, (), (), (), capped=False, opened=0)
PRICE = ToolModel(
    id="0", name="price", title="", description="Price", input_schema={"type": "object"}, source="script",
    states=["s"], state_count=1, url=ORIGIN, origin=ORIGIN, read_only=True,
)  # fmt: skip
OTHER_PLACE = ActionModel(kind="submit", css="#other")


def other(**fields: Any) -> ToolModel:
    return PRICE.model_copy(update={"id": "1", "states": ["t"], "url": f"{ORIGIN}/t", **fields})


def page(*tools: ToolModel) -> Snapshot:
    shown = (
        PageTool(tool.name, "", tool.description, json.dumps(tool.input_schema), "script", ORIGIN,
                 read_only=tool.read_only)
        for tool in tools
    )  # fmt: skip
    return replace(EMPTY, tools=tuple(shown))


def test_tools_that_read_and_differ_in_their_place_alone_are_one() -> None:
    assert choose_tool("shop", [PRICE, other(element=OTHER_PLACE)], page()) == PRICE


@pytest.mark.parametrize(
    "fields",
    [{"description": "Price of B"}, {"title": "B"}, {"target": f"{ORIGIN}/b"}, {"frame": f"{ORIGIN}/b"},
     {"input_schema": {"type": "object", "properties": {"q": {}}}}, {"read_only": False}],
)  # fmt: skip
def test_tools_of_other_pages_that_differ_are_told_apart_by_id(fields: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput, match="Several tools of 'shop' are called 'price'"):
        choose_tool("shop", [PRICE, other(**fields)], page())


def test_tools_that_may_change_something_are_never_chosen_among_other_pages() -> None:
    tools = [other(read_only=False, element=place) for place in (None, OTHER_PLACE)]
    with pytest.raises(InvalidInput, match="Several tools"):
        choose_tool("shop", tools, page())


def test_more_tools_than_are_looked_up_are_told_apart_by_id() -> None:
    with pytest.raises(InvalidInput, match="Several tools"):
        choose_tool("shop", [PRICE] * MAX_TOOLS, page())


@pytest.mark.parametrize("read_only", [True, False])
def test_a_tool_of_the_page_is_never_replaced_by_one_of_another_page(read_only: bool) -> None:
    tools = [other(read_only=read_only, description=text) for text in ("Price of A", "Price of B")]
    changed = other(read_only=read_only, input_schema={"type": "object", "properties": {"new": {}}})
    with pytest.raises(ToolChanged, match="new input: new"):
        choose_tool("shop", tools, page(changed))
    own = other(read_only=read_only, input_schema=changed.input_schema, id="2")
    assert choose_tool("shop", [*tools, own], page(changed)) == own
