"""The tree search with a model: what was read on earlier pages is known where the answer is given, and to the judge."""

import json
import re

import pytest

from bench.tasks.site_tasks import read_site
from tests.browsers import BROWSERS, LOOPBACK_ONLY
from tests.search_script import Page, PageScript
from tests.sites.server import FixtureServer
from waygraph.agents.actions import AgentSession, SessionOptions
from waygraph.agents.create import AgentName, AgentParts
from waygraph.agents.loop.usage_meter import UsageMeter
from waygraph.agents.run_record import AttemptEnd
from waygraph.core.settings import AgentSettings
from waygraph.demo_site import DemoSite


@pytest.fixture(scope="module")
def shop():
    with DemoSite() as site:
        yield site


def run_script(url, script, task, **settings):
    """Do a task as `waygraph run --agent search` does, with a scripted model."""

    async def work():
        browser = await BROWSERS.browser()
        context = await browser.new_context(viewport={"width": 1280, "height": 800})
        try:
            page = await context.new_page()
            await page.goto(url)
            async with AgentSession(page, SessionOptions(browser=LOOPBACK_ONLY)) as session:
                parts = AgentParts(AgentName.SEARCH, AgentSettings(**settings), None, UsageMeter(script.model()))
                return await parts.agent(session).run(task)
        finally:
            await context.close()

    return BROWSERS.run(work())


def seen(fact, action):
    """Return what the model does on a page: show the reviews if the fact is not shown, and then the action."""

    def act(page):
        tab = re.search(r"\[(\d+)\] '?Reviews\b", page)
        return action if fact in page or tab is None else f"click [{tab[1]}]"

    return act


COMPARE = ("109", "110", "111", "112")


@pytest.mark.parametrize("task_id", COMPARE)
def test_what_was_read_on_earlier_pages_reaches_the_prompt_of_the_answer_and_the_judge(shop, task_id):
    tasks = read_site("demo_shop", shop.url.rstrip("/"))
    (task,) = [each for each in tasks.file.tasks if each.task_id == task_id]
    replay = tasks.replays[task_id]
    assert tasks.kinds[task_id] == "compare-across-pages"
    start, *read = [shop.url.rstrip("/") + "/", *(f"{shop.url.rstrip('/')}/{each.path}" for each in replay.shown)]
    facts = [each.text for each in replay.shown]
    following = [*(f"goto [{url}]" for url in read), f"stop [{replay.right.answer}]"]
    script = PageScript(
        {
            url: Page(seen(note, action), note)
            for url, action, note in zip([start, *read], following, ["", *facts], strict=True)
        }
    )
    run = run_script(start, script, task.intent)
    assert (run.end, run.answer) == (AttemptEnd.ANSWERED, replay.right.answer)
    url, asked = script.proposals[-1]
    assert url == read[-1]
    for page, fact in zip(read[:-1], facts[:-1], strict=True):
        assert json.dumps({"note": fact, "at": page}, ensure_ascii=False) in asked
    (answer,) = {each for each in script.judged if f"The next action on this page: stop [{run.answer}]" in each}
    for page, fact in zip(read, facts, strict=True):
        assert json.dumps({"note": fact, "at": page}, ensure_ascii=False) in answer


LINKS = "<!doctype html><title>Start</title><h1>Start</h1><a href=/a>Left</a> <a href=/b>Right</a>"


@pytest.fixture
def site():
    pages = {
        "/": LINKS,
        "/a": "<!doctype html><title>Left</title><p>The lamp costs 10",
        "/b": "<!doctype html><title>Right</title><p>The rug costs 30",
    }
    with FixtureServer(pages) as server:
        yield server


def test_each_context_proposes_one_action_in_a_request_of_its_own(site):
    script = PageScript({site.at("/"): Page("stop [x]")})
    run = run_script(site.url, script, "a task", search={"contexts": ("history", "rephrased")})
    first, second, third = (text for _, text in script.proposals)
    assert run.end is AttemptEnd.ANSWERED
    assert first.startswith("Task: a task\n\nSteps so far: none")
    assert second.startswith("Task: said differently\n\nSubgoals:\n- look\n\nCautions:\n- x")
    assert (third, script.rephrased) == (first, 1)
    assert [each.temperature for each in script.asked("_Step")] == [0.7] * 3
    assert [each.seed for each in script.asked("_Step")] == [None, None, 2]


def test_a_fact_of_a_branch_that_the_search_left_is_known_on_another_one(site, tmp_path):
    left = iter(["click [1]", "click [2]"])
    script = PageScript({
        site.at("/"): Page(lambda _: next(left)),
        site.at("/a"): Page("click [99]", "The lamp costs 10"),
        site.at("/b"): Page("stop [20]", "The rug costs 30"),
    })  # fmt: skip
    run = run_script(site.url, script, "a task", search={"branching": 2, "retries": 0})
    assert [each.action for each in run.steps] == ['click link "Left"', 'click link "Right"']
    assert run.answer == "20"
    asked = script.proposals[-1][1]
    assert "The lamp costs 10" in asked
    assert '"led to": "Right"' in asked
    assert '"led to": "Left"' not in asked


def test_the_first_of_several_actions_is_taken(site):
    script = PageScript({site.at("/"): Page("click [2]; then click [1]"), site.at("/b"): Page("stop [30]")})
    run = run_script(site.url, script, "a task")
    assert [each.action for each in run.steps] == ['click link "Right"']
    assert run.answer == "30"


def test_a_page_beyond_the_model_s_context_is_shown_in_windows(site):
    site.pages["/long"] = (
        "<!doctype html><title>Long</title>"
        + "".join(f"<p>Row {number} of the list, and what it says" for number in range(3_000))
        + "<p>The code is 4711</p>"
    )  # 6,000 nodes: each paragraph and its text
    needed = "The code is 4711"
    script = PageScript({site.at("/long"): Page(lambda page: "stop [4711]" if needed in page else "scroll [down]")})
    model = {"context_tokens": 8_000}
    run = run_script(site.at("/long"), script, "a task", model=model)
    assert (run.end, run.answer, run.steps) == (AttemptEnd.ANSWERED, "4711", ())
    assert "Lines 1 to " in script.proposals[0][1]
    assert max(len(text) for text in (*script.judged, *dict(script.proposals).values())) < 8_000 * 2
    assert needed in script.judged[-1]


def test_a_request_that_the_server_finds_too_long_is_sent_again_with_less_of_the_page(site):
    site.pages["/long"] = "<!doctype html><title>Long</title>" + "".join(
        f"<p>Row number {each}" for each in range(1_000)
    )
    script = PageScript({site.at("/long"): Page("stop [none]")}, most_chars=9_000)
    run = run_script(site.at("/long"), script, "a task")
    assert (run.end, run.answer) == (AttemptEnd.ANSWERED, "none")
    assert script.refused > 0
