"""Words of tools come from names, inputs and choices, whatever a page declared as a schema."""

from __future__ import annotations

import pytest

from waygraph.index.catalog.lexical import LexicalIndex, terms
from waygraph.index.catalog.tool_search import find_tools, tool_texts
from waygraph.index.graph import Node, Tool

NODE = Node("n", "http://s/", "Old revisions", (), 0, addressable=True)


def tool(name: str, *states: str, schema: object = None) -> Tool:
    return Tool(name, name, "", "", schema or {}, "script", states or ("n",), "http://s")


def test_names_inputs_and_choices_are_words():
    choices = {
        "anyOf": [{"const": "a1", "title": "Side by side"}],
        "enum": ["inline"],
        "description": "View of changes",
    }
    texts = tool_texts(tool("compareTwoVersions", schema={"properties": {"viewMode": choices}}), NODE)
    expected = "compare two versions view mode side by inline changes old revisions"
    assert set(terms(" ".join(texts))) >= set(terms(expected))


@pytest.mark.parametrize(
    "schema",
    [{"properties": 7}, {"properties": {"a": 1}}, {"properties": {"a": {"anyOf": 3, "enum": {}, "title": []}}}],
)
def test_any_schema_is_read(schema):
    assert tool_texts(tool("x", schema=schema), NODE)[0] == "x"


def test_a_tool_of_many_states_counts_as_they_do_on_average_and_words_decide():
    tools = {each.id: each for each in (tool("everywhere", "a", "b", "c"), tool("here", "a"), tool("refund", "c"))}
    words = LexicalIndex({name: [name] for name in tools})
    scores = {"a": 0.3, "b": 0.0}
    found = [each[0].id for each in find_tools(tools, words, "money", scores, lambda *_: True)]
    assert found == ["here", "everywhere", "refund"]
    assert next(find_tools(tools, words, "refund", scores, lambda *_: True)).tool.id == "refund"
    kept = find_tools(tools, words, "money", scores, lambda state, _: state == "b")
    assert [(each.tool.id, each.state) for each in kept] == [("everywhere", "b")]
