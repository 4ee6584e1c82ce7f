"""Which differences between a tool of the map and one of a page keep it from being called."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from waygraph.core.errors import ToolChanged
from waygraph.core.schemas import ToolModel
from waygraph.pipeline.browser.page.snapshot import PageTool, Snapshot
from waygraph.sdk.page_tools import has_tool, tool_on_page

ORIGIN = "http://shop.example"
EMPTY = Snapshot("id", ORIGIN, ORIGIN, "", "text/html", 200, (), (), (), capped=False, opened=0)
DERIVED = {
    "type": "object",
    "properties": {
        "words": {"type": "string", "maxLength": 30, "description": "Words"},
        "kind": {"type": "string", "enum": ["a", "b"], "anyOf": [{"const": "a"}, {"const": "b"}]},
    },
    "required": ["words"],
}
INFERRED = {
    "required": ["words"],
    "type": "object",
    "properties": {
        "kind": {"type": "string", "enum": ["b", "a"]},
        "words": {"type": "string"},
        "agree": {"type": "boolean"},
    },
}


def mapped(**fields: Any) -> ToolModel:
    given = {
        "id": "1" * 64,
        "name": "lookup",
        "title": "",
        "description": "",
        "input_schema": DERIVED,
        "source": "form",
    }
    rest = {"states": ["s"], "state_count": 1, "url": ORIGIN, "origin": ORIGIN, "method": "GET", "read_only": True}
    return ToolModel(**{**given, **rest, **fields})


def page(schema: dict[str, Any] = DERIVED, **fields: Any) -> Snapshot:
    given = {"name": "lookup", "title": "", "description": "", "source": "form", "origin": ORIGIN, "method": "GET"}
    tool = PageTool(**{**given, "read_only": True, "schema": json.dumps(schema), **fields})
    return replace(EMPTY, tools=(tool,))


@pytest.mark.parametrize("what", ["title", "description"])
def test_a_tool_that_says_something_else_is_another_one_but_for_numbers(what: str) -> None:
    tool = mapped(**{what: "Delete tea, 3 left"})
    assert has_tool(page(**{what: "Delete tea, 2 left"}), tool)
    with pytest.raises(ToolChanged, match=f"its {what} is another one"):
        tool_on_page(page(**{what: "Delete cup, 3 left"}), tool)


def test_order_and_numbers_in_texts_of_inputs_keep_no_tool_from_being_called() -> None:
    before = {"properties": {"folder": {"title": "Inbox (3)", "enum": ["a", "b"]}}, "required": ["folder", "b"]}
    now = {"properties": {"folder": {"title": "Inbox (5)", "enum": ["b", "a"]}}, "required": ["b", "folder"]}
    assert has_tool(page(now, source="script"), mapped(source="script", input_schema=before))


def test_a_declared_form_is_the_same_one_in_a_browser_that_derives_no_schema() -> None:
    assert has_tool(page(INFERRED), mapped())


@pytest.mark.parametrize(
    ("properties", "required", "said"),
    [
        ({"kind": {"type": "string", "enum": ["a", "c"]}}, ["words"], "other input: kind"),
        ({"words": {"type": "number"}}, ["words"], "other input: words"),
        ({"agree": {"type": "boolean"}}, ["words", "agree"], "new input: agree"),
        ({}, [], "no longer required: words"),
    ],
)
def test_other_types_choices_and_required_inputs_of_a_declared_form_are_changes(
    properties: dict[str, Any], required: list[str], said: str
) -> None:
    changed = {**DERIVED, "properties": {**DERIVED["properties"], **properties}, "required": required}
    with pytest.raises(ToolChanged, match=said):
        tool_on_page(page(changed), mapped())


def test_the_schema_of_a_script_is_compared_in_full() -> None:
    with pytest.raises(ToolChanged, match="other input"):
        tool_on_page(page(INFERRED, source="script"), mapped(source="script"))


def test_a_form_whose_submission_a_script_takes_is_known_in_a_page_that_cannot_tell() -> None:
    tool = mapped(method="", read_only=False)
    shown = tool_on_page(page(), tool)
    assert (shown.method, shown.target, shown.read_only) == ("", "", False)
    for other in ({"target": f"{ORIGIN}/x"}, {"method": "POST", "read_only": False}):
        with pytest.raises(ToolChanged, match=r"its (method|address) is"):
            tool_on_page(page(**other), tool)
