"""Results of MCP tools stay small for every map; omitted parts are counted and available."""

from __future__ import annotations

import json

import pytest
from pydantic import BaseModel

from waygraph.core.schemas import (
    ActionModel,
    BoxModel,
    EvidenceModel,
    Hit,
    LocateAnswer,
    MatchModel,
    NavigateAnswer,
    NodeAnswer,
    PathAnswer,
    SearchAnswer,
    SegmentModel,
    SiteSummary,
    StepModel,
    ToolModel,
    ToolsAnswer,
)
from waygraph.serve.mcp import answers, models
from waygraph.serve.mcp.server import screenshot_uri

SITE = "shop.example"
LONG = "A long sentence that a page repeats without an end. " * 40
BOX = BoxModel(x=0, y=0, width=10, height=10)


def node_id(number: int) -> str:
    return f"{number:032x}"


def step(number: int, name: str = "Next page") -> StepModel:
    action = ActionModel(kind="click", role="link", name=name, xpath="/html[1]/body[1]/main[1]/a[1]" * 5)
    url = f"http://{SITE}/lists/{number}?sort=price&colour=green"
    return StepModel(action=action, expected_url=url, expected_node_id=node_id(number), cost_ms=120.0)


def state(texts: list[str], actions: int = 0) -> NodeAnswer:
    return NodeAnswer(
        site=SITE,
        version=1,
        node_id=node_id(0),
        url=f"http://{SITE}/",
        title=LONG,
        depth=0,
        addressable=True,
        screenshot="/v1/x",
        segments=[SegmentModel(text=text, role="text", box=BOX) for text in texts],
        edges=[step(number) for number in range(actions)],
    )


def hit(number: int, text: str = LONG) -> Hit:
    matched = MatchModel(text=text, score=0.5)
    url = f"http://{SITE}/{'deep/' * 200}"
    return Hit(rank=number, node_id=node_id(number), url=url, title=text, score=0.5, site=SITE, matched=matched)


def size(answer: BaseModel) -> int:
    return len(answers.compact(answer).encode())


def test_a_text_that_is_not_visible_yet_is_marked():
    node = state([]).model_copy(update={"segments": [SegmentModel(text="In two days", role="hidden", box=BOX)]})
    assert answers.screen_detail(node, "uri", 0, 0).texts == ["(hidden until opened) In two days"]


@pytest.mark.parametrize("text", ["Delivery in two days", LONG, "配送は二日以内に行われます。" * 30, '"\\\n\t' * 200])
def test_a_state_of_a_thousand_texts_and_actions_stays_small(text):
    shown = answers.screen_detail(state([text] * 1_000, 1_000), screenshot_uri(SITE, node_id(0)), 0, 0)
    assert size(shown) <= answers.BUDGET
    assert shown.texts
    assert shown.more_texts == 1_000 - len(shown.texts)
    assert shown.more_actions == 1_000 - len(shown.actions) > 0
    assert size(answers.document(state([text] * 1_000), "uri")) <= answers.BUDGET


def test_further_calls_return_everything_that_was_left_out():
    node, texts, actions = state([f"Text {number}" for number in range(1_000)], 1_000), [], []
    while True:
        part = answers.screen_detail(node, "uri", len(texts), len(actions))
        texts += part.texts
        actions += part.actions
        assert (part.more_texts, part.more_actions) == (1_000 - len(texts), 1_000 - len(actions))
        if not part.more_texts + part.more_actions:
            break
    assert texts == [segment.text for segment in node.segments]
    assert [action.to for action in actions] == [edge.expected_node_id for edge in node.edges]
    past = answers.screen_detail(node, "uri", 5_000, 5_000)
    assert (past.texts, past.more_texts, past.actions, past.more_actions) == ([], 0, [], 0)


@pytest.mark.parametrize("text", ["Prices", LONG, "配送は二日以内に行われます。" * 30])
def test_found_screens_and_long_paths_stay_small(text):
    hits = [hit(number, text) for number in range(30)]
    screens = answers.screens(SearchAnswer(hits=hits[:20], skipped={f"s{n}": LONG for n in range(100)}))
    assert size(screens) <= answers.BUDGET
    assert len(screens.screens) + screens.more == 20
    assert len(screens.screens) >= 5
    steps = [step(number, text) for number in range(1, 60)]
    path = PathAnswer(site=SITE, version=1, source=None, target=node_id(59), cost_ms=1.0, steps=steps)
    found = answers.navigation(
        NavigateAnswer(
            site=SITE, version=1, node_id=node_id(3), selector="top1", reason=LONG, candidates=hits, path=path,
            notes=[LONG] * 9,
        )
    )  # fmt: skip
    assert size(found) <= answers.BUDGET
    assert [screen.id for screen in found.candidates][:3] == [node_id(3), node_id(0), node_id(1)]
    assert 1 < len(found.candidates) <= 5
    assert found.way is not None
    assert found.way.more_steps == 59 - len(found.way.steps) > 0


