"""Task files as they are published, and what is said about rows that are wrong."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from waygraph.agents.tasks.json_rows import json_rows
from waygraph.agents.tasks.page_functions import PageFunction, parse_locator_call, parse_url_call, post_url
from waygraph.agents.tasks.task import EvaluatorKind, Task
from waygraph.agents.tasks.task_file import TaskFile, read_task_file
from waygraph.agents.tasks.where import matching, parse_conditions
from waygraph.core.errors import InvalidInput

WEBARENA = {
    "sites": ["reddit"], "task_id": 621, "require_login": True, "storage_state": "./.auth/reddit_state.json",
    "start_url": "__REDDIT__", "geolocation": None, "intent_template": "Ask about {{issue}}",
    "instantiation_dict": {"issue": "x"}, "intent": "Ask about x", "require_reset": False, "intent_template_id": 12,
    "eval": {
        "eval_types": ["url_match", "program_html"], "reference_answers": None,
        "reference_url": "__REDDIT__/f/advice", "url_note": "GOLD in PRED",
        "program_html": [{
            "url": "func:reddit_get_post_url('__last_url__')",
            "locator": "document.querySelector('.submission__inner').outerText",
            "required_contents": {"must_include": ["x", "__SHOPPING__/p"]},
        }],
    },
}  # fmt: skip
WEBCHOREARENA = {
    "sites": ["shopping"], "task_id": 10001, "start_url": "__SHOPPING__ |AND| __REDDIT__/f/books",
    "start_url_lite": "__SHOPPING__", "storage_state": None, "intent": "Add up", "instantiation_dict": {},
    "required_obs": "any", "type_main": "calc", "type_sub": "sum", "description": "d", "required_wait": True,
    "eval": {"eval_types": ["string_match"], "reference_answers": {"must_include": ["1 |OR| 2"], "fuzzy_match": "one"},
             "reference_url": "", "program_html": [], "string_note": "", "reference_answer_raw_annotation": "1"},
}  # fmt: skip
VERIFIED = {
    "sites": ["shopping_admin"], "task_id": 0, "intent_template_id": 279, "start_urls": ["__SHOPPING_ADMIN__"],
    "intent": "Get the best-selling product", "instantiation_dict": {"n": 1}, "revision": 2,
    "eval": [{"evaluator": "AgentResponseEvaluator", "expected": {"task_type": "retrieve", "status": "SUCCESS"}}],
}  # fmt: skip
ONLINE = {
    "task_id": "a1b2", "confirmed_task": "Find a lamp", "website": "https://shop.example/", "level": "easy",
    "reference_length": 4,
}  # fmt: skip
ONLINE_COPY = {
    **WEBARENA, "task_id": 3, "original_task_id": "c3d4", "level": "hard", "start_url": "https://b.example/",
    "eval": {"eval_types": ["string_match"], "reference_answers": {"exact_match": "the same text in every task"}},
}  # fmt: skip
URLS = {"__SHOPPING__": "http://127.0.0.1:7770/", "__REDDIT__": "http://127.0.0.1:9999"}


def read(tmp_path: Path, *rows: Any, text: str | None = None, **urls: str) -> TaskFile:
    path = tmp_path / "tasks.json"
    path.write_text(json.dumps(list(rows)) if text is None else text)
    return read_task_file(path, urls or URLS)


def test_each_published_format_is_recognised(tmp_path):
    tasks = read(tmp_path, WEBARENA, WEBCHOREARENA, VERIFIED, ONLINE, ONLINE_COPY).tasks
    assert [task.benchmark.value for task in tasks] == [
        "webarena", "webchorearena", "webarena-verified", "online-mind2web", "online-mind2web",
    ]  # fmt: skip
    webarena, chore, verified, online, copy = tasks
    assert (webarena.task_id, webarena.template, webarena.storage_state) == ("621", "12", "./.auth/reddit_state.json")
    assert webarena.evaluation.eval_types == (EvaluatorKind.URL_MATCH, EvaluatorKind.PROGRAM_HTML)
    assert chore.start_urls == ("http://127.0.0.1:7770", "http://127.0.0.1:9999/f/books")
    assert chore.labels["type_main"] == "calc"
    assert (verified.evaluation, verified.other_scorers) == (None, ("AgentResponseEvaluator",))
    assert (online.intent, online.start_urls, online.other_scorers) == (
        "Find a lamp", ("https://shop.example/",), ("WebJudge",),
    )  # fmt: skip
    # The reference answer of these copies is a dummy, and is not scored.
    assert (copy.task_id, copy.evaluation) == ("c3d4", None)


def test_placeholders_are_replaced_everywhere(tmp_path):
    (task,) = read(tmp_path, WEBARENA).tasks
    assert task.evaluation.reference_url == "http://127.0.0.1:9999/f/advice"
    assert task.evaluation.program_html[0].required_contents.must_include == ("x", "http://127.0.0.1:7770/p")
    assert task.placeholders == ()


def test_one_placeholder_is_not_taken_for_the_beginning_of_another(tmp_path):
    read_ = read(tmp_path, VERIFIED)
    assert read_.tasks[0].start_urls == ("__SHOPPING_ADMIN__",)
    assert read_.placeholders() == ["__SHOPPING_ADMIN__"]


def over(*sites: str, start: str, **fields: Any) -> dict[str, Any]:
    """Return a row of a task over several sites."""
    return {**WEBARENA, "sites": list(sites), "start_url": start, "eval": WEBCHOREARENA["eval"], **fields}


ALL = {
    f"__{name}__": f"http://127.0.0.1:{port}"
    for port, name in enumerate(("SHOPPING", "REDDIT", "GITLAB", "MAP", "WIKIPEDIA", "SHOPPING_ADMIN"), start=7000)
}


def test_a_task_knows_the_urls_of_all_its_sites_also_of_those_that_its_row_does_not_mention(tmp_path):
    rows = [
        over("gitlab", "wikipedia", start="__WIKIPEDIA__", task_id=1),
        over("reddit", "gitlab", start="__REDDIT__/", task_id=2, type_main="calc"),
        over("map", "shopping_admin", start="__MAP__", task_id=3),
        {**VERIFIED, "sites": ["wikipedia", "map"], "start_urls": ["__MAP__"], "task_id": 4},
    ]
    tasks = read(tmp_path, *rows, **ALL, __HOMEPAGE__="http://127.0.0.1:4399").tasks
    assert [list(task.site_urls) for task in tasks] == [
        ["gitlab", "wikipedia"], ["reddit", "gitlab"], ["map", "shopping_admin"], ["wikipedia", "map"],
    ]  # fmt: skip
    assert tasks[2].site_urls["shopping_admin"] == ALL["__SHOPPING_ADMIN__"]
    assert {task.placeholders for task in tasks} == {()}
    assert {task.home for task in tasks} == {"http://127.0.0.1:4399"}


def test_a_site_without_a_url_is_named_by_its_placeholder_in_its_own_task_only(tmp_path):
    rows = [over("gitlab", "wikipedia", start="__GITLAB__", task_id=1), over("gitlab", start="__GITLAB__", task_id=2)]
    several, single = read(tmp_path, *rows, __GITLAB__="http://127.0.0.1:8023").tasks
    assert several.placeholders == ("__WIKIPEDIA__",)
    assert single.placeholders == ()


def test_sites_of_a_file_without_placeholders_are_at_the_hosts_of_its_start_urls(tmp_path):
    start = "http://a.example/x |AND| http://a.example/y |AND| http://b.example/"
    (task,) = read(tmp_path, over("shop", "forum", start=start)).tasks
    assert task.site_urls == {"shop": "http://a.example/x", "forum": "http://b.example/"}
    assert task.placeholders == ()


def test_a_broken_row_is_named_by_line_and_field_and_the_others_load(tmp_path):
    broken = {**WEBARENA, "task_id": 7, "eval": {**WEBARENA["eval"], "program_html": [{"url": "last", "locator": ""}]}}
    rows = [WEBARENA, broken, {"x": 1}, "text", {**ONLINE, "website": ""}, WEBARENA, ONLINE]
    found = read(tmp_path, text="[\n" + ",\n".join(map(json.dumps, rows)) + "\n]")
    assert [task.task_id for task in found.tasks] == ["621", "a1b2"]
    assert [(problem.line, problem.task_id, problem.field) for problem in found.problems] == [
        (3, "7", "eval.program_html.0.required_contents"),
        (4, "", ""),
        (5, "", ""),
        (6, "a1b2", "website"),
        (7, "621", "task_id"),
    ]


@pytest.mark.parametrize("url", ["http://[x/", "http://x:99999/"])
def test_a_url_that_cannot_be_read_is_a_problem_of_its_row_and_not_of_the_run(tmp_path, url):
    matched = {"eval_types": ["url_match"], "reference_url": f"http://y/ |OR| {url}"}
    alternative = {**matched, "reference_url": "http://y/", "or": [{"reference_url": url}]}
    rows = [{**ONLINE, "website": url}, *({**WEBARENA, "eval": each} for each in (matched, alternative)), WEBCHOREARENA]
    found = read(tmp_path, *rows)
    assert [task.task_id for task in found.tasks] == ["10001"]
    assert [problem.field for problem in found.problems] == [
        "start_urls.0", "eval.reference_url", "eval.or.0.reference_url",
    ]  # fmt: skip
    assert all("not a URL" in problem.message for problem in found.problems)


def test_labels_are_spelled_as_in_json_and_empty_ones_are_none(tmp_path):
    (task,) = read(tmp_path, {**WEBCHOREARENA, "type_sub": "", "affects_environment": False}).tasks
    assert (task.labels["required_wait"], task.labels["affects_environment"]) == ("true", "false")
    assert "type_sub" not in task.labels


def test_tasks_are_selected_by_labels(tmp_path):
    hard, copy, easy = read(tmp_path, WEBCHOREARENA, ONLINE_COPY, ONLINE).tasks
    every = [hard, copy, easy]
    assert matching(every, parse_conditions(["type_main=calc"])) == [hard]
    assert matching(every, parse_conditions(["level=hard", "level=easy"])) == [copy, easy]
    assert matching(every, parse_conditions(["level=easy", "reference_length=4"])) == [easy]
    assert matching(every, parse_conditions(None)) == every


def test_rows_before_a_row_that_is_not_json_load(tmp_path):
    found = read(tmp_path, text=f"[{json.dumps(ONLINE)},\n{{'a': 1}},\n{json.dumps(WEBARENA)}]")
    assert [task.task_id for task in found.tasks] == ["a1b2"]
    assert [problem.line for problem in found.problems] == [2]


def test_json_lines_are_read_line_by_line(tmp_path):
    found = read(tmp_path, text=f"{json.dumps(ONLINE)}\n\n{{\n{json.dumps(WEBARENA)}\n")
    assert [task.task_id for task in found.tasks] == ["a1b2", "621"]
    assert [problem.line for problem in found.problems] == [3]


@pytest.mark.parametrize(
    ("evaluation", "field"),
    [
        ({"eval_types": ["string_match"]}, "eval"),
        ({"eval_types": ["string_match"], "reference_answers": {"must_include": []}}, "eval.reference_answers"),
        ({"eval_types": ["string_match"], "reference_answers": {"must_exclude": ["x"]}}, "eval.reference_answers"),
        ({"eval_types": ["url_match"], "reference_url": ""}, "eval"),
        ({"eval_types": ["url_match"], "reference_url": "http://x", "url_note": "EXACT"}, "eval"),
        ({"eval_types": ["program_html"], "program_html": []}, "eval"),
        ({"eval_types": ["page_image_query"]}, "eval.eval_types.0"),
        ({"eval_types": []}, "eval.eval_types"),
        (None, "eval"),
    ],
)
def test_an_evaluation_that_cannot_be_made_is_found_when_the_file_is_read(tmp_path, evaluation, field):
    found = read(tmp_path, {**WEBARENA, "eval": evaluation})
    assert found.tasks == ()
    assert found.problems[0].field.startswith(field)


def test_a_file_that_cannot_be_read_is_refused(tmp_path):
    with pytest.raises(InvalidInput, match="cannot be read"):
        read_task_file(tmp_path / "none.json")
    with pytest.raises(InvalidInput, match="no rows"):
        read(tmp_path, text="[]")
    (tmp_path / "latin.json").write_bytes(b'["\xe9"]')
    with pytest.raises(InvalidInput, match="UTF-8"):
        read_task_file(tmp_path / "latin.json")


def test_a_task_is_the_same_after_it_was_stored(tmp_path):
    rows = [{**WEBARENA, "eval": {**WEBARENA["eval"], "or": [{"reference_url": "http://y"}]}}, WEBCHOREARENA, ONLINE]
    for task in read(tmp_path, *rows).tasks:
        assert Task.model_validate_json(task.model_dump_json(by_alias=True)) == task


@pytest.mark.parametrize(
    "text", ["[" * 100_000, '[{"a": ' + "1" * 10_000 + "}]", '{"a": ' + "1" * 10_000 + "}", "[1 2]"]
)
def test_hostile_json_is_a_problem_of_a_row(tmp_path, text):
    found = read(tmp_path, text=text)
    assert (found.tasks, found.problems[-1].line) == ((), 1)


@given(st.text(alphabet='[]{}",:1 \n\\ud8'))
def test_any_text_is_rows_or_problems(text):
    for row in json_rows(text):
        assert 1 <= row.line <= text.count("\n") + 1


def test_half_a_character_does_no_harm(tmp_path):
    (task,) = read(tmp_path, {**ONLINE, "confirmed_task": "Find \ud83d"}).tasks
    assert Task.model_validate_json(task.model_dump_json()).intent == "Find \ufffd"


# ---- calls in task files ---------------------------------------------------------------------------------------------


def test_known_calls_are_parsed():
    assert parse_url_call("func:reddit_get_post_url('__last_url__')").function is PageFunction.POST_URL
    assert parse_url_call("func:shopping_get_latest_order_url()").arguments == ()
    assert parse_locator_call("func:gitlab_get_project_memeber_role(__page__, 'byte')").arguments == (
        "__page__", "byte",
    )  # fmt: skip
    assert parse_url_call("last") is None
    assert parse_locator_call("[...document.querySelectorAll('a')].length") is None


@pytest.mark.parametrize(
    "text",
    [
        "func:__import__('os').system('id')",
        "func:open('/etc/passwd').read()",
        "func:reddit_get_post_url(open('x').read())",
        "func:reddit_get_post_url('a' + 'b')",
        "func:reddit_get_post_url(f'{1}')",
        "func:reddit_get_post_url(url='x')",
        "func:reddit_get_post_url()",
        "func:shopping_get_sku_latest_review_author('sku')",
        "func:",
        "func:reddit_get_post_url('",
    ],
)
def test_no_other_call_is_a_url(text):
    with pytest.raises(ValueError, match=r"\w"):
        parse_url_call(text)


def test_a_locator_is_javascript_of_the_page_or_a_known_call():
    for text in ("fetch('http://x')", "func:eval('1')", "func:reddit_get_post_url('x')"):
        with pytest.raises(ValueError, match=r"\w"):
            parse_locator_call(text)


@given(st.text(max_size=40))
def test_any_text_is_a_known_call_or_refused(text):
    try:
        call = parse_url_call(f"func:{text}")
    except ValueError:
        return
    assert call.function in {PageFunction.POST_URL, PageFunction.LATEST_ORDER_URL}


def test_the_post_of_a_page():
    assert post_url("http://r.example/f/books/1/title#c") == "http://r.example/f/books/1/"
    assert post_url("http://r.example/f/books") == "http://r.example/f/books"
    assert post_url("http://r.example/user/books/1/2") == "http://r.example/user/books/1/2"


@given(st.lists(st.dictionaries(st.text(max_size=3), st.none() | st.integers() | st.text(max_size=5)), max_size=5))
def test_rows_of_a_list_are_those_of_the_json_document(rows):
    assert [row.value for row in json_rows(json.dumps(rows))] == rows
    text = json.dumps(rows, indent=2)
    found = list(json_rows(text))
    assert [row.value for row in found] == rows
    assert all(text.split("\n")[row.line - 1].startswith("  {") for row in found)
