"""JavaScript dialogs are shown to agents, and answered by them."""

import pytest

from tests.browsers import BROWSERS, LOOPBACK_ONLY
from tests.model_replies import reply
from tests.sites.server import FixtureServer
from waygraph.agents.actions import AgentSession, SessionOptions, parse_brackets
from waygraph.agents.create import AgentName, AgentParts
from waygraph.agents.greedy import GreedyAgent, GreedyOptions
from waygraph.agents.loop.usage_meter import UsageMeter
from waygraph.agents.models.scripted import ScriptedModel
from waygraph.core.errors import BrowserFailure
from waygraph.core.settings import AgentSettings, EncodeSettings
from waygraph.pipeline.encode.registry import create_encoder

PAGES = {
    "/": "<title>Start</title><a href=/delete>Notes</a>",
    "/delete": """<title>Notes</title><p id=out>Old note</p>
<button onclick="if (confirm('Discard the\\nold note?')) out.textContent = 'No notes'">Tidy</button>
<button onclick="out.textContent = 'Named ' + prompt('New name?', 'Draft')">Rename</button>
<button onclick="out.textContent = [confirm('First?'), confirm('Second?')]">Twice</button>
<button onclick="alert('Saved'); out.textContent = 'Saved note'">Preview</button>
<button onclick="if (confirm('Open it?')) window.open('/popup')">Popup</button>
<button onclick="if (confirm('Leave?')) location = '/'">Away</button>
<label>Title <input onchange="if (confirm('Keep it?')) out.textContent = this.value"></label>""",
    "/tidy": """<title>Notes</title><p id=out>Old note</p>
<button onclick="if (confirm('Discard it?')) out.textContent = 'No notes'">Tidy</button>""",
    "/load": "<title>Welcome</title><p id=said></p><script>said.textContent = confirm('Are you over 18?')</script>",
    "/timer": """<title>Timer</title><button onclick="this.textContent = 'Pressed'">Press</button>
<script>addEventListener('ask', () => setTimeout(() => document.body.append(confirm('Still there?')), 0))</script>""",
    "/frame": "<title>Frame</title><iframe src=/delete title=Inner></iframe>",
    "/popup": "<title>Popup</title><p id=said>Waiting</p><script>said.textContent = confirm('In popup?')</script>",
    "/opens": "<title>Opener</title><button onclick=\"window.open('/popup')\">Open</button>",
    "/unsaved": """<title>Unsaved</title><input aria-label=Text><a href=/>Leave</a>
<script>addEventListener('beforeunload', event => event.preventDefault())</script>""",
    "/endless": "<title>Endless</title><p>Text</p><button onclick=\"while (!confirm('Yes?'));\">Ask</button>",
}


@pytest.fixture(scope="module")
def site():
    with FixtureServer(PAGES) as server:
        yield server


def run(site, path, steps, **options):
    async def work():
        browser = await BROWSERS.browser()
        context = await browser.new_context(viewport={"width": 800, "height": 600})
        try:
            page = await context.new_page()
            async with AgentSession(page, SessionOptions(browser=LOOPBACK_ONLY, **options)) as session:
                await page.goto(site.at(path), wait_until="commit")
                return await steps(session, page)
        finally:
            await context.close()

    return BROWSERS.run(work())


async def click(session, name):
    observation = await session.observe()
    element = next(each.ref for each in observation.elements if each.name == name)
    return await session.act(parse_brackets(f"click [{element}]"))


async def do(session, written):
    return await session.act(parse_brackets(written))


def test_a_confirm_is_all_that_the_agent_sees_until_it_is_accepted(site):
    async def steps(session, page):
        return await click(session, "Tidy"), await do(session, "accept")

    asked, accepted = run(site, "/delete", steps, destructive="allow")
    assert str(asked) == (
        "A dialog opened during the action. The page shows a dialog, which waits for accept or dismiss: confirm: "
        "Discard the old note?."
    )
    assert asked.observation.text.expandtabs(2) == (
        "RootWebArea 'Notes'\n  alertdialog 'Discard the old note?' [kind: confirm]"
    )
    assert accepted.status == "done"
    assert str(accepted) == "Accepted the dialog 'confirm: Discard the old note?'. The page has changed."
    assert "No notes" in accepted.observation.text


