"""What the contexts put into prompts, and how the settings choose among them."""

import json
from types import SimpleNamespace

import pytest

from waygraph.agents.actions.session import SessionOptions
from waygraph.agents.create import AgentName, AgentParts
from waygraph.agents.loop.usage_meter import UsageMeter
from waygraph.agents.models.scripted import ScriptedModel
from waygraph.agents.observation.open_dialog import OpenDialog
from waygraph.agents.observation.page_observation import PageObservation
from waygraph.agents.search import ProposalRequest, Trajectory, chat_contexts
from waygraph.agents.search.chat_contexts import ExperienceContext
from waygraph.agents.search.page_window import PageWindow
from waygraph.core.schemas import Hit, SearchAnswer
from waygraph.core.settings import AgentSettings, SearchSettings


class Maps:
    """Finds one page of each site, and one that no path leads to."""

    def __init__(self):
        self.asked = []

    async def search(self, site, query, k):
        self.asked.append((site, query, k))
        found = Hit(rank=1, node_id="n", url=f"http://{site}/a", title=f"Page of {site}", score=1.0)
        return SearchAnswer(hits=[found, found.model_copy(update={"title": "Sign out", "refusal": "hazard"})])


def names(settings, **more):
    return [each.name for each in chat_contexts(ScriptedModel([]), settings, **more)]


def test_three_contexts_propose_one_action_each_and_take_turns_for_more():
    maps = {"maps": Maps(), "sites": ["a.example"]}
    assert names(SearchSettings(), **maps) == ["history", "experience", "rephrased"]
    assert names(SearchSettings(branching=4), **maps) == ["history", "experience", "rephrased", "history 2"]


def test_without_a_map_there_is_no_experience():
    assert names(SearchSettings()) == ["history", "rephrased", "history 2"]


def test_the_contexts_of_the_settings_are_used():
    assert names(SearchSettings(contexts=("history",), branching=2)) == ["history", "history 2"]


@pytest.mark.parametrize("temperature", [0.0, 0.7])
async def test_proposals_are_sampled_at_the_temperature_of_the_settings(temperature):
    model = ScriptedModel([json.dumps({"summary": "s", "note": "", "thinking": "t", "action": "stop [x]"})])
    seen = PageObservation.of(OpenDialog("confirm", "none", "").snapshot("http://a.example/", "A"))
    context = chat_contexts(model, SearchSettings(temperature=temperature))[0]
    await context.propose(ProposalRequest(Trajectory("a task"), seen))
    assert [each.temperature for each in model.requests] == [temperature]


@pytest.mark.parametrize(
    "switch",
    [
        {"branching": 2}, {"budget": 9}, {"depth": 2}, {"retries": 0}, {"order": "paper"}, {"merging": False},
        {"speculation": False}, {"backtracking": False}, {"begin_anew": False},
    ],
    ids=lambda switch: next(iter(switch)),
)  # fmt: skip
def test_the_settings_are_the_options_of_the_search(switch):
    def options(**search):
        parts = AgentParts(AgentName.SEARCH, AgentSettings(search=search), None, UsageMeter(ScriptedModel([])))
        return parts.agent(SimpleNamespace(options=SessionOptions()))._options

    assert options(**switch) != options()


async def test_experience_is_what_the_map_of_every_site_finds_for_the_task_and_is_asked_once():
    maps = Maps()
    context = ExperienceContext(maps, ["a.example", "b.example"])
    text, usage = await context.text("a task")
    assert await context.text("a task") == (text, usage) == (text, None)
    assert text.startswith("Task: a task\n\n")
    assert '{"page": "Page of a.example", "at": "http://a.example/a"}' in text
    assert "Page of b.example" in text
    assert "Sign out" not in text
    assert maps.asked == [("a.example", "a task", 5), ("b.example", "a task", 5)]


def test_a_window_holds_whole_lines_and_moves_on_after_the_last_of_them():
    window = SimpleNamespace(chars=10)
    first = PageWindow.part(window, "aaaa\nbbbb\ncccc\n" + "d" * 20)
    assert (first.text, first.end, first.is_whole) == ("aaaa\nbbbb", 2, False)
    assert first.place == "Lines 1 to 2 of 4 of the page:"
    assert PageWindow.part(window, "aaaa\nbbbb\ncccc\n" + "d" * 20, 3).text == "d" * 9 + "\u2026"
    assert PageWindow.part(window, "aaaa").is_whole
