"""Tools are kept with a map: each once, with the states that have it."""

from dataclasses import replace

import numpy as np
import pytest

from tests.stores import DIM, draft
from waygraph.core.errors import InvalidInput
from waygraph.index.graph import Action, Tool, tool_id
from waygraph.index.store import Store
from waygraph.index.store.tools import read_tools, tools_table
from waygraph.index.vectors import EncodedPage

SCHEMA = {"type": "object", "properties": {"q": {"type": "string"}}, "required": ["q"]}
FORM = Action("submit", role="form", name="Search", target="http://s/find")
TOOL = Tool("", "search", "Search", "Find a page", SCHEMA, "inferred", ("a",), "http://s", element=FORM, method="GET")
SCRIPT = replace(TOOL, source="script", element=None, schema={"type": 7}, description="half a character: \ud83d")


@pytest.mark.parametrize("tool", [TOOL, replace(SCRIPT, description="")])
def test_tools_are_read_as_they_were_written(tool):
    kept = replace(tool, id=tool_id(tool))
    assert read_tools(tools_table({kept.id: kept})) == {kept.id: kept}


def test_half_a_character_does_not_lose_the_table():
    (kept,) = read_tools(tools_table({"a": SCRIPT})).values()
    assert kept.description.startswith("half a character: ")


def test_states_take_no_part_in_the_id_and_everything_else_does():
    assert tool_id(TOOL) == tool_id(replace(TOOL, id="x", states=("b", "c")))
    others = [
        replace(TOOL, schema={}), replace(TOOL, read_only=True), replace(TOOL, element=None), replace(TOOL, title=""),
        replace(TOOL, name="Search", title="search"), replace(TOOL, frame="http://s/frame"),
    ]  # fmt: skip
    assert len({tool_id(each) for each in (TOOL, *others)}) == 1 + len(others)


def test_a_version_keeps_its_tools_with_their_vectors_and_counts_them(tmp_path):
    store = Store.open(str(tmp_path), create=True)
    plain = draft(store)
    first = next(iter(plain.graph.nodes))
    tool = replace(TOOL, states=(first,))
    tool = replace(tool, id=tool_id(tool))
    page = EncodedPage(np.eye(1, DIM, dtype=np.float32), ("Search",), ((),))
    store.publish(replace(plain, tools={tool.id: tool}, tool_pages={tool.id: page}))
    read = store.read(plain.site)
    assert read.tools == {tool.id: tool}
    assert list(read.tool_pages) == [tool.id]
    assert np.array_equal(read.tool_pages[tool.id].vectors, page.vectors)
    assert store.manifest(plain.site).counts.tools == 1


@pytest.mark.parametrize("changes", [{"states": ("0" * 32,)}, {"states": ()}, {"source": "guessed"}, {"schema": []}])
def test_a_tool_that_could_not_be_read_back_is_not_published(tmp_path, changes):
    store = Store.open(str(tmp_path), create=True)
    plain = draft(store)
    tool = replace(TOOL, id="0" * 32, states=(next(iter(plain.graph.nodes)),))
    with pytest.raises(InvalidInput):
        store.publish(replace(plain, tools={tool.id: replace(tool, **changes)}))


def test_vectors_of_no_tool_and_of_another_width_are_not_published(tmp_path):
    store = Store.open(str(tmp_path), create=True)
    plain = draft(store)
    tool = replace(TOOL, id="0" * 32, states=(next(iter(plain.graph.nodes)),))
    for width, tools, says in ((DIM, {}, "not one of its tools"), (DIM + 1, {tool.id: tool}, "shape")):
        page = EncodedPage(np.ones((1, width), np.float32), ("Search",), ((),))
        with pytest.raises(InvalidInput, match=says):
            store.publish(replace(plain, tools=tools, tool_pages={tool.id: page}))
