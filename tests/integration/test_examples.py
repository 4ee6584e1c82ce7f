"""The examples run as they are: against a real service, in a real browser, on a mapped site."""

from __future__ import annotations

import asyncio
import importlib.util
import inspect
import json
import re
import socket
import threading
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import httpx
import pytest
import uvicorn
from playwright.sync_api import sync_playwright

from tests.browsers import BROWSERS, LOOPBACK_ONLY
from tests.exploring import ExploredShop
from waygraph import AsyncWaygraph, Waygraph
from waygraph.agents.actions import AgentSession
from waygraph.agents.models.chat import ChatRequest
from waygraph.agents.models.scripted import ScriptedModel
from waygraph.cli import main
from waygraph.core.settings import Settings
from waygraph.pipeline.browser.process.find import find_browser
from waygraph.serve.http.api import create_api
from waygraph.serve.query.maps import Maps

EXAMPLES = Path(__file__).parents[2] / "examples"
QUESTION = "How much tax do customers in Finland pay?"


def example(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def service(shop_store: Path) -> Iterator[str]:
    """The application behind a real port, without Ray."""
    settings = Settings(store=str(shop_store))
    with socket.create_server(("127.0.0.1", 0)) as listening:
        server = uvicorn.Server(uvicorn.Config(create_api(settings, Maps(settings)), log_level="warning", ws="none"))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
        thread.start()
        url = f"http://127.0.0.1:{listening.getsockname()[1]}"
        with httpx.Client() as http:
            for _ in range(300):
                if server.started and http.get(f"{url}/readyz").is_success:
                    break
                threading.Event().wait(0.1)
        yield url
        server.should_exit = True
        thread.join()


def test_the_browsergym_action_walks_a_page_to_a_tab_without_a_url(service, shop: ExploredShop, monkeypatch):
    monkeypatch.setenv("WAYGRAPH_URL", service)
    source = inspect.getsource(example("browsergym_navigate").navigate)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=find_browser().path, args=["--no-sandbox", *LOOPBACK_ONLY.extra_args]
        )
        page = browser.new_context(viewport={"width": 1280, "height": 800}).new_page()
        page.goto(shop.site.url)
        program = {"page": page}
        exec(source, program)  # noqa: S102 - what BrowserGym does with it
        program["navigate"](QUESTION)
        assert page.get_by_text("25.5%").is_visible()
        page.goto("about:blank")
        with pytest.raises(ValueError, match="navigate: "):
            program["navigate"](QUESTION)
        browser.close()


def test_without_a_service_the_browsergym_action_raises(monkeypatch):
    monkeypatch.setenv("WAYGRAPH_URL", "http://127.0.0.1:9")
    program: dict = {"page": type("Page", (), {"url": "http://shop.example/"})}
    exec(inspect.getsource(example("browsergym_navigate").navigate), program)  # noqa: S102
    with pytest.raises(ValueError, match="cannot be reached"):
        program["navigate"](QUESTION)


def test_openai_tools_return_results_and_errors_as_text(service, shop: ExploredShop):
    tools = example("openai_tools")
    site = shop.capture.site
    with Waygraph(service) as maps:
        assert json.loads(tools.dispatch(maps, "list_sites", "{}")) == [site]
        asked = {"site": site, "query": QUESTION}
        found = json.loads(tools.dispatch(maps, "search_screens", json.dumps(asked)))
        assert "Settings" in found[0]["title"]
        way = json.loads(tools.dispatch(maps, "navigate", json.dumps({**asked, "current_url": shop.site.url})))
        assert way["chosen"] == found[0]
        assert way["steps"]
        assert "not mapped" in tools.dispatch(maps, "navigate", json.dumps({**asked, "site": "nowhere.example"}))
        for wrong in ("{", "[]", "{}", '{"site": 1}'):
            assert "error" in json.loads(tools.dispatch(maps, "navigate", wrong))
    names = {tool["function"]["name"] for tool in tools.TOOLS}
    assert names == {"list_sites", "search_screens", "navigate"}


@pytest.mark.parametrize("kind", ["store", "service"])
def test_the_mcp_client_finds_a_path(kind, service, shop_store, shop: ExploredShop, capsys):
    where = service if kind == "service" else str(shop_store)
    asyncio.run(example("mcp_client").main(where, shop.capture.site, QUESTION))
    said = capsys.readouterr().out
    assert "Settings" in said
    assert "1. " in said


def test_async_client_gives_the_answers_of_the_sync_client(service, shop_store, shop: ExploredShop):
    site = shop.capture.site

    async def ask(where) -> list[object]:
        async with AsyncWaygraph(where) as maps:
            found = await maps.navigate(site, QUESTION)
            return [
                found,
                await maps.sites(),
                await maps.search(site, QUESTION, 3),
                await maps.search_batch(site, [QUESTION], 3),
                await maps.path(site, None, found.node_id, others=1),
                await maps.locate(site, shop.site.url),
                await maps.node(site, found.node_id),
                len(await maps.screenshot(site, found.node_id)),
            ]

    over_http, in_process = asyncio.run(ask(service)), asyncio.run(ask(shop_store))
    assert over_http[1:2] + over_http[4:] == in_process[1:2] + in_process[4:]
    assert over_http[0].node_id == in_process[0].node_id
    with Waygraph(service) as maps:
        assert maps.navigate(site, QUESTION) == over_http[0]


def test_the_command_prints_the_choice_and_the_path(service, shop: ExploredShop, capsys):
    arguments = ["navigate", shop.capture.site, QUESTION, "--url", service]
    assert main([*arguments]) == 0
    said = capsys.readouterr().out
    assert "Settings" in said
    assert "Taxes" in said
    assert main([*arguments, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["selector"] == "top1"
    assert main(["navigate", "nowhere.example", QUESTION, "--url", service]) == 3
    assert "not mapped" in capsys.readouterr().err


def test_examples_say_how_they_are_run():
    for path in EXAMPLES.glob("*.py"):
        text = path.read_text()
        assert text.startswith('"""'), path
        assert path.name in text or "import navigate" in text


def test_an_agent_of_forty_lines_does_a_task(shop: ExploredShop) -> None:
    own_agent = example("own_agent")

    def click_help(request: ChatRequest) -> str:
        found = re.search(r"link (\[\d+\]) 'Help'", request.messages[-1].text)
        assert found is not None
        return f"click {found[1]}"

    model = ScriptedModel([click_help, "I am not sure.", "stop [5 euros]"])

    async def work() -> str:
        context = await (await BROWSERS.browser()).new_context()
        try:
            page = await context.new_page()
            await page.goto(shop.site.url)
            async with AgentSession(page) as session:
                answer: str = await own_agent.do_task(session, model, "What does shipping cost?")
                return answer
        finally:
            await context.close()

    assert BROWSERS.run(work()) == "5 euros"
    last = model.requests[-1].messages[-1].text
    assert f"at {shop.site.url}help." in last
    assert "I am not sure.: " in last
