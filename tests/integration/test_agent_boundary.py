"""Agents stay on the hosts of their task, in whatever way something leads elsewhere, and reach no private addresses."""

import json
from contextlib import asynccontextmanager

import pytest
from aiohttp import web
from playwright.async_api import Error as PlaywrightError

from tests.browsers import BROWSERS, shared_browser
from waygraph import AsyncWaygraph
from waygraph.agents.actions import AgentSession, SessionOptions, parse_brackets
from waygraph.agents.actions.boundary import agent_boundary
from waygraph.agents.actions.navigation import SelectedPage
from waygraph.cli import main
from waygraph.core.settings import Settings

START = """<title>Start</title><a href='{out}/link'>Link</a> <a href=/leave>Redirect</a>
<a target=_blank href=/leave-with>Inner tab</a> <button onclick="location = '{out}/script'">Script</button>
<button onclick="window.open('{out}/popup')">Popup</button>
<button onclick="w = window.open('about:blank'); w.location = '{out}/late'">Late popup</button>
<button onclick="f = document.createElement('iframe'); f.src = '{out}/frame'; document.body.append(f)">Frame</button>
<button onclick="f = document.createElement('iframe'); f.src = '/leave'; document.body.append(f)">Moved frame</button>
<form action='{out}/form'><button>Form</button></form>
<button onclick="m = document.createElement('meta'); m.httpEquiv = 'refresh'; m.content = '0; url={out}/meta';
document.head.append(m)">Refresh</button>
<a href=/inside>Inside</a> <a href=/inside target=_blank>Inside tab</a>
<button onclick="fetch('{private}/').catch(() => document.title = 'Refused')">Private</button><img src='{out}/image'>"""


class Two:
    """A site, and another one under a name whose address the proxy takes for public; what the other was asked for."""

    other = "http://elsewhere.test"

    def __init__(self):
        self.asked = []

    async def _answer(self, request):
        if request.path == "/leave":
            raise web.HTTPFound(f"{self.other}/redirected")
        return web.Response(
            text=START.format(out=self.other, private="http://127.0.0.3:8999")
            if request.path == "/"
            else f"<title>{request.path}</title>",
            content_type="text/html",
        )

    async def _answer_elsewhere(self, request):
        self.asked.append(request.path)
        return web.Response(text="<title>Elsewhere</title>", content_type="text/html")

    @asynccontextmanager
    async def running(self):
        runners = []
        for handler in (self._answer, self._answer_elsewhere):
            application = web.Application()
            application.router.add_get("/{path:.*}", handler)
            runners.append(web.AppRunner(application))
            await runners[-1].setup()
            await web.TCPSite(runners[-1], "127.0.0.1", 0).start()
        self.start, other = (f"http://127.0.0.1:{each.addresses[0][1]}" for each in runners)
        rule = f"MAP elsewhere.test {other.partition('://')[2]}"
        self.browser = {"extra_args": [f"--host-resolver-rules={rule}"]}
        try:
            yield self
        finally:
            for runner in runners:
                await runner.cleanup()


class Outside:
    """Selects a page elsewhere, as a map does that was made with more hosts than the task has."""

    async def select(self, *_, **__):
        return SelectedPage("0" * 32, f"{Two.other}/mapped")


async def act(name, *, scope_hosts=(), written="click [{}]"):
    """Act on the element of this name on the start page; return the report, the count, and what was asked elsewhere."""
    async with Two().running() as two, shared_browser() as browser:
        settings = Settings(explore={"scope_hosts": scope_hosts}, browser=two.browser)
        async with agent_boundary([two.start], settings) as boundary:
            context = await browser.new_context(**boundary.context_options)
            page = await context.new_page()
            await page.goto(two.start)
            scope = await boundary.confine(context, [two.start])
            options = SessionOptions(scope=scope, boundary=boundary, destructive="allow")
            async with AgentSession(page, options, maps=AsyncWaygraph(two.start), selector=Outside()) as session:
                seen = await session.observe()
                (ref,) = [each.ref for each in seen.elements if each.name == name]
                report = await session.act(parse_brackets(written.format(ref)))
                two.asked.remove("/image")  # only documents are refused
                return report, boundary.count, two.asked