def test_a_confirm_is_accepted_only_where_changes_are_allowed(site):
    async def steps(session, page):
        await click(session, "Tidy")
        return await do(session, "accept"), await do(session, "dismiss")

    refused, dismissed = run(site, "/delete", steps)
    assert refused.status == "refused"
    assert str(refused) == (
        "The dialog 'confirm: Discard the old note?' was left alone, because accepting it may change data at the site; "
        "it can be dismissed."
    )
    assert dismissed.done
    assert "Old note" in dismissed.observation.text


@pytest.mark.parametrize("says", [True, False])
def test_a_person_who_is_asked_decides_about_the_confirm(site, says):
    questions = []

    def confirm(action, element, refusal):
        questions.append((action.action, element, refusal.reason, refusal.detail))
        return says

    async def steps(session, page):
        await click(session, "Tidy")
        return await do(session, "accept")

    report = run(site, "/delete", steps, destructive="confirm", confirm=confirm)
    assert questions == [("accept", None, "dialog", "confirm: Discard the old note?")]
    assert report.status == ("done" if says else "refused")


@pytest.mark.parametrize(
    ("written", "shown"), [("accept [Plan B]", "Plan B"), ("accept", "Draft"), ("dismiss", "null")]
)
def test_a_prompt_is_answered_with_a_text(site, written, shown):
    async def steps(session, page):
        asked = await click(session, "Rename")
        return asked.observation.text, await do(session, written)

    asked, report = run(site, "/delete", steps, destructive="allow")
    assert "alertdialog 'New name?' [kind: prompt, value: Draft]" in asked
    assert f"Named {shown}" in report.observation.text


def test_two_dialogs_in_a_row_are_answered_one_after_the_other(site):
    async def steps(session, page):
        return [await click(session, "Twice"), await do(session, "accept"), await do(session, "dismiss")]

    asked, again, done = run(site, "/delete", steps, destructive="allow")
    assert [report.observation.dialog and report.observation.dialog.message for report in (asked, again, done)] == [
        "First?", "Second?", None,
    ]  # fmt: skip
    assert asked.observation.snapshot.id != again.observation.snapshot.id
    assert "true,false" in done.observation.text


def test_an_alert_is_acknowledged_and_reported(site):
    report = run(site, "/delete", lambda session, _: click(session, "Preview"))
    assert "The page showed a dialog: alert: Saved (acknowledged)." in str(report)
    assert "Saved note" in report.observation.text


def test_a_dialog_of_a_page_that_loads_is_the_first_observation(site):
    async def steps(session, page):
        return await session.observe(), await do(session, "dismiss")

    shown, report = run(site, "/load", steps)
    assert shown.dialog.message == "Are you over 18?"
    assert shown.url == site.at("/load")
    assert (report.observation.title, "'false'" in report.observation.text) == ("Welcome", True)


def test_a_dialog_of_a_timer_comes_before_the_next_action(site):
    async def steps(session, page):
        await session.observe()
        await page.evaluate("dispatchEvent(new Event('ask'))")
        async with page.expect_event("dialog"):
            pass
        late = await do(session, "click [1]")
        kept = await do(session, "note [It asks]")
        return late, kept, await do(session, "dismiss"), await click(session, "Press")

    late, kept, dismissed, pressed = run(site, "/timer", steps)
    assert (late.status, kept.status) == ("invalid", "kept")
    assert str(late).startswith("Nothing was done, because a dialog is open. The page shows a dialog")
    assert "'Press'" in dismissed.observation.text
    assert "'Pressed'" in pressed.observation.text


def test_a_dialog_in_a_frame_is_answered(site):
    async def steps(session, page):
        return await click(session, "Tidy"), await do(session, "accept")

    asked, accepted = run(site, "/frame", steps, destructive="allow")
    assert asked.observation.dialog.message == "Discard the old note?"
    assert "No notes" in accepted.observation.text


