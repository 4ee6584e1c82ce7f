"""Words of tools come from names, inputs and choices, whatever a page declared as a schema."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

import pytest

from waygraph.index.catalog.lexical import ASSUMED_MAXSIM, LexicalIndex, terms
from waygraph.index.catalog.tool_search import find_tools, tool_texts
from waygraph.index.graph import Tool


def tool(name: str, *states: str, schema: object = None) -> Tool:
    return Tool(name, name, "", "", schema or {}, "script", states or ("n",), "http://s")


def test_names_inputs_and_choices_are_words():
    choices = {
        "anyOf": [{"const": "a1", "title": "Side by side"}],
        "enum": ["inline"],
        "description": "View of changes",
    }
    texts = tool_texts(tool("compareTwoVersions", schema={"properties": {"viewMode": choices}}))
    expected = "compare two versions view mode side by inline changes"
    assert set(terms(" ".join(texts))) >= set(terms(expected))


@pytest.mark.parametrize(
    "schema",
    [{"properties": 7}, {"properties": {"a": 1}}, {"properties": {"a": {"anyOf": 3, "enum": {}, "title": []}}}],
)
def test_any_schema_is_read(schema):
    assert tool_texts(tool("x", schema=schema))[0] == "x"


ALL = {each.id: each for each in (tool("everywhere", "a", "b", "c"), tool("here", "a"), tool("refund", "c"))}
WORDS = LexicalIndex({name: [name] for name in ALL})


def found(query: str, keep: str = "abc", own: Mapping[str, float] = MappingProxyType({})) -> list[tuple[str, str]]:
    hits = find_tools(ALL, WORDS, query, own=own, states={"a": 0.3, "b": 0.0}, keep=lambda state, _: state in keep)
    return [(each.tool.id, each.state) for each in hits]


def test_a_tool_of_many_states_counts_as_they_do_on_average_and_words_decide():
    assert found("money") == [("here", "a"), ("everywhere", "a"), ("refund", "c")]
    assert found("refund")[0] == ("refund", "c")
    assert found("money", keep="b") == [("everywhere", "b")]


def test_the_meaning_of_a_tool_counts_beside_its_states():
    assert found("money", own={"refund": 0.6, "here": 0.1})[0] == ("refund", "c")


def test_tools_of_a_map_without_vectors_of_tools_are_on_the_scale_of_others():
    def scores(own: Mapping[str, float]) -> list[float]:
        found = find_tools(ALL, WORDS, "money", own=own, states={"a": 0.3}, keep=lambda *_: True)
        return [each.score for each in found]

    assert scores({}) == pytest.approx(scores(dict.fromkeys(ALL, ASSUMED_MAXSIM)))


def test_a_tool_without_vectors_is_found_by_its_words():
    assert found("everywhere", own={"refund": 0.8, "here": 0.6})[0] == ("everywhere", "a")