@pytest.mark.parametrize(
    ("name", "path"),
    [
        ("Redirect", "/redirected"),
        ("Script", "/script"),
        ("Popup", "/popup"),
        ("Late popup", "/late"),
        ("Refresh", "/meta"),
    ],
)
def test_a_document_of_another_host_is_not_requested_and_the_agent_is_told(name, path):
    report, count, asked = BROWSERS.run(act(name))
    assert asked == []
    (refused,) = [event.detail for event in report.events if event.kind == "refused"]
    assert refused.endswith(path)
    assert count == 1
    assert report.observation.title == ("" if name == "Late popup" else "Start")  # that one is an empty tab


@pytest.mark.parametrize("name", ["Frame", "Moved frame"])
def test_a_frame_of_another_host_stays_empty_and_is_counted(name):
    report, count, asked = BROWSERS.run(act(name))
    assert (asked, count) == ([], 1)
    assert not report.has("refused")


@pytest.mark.parametrize("name", ["Link", "Form"])
def test_what_the_agent_itself_is_led_out_by_is_refused_before_it_acts(name):
    report, _, asked = BROWSERS.run(act(name))
    assert asked == []
    assert report.status == "refused" or report.has("refused")


@pytest.mark.parametrize(
    "written", [f"goto [{Two.other}/a]", f"new_tab [{Two.other}/a]", "navigate [elsewhere.test] [a page]"]
)
def test_an_action_that_loads_an_address_elsewhere_is_refused_in_one_sentence(written):
    report, _, asked = BROWSERS.run(act("Link", written=written))
    assert asked == []
    assert report.status == "refused"
    assert "was left alone, because it leads out of the site of the task" in str(report)


@pytest.mark.parametrize(("name", "title"), [("Inside", "/inside"), ("Inside tab", "/inside")])
def test_within_the_scope_everything_works(name, title):
    report, count, _ = BROWSERS.run(act(name))
    assert (report.status, report.observation.title, count) == ("done", title, 0)


def test_a_further_host_of_the_scope_may_be_visited():
    report, count, asked = BROWSERS.run(act("Redirect", scope_hosts=["elsewhere.test"]))
    assert (report.observation.title, count, asked) == ("Elsewhere", 0, ["/redirected"])


def test_an_address_that_is_not_public_and_that_nobody_named_is_refused_for_everything():
    report, count, _ = BROWSERS.run(act("Private"))
    (refused,) = [event.detail for event in report.events if event.kind == "refused"]
    assert refused == "http://127.0.0.3:8999/ (127.0.0.3 is a loopback address)"
    assert count == 1


def test_where_the_start_page_leads_belongs_to_the_task():
    async def lead():
        async with Two().running() as two, shared_browser() as browser:
            settings = Settings(browser=two.browser)
            async with agent_boundary([f"{two.start}/leave"], settings) as boundary:
                context = await browser.new_context(**boundary.context_options)
                page = await context.new_page()
                await page.goto(f"{two.start}/leave")
                await boundary.confine(context, [f"{two.start}/leave"])
                await page.goto(f"{two.other}/again")
                await page.goto(f"{two.start}/inside")
                with pytest.raises(PlaywrightError):
                    await page.goto("http://127.0.0.1:9/")
                await boundary.release()
                return boundary.count

    assert BROWSERS.run(lead()) == 1


def test_do_keeps_the_agent_on_the_host_of_its_url(monkeypatch, capsys):
    async def serve():
        running = Two()
        stack = running.running()
        return await stack.__aenter__(), stack

    two, stack = BROWSERS.run(serve())
    monkeypatch.setenv("WAYGRAPH_BROWSER__EXTRA_ARGS", json.dumps(two.browser["extra_args"]))
    try:
        main(["do", f"{two.start}/", "script", "--no-map", "--max-steps", "1", "--json"])
    finally:
        BROWSERS.run(stack.__aexit__(None, None, None))
    printed = capsys.readouterr()
    document, _ = json.JSONDecoder().raw_decode(printed.out)
    assert set(two.asked) <= {"/image"}
    assert "Script" in document["steps"][0]["action"]
    assert document["refused"] == 1
    assert "outside of the site of the task was not loaded: http://elsewhere.test/script" in printed.err
