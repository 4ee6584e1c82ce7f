"""Tree search with a chat model in a real browser: replays, questions that are asked again, and going on.

The same recording makes the same tree; `make soak-search` compares 20 (`WAYGRAPH_RUNS`).
"""

import json
import os

import pytest

from tests.searching import search
from tests.sites.server import FixtureServer
from waygraph.agents.models.cassette import CassetteModel
from waygraph.agents.models.scripted import ScriptedModel
from waygraph.agents.run_record import AttemptEnd
from waygraph.agents.search import ChatCandidates, ChecklistReward, HistoryContext, SearchTree

RUNS = int(os.environ.get("WAYGRAPH_RUNS", "2"))
START = "<!doctype html><title>Start</title><h1>Start</h1><a href=/shelf>Shelf</a> <a href=/other>Other</a>"
SHELF = "<!doctype html><title>Shelf</title><h1>Shelf</h1><p>Made of oak"
OTHER = "<!doctype html><title>Other</title><h1>Other</h1>"


@pytest.fixture
def site():
    with FixtureServer({"/": START, "/shelf": SHELF, "/other": OTHER}) as server:
        yield server


def replies(*actions):
    return [json.dumps({"summary": "s", "note": "", "thinking": "t", "action": each}) for each in actions]


def rewards(request):
    """Answer a judge's question: one milestone, which the page "Other" and the link to it reach."""
    if request.json_format.name == "_Checklist":
        return json.dumps({"milestones": ["done"]})
    text = request.messages[1].text
    return json.dumps({"verdicts": ["yes" if "/other\n" in text or 'page: click link "Other"' in text else "no"]})


def contexts(model):
    return [ChatCandidates(model, HistoryContext()), ChatCandidates(model, HistoryContext(), name="second", seed=2)]


def chat_search(site, written, **options):
    model = ScriptedModel(replies(*written))
    judge = ScriptedModel([rewards] * 50)
    run, _, _ = search(site, contexts(model), reward=ChecklistReward(judge), **options)
    return run, model


#: A context asked three times in vain.
NOTHING = ["fly [1]"] * 3


def test_the_same_recording_makes_the_same_tree(site, tmp_path):
    written = ["click [2]", "click [1]", "stop [other]", *NOTHING, "stop [oak]", *NOTHING]
    models = {"chat": ScriptedModel(replies(*written)), "judge": ScriptedModel([rewards] * 50)}
    trees = []
    for number in range(1 + RUNS):
        # The first search records; those after it have no model.
        chat, judge = (CassetteModel(tmp_path / f"{name}.jsonl", models.pop(name, None)) for name in ("chat", "judge"))
        file = tmp_path / f"{number}.json"
        run, _, _ = search(site, contexts(chat), reward=ChecklistReward(judge), tree_file=file)
        trees.append(file.read_text())
    assert (run.end, run.answer) == (AttemptEnd.ANSWERED, "other")
    assert SearchTree.model_validate_json(trees[0]).backtracks
    assert sum(step.usage.calls for step in run.steps) > 4
    assert len(set(trees)) == 1


def test_a_generator_is_told_what_was_wrong_if_nothing_that_it_wrote_can_be_done(site):
    run, model = chat_search(site, ["click [77]", "fly", "click [2]", "click [2]", "stop [x]", "stop [x]"])
    assert "There is no element [77]" in model.requests[1].messages[1].text
    assert "'fly' is not an available action" in model.requests[2].messages[1].text
    assert run.steps[0].action == 'click link "Other"'


def test_a_search_goes_on_where_a_model_failed_without_asking_again(site, tmp_path):
    file = tmp_path / "tree.json"
    run, _ = chat_search(site, ["click [2]", "click [1]"], tree_file=file)
    assert run.end is AttemptEnd.UNAVAILABLE
    assert "no reply" in run.problem
    again, model = chat_search(site, ["stop [other]", "stop [other]"], tree_file=file)
    assert (again.end, again.answer) == (AttemptEnd.ANSWERED, "other")
    assert f"\n{site.at('/other')}\n" in model.requests[0].messages[1].text
    finished, unasked = chat_search(site, [], tree_file=file)
    assert (finished.answer, unasked.requests) == ("other", [])


def test_the_file_of_another_search_is_refused(site, tmp_path):
    file = tmp_path / "tree.json"
    file.write_text(SearchTree(task="another", budget=4).model_dump_json())
    run, _, _ = search(site, {}, tree_file=file)
    assert run.end is AttemptEnd.FAILED
    assert "another task" in run.problem
