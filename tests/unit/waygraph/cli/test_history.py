"""`waygraph history` and `diff` on versions that are copies of older ones."""

import json
from dataclasses import replace

import pytest

from waygraph.cli import main
from waygraph.core.settings import Settings
from waygraph.index.graph import InteractionGraph, Node, Observation, Tool, tool_id
from waygraph.index.store import EncoderInfo, MapDraft, Store
from waygraph.pipeline.comparison import compare_versions
from waygraph.pipeline.jobs.encoding.site_vectors import EncodedMap
from waygraph.pipeline.jobs.publishing.draft import NOT_ENCODED, draft_from_version
from waygraph.serve.views.changes import changes_answer

SITE = "tea.example"
ORIGINS = ("refresh_of", "rollback_to", "reencoded_from")


def draft(pages, **report):
    """A map of pages that nothing leads to."""
    nodes = [Node(page, f"http://{SITE}/{page}", page, (page,), 0, addressable=True) for page in pages]
    seen = {node.id: Observation(node.id, node.url, "", ()) for node in nodes}
    encoder = NOT_ENCODED.encoder
    return MapDraft(SITE, nodes[0].url, InteractionGraph(nodes), seen, {}, encoder, report={"seconds": 1, **report})


@pytest.fixture
def store(tmp_path):
    """A map that was explored and refreshed twice."""
    opened = Store.open(str(tmp_path / "maps"), create=True)
    opened.publish(draft("abc", run_id="first"))
    opened.publish(draft("ab", run_id="second", refresh={"of": 1, "states": {"gone": 1, "match": 2}}), replaces=1)
    opened.publish(draft("a", run_id="third", refresh={"of": 2, "states": {"gone": 1, "match": 1}}), replaces=2)
    return opened


@pytest.fixture
def cli(store, capsys):
    def run(*words):
        assert main([*words, "--store", store.location, "--json"]) == 0
        return json.loads(capsys.readouterr().out)

    return run


def test_a_copied_version_has_its_own_origin_and_is_compared_with_the_version_that_it_replaced(store, cli):
    def compared():
        answer = cli("diff", SITE)
        return answer["from"], answer["to"], answer["counts"]["states"]

    assert compared() == (2, 3, {"gone": 1, "match": 1})
    assert cli("rollback", SITE, "2")["version"] == 4
    assert compared() == (3, 4, {"added": 1, "match": 1})
    vectors = EncodedMap(encoder=EncoderInfo("another", 1, "another"), pages={})
    again = draft_from_version(store.read(SITE), Settings(), vectors, run_id="fourth")
    assert store.publish(again, replaces=4) == 5
    assert compared() == (4, 5, {"match": 2})
    assert [cli("rollback", SITE, number)["version"] for number in ("1", "5")] == [6, 7]
    answer = cli("history", SITE)["versions"]
    assert [{name: each[name] for name in ORIGINS if each[name]} for each in answer] == [
        {}, {"refresh_of": 1}, {"refresh_of": 2}, {"rollback_to": 2}, {"reencoded_from": 4}, {"rollback_to": 1},
        {"rollback_to": 5},
    ]  # fmt: skip
    assert [each["version"] for each in answer if each["changes"]] == [2, 3]
    # The copies keep the exploration of their original, but not its run id.
    reports = [store.manifest(SITE, number).report for number in (4, 5)]
    assert [(report["seconds"], report.get("run_id")) for report in reports] == [(1, None), (1, "fourth")]


def test_a_tool_that_is_new_names_its_nearest_states_first(store):
    made = draft("abc")
    nodes = [replace(node, depth=depth) for node, depth in zip(made.graph.nodes.values(), (0, 2, 1), strict=True)]
    tool = Tool("", "pay", "", "", {}, "script", ("b", "c"), "http://a")
    tools = {tool_id(tool): replace(tool, id=tool_id(tool))}
    store.publish(replace(made, graph=InteractionGraph(nodes), tools=tools), replaces=3)
    old, new = store.read(SITE, 3), store.read(SITE, 4)
    (change,) = changes_answer(compare_versions(store, old, new), old, new, [3, 4]).tools
    assert (change.after.states, change.after.url) == (["c", "b"], f"http://{SITE}/c")


def test_diff_shows_tools_that_are_new_gone_and_take_other_inputs(store, capsys):
    def with_tools(**inputs):
        made = draft("a")
        tools = [
            Tool("", name, "", "\x1b[2J", {"properties": {key: {} for key in properties}}, "script", ("a",), "http://a")
            for name, properties in inputs.items()
        ]
        return replace(made, tools={tool_id(tool): replace(tool, id=tool_id(tool)) for tool in tools})

    store.publish(with_tools(refund=["order"], pay=["sum"], same=[]), replaces=3)
    store.publish(with_tools(refund=["order", "reason"], pause=[], same=[]), replaces=4)
    command = ["diff", SITE, "--store", store.location]
    assert main([*command, "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert answer["counts"]["tools"] == {"added": 1, "changed": 1, "gone": 1, "match": 1}
    assert [(each["verdict"], each["name"], each["attributes"]) for each in answer["tools"]] == [
        ("changed", "refund", ["schema"]), ("gone", "pay", []), ("added", "pause", []),
    ]  # fmt: skip
    assert answer["tools"][0]["after"]["schema"] == {"properties": {"order": {}, "reason": {}}}
    assert answer["tools"][1]["after"] is None
    assert main(command) == 0
    said = capsys.readouterr().out
    assert "tools: 1 added, 1 changed, 1 gone, 1 match" in said
    assert [line.split()[0:1] + line.split()[2:] for line in said.splitlines() if "refund" in line] == [
        ["changed", "refund", "+reason", "schema"]
    ]
    old, new = store.read(SITE, 4), store.read(SITE, 5)
    shown = changes_answer(compare_versions(store, old, new), old, new, [4, 5])
    assert [(each.verdict, each.name, each.inputs, each.after is None) for each in shown.tools] == [
        ("changed", "refund", ["+reason"], False), ("gone", "pay", [], True), ("added", "pause", [], False),
    ]  # fmt: skip
