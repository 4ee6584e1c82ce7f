"""Equal tools of several states are one tool of the site."""

from collections import Counter
from dataclasses import replace

from msgspec import structs

from tests.sites.static_pages import look
from waygraph.index.graph import Action, tool_id
from waygraph.pipeline.browser.page.snapshot import PageTool
from waygraph.pipeline.explore.engine.site_tools import site_tools

PAGE = look("<p>Page</p>", "http://still.example/")
FORM = Action(kind="submit", role="search", name="Find", xpath="/html[1]/body[1]/form[1]", css="#find")
SEARCH = PageTool("find", "Find", "", '{"type":"object"}', "inferred", "http://still.example", element=FORM)


def collected(**snapshots):
    counters = Counter()
    return list(site_tools(snapshots, snapshots.__getitem__, counters).values()), counters


def test_a_form_at_another_place_of_another_page_is_the_same_tool():
    lower = structs.replace(SEARCH, element=structs.replace(FORM, xpath="/html[1]/body[1]/div[1]/form[1]", nth=1))
    (tool,), _ = collected(b=replace(PAGE, tools=(SEARCH,)), a=replace(PAGE, tools=(lower,)))
    assert tool.states == ("b", "a")
    assert tool.element == FORM
    assert tool.id == tool_id(tool)


def test_a_tool_with_another_schema_is_another_one():
    other = structs.replace(SEARCH, schema='{"type":"object","required":["q"]}')
    tools, _ = collected(a=replace(PAGE, tools=(SEARCH, SEARCH)), b=replace(PAGE, tools=(other, SEARCH)))
    assert [(tool.states, dict(tool.schema)) for tool in tools] == [
        (("a", "b"), {"type": "object"}),
        (("b",), {"type": "object", "required": ["q"]}),
    ]


def test_what_pages_left_out_is_counted():
    _, counters = collected(a=replace(PAGE, tools_cut=2), b=replace(PAGE, tools_cut=1, schemas_cut=3), c=PAGE)
    assert counters == {"tools/cut": 3, "tools/schemas_cut": 3}