@pytest.mark.parametrize("text", ["Prices", LONG, "配送は二日以内に行われます。" * 30])
def test_tools_with_long_texts_and_large_schemas_stay_small(text):
    inputs = {f"{text} {n}": {"type": "string", "description": text, "enum": [text] * 9} for n in range(100)}
    schema = {"properties": inputs, "required": list(inputs)}
    tool = ToolModel(
        id=node_id(1), name=text, title=text, description=text, input_schema=schema, source="form",
        states=[node_id(2)] * 20, state_count=99, url=f"http://{SITE}/{text}", origin="", method="GET", target=text,
    )  # fmt: skip
    found = answers.page_tools(ToolsAnswer(site=SITE, version=1, tools=[tool] * 50, total=80), 20)
    assert size(found) <= answers.BUDGET
    assert found.more == 60 - len(found.tools) > 0
    detail = answers.page_tool_detail(tool)
    assert size(detail) <= answers.BUDGET
    assert detail.more_inputs == 100 - len(detail.input_schema["properties"]) > 0
    assert detail.input_schema.get("required", [])[:1] == (["Prices 0"] if text == "Prices" else [])
    huge = tool.model_copy(update={"input_schema": {"properties": {"a": {"enum": ["x" * 9_999]}}}})
    assert answers.page_tool_detail(huge).more_inputs == 1
    path = PathAnswer(site=SITE, version=1, source=None, target=node_id(59), cost_ms=1.0, steps=[step(1, text)] * 60)
    assert size(answers.way(path, tools=[tool] * 10)) <= answers.BUDGET


def test_answers_say_when_the_second_hit_may_be_meant_as_well():
    hits = [hit(1), hit(2), hit(3)]
    unsure = answers.screens(SearchAnswer(hits=hits, confidence=0.4))
    assert [bool(screen.note) for screen in unsure.screens] == [False, True, False]
    assert not any(screen.note for screen in answers.screens(SearchAnswer(hits=hits, confidence=0.8)).screens)
    assert not any(screen.note for screen in answers.screens(SearchAnswer(hits=hits[:1])).screens)
    navigated = {
        "site": SITE,
        "version": 1,
        "node_id": node_id(1),
        "selector": "top1",
        "reason": "",
        "candidates": hits,
    }
    assert len(answers.navigation(NavigateAnswer(**navigated, confidence=0.4)).notes) == 1
    assert answers.navigation(NavigateAnswer(**navigated, confidence=0.8)).notes == []


def test_the_confidence_of_an_answer_says_whose_it_is():
    said = models.Navigation.model_json_schema()["properties"]["confidence"]["description"]
    assert "the candidate with the best score" in said
    assert "Others have none" in said


def test_sites_are_narrowed_down_and_counted():
    found = [
        SiteSummary(
            site=f"{n}.example", version=1, start_url=f"http://{n}.example/", states=3, edges=2,
            created="2026-05-02T03:04:05+00:00", explored="2026-01-02T03:04:05+00:00", partial=False,
            title=f"Shop {n}",
        )
        for n in range(500)
    ]  # fmt: skip
    shown = answers.sites(found, "", 50)
    assert size(shown) <= answers.BUDGET
    assert shown.more == 500 - len(shown.sites)
    assert [site.site for site in answers.sites(found, "77.EXAMPLE", 50).sites] == [
        "77.example", "177.example", "277.example", "377.example", "477.example",
    ]  # fmt: skip
    (by_title,) = answers.sites(found, "shop 377", 50).sites
    assert (by_title.title, by_title.mapped) == ("Shop 377", "2026-01-02T03:04")


