"""Tree search in a real browser: returning to states, changes of data, and going on after the process ended."""

import asyncio
import json

import pytest

from tests.browsers import BROWSERS, LOOPBACK_ONLY
from tests.sites.server import FixtureServer, Page
from waygraph.agents.actions import AgentSession, ClickAction, GotoAction, SessionOptions, StopAction
from waygraph.agents.models.scripted import ScriptedModel
from waygraph.agents.run_record import AttemptEnd
from waygraph.agents.search import (
    ChatCandidates,
    ChecklistReward,
    Judgement,
    Proposals,
    ProposedAction,
    SearchOptions,
    SearchTree,
    TreeSearchAgent,
)
from waygraph.agents.search.tree import CandidateStatus
from waygraph.core.settings import ExploreSettings
from waygraph.pipeline.explore.policies.scope import Scope

PANEL = """<!doctype html><title>Shelf</title><h1>Shelf</h1>
<button onclick="panel.hidden = false">Details</button>
<div id=panel hidden><p>Made of oak</p><button onclick="more.hidden = false">More</button></div>
<p id=more hidden>From one forest</p>"""
START = "<!doctype html><title>Start</title><h1>Start</h1><a href=/shelf>Shelf</a> <a href=/other>Other</a>"
OTHER = "<!doctype html><title>Other</title><h1>Other</h1>"
BROKEN = "<!doctype html><title>Broken</title><h1>Broken</h1><a href=/gone>Gone</a> <a href=/other>Other</a>"
TRAPS = {
    "delete button": "<button onclick=\"fetch('/trap', {method: 'DELETE'})\">Delete the shop</button>",
    "form sent by POST": "<form method=post action=/trap><button>Go on</button></form>",
    "link that deletes": "<a href=/items/1/delete>Tidy up</a>",
    "link that logs out": "<a href=/logout>Log out</a>",
}
SILENT = (
    "<button id=b>Show figures</button><script>b.onclick = () => fetch('/trap', {method: 'POST', body: 'x=1'})</script>"
)


class Scripted:
    """A generator that proposes, in each state, elements by name with scores: `{"Shelf": {"Details": 0.9}}`.

    States are named by their title, and by the last paragraph that they show if they have one.
    """

    name = "script"

    def __init__(self, script):
        self.script = script
        self.asked = []

    async def propose(self, request):
        texts = [each.text for each in request.observation.snapshot.segments if each.role == "text"]
        state = " / ".join([request.observation.title, *texts[-1:]])
        self.asked.append(state)
        wanted = self.script.get(state, self.script.get(request.observation.title, {}))
        actions = []
        for name, score in wanted.items():
            if name.startswith("stop "):
                actions.append(ProposedAction(StopAction(answer=name.removeprefix("stop ")), score))
            elif name.startswith("goto "):
                actions.append(ProposedAction(GotoAction(url=name.removeprefix("goto ")), score))
            else:
                refs = [each.ref for each in request.observation.elements if each.name == name]
                actions += [ProposedAction(ClickAction(element=ref), score) for ref in refs[:1]]
        return Proposals(tuple(actions))


class NoReward:
    """Values states by nothing: scripts score their actions themselves."""

    async def judge_states(self, task, states):  # noqa: ARG002 - a Reward
        return Judgement((0.0,) * len(states))

    async def judge_actions(self, task, state, actions):  # noqa: ARG002
        return Judgement((0.0,) * len(actions))


async def searched(site, generators, *, path="/", reward=None, on_step=None, session_options=None, **options):
    """Search from a path of a site; return the run, the tabs that are left, and the text of the page."""
    browser = await BROWSERS.browser()
    context = await browser.new_context(viewport={"width": 800, "height": 600})
    try:
        page = await context.new_page()
        await page.goto(site.at(path))
        async with AgentSession(page, SessionOptions(browser=LOOPBACK_ONLY, **session_options or {})) as session:
            agent = TreeSearchAgent(session, generators, reward or NoReward(), SearchOptions(**options))
            run = await (agent.run("a task", on_step) if on_step else agent.run("a task"))
            return run, len(context.pages), await session.tabs.current.page.inner_text("body")
    finally:
        await context.close()


def search(site, script, **options):
    generators = script if isinstance(script, list) else [Scripted(script)]
    return BROWSERS.run(searched(site, generators, **options))


@pytest.fixture
def site():
    with FixtureServer({"/": START, "/shelf": PANEL, "/other": OTHER, "/broken": BROKEN}) as server:
        yield server


BACKTRACKING = {
    "Start": {"Shelf": 0.9, "Other": 0.8},
    "Shelf": {"Details": 0.95},
    "Shelf / Made of oak": {"More": 0.5},
    "Shelf / From one forest": {},
}