def test_a_dialog_of_a_popup_is_answered_there(site):
    async def steps(session, page):
        return await click(session, "Open"), await do(session, "dismiss")

    asked, dismissed = run(site, "/opens", steps)
    assert asked.observation.dialog.message == "In popup?"
    assert dismissed.observation.title == "Popup"
    assert "'false'" in dismissed.observation.text


def test_what_follows_an_accepted_dialog_is_reported(site):
    async def steps(session, page):
        await click(session, "Popup")
        opened = await do(session, "accept")
        nested = await do(session, "dismiss")
        await do(session, "close_tab")
        await click(session, "Away")
        return opened, nested, await do(session, "accept")

    opened, nested, left = run(site, "/delete", steps, destructive="allow")
    assert opened.observation.dialog.message == "In popup?"
    assert nested.observation.title == "Popup"
    assert left.has("navigated")
    assert left.observation.title == "Start"


def test_a_field_that_asks_is_filled_after_the_answer(site):
    async def steps(session, page):
        observation = await session.observe()
        field = next(each.ref for each in observation.elements if each.name == "Title")
        return await do(session, f"type [{field}] [Plans] [1]"), await do(session, "accept")

    asked, accepted = run(site, "/delete", steps, destructive="allow")
    assert asked.observation.dialog.message == "Keep it?"
    assert "'Plans'" in accepted.observation.text


def test_a_page_that_asks_whether_to_leave_it_is_left(site):
    async def steps(session, page):
        observation = await session.observe()
        field = next(each.ref for each in observation.elements if each.name == "Text")
        await do(session, f"type [{field}] [draft] [0]")
        return await click(session, "Leave")

    report = run(site, "/unsaved", steps)
    assert report.observation.title == "Start"
    assert "The page showed a dialog: the page asked whether to leave it (left)." in str(report)


def test_an_action_that_needs_a_dialog_is_refused_without_one(site):
    report = run(site, "/", lambda session, _: do(session, "accept"))
    assert (report.status, str(report)) == ("invalid", "No dialog is open.")


def test_a_page_with_an_open_dialog_has_no_screenshot_and_can_be_left(site):
    async def steps(session, page):
        await click(session, "Ask")
        with pytest.raises(BrowserFailure, match="shows a dialog"):
            await session.screenshot(marks=True)
        again = await do(session, "dismiss")
        await session.end()
        return again, await do(session, "stop [done]")

    again, stopped = run(site, "/endless", steps)
    assert again.observation.dialog.message == "Yes?"
    assert stopped.status == "kept"


@pytest.mark.parametrize("name", [AgentName.WEBNAVIGATOR, AgentName.OCCAM, AgentName.MEMORY])
@pytest.mark.parametrize("allows", [True, False])
def test_agents_confirm_a_deletion_only_where_changes_are_allowed(site, name, allows):
    actions = [
        "click {button 'Tidy'}",
        "click [1]",
        "accept",
        *([] if allows else ["dismiss"]),
        "accept",
        "stop [done]",
    ]
    model = ScriptedModel([reply(name, action) for action in actions])
    parts = AgentParts(name, AgentSettings(images="all"), None, UsageMeter(model))

    async def steps(session, page):
        run = await parts.agent(session).run("Discard the old note")
        return run, await page.inner_text("#out")

    done, left = run(site, "/delete", steps, destructive="allow" if allows else "refuse")
    assert (done.end, done.answer) == ("answered", "done")
    answers = ["done"] if allows else ["refused", "done"]
    assert [step.status for step in done.steps] == ["done", "unparsed", *answers, "unparsed", "kept"]
    assert left == ("No notes" if allows else "Old note")
    assert "alertdialog 'Discard the old note?' [kind: confirm]" in model.requests[1].messages[-1].text
    assert "the actions are accept, dismiss, " in model.requests[2].messages[-1].text
    assert "accept" not in model.requests[0].messages[0].text


def test_the_baseline_without_a_model_dismisses_dialogs(site):
    async def steps(session, page):
        agent = GreedyAgent(session, create_encoder(EncodeSettings()), GreedyOptions(max_steps=4))
        return await agent.run("tidy"), await page.inner_text("#out")

    done, left = run(site, "/tidy", steps)
    assert left == "Old note"
    assert "dismiss" in [step.action for step in done.steps]
