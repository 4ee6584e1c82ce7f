"""A JavaScript dialog is a state of the tree search: answers are proposed, judged and tried like other actions."""

import json

import pytest

from tests.searching import Scripted, search
from tests.sites.server import FixtureServer
from waygraph.agents.models.scripted import ScriptedModel
from waygraph.agents.search import (
    ChatCandidates,
    HistoryContext,
    NearestElements,
    SearchLimits,
    SearchTree,
    TaskNearness,
)
from waygraph.core.settings import EncodeSettings
from waygraph.pipeline.encode.registry import create_encoder


def page(title, *buttons):
    """Return a page with buttons, and a paragraph that their scripts write."""
    made = "".join(f'<button onclick="{script}">{name}</button>' for name, script in buttons)
    return f"<!doctype html><title>{title}</title>{made} <a href=/other>Other</a><p id=out>None</p>"


SENDS = "if (confirm('Sure?')) fetch('/trap', {method: 'POST', body: 'x'}).then(() => out.textContent = 'Sent')"
PAGES = {
    "/": page("Notes", ("Tidy", "out.textContent = confirm('Sure?') ? 'Gone' : 'Kept'")),
    "/two": page(
        "Notes",
        ("One", "if (confirm('Sure?')) out.textContent = 'First'"),
        ("Two", "if (confirm('Sure?')) out.textContent = 'Second'"),
    ),
    "/name": page("Notes", ("Rename", "out.textContent = prompt('Name?', 'Draft')")),
    "/sends": page("Notes", ("Go", SENDS)),
    "/orders": page("Notes", ("Buy", "fetch('/order', {method: 'POST'}); out.textContent = confirm('Print?') + '!'")),
    "/order": "ok",
    "/chain": page("Notes", ("Ask", "out.textContent = [confirm('First?'), confirm('Second?')]")),
    "/other": "<!doctype html><title>Other</title><h1>Other</h1>",
    "/trap": "ok",
}
ALLOWED = {"session_options": {"destructive": "allow"}}


@pytest.fixture(scope="module")
def site():
    with FixtureServer(PAGES) as server:
        yield server


def tree_of(site, tmp_path, on_page, on_dialog, **options):
    """Search with what is proposed on the first page, and in its dialogs; return the tree and the text at the end."""
    return tree_by(site, tmp_path, Scripted({"Notes / None": on_page, "Notes": on_dialog}), **options)


def tree_by(site, tmp_path, generator, **options):
    _, tabs, shown = search(site, [generator], tree_file=tmp_path / "tree.json", **options)
    assert tabs == 1
    return SearchTree.model_validate_json((tmp_path / "tree.json").read_bytes()), shown


def steps(tree):
    return [each.action for each in tree.log]


def test_a_dialog_is_a_state_and_its_answer_an_action(site, tmp_path):
    tree, shown = tree_of(site, tmp_path, {"Tidy": 0.9}, {"accept": 0.8}, **ALLOWED)
    assert steps(tree) == ['click button "Tidy"', "accept"]
    assert [each.dialog for each in tree.nodes] == ["", "confirm: Sure?", ""]
    assert tree.nodes[2].parent == 1
    assert "Gone" in shown


def test_a_dialog_is_only_dismissed_where_changes_are_not_allowed(site, tmp_path):
    tree, shown = tree_of(site, tmp_path, {"Tidy": 0.9}, {"accept": 0.8, "dismiss": 0.7})
    assert steps(tree) == ['click button "Tidy"', "dismiss"]
    assert "Kept" in shown


def test_accepting_waits_for_everything_safe_and_opens_the_dialog_again(site, tmp_path):
    tree, shown = tree_of(site, tmp_path, {"Tidy": 0.9, "Other": 0.1}, {"accept": 0.8}, **ALLOWED)
    assert steps(tree) == ['click button "Tidy"', 'click link "Other"', "accept"]
    assert [(each.target, each.tried, each.arrived) for each in tree.backtracks[-2:]] == [
        (0, ["url:0"], True), (1, ["dialog:0"], True)
    ]  # fmt: skip
    assert "Gone" in shown