def test_it_returns_to_a_state_without_an_address_and_goes_on_there(site, tmp_path):
    run, tabs, text = search(site, BACKTRACKING, tree_file=tmp_path / "tree.json")
    assert [step.action for step in run.steps] == [
        'click link "Shelf"',
        'click button "Details"',
        'click link "Other"',
        'click button "More"',
    ]
    assert [step.status for step in run.steps] == ["done"] * 4
    assert (run.end, tabs) == (AttemptEnd.EXHAUSTED, 1)
    assert "From one forest" in text
    tree = SearchTree.model_validate_json((tmp_path / "tree.json").read_bytes())
    assert [(each.target, each.tried, each.arrived) for each in tree.backtracks] == [
        (0, ["url:0"], True),
        (2, ["url:1"], True),
    ]
    assert [each["tried"] for each in run.steps[3].details["backtracks"]] == [["url:1"]]


def test_a_state_that_is_not_shown_again_is_given_up_and_the_tabs_stay_as_they_were(site, tmp_path):
    async def change(step, observation):
        if step.action == 'click link "Other"':
            site.pages["/shelf"] = "<!doctype html><title>Shelf</title><h1>Closed</h1>"

    run, tabs, _ = search(site, BACKTRACKING, on_step=change, tree_file=tmp_path / "tree.json")
    tree = SearchTree.model_validate_json((tmp_path / "tree.json").read_bytes())
    assert not tree.backtracks[-1].arrived
    assert tree.nodes[1].loads == "no"
    assert next(each for each in tree.candidates if "More" in each.text).status is CandidateStatus.DROPPED
    assert (len(run.steps), tabs, run.url) == (3, 1, site.at("/other"))


def test_the_best_answer_ends_the_search_on_its_page(site):
    script = {
        "Start": {"Shelf": 0.9, "Other": 0.8, "stop nothing": 0.1},
        "Shelf": {"stop oak": 0.1},
        "Other": {"stop other": 0.1},
    }

    class ByTitle(NoReward):
        async def judge_states(self, task, states):  # noqa: ARG002
            return Judgement(tuple({"Shelf": 0.7}.get(each.title, 0.2) for each in states))

    run, tabs, _ = search(site, script, reward=ByTitle())
    assert (run.end, run.answer, run.url, tabs) == (AttemptEnd.ANSWERED, "oak", site.at("/shelf"), 1)


def test_two_generators_that_agree_on_an_answer_end_the_search(site):
    class Second(Scripted):
        name = "second"

    script = {"Start": {"stop done": 0.1}}
    run, _, _ = search(site, [Scripted(script), Second(script)])
    assert (run.end, run.answer, run.steps) == (AttemptEnd.ANSWERED, "done", ())


def test_errors_of_the_server_and_pages_out_of_scope_are_dead_ends(site):
    elsewhere = "http://127.0.0.1:9/"
    script = {
        "Broken": {"Gone": 0.9, f"goto {elsewhere}": 0.8, "Other": 0.1},
        "Not found": {"goto http://x.example": 1},
    }
    scope = Scope.of(site.url.split("/")[2], ExploreSettings())
    generator = Scripted(script)
    run, _, _ = search(site, [generator], path="/broken", session_options={"scope": scope})
    assert [step.action for step in run.steps] == ['click link "Gone"', 'click link "Other"']
    assert generator.asked == ["Broken", "Other"]


@pytest.mark.parametrize("trap", TRAPS)
def test_what_changes_data_comes_after_everything_safe_and_once(site, trap):
    body = f"<!doctype html><title>Trap</title><h1>Trap</h1><a href=/other>Other</a> {TRAPS[trap]}"
    again = Page("<!doctype html><title>Trap</title><h1>Trap</h1>" + TRAPS[trap])
    site.pages |= {"/": body, "/trap": again, "/items/1/delete": again, "/logout": again}
    names = {"Delete the shop": 0.9, "Go on": 0.9, "Tidy up": 0.9, "Log out": 0.9}
    run, _, _ = search(site, {"Trap": {**names, "Other": 0.1}}, session_options={"destructive": "allow"})
    assert run.steps[0].action == 'click link "Other"'
    deeds = [each for each in site.requests if each[0] != "GET" or each[1] in {"/logout", "/items/1/delete"}]
    assert len(deeds) == 1
    assert site.paths.index("/other") < site.paths.index(deeds[0][1])
    assert run.steps[1].details["changed"]


@pytest.mark.parametrize("trap", TRAPS)
def test_what_changes_data_is_left_alone_unless_the_session_allows_it(site, trap):
    site.pages["/"] = f"<!doctype html><title>Trap</title>{TRAPS[trap]}"
    names = {"Delete the shop": 0.9, "Go on": 0.9, "Tidy up": 0.9, "Log out": 0.9}
    run, _, _ = search(site, {"Trap": names})
    assert (run.end, run.steps, site.mutations) == (AttemptEnd.EXHAUSTED, (), 0)
    assert set(site.paths) == {"/"}


