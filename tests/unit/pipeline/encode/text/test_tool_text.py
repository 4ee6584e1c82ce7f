"""What encoders read of a tool."""

from dataclasses import replace

import pytest

from waygraph.index.graph import InteractionGraph, Node, Tool
from waygraph.pipeline.encode.protocol import content_key
from waygraph.pipeline.encode.text.composites import describe
from waygraph.pipeline.encode.text.lead_text import MIN_ENCODED
from waygraph.pipeline.encode.text.site_text import SiteText
from waygraph.pipeline.encode.text.tool_text import tool_observations

NEAR = Node("near", "http://shop.example/orders", "Orders | Shop", (), 1, addressable=True)
FAR = Node("far", "http://shop.example/orders/7", "Order 7 | Shop", (), 2, addressable=True)
GRAPH = InteractionGraph([NEAR, FAR])
SCHEMA = {"type": "object", "properties": {"order": {"type": "string", "title": "Number of the order"}}}
TOOL = Tool("id", "startReturn", "Send back", "", SCHEMA, "script", ("far", "near"), "http://shop.example")


def test_a_tool_has_one_row_of_its_words_and_inputs():
    (seen,) = tool_observations([TOOL], GRAPH)
    assert seen.node_id == "id"
    text = describe(seen, SiteText(titles=frozenset({"Shop"})))
    assert [row.text for row in text.rows] == ["start Return. Send back. Number of the order"]


def test_the_page_of_a_tool_is_the_nearest_that_has_it():
    (seen,) = tool_observations([TOOL], GRAPH)
    assert describe(seen, SiteText(titles=frozenset({"Shop"}))).context == "Orders. orders"


def test_equal_texts_are_encoded_once_also_by_encoders_of_screenshots():
    tools = [TOOL, replace(TOOL, id="same"), replace(TOOL, id="other", title="Refund")]
    one, other, same = tool_observations(tools, GRAPH)
    assert same.node_id == "same"
    assert content_key(one, "text") == content_key(same, "screenshot") != content_key(other, "text")


def test_of_many_tools_the_near_ones_and_one_of_each_kind_get_vectors():
    def reply(number: int) -> Tool:
        return replace(TOOL, id=f"{number:03}", target=f"http://shop.example/posts/{number}")

    far = replace(TOOL, id="far", title="Refund", states=("far",))
    tools = [*(replace(reply(number), states=("far",)) for number in range(900, 990)), *map(reply, range(300)), far]
    found = [seen.node_id for seen in tool_observations(tools, GRAPH)]
    assert found == ["000", "far", *(f"{number:03}" for number in range(1, MIN_ENCODED - 1))]


def test_people_read_labels_and_choices_and_no_names_of_fields():
    choices = [{"const": "1", "title": f"Choice {number}"} for number in range(9)]
    fields = {"a1": {"title": "Reason", "anyOf": choices}, "note": {"enum": ["x"]}}
    form = replace(TOOL, name="return_2", source="inferred", schema={"type": "object", "properties": fields})
    (seen,) = tool_observations([form], GRAPH)
    assert seen.anchor_texts == ("Send back", "Reason", *(f"Choice {number}" for number in range(6)), "note")
    (untitled,) = tool_observations([replace(form, title="", schema={})], GRAPH)
    assert untitled.anchor_texts == ("return 2",)


@pytest.mark.parametrize(
    "schema",
    [{"properties": 7}, {"properties": {"": 1}}, {"properties": {"a": {"anyOf": ["x", {"title": 1}], "title": []}}}],
)
def test_any_schema_is_read(schema):
    (seen,) = tool_observations([replace(TOOL, schema=schema)], GRAPH)
    assert seen.anchor_texts[:2] == ("start Return", "Send back")