def test_a_dialog_is_dismissed_when_the_search_goes_on_elsewhere(site, tmp_path):
    tree, shown = tree_of(site, tmp_path, {"Tidy": 0.9, "Other": 0.1}, {}, **ALLOWED)
    assert steps(tree) == ['click button "Tidy"', 'click link "Other"']
    assert "Other" in shown


def test_the_same_question_of_two_buttons_is_two_states(site, tmp_path):
    tree, _ = tree_of(site, tmp_path, {"One": 0.9, "Two": 0.8}, {"accept": 0.1}, path="/two", **ALLOWED)
    assert [each.dialog for each in tree.nodes[:3]] == ["", "confirm: Sure?", "confirm: Sure?"]
    assert steps(tree) == ['click button "One"', 'click button "Two"', "accept", "accept"]
    assert {each.state.title for each in tree.nodes} == {"Notes"}


def test_a_prompt_gets_the_text_that_is_proposed(site, tmp_path):
    tree, shown = tree_of(site, tmp_path, {"Rename": 0.9}, {"accept Minutes": 0.8}, path="/name", **ALLOWED)
    assert steps(tree) == ['click button "Rename"', "accept [Minutes]"]
    assert "Minutes" in shown


def test_an_answer_that_sends_data_begins_the_search_anew(site, tmp_path):
    tree, _ = tree_of(site, tmp_path, {"Go": 0.9}, {"accept": 0.8}, path="/sends", **ALLOWED)
    accepted = next(each for each in tree.candidates if each.text == "accept")
    assert accepted.changed == [f"POST {site.at('/trap')}"]
    assert tree.root == accepted.result


def test_what_sent_data_before_it_asked_is_not_done_again_for_the_other_answer(site, tmp_path):
    tree, _ = tree_of(site, tmp_path, {"Buy": 0.9}, {"accept": 0.8, "dismiss": 0.7}, path="/orders", **ALLOWED)
    assert {"accept", "dismiss"} <= {each.text for each in tree.candidates}
    assert site.requests.count(("POST", "/order")) == 1


def test_the_dialog_after_a_dialog_is_a_state_below_it(site, tmp_path):
    tree, shown = tree_of(site, tmp_path, {"Ask": 0.9}, {"accept": 0.8}, path="/chain", **ALLOWED)
    assert [each.dialog for each in tree.nodes[:3]] == ["", "confirm: First?", "confirm: Second?"]
    assert steps(tree) == ['click button "Ask"', "accept", "accept"]
    assert "true,true" in shown


@pytest.mark.parametrize(("options", "done"), [(ALLOWED, "accept"), ({}, "dismiss")])
def test_without_a_model_a_dialog_is_accepted_if_that_is_allowed(site, tmp_path, options, done):
    nearest = NearestElements(TaskNearness(create_encoder(EncodeSettings())))
    tree, _ = tree_by(site, tmp_path, nearest, path="/two", limits=SearchLimits(max_steps=2), **options)
    assert {each.text for each in tree.candidates if each.action.action in {"accept", "dismiss"}} == {done}


def test_a_model_is_shown_the_dialog_and_may_only_answer_it_or_stop(site):
    written = ["click [1]", "click [1]", "dismiss", *["stop [kept]"] * 9]
    replies = [json.dumps({"summary": "s", "note": "", "thinking": "t", "action": each}) for each in written]
    model = ScriptedModel(replies)
    run, _, _ = search(site, [ChatCandidates(model, HistoryContext())], path="/two")
    assert [step.action for step in run.steps] == ['click button "One"', "dismiss"]
    asked, again = model.requests[1].messages, model.requests[2].messages
    assert "alertdialog 'Sure?' [kind: confirm]" in asked[1].text
    assert "accept" in asked[0].text
    assert "hover" not in asked[0].text
    assert "the actions are accept, dismiss, stop" in again[1].text
