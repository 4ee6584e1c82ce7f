"""Each switch of docs/agents.md, "Switches for comparisons", changes what the model is asked."""

import json
from dataclasses import replace
from types import SimpleNamespace

import pytest

from tests.model_replies import SECTIONS
from tests.unit.waygraph.agents.observation.test_simplify import tree
from waygraph.agents.actions.brackets import parse_brackets
from waygraph.agents.actions.session import SessionOptions
from waygraph.agents.actions.sites import AgentSite
from waygraph.agents.create import AgentName, AgentParts
from waygraph.agents.loop.decision import Situation
from waygraph.agents.loop.tips import SiteTips, read_tips
from waygraph.agents.loop.usage_meter import UsageMeter
from waygraph.agents.models.scripted import ScriptedModel
from waygraph.agents.observation.open_dialog import OpenDialog
from waygraph.agents.observation.page_observation import PageObservation
from waygraph.core.errors import InvalidInput
from waygraph.core.settings import AgentSettings

SHOWN = tree("""
main
  generic
    link [1] Orders
      StaticText Orders
""")
PAGE = replace(PageObservation.of(OpenDialog("confirm", "none", "").snapshot("http://a.example/", "A")), tree=SHOWN)
SITE = AgentSite("a.example", "a.example", "http://a.example/", is_mapped=True)
STEPS = 8
OCCAM, WEBNAVIGATOR, MEMORY = AgentName.OCCAM, AgentName.WEBNAVIGATOR, AgentName.MEMORY


def session_of(sites):
    """Return what creating an agent needs of a session: its sites."""
    return SimpleNamespace(options=SessionOptions(sites=sites))


async def last_request(name, *, sites=(SITE,), tips="", screenshot=None, **settings):
    """Return what the model is asked after some steps."""
    model = ScriptedModel([json.dumps({**SECTIONS[name], "action": "go_back"})] * STEPS)
    parts = AgentParts(name, AgentSettings(**settings), None, UsageMeter(model))
    agent = parts.agent(session_of(sites), tips=tips)
    page = replace(PAGE, form=parts.settings.observation)
    for number in range(STEPS):
        situation = Situation("Buy a lamp", page, 5, screenshot=screenshot, tips=agent._tips)
        decision = await agent._decider.decide(situation)
        agent._decider.remember(decision, parse_brackets("go_back"), f"result {number}", page)
    return model.requests[-1]


@pytest.mark.parametrize("name", [OCCAM, WEBNAVIGATOR, MEMORY])
@pytest.mark.parametrize(
    "switch",
    [
        {"history_steps": 1}, {"model": {"temperature": 1.0}}, {"model": {"top_p": 0.5}}, {"sites": ()},
        {"tips": "- Prices include tax."}, {"screenshot": b"png"}, {"history_steps": 0},
        {"observation": "raw"}, {"observation": "simplified"},
    ],
    ids=lambda switch: "-".join(map(str, next(iter(switch.items())))),
)  # fmt: skip
async def test_a_switch_changes_the_request(name, switch):
    assert await last_request(name, **switch) != await last_request(name)


async def test_planning_off_takes_plans_and_their_actions_from_the_prompt():
    on, off = await last_request(OCCAM), await last_request(OCCAM, planning=False)
    for part in ("branch [", "prune [", "You work by plans"):
        assert part in on.messages[0].text
        assert part not in off.messages[0].text
    assert "Plans:" in on.messages[1].text
    assert "Plans:" not in off.messages[1].text


@pytest.mark.parametrize(
    ("name", "steps", "shown"),
    [(OCCAM, None, 3), (WEBNAVIGATOR, None, 5), (MEMORY, None, 7), (OCCAM, "all", 7), (OCCAM, 1, 1), (OCCAM, 0, 0)],
)
async def test_prompts_show_as_many_steps_as_the_paper_or_the_setting_says(name, steps, shown):
    request = await last_request(name, history_steps=steps)
    assert request.messages[1].text.count("result: result ") == shown


@pytest.mark.parametrize(
    ("form", "lines", "has_show"),
    [
        ("raw", "main generic link [1] 'Orders' StaticText 'Orders'", False),
        ("simplified", "main link [1] 'Orders'", False),
        ("abridged", "main link [1] 'Orders'", True),
    ],
)
async def test_pages_are_the_tree_before_or_after_the_papers_passes(form, lines, has_show):
    asked = (await last_request(OCCAM, observation=form)).messages
    assert lines in " ".join(asked[1].text.split())
    assert ("show [id]" in asked[0].text) == has_show
    assert ("show lists them" in asked[0].text) == has_show


async def test_sampling_is_the_papers_unless_settings_say_otherwise():
    paper = await last_request(OCCAM)
    assert (paper.temperature, paper.top_p) == (0.5, 0.95)
    own = await last_request(WEBNAVIGATOR, model={"temperature": 0.0, "top_p": 1.0})
    assert (own.temperature, own.top_p) == (0.0, 1.0)


async def test_the_judge_changes_the_form_of_the_answer():
    proposed = {key: value for key, value in SECTIONS[OCCAM].items() if key != "reason"}
    model = ScriptedModel([json.dumps({**proposed, "actions": [{"reason": "", "action": "stop [x]"}]})])
    parts = AgentParts(OCCAM, AgentSettings(occam_judge=True), None, UsageMeter(model))
    decision = await parts.agent(session_of([SITE]))._decider.decide(Situation("Buy a lamp", PAGE, 5))
    assert decision.action == "stop [x]"
    assert "actions" in model.requests[0].json_format.schema["properties"]


def test_tips_are_those_of_the_sites_and_of_all(tmp_path):
    file = tmp_path / "tips.yaml"
    file.write_text("all: [Calculate step by step.]\nshopping: [Prices include tax.]\nforum: [Sort by new.]\n")
    tips = read_tips(file)
    assert tips.text(["shopping", "127.0.0.1:7770"]) == "- Calculate step by step.\n- Prices include tax."
    assert tips.text([]) == "- Calculate step by step."
    assert SiteTips({}).text(["shopping"]) == ""


@pytest.mark.parametrize("text", ["shopping: Prices include tax.", "[a, b]", "shopping: [{a: b}]", "shopping: ['']"])
def test_a_tips_file_of_another_form_is_an_error_with_its_line(tmp_path, text):
    file = tmp_path / "tips.yaml"
    file.write_text(text)
    with pytest.raises(InvalidInput, match="tips file"):
        read_tips(file)


async def test_only_what_answers_a_dialog_is_offered_while_one_is_open():
    model = ScriptedModel([json.dumps({**SECTIONS[OCCAM], "action": "go_back"})])
    parts = AgentParts(OCCAM, AgentSettings(), None, UsageMeter(model))
    seen = PageObservation(PAGE.snapshot, PAGE.elements, PAGE.tree, dialog=OpenDialog("confirm", "Sure?"))
    await parts.agent(session_of([SITE]))._decider.decide(Situation("Buy a lamp", seen, 5))
    actions = model.requests[0].messages[0].text.split("Actions, written with their brackets:\n")[1].split("\n\n")[0]
    assert [line.split()[0].rstrip(":") for line in actions.splitlines()] == ["accept", "dismiss", "note", "stop"]
