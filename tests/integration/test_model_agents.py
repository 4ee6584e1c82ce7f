"""WebNavigator's agent and AgentOccam with scripted models, in a real browser on the demo shop."""

import json
import re
from pathlib import Path

import pytest

from tests.browsers import BROWSERS, LOOPBACK_ONLY
from tests.model_replies import reply
from waygraph import AsyncWaygraph
from waygraph.agents.actions import AgentSession, SessionOptions
from waygraph.agents.actions.home_page import HOME_URL
from waygraph.agents.actions.sites import AgentSite
from waygraph.agents.create import AgentName, AgentParts
from waygraph.agents.loop.agent import MAX_UNUSABLE
from waygraph.agents.loop.usage_meter import UsageMeter
from waygraph.agents.models.budget import BudgetedModel, ModelBudget
from waygraph.agents.models.cassette import CassetteModel
from waygraph.agents.models.scripted import ScriptedModel
from waygraph.core.errors import ContextTooLong, ModelUnavailable
from waygraph.core.schemas import UsageModel
from waygraph.core.settings import AgentSettings
from waygraph.core.urls import site_key
from waygraph.demo_site import DemoSite

TASK = "What does shipping to Norway cost?"
BOTH = pytest.mark.parametrize("name", [AgentName.WEBNAVIGATOR, AgentName.OCCAM])


@pytest.fixture(scope="module")
def site():
    with DemoSite() as running:
        yield running


def choice(number):
    return json.dumps({"reasoning": "it fits", "choice": number})


def run(
    url,
    name,
    replies,
    *,
    maps_in=None,
    mapped=(),
    others=(),
    wrap=lambda model: model,
    max_steps=10,
    tips="",
    **settings,
):
    """Run the agent; return its run and the scripted model."""
    script = ScriptedModel(replies)

    async def work():
        browser = await BROWSERS.browser()
        context = await browser.new_context(viewport={"width": 1280, "height": 800}, reduced_motion="reduce")
        maps = AsyncWaygraph(maps_in) if maps_in else None
        parts = AgentParts(name, AgentSettings(**settings), None, UsageMeter(wrap(script)))
        try:
            page = await context.new_page()
            await page.goto(url)
            sites = [*(AgentSite(key, key, url, is_mapped=True) for key in mapped), *others]
            options = SessionOptions(browser=LOOPBACK_ONLY, sites=sites, observation=parts.settings.observation)
            async with AgentSession(page, options, maps=maps, selector=parts.page_selector(TASK)) as session:
                agent = parts.agent(session, max_steps=max_steps, tips=tips)
                return await agent.run(TASK)
        finally:
            await context.close()
            if maps:
                await maps.close()

    return BROWSERS.run(work()), script


def statuses(done):
    return [step.status for step in done.steps]


def test_webnavigator_acts_notes_goes_back_and_answers(site):
    actions = [
        "click {link 'Help'}", "note [Help has a page on shipping]", "go_back",
        "type {searchbox 'Search the shop'} [lamp]", "stop [5 euros]",
    ]  # fmt: skip
    name = AgentName.WEBNAVIGATOR
    done, script = run(site.url, name, [reply(name, action) for action in actions])
    assert (done.end, done.answer) == ("answered", "5 euros")
    assert statuses(done) == ["done", "kept", "done", "done", "kept"]
    assert done.steps[0].message.endswith(f"at {site.url}help.")
    assert "lamp" in done.url
    last = script.requests[-1].messages[-1].text
    assert "- Help has a page on shipping" in last
    assert f"3. on {site.url}help: go_back" in last
    assert "navigate" not in script.requests[0].messages[0].text
    assert all(step.usage.calls == 1 and step.details["mode"] == "exploration" for step in done.steps)


def candidate_lines(request):
    """Return the numbered lines of a question which page is meant."""
    return re.search(r"<pages \w+>\n(.*)\n</pages", request.messages[-1].text, re.DOTALL)[1].split("\n")


def choose_path(path):
    def write(request):
        return choice(next(int(line.split()[0]) for line in candidate_lines(request) if f'"{path}"' in line))

    return write


@pytest.mark.parametrize("form", ["raw", "simplified"])
def test_pages_that_leave_nothing_out_are_acted_on_by_the_same_ids(site, form):
    actions = [reply(AgentName.OCCAM, "click {link 'Help'}"), reply(AgentName.OCCAM, "stop [5 euros]")]
    done, script = run(site.url, AgentName.OCCAM, actions, observation=form)
    assert statuses(done) == ["done", "kept"]
    page = script.requests[-1].messages[-1].text
    assert "(unchanged)" not in page
    assert ("StaticText" in page) == (form == "raw")