def test_a_change_that_only_its_request_shows_begins_the_search_anew(site, tmp_path):
    site.pages |= {"/": f"<!doctype html><title>Silent</title><a href=/other>Other</a>{SILENT}", "/trap": "ok"}
    script = {"Silent": {"Show figures": 0.9, "Other": 0.1}}
    run, _, _ = search(site, script, tree_file=tmp_path / "tree.json")
    tree = SearchTree.model_validate_json((tmp_path / "tree.json").read_bytes())
    assert run.steps[0].details["changed"] == [f"POST {site.at('/trap')}"]
    assert (tree.changes, tree.root, tree.budget) == (1, 1, 3)
    assert site.mutations == 1
    assert [step.action for step in run.steps] == ['click button "Show figures"', 'click link "Other"']


def test_a_search_that_was_killed_while_it_changed_data_goes_on_without_repeating_it(site, tmp_path):
    sent = asyncio.Event()

    def hold(request):
        BROWSERS._loop.call_soon_threadsafe(sent.set)
        return Page("<title>Sent</title>")

    body = "<!doctype html><title>Trap</title><form method=post action=/trap><button>Go on</button></form>"
    site.pages |= {"/": body, "/trap": hold}
    script = {"Trap": {"Go on": 0.9}}
    options = {"session_options": {"destructive": "allow"}, "tree_file": tmp_path / "tree.json"}

    async def killed():
        task = asyncio.ensure_future(searched(site, [Scripted(script)], **options))
        await sent.wait()
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    BROWSERS.run(killed())
    left = SearchTree.model_validate_json((tmp_path / "tree.json").read_bytes())
    assert [each.status for each in left.candidates] == [CandidateStatus.BEGUN]
    run, _, _ = search(site, script, **options)
    assert site.mutations == 1
    assert run.end is AttemptEnd.EXHAUSTED
    assert [step.status for step in run.steps] == ["failed"]


def replies(*actions):
    return [json.dumps({"thinking": "t", "actions": list(each)}) for each in actions]


class Numbered:
    """A model whose checklist is one milestone, and whose verdicts follow from the page alone."""

    def __init__(self):
        self.calls = 0

    def rewards(self, request):
        self.calls += 1
        if request.json_format.name == "_Checklist":
            return json.dumps({"milestones": ["done"]})
        return json.dumps({"verdicts": ["yes" if "'Other'" in request.messages[1].text.split("\n\n")[2] else "no"]})


def chat_search(site, written, **options):
    model = ScriptedModel(replies(*written))
    judge = ScriptedModel([Numbered().rewards] * 50)
    run, _, _ = search(site, [ChatCandidates(model, name="chat")], reward=ChecklistReward(judge), **options)
    return run, model


def test_the_same_replies_make_the_same_tree(site, tmp_path):
    written = [["click [2]", "click [1]", "fly [1]"], ["stop [other]"], ["click [1]"], ["stop [oak]"]]
    trees = []
    for number in range(2):
        run, _ = chat_search(site, written, tree_file=tmp_path / f"{number}.json")
        trees.append((tmp_path / f"{number}.json").read_text())
    assert (run.end, run.answer) == (AttemptEnd.ANSWERED, "other")
    assert trees[0] == trees[1]
    assert sum(step.usage.calls for step in run.steps) > 4


def test_a_generator_is_told_what_was_wrong_if_nothing_that_it_wrote_can_be_done(site):
    run, model = chat_search(site, [["click [77]", "fly"], ["click [2]"], ["stop [x]"]])
    told = model.requests[1].messages[1].text
    assert "There is no element [77]" in told
    assert "'fly' is not an available action" in told
    assert run.steps[0].action == 'click link "Other"'


def test_a_search_goes_on_where_a_model_failed_without_asking_again(site, tmp_path):
    file = tmp_path / "tree.json"
    run, _ = chat_search(site, [["click [2]", "click [1]"]], tree_file=file)
    assert run.end is AttemptEnd.UNAVAILABLE
    assert "no reply" in run.problem
    again, model = chat_search(site, [["stop [other]"], ["stop [oak]"]], tree_file=file)
    assert (again.end, again.answer) == (AttemptEnd.ANSWERED, "other")
    assert "Page at " + site.at("/other") in model.requests[0].messages[1].text
    finished, unasked = chat_search(site, [], tree_file=file)
    assert (finished.answer, unasked.requests) == ("other", [])


def test_the_file_of_another_search_is_refused(site, tmp_path):
    file = tmp_path / "tree.json"
    file.write_text(SearchTree(task="another", budget=4).model_dump_json())
    run, _, _ = search(site, {}, tree_file=file)
    assert run.end is AttemptEnd.FAILED
    assert "another task" in run.problem
