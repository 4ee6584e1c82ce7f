"""Maps hold the tools that the pages of a site declare, with the states that have them; none is called."""

from collections import defaultdict
from urllib.parse import urlsplit

import pytest

from tests.blobs import MemoryBlobs
from tests.exploring import explore
from tests.sites.declared_tools import AFTER_A_CLICK, PAGES, TOOLS
from tests.sites.server import FixtureServer
from waygraph.core.settings import ExploreSettings
from waygraph.index.graph import tool_id
from waygraph.index.graph.export import to_json
from waygraph.pipeline.explore.refresh.exploration_record import ExplorationRecord
from waygraph.pipeline.explore.refresh.prior_exploration import PriorExploration
from waygraph.pipeline.explore.refresh.sample import plan_refresh


@pytest.fixture(scope="module")
def site():
    with FixtureServer(PAGES) as server:
        yield server


@pytest.fixture(scope="module")
def capture(site):
    return explore(site.url, depth=2, workers=1)


def declared(capture):
    """The declared tools by name."""
    found = defaultdict(list)
    for tool in capture.tools.values():
        if tool.source != "inferred":
            found[tool.name].append(tool)
    return found


def test_every_declared_tool_is_found_with_the_states_that_have_it(capture):
    nodes = capture.graph.nodes

    def label(state):
        return urlsplit(nodes[state].url).path + ("" if nodes[state].addressable else AFTER_A_CLICK)

    found = {
        name: ({tool.source for tool in tools}, {label(state) for tool in tools for state in tool.states})
        for name, tools in declared(capture).items()
    }
    assert found == {name: ({source}, states & {*map(label, nodes)}) for name, (source, states) in TOOLS.items()}
    assert all(tool.id == tool_id(tool) == known for known, tool in capture.tools.items())


def test_exploring_calls_no_tool(capture, site):
    assert [path for _, path in site.requests if path.startswith("/called")] == []


def test_a_name_in_two_frames_is_two_tools(capture):
    assert sorted(urlsplit(tool.frame).path for tool in declared(capture)["twin"]) == ["/twin/a", "/twin/b"]


def test_a_tool_whose_schema_changes_is_another_tool(capture):
    schemas = [tool.schema["properties"] for tool in declared(capture)["changing"]]
    assert schemas == [{"n": {"type": "number"}}, {"n": {"type": "boolean"}}]


def test_hints_and_forms_of_declared_tools(capture):
    found = {name: tools[0] for name, tools in declared(capture).items()}
    read, write, get, post = (found[name] for name in ("script_read", "script_write", "form_get", "form_post"))
    assert (read.title, read.read_only, read.consequential, read.untrusted) == ("Read", True, False, False)
    assert (write.read_only, write.consequential, write.untrusted, write.element) == (False, True, True, None)
    assert (get.method, urlsplit(get.target).path, get.read_only, get.autosubmit) == ("GET", "/script", True, False)
    assert (post.method, post.read_only, post.autosubmit) == ("POST", False, True)
    assert found["form_choice"].schema["properties"]["s"]["enum"] == ["1", "2"]
    assert found["root_form"].element.xpath.endswith("x-box[1] >>> /form[1]")
    assert found["frame_form"].element.frame == ("/html[1]/body[1]/main[1]/iframe[1]",)


def test_what_pages_give_is_bounded_and_counted(capture):
    found = {name: tools[0] for name, tools in declared(capture).items()}
    assert len(found["long_text"].description) == 2_000
    assert found["script_bare"].schema == found["polyfill_broken"].schema == {"type": "object"}
    replaced = ("invalid_list", "invalid_deep", "invalid_large")
    assert [found[name].schema for name in replaced] == [{"type": "object"}] * 3
    assert found["invalid_type"].schema == {"type": 42}
    assert found["invalid_half"].schema["title"] == "\ufffd"
    assert "\ud800" not in found["invalid_half"].description  # the browser makes it empty
    counters = capture.report.counters
    assert (counters["tools/cut"], counters["tools/schemas_cut"]) == (1, 4)


@pytest.mark.extended
def test_two_workers_find_the_same_tools_as_one(capture, site):
    again = explore(site.url, depth=2, workers=2)

    def exported(one):
        return to_json("site", 1, one.graph, tools=one.tools, leads=one.leads, recognition=one.recognition)

    assert exported(again) == exported(capture)


def test_a_refresh_keeps_the_tools_of_states_that_it_does_not_visit():
    paths = [f"/{n}" for n in range(5)]
    pages = {
        path: f"<title>{path}</title><h1>{path}</h1><form><input name=a><button>Send</button></form>" for path in paths
    }
    links = "".join(f"<a href={path}>Page {path}</a>" for path in paths)
    blobs = MemoryBlobs()
    with FixtureServer({"/": f"<title>Home</title>{links}", **pages}) as site:
        before = explore(site.url, depth=1, blobs=blobs)
        record = ExplorationRecord.parse(blobs[before.report.record])
        plan = plan_refresh(record, share=0.1, budget_ms=1e9, seed="1")
        policy = ExploreSettings().url_policy
        prior = PriorExploration(record, plan, url_policy=policy, grace=0, name="tools")
        after = explore(site.url, depth=1, blobs=blobs, prior=prior)
    assert after.report.counters["refresh/recalled_loads"] > 0
    assert len(before.tools) == len(paths)
    assert after.tools == before.tools