@pytest.mark.parametrize("name", [AgentName.WEBNAVIGATOR, AgentName.OCCAM])
def test_showing_a_part_takes_no_action_unless_it_is_repeated(site, name):
    shows = [reply(name, "click {link 'Help'}"), reply(name, "show [p1]"), reply(name, "stop [5 euros]")]
    done, script = run(site.url, name, shows, max_steps=2)
    assert (done.end, statuses(done)) == ("answered", ["done", "kept", "kept"])
    before, after = (request.messages[-1].text for request in script.requests[1:])
    assert "banner [p1] (unchanged)" in before
    assert "banner [p1] (unchanged)" not in after
    assert "Actions left: 1" in before
    assert "Actions left: 1" in after
    parts = ["p1", "p2", "20", "22", "24"]
    done, _ = run(site.url, name, [shows[0], *(reply(name, f"show [{part}]") for part in parts)] * 3, max_steps=2)
    assert done.end in {"step_limit", "failed"}


def test_webnavigator_retrieves_reasons_and_teleports(shop, shop_store):
    name, key = AgentName.WEBNAVIGATOR, shop.capture.site
    navigate = f"navigate [{key}] [what shipping costs]"
    replies = [
        reply(name, navigate, reason="The costs are needed."),
        choose_path("/help/shipping"),
        reply(name, navigate),
        reply(name, "go_back"),
        reply(name, navigate, mode="action"),
        reply(name, "navigate [elsewhere.example] [x]"),
        reply(name, "stop [N/A]"),
    ]
    done, script = run(shop.site.url, name, replies, maps_in=shop_store, mapped=[key], select="model")
    assert (done.end, done.answer) == ("answered", "N/A")
    assert statuses(done) == ["done", "unparsed", "done", "unparsed", "unparsed", "kept"]
    arrived, twice, _, acting, unknown, _ = (step.message for step in done.steps)
    assert 'the page "Shipping · Northfold". It was chosen among 8.' in arrived
    assert f"{shop.site.url}help/shipping" in arrived
    assert "with this query just now" in twice
    assert "In action mode" in acting
    assert f"There is no map of 'elsewhere.example'; write one of these sites: {key}." in unknown
    assert done.steps[0].usage.calls == 2, "the choice among the pages is a part of the step"
    asked = script.requests[1].messages[-1].text
    told = json.loads(asked.partition("\n")[0])
    assert told == {"task": TASK, "needed for": "The costs are needed.", "query": "what shipping costs"}
    after = script.requests[2].messages[-1].text
    assert f"<page {after.partition('<page ')[2][:8]}>\n{shop.site.url}help/shipping" in after, (
        "navigate returns the page"
    )
    assert "1. on " in after
    assert "Sites with a map" in script.requests[0].messages[-1].text


def test_a_model_that_is_gone_when_a_page_is_to_be_chosen_ends_the_attempt_as_unavailable(shop, shop_store):
    name, key = AgentName.WEBNAVIGATOR, shop.capture.site
    replies = [reply(name, f"navigate [{key}] [the page with my orders]"), ModelUnavailable("gone")]
    done, _ = run(shop.site.url, name, replies, maps_in=shop_store, mapped=[key], select="model")
    assert (done.end, done.problem) == ("unavailable", "gone")


def test_a_page_that_is_sure_is_taken_without_a_question(shop, shop_store):
    name, key = AgentName.WEBNAVIGATOR, shop.capture.site
    replies = [reply(name, f"navigate [{key}] [how returns work]"), reply(name, "stop [N/A]")]
    done, _ = run(shop.site.url, name, replies, maps_in=shop_store, mapped=[key])
    assert statuses(done) == ["done", "kept"]
    assert done.steps[0].usage.calls == 1
    assert "It is most likely the right one." in done.steps[0].message


def test_in_doubt_eight_short_candidates_are_shown_then_thirty_and_a_miss_names_the_nearest(shop, shop_store):
    name, key = AgentName.WEBNAVIGATOR, shop.capture.site
    replies = [
        reply(name, f"navigate [{key}] [the page with my orders]"),
        choose_path("/account/orders"),
        reply(name, f"navigate [{key}] [the weather on Mars]"),
        choice(None),
        choice(None),
        reply(name, f"navigate [{key}] [lamps]"),
        choice(None),
        choice(1),
        reply(name, "stop [N/A]"),
    ]
    done, script = run(shop.site.url, name, replies, maps_in=shop_store, mapped=[key])
    assert statuses(done) == ["done", "failed", "done", "kept"]
    assert [step.usage.calls for step in done.steps] == [2, 3, 3, 1]
    shown = [candidate_lines(script.requests[number]) for number in (1, 3, 4, 6, 7)]
    assert [len(lines) for lines in shown] == [8, 8, 30, 8, 30]
    assert max(len(lines) and sum(map(len, lines)) / len(lines) for lines in shown) < 250
    miss = done.steps[1].message
    assert re.search(r"None of the pages that the map of \S+ \(\d+ states.*\) has for 'the weather on Mars' fits", miss)
    nearest = miss.partition("The nearest are ")[2]
    assert nearest.count(f"({shop.site.url}") == 5
    assert nearest.startswith('"')


