"""What encoders of screenshots read of tools and of pages that were not visited, which have no screenshots."""

import logging

import numpy as np
import pytest

from tests.tiny_vision import make_colmodernvbert
from waygraph.core.settings import EncodeSettings
from waygraph.index.graph import Action, InteractionGraph, Lead, Node, Tool
from waygraph.pipeline.encode.registry import create_encoder
from waygraph.pipeline.encode.text.lead_text import lead_observations
from waygraph.pipeline.encode.text.tool_text import tool_observations
from waygraph.pipeline.encode.vision.pages import read_page

PAGE = Node("n", "http://shop.test/orders", "Orders | Shop", (), 0, addressable=True)
SCHEMA = {"properties": {"order": {"title": "Number of the order"}}}
RETURN, CANCEL = (
    Tool(name, name, title, "", SCHEMA, "script", ("n",), "http://shop.test")
    for name, title in (("start_return", "Send back"), ("cancel", "End the subscription for good"))
)


def seen(*tools: Tool):
    return tool_observations(tools, InteractionGraph([PAGE]))


def test_a_tool_is_read_by_its_page_and_by_all_that_people_read_of_it():
    (tool,) = seen(RETURN)
    assert read_page(tool, None).text == "Orders | Shop start return Send back Number of the order"


def test_names_of_a_link_that_its_context_repeats_are_read_once():
    lead = Lead("l", "http://shop.test/r", ("Returns", "Send back"), "Orders", "", "n", Action("click"), 1)
    (known,) = lead_observations([lead], [])
    assert read_page(known, None).text == "Returns Send back. Orders"


def test_two_tools_of_one_page_get_vectors_of_their_own(tmp_path):
    encoder = create_encoder(
        EncodeSettings(encoder="colmodernvbert", weights=make_colmodernvbert(tmp_path / "vbert"), device="cpu")
    )
    one, other = (page.vectors for page in encoder.encode_pages(seen(RETURN, CANCEL), {}))
    assert not np.array_equal(one, other)


def test_no_screenshot_is_missed_where_none_was_taken(caplog: pytest.LogCaptureFixture):
    with caplog.at_level(logging.WARNING):
        read_page(seen(RETURN)[0], None)
    assert not caplog.records
