"""What encoders read of a tool."""

from dataclasses import replace

from waygraph.index.graph import InteractionGraph, Node, Tool
from waygraph.pipeline.encode.protocol import content_key
from waygraph.pipeline.encode.text.composites import describe
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
    assert [row.text for row in text.rows] == ["start Return. Send back. order. Number of the order"]


def test_the_page_of_a_tool_is_the_nearest_that_has_it():
    (seen,) = tool_observations([TOOL], GRAPH)
    assert describe(seen, SiteText(titles=frozenset({"Shop"}))).context == "Orders. orders"


def test_equal_texts_are_encoded_once_also_by_encoders_of_screenshots():
    one, same, other = tool_observations([TOOL, replace(TOOL, id="2"), replace(TOOL, title="Refund")], GRAPH)
    assert content_key(one, "text") == content_key(same, "screenshot") != content_key(other, "text")