@pytest.mark.parametrize("words", [50, 150, 300, 1_000])
def test_a_reason_of_any_length_leads_to_the_page(shop, shop_store, words):
    name, key = AgentName.WEBNAVIGATOR, shop.capture.site
    reason = "because of this " * (words // 3)
    replies = [
        reply(name, f"navigate [{key}] [what shipping costs]", reason=reason),
        choose_path("/help/shipping"),
        reply(name, "stop [N/A]"),
    ]
    done, _ = run(shop.site.url, name, replies, maps_in=shop_store, mapped=[key], select="model")
    assert done.url == f"{shop.site.url}help/shipping"


def test_navigate_to_the_first_page_that_the_map_finds_asks_no_model(shop, shop_store):
    name, key = AgentName.OCCAM, shop.capture.site
    replies = [reply(name, f"navigate [{key}] [how returns work]"), reply(name, "stop []")]
    done, _ = run(shop.site.url, name, replies, maps_in=shop_store, mapped=[key], select="first")
    assert (done.end, done.url) == ("answered", shop.site.url + "help/returns")


def two_sites(site):
    """Return two sites without maps: with several, an agent has `go_home`."""
    key = site_key(site.url)
    return AgentSite("shop", key, site.url), AgentSite("forum", "forum.example", "http://forum.example/")


def test_occam_plans_prunes_and_shows_the_history_of_the_active_plan(site):
    name = AgentName.OCCAM
    replies = [
        reply(name, "branch [0] [Read the help]"),
        reply(name, "click {link 'Help'}", highlight=["{link 'Help'}"], reason="help is there"),
        reply(name, "note [nothing yet]"),
        reply(name, "branch [7] [x]"),
        reply(name, "note [nothing yet]"),
        reply(name, "prune [0] [help does not say]"),
        reply(name, "go_home"),
        reply(name, "stop [N/A]"),
    ]
    done, script = run(site.url, name, replies, others=two_sites(site))
    assert (done.end, done.answer, done.url) == ("answered", "N/A", HOME_URL)
    assert statuses(done) == ["kept", "done", "kept", "unparsed", "unparsed", "done", "done", "kept"]
    assert done.steps[5].message.startswith(f"Loaded {site.url}")
    asked = [request.messages[-1].text for request in script.requests]
    assert "  [1] Read the help (active)" in asked[2]
    assert "why: help is there" in asked[2]
    assert "link [" in asked[2].partition("- page:")[2].partition("action:")[0], "the highlighted link"
    assert "There is no plan 7; the plans are 0, 1." in asked[4]
    assert "- nothing yet" in asked[5]
    assert "(active; resumed: help does not say)" in asked[6]
    assert "nothing yet" not in asked[6]
    assert "help is there" not in asked[6]


def proposals(*actions):
    """Return a reply that proposes actions, whose elements are named as in `reply`."""

    def write(request):
        written = [json.loads(reply(AgentName.OCCAM, action)(request))["action"] for action in actions]
        proposed = [{"reason": f"r{number}", "action": action} for number, action in enumerate(written, 1)]
        sections = {"history_summary": "h", "observation_description": "d", "observation_highlight": []}
        return json.dumps({**sections, "actions": proposed})

    return write


def verdict(number):
    assessed = {"action": 1, "value": "v", "risk": "r", "best_case": "b", "worst_case": "w"}
    return json.dumps({"plan_progress": "p", "assessments": [assessed], "reason": "shorter", "choice": number})


def test_occam_proposes_all_suitable_actions_in_one_answer_and_judges_them(site):
    name = AgentName.OCCAM
    replies = [
        proposals("note [Oslo is in Norway]", "note [oslo is in norway]"),  # one action: no judge
        proposals("fly [1]", "click {link 'Help'}", "go_home"), verdict(2),
        proposals("note [Oslo is in Norway]", "stop [a]"),  # the note was written before: no judge
    ]  # fmt: skip
    done, script = run(site.url, name, replies, others=two_sites(site), occam_judge=True)
    assert [step.action.split()[0] for step in done.steps] == ["note", "go_home", "stop"]
    assert [step.usage.calls for step in done.steps] == [1, 2, 1]
    asked = script.requests[2].messages[-1].text
    assert "fly" not in asked
    assert "2. go_home\n   r3" in asked
    for part in ("Task: What does", "[0] What does", "- Oslo is in Norway", "action: note [Oslo", "RootWebArea"):
        assert part in asked
    assert done.steps[1].details["verdict"]["assessments"][0]["risk"] == "r"


def test_the_memory_agent_writes_its_memory_anew_and_sees_it_in_the_next_step(site):
    def written(memory, action):
        return lambda request: json.dumps(
            {"thinking": "t", "memory": memory, "action": json.loads(reply(AgentName.OCCAM, action)(request))["action"]}
        )

    replies = [
        written("Norway: not known", "click {link 'Help'}"), written("Norway: 5 euros", "press [Escape]"),
        written("", "stop [5 euros]"),
    ]  # fmt: skip
    done, script = run(site.url, AgentName.MEMORY, replies, tips="- Prices are in euros.")
    assert (done.end, done.answer) == ("answered", "5 euros")
    first, second, third = (request.messages[-1].text for request in script.requests)
    assert "Your memory" not in first
    assert "Your memory:\nNorway: not known\n" in second
    assert "Your memory:\nNorway: 5 euros\n" in third
    assert "not known" not in third
    assert f"- on {site.url}: click" in third
    assert all("Tips for this task:\n- Prices are in euros." in text for text in (first, second, third))
    assert done.steps[1].details == {"memory": "Norway: 5 euros"}


@BOTH
def test_answers_that_cannot_be_used_are_sent_back_and_end_the_task_at_the_fifth(site, name):
    nonsense = [
        "I would look around.", "I would look around.",  # no JSON, and none after the repair
        reply(name, "fly [3]"), reply(name, "click [999]"), reply(name, "click [one]"),
        reply(name, ""),
    ]  # fmt: skip
    done, script = run(site.url, name, nonsense)
    assert done.end == "failed"
    assert statuses(done) == ["unparsed", "unparsed", "invalid", "unparsed", "unparsed"]
    assert len(done.steps) == MAX_UNUSABLE
    assert "5 answers in a row" in done.problem
    assert "'fly' is not an available action" in script.requests[3].messages[-1].text
    assert "999" in script.requests[4].messages[-1].text.rpartition("Your last answer could not be used.")[2]


@BOTH
def test_a_usable_answer_ends_a_row_of_others(site, name):
    nonsense = [reply(name, "fly [3]")] * (MAX_UNUSABLE - 1)
    done, script = run(
        site.url, name, [*nonsense, reply(name, "click {link 'Help'}"), *nonsense, reply(name, "stop [x]")]
    )
    assert (done.end, done.answer) == ("answered", "x")
    assert "could not be used" not in script.requests[MAX_UNUSABLE].messages[-1].text


@BOTH
def test_limits_of_steps_and_tokens_end_a_task(site, name):
    forever = [reply(name, "click {link 'Help'}"), reply(name, "go_back")] * 3
    done, script = run(site.url, name, forever, max_steps=3)
    assert (done.end, len(done.steps)) == ("step_limit", 3)
    assert "This is the last action" in script.requests[-1].messages[-1].text

    def spent(model):
        budget = ModelBudget("task 1", max_tokens=1)
        budget.charge(UsageModel(model="m", calls=1, input_tokens=5, output_tokens=0, seconds=0.0))
        return BudgetedModel(model, budget)

    done, _ = run(site.url, name, forever, wrap=spent)
    assert done.end == "budget"
    assert "The budget of task 1 is spent" in done.problem


@BOTH
@pytest.mark.parametrize(
    ("failure", "end"), [(ModelUnavailable("down"), "unavailable"), (ContextTooLong("too long"), "failed")]
)
def test_failures_of_the_model_end_the_task_and_say_why(site, name, failure, end):
    done, _ = run(site.url, name, [reply(name, "click {link 'Help'}"), failure])
    assert (done.end, done.problem) == (end, failure.message)
    assert statuses(done) == ["done"]
    assert done.url == site.url + "help"


@BOTH
def test_a_recorded_run_is_replayed_without_the_model(site, name, tmp_path):
    cassette = Path(tmp_path / "calls.jsonl")
    actions = [reply(name, "click {link 'Help'}"), reply(name, "stop [done]")]
    first, _ = run(site.url, name, actions, wrap=lambda model: CassetteModel(cassette, model))
    again, script = run(site.url, name, [], wrap=lambda _: CassetteModel(cassette))
    assert script.requests == []
    assert (again.end, again.answer, again.steps) == (first.end, first.answer, first.steps)


def test_screenshots_with_ids_are_sent_if_the_model_takes_images(site):
    name = AgentName.WEBNAVIGATOR
    _, script = run(site.url, name, [reply(name, "stop []")], images="all")
    text, image = script.requests[0].messages[-1].parts
    assert text.startswith("Task:")
    assert image.content.startswith(b"\x89PNG")