def test_steps_describe_their_action_in_words_and_note_doubts():
    goto = StepModel(
        action=ActionModel(kind="goto", url=f"http://{SITE}/a?{'x' * 900}"), expected_url="u", expected_node_id="i",
        cost_ms=1.0,
    )  # fmt: skip
    nameless = step(2, name="").model_copy(update={"suspect": True, "opens_tab": True})
    typed = StepModel(
        action=ActionModel(kind="input", role="searchbox", name="Find", value="tea", nth=1), expected_url="u",
        expected_node_id="i", cost_ms=1.0,
    )  # fmt: skip
    in_menu = step(3, name="Forum").model_copy(
        update={"openers": [ActionModel(kind="click", role="button", name="Menu")]}
    )
    steps = [goto, nameless, typed, in_menu]
    path = PathAnswer(site=SITE, version=1, source=None, target="i", cost_ms=9.0, steps=steps)
    first, second, third, opener, fourth = answers.way(path).steps
    assert (first.do, first.value, first.selector) == ("goto", goto.action.url, "")
    assert second.selector == f"xpath={nameless.action.xpath}"
    assert second.notes == ["opens a new tab", "recently reported as broken"]
    assert (third.do, third.role, third.name, third.value) == ("input", "searchbox", "Find", "tea")
    assert third.selector == 'role=searchbox[name="Find"s] >> nth=1'
    assert [(each.do, each.name, each.expect_url) for each in (opener, fourth)] == [
        ("click", "Menu", ""),
        ("click", "Forum", in_menu.expected_url),
    ]


@pytest.mark.parametrize(
    ("url", "kind", "evidence", "expected", "match"),
    [
        ("http://x/a?b=1", "click", {}, "http://x/a?b=1", "exact"),
        ("http://x/s/9f86d081884c7d65/a?id=17", "click", {}, "http://x/s/*/a?id=17", "glob"),
        ("http://x/s#/9f86d081884c7d65", "click", {}, "http://x/s#/*", "glob"),
        ("http://x/info/9f86d081884c7d65", "click", {"named": True}, "http://x/info/9f86d081884c7d65", "exact"),
        ("http://x/info/9f86d081884c7d65", "click", None, "http://x/info/9f86d081884c7d65", "exact"),
        ("http://x/find?q=tea&from=home", "submit", {}, "http://x/find", "path"),
        (f"http://x/{'a' * 400}", "click", {}, f"http://x/{'a' * 288}*", "glob"),
    ],
)
def test_a_step_says_how_its_address_is_compared(url, kind, evidence, expected, match):
    known = None if evidence is None else EvidenceModel(**evidence)
    action = ActionModel(kind=kind, role="button", name="Go", value="tea")
    path = PathAnswer(
        site=SITE, version=1, source="s", target="i", cost_ms=1.0,
        steps=[StepModel(action=action, expected_url=url, expected_node_id="i", cost_ms=1.0, evidence=known)],
    )  # fmt: skip
    (step,) = answers.way(path).steps
    assert (step.expect_url, step.match) == (expected, match)


def test_seconds_are_those_of_the_mapping_without_penalties():
    walked = step(1)
    inherited = walked.model_copy(update={"cost_ms": 60_000 + 480.0, "inherited": True})
    path = PathAnswer(site=SITE, version=1, source=None, target="i", cost_ms=60_600.0, steps=[walked, inherited])
    assert answers.way(path).seconds == 0.6


def test_candidates_that_no_path_leads_to_are_left_out():
    hits = [hit(n).model_copy(update={"refusal": "robots" if n == 2 else ""}) for n in (1, 2, 3)]
    found = answers.navigation(
        NavigateAnswer(site=SITE, version=1, node_id=node_id(3), selector="rule", reason="", candidates=hits)
    )
    assert [screen.id for screen in found.candidates] == [node_id(3), node_id(1)]


def test_an_uncertain_start_has_a_note_on_how_it_was_recognised():
    path = PathAnswer(site=SITE, version=1, source=None, target="i", cost_ms=0.0, steps=[])
    certain = LocateAnswer(node_id="i", rule="exact", confidence=1.0, version=1)
    by_url = LocateAnswer(node_id="i", rule="url", confidence=0.5, version=1)
    nowhere = LocateAnswer(node_id=None, rule="none", confidence=0.0, version=1)
    assert [answers.way(path, located).note for located in (None, certain)] == ["", ""]
    assert "by its url (confidence 0.50)" in answers.way(path, by_url).note
    assert "does not know" in answers.way(path, nowhere).note


def test_text_and_structured_answer_are_equal():
    shown = answers.screen_detail(state(["a"], 2), "uri", 0, 0)
    assert json.loads(answers.compact(shown)) == shown.model_dump(mode="json", exclude_defaults=True)


@pytest.mark.parametrize(("refusal", "said"), [("", "never visited:"), ("robots", "no way leads there (robots)")])
def test_a_page_that_was_not_visited_is_noted(refusal, said):
    hit = Hit(rank=1, node_id=node_id(1), url="http://x/", title="Reports", score=1.0, visited=False, refusal=refusal)
    assert said in answers.screen(hit).note
    assert answers.screen(hit.model_copy(update={"visited": True})).note == ""
