"""Tasks over several sites with one start URL: agents with scripted models, real maps and a real browser."""

import json
import re
import shutil
from functools import partial

import pytest

from tests.blobs import MemoryBlobs
from tests.browsers import BROWSERS, LOOPBACK_ONLY
from tests.exploring import explore
from tests.model_replies import reply
from tests.sites.server import FixtureServer, Page
from waygraph import AsyncWaygraph
from waygraph.agents.create import AgentName
from waygraph.agents.models.budget import ModelBudget
from waygraph.agents.models.scripted import ScriptedModel
from waygraph.agents.runner.attempt import AttemptOptions, TaskAttempts
from waygraph.agents.tasks.task import Task, TaskBenchmark
from waygraph.cli import main
from waygraph.core.settings import AgentSettings, EncodeSettings, Settings
from waygraph.core.urls import site_key
from waygraph.index.store import Store
from waygraph.pipeline.encode.registry import create_encoder
from waygraph.pipeline.jobs.publishing.draft import encode_draft

FORUM = {
    "/": "<title>The forum</title><h1>Forum</h1><a href=/lamps>Talk about lamps</a> <a href=/members>Members</a>",
    "/lamps": "<title>Lamps</title><h1>Which lamp lasts longest?</h1><p>The brass lamp, says Ada.</p>",
    "/members": "<title>Members</title><h1>All members</h1><p>Ada, Grace</p>",
}
BOTH = pytest.mark.parametrize("name", [AgentName.WEBNAVIGATOR, AgentName.OCCAM])


@pytest.fixture(scope="module")
def forum():
    with FixtureServer(FORUM) as server:
        yield server


@pytest.fixture(scope="module")
def encoder():
    return create_encoder(EncodeSettings())


def draft_of(store, url, encoder):
    """Map a site as it is now, with its pictures in the store."""
    blobs = MemoryBlobs()
    capture = explore(url, blobs=blobs)
    for content in blobs.values():
        store.blobs.put(content)
    return encode_draft(capture, Settings(), encoder)


def publish(store, url, encoder):
    store.publish(draft_of(store, url, encoder))


@pytest.fixture(scope="module")
def maps(shop_store, forum, encoder, tmp_path_factory):
    """Return a store with maps of the shop and of the forum."""
    folder = tmp_path_factory.mktemp("several") / "maps"
    shutil.copytree(shop_store, folder)
    publish(Store.open(str(folder)), forum.url, encoder)
    return folder


def task_over(shop, forum, **fields):
    return Task(
        task_id="1",
        benchmark=TaskBenchmark.WEBARENA,
        intent="Buy the lamp that lasts longest",
        sites=("shopping", "forum"),
        start_urls=(shop.site.url,),
        site_urls={"shopping": shop.site.url, "forum": forum.url},
        **fields,
    )


def do_task(task, name, actions, store, *, encoder, folder, mapped=None, select="first"):
    """Do a task as `waygraph run` does; return its trace and the scripted model."""
    script = ScriptedModel([each if callable(each) else reply(name, each) for each in actions])
    settings = Settings(browser=LOOPBACK_ONLY, agents=AgentSettings(select=select), store=str(store))
    sites = frozenset(map(site_key, task.site_urls.values())) if mapped is None else mapped
    options = AttemptOptions(folder, name, settings, str(store), None, sites, folder, 10, 120.0)

    async def work():
        async with AsyncWaygraph(store) as opened:
            attempts = TaskAttempts(options, encoder, opened, script)
            await attempts.attempt(task, await BROWSERS.browser(), ModelBudget("the run"))

    BROWSERS.run(work())
    lines = (folder / "tasks" / task.task_id / "trace.jsonl").read_text().splitlines()
    return [json.loads(line) for line in lines], script


@pytest.fixture
def attempt(encoder, tmp_path):
    """Return `do_task` with a folder of its own."""
    return partial(do_task, encoder=encoder, folder=tmp_path / "run")


@pytest.fixture
def refreshing_at_once(monkeypatch):
    """Let readers look for newer versions with every request."""
    monkeypatch.setenv("WAYGRAPH_SERVE__REFRESH_SECONDS", "0.001")


def steps_of(trace):
    return [line for line in trace if line["kind"] == "step"]


@BOTH
def test_navigate_changes_to_another_site_by_its_name(shop, forum, maps, attempt, name):
    actions = ["navigate [Forum] [which lamp lasts longest]", "navigate [shopping] [how returns work]", "stop [brass]"]
    if name is AgentName.WEBNAVIGATOR:  # it may not navigate twice in a row
        actions.insert(1, "note [brass]")
    trace, script = attempt(task_over(shop, forum), name, actions, maps)
    start, *_, end = trace
    assert [(site["name"], site["title"], site["is_mapped"]) for site in start["sites"]] == [
        ("shopping", start["sites"][0]["title"], True),
        ("forum", "The forum", True),
    ]
    assert [line["status"] for line in steps_of(trace)] == ["done", *["kept"] * (len(actions) - 3), "done", "kept"]
    assert f"The site is now forum ({site_key(forum.url)})." in trace[1]["message"]
    assert f"{forum.url}lamps" in trace[1]["message"]
    assert (end["ended"], end["url"]) == ("answered", f"{shop.site.url}help/returns")
    asked = script.requests[0].messages[-1].text
    assert re.search(rf'forum \("The forum", {re.escape(site_key(forum.url))}\), 3 pages', asked)


@BOTH
def test_go_home_lists_the_sites_and_its_links_and_tabs_work(shop, forum, maps, attempt, name):
    actions = [
        "go_home", "click {link 'forum: The forum'}", "new_tab", "go_home", "tab_focus [0]",
        "click {link 'Talk about lamps'}", "go_back", "tab_focus [1]", "close_tab", "tab_focus [0]", "stop [brass]",
    ]  # fmt: skip
    trace, script = attempt(task_over(shop, forum), name, actions[:-2] + actions[-1:], maps)
    assert [line["status"] for line in steps_of(trace)] == ["done"] * 9 + ["kept"]
    assert trace[-1]["url"] == forum.url
    assert trace[-1]["refused"] == 0
    assert not any("outside" in line["message"] for line in steps_of(trace))
    system = [request.messages[0].text for request in script.requests]
    offered = ["tab_focus [number]" in text for text in system]
    assert offered == [False, False, False, True, True, True, True, True, True, False]
    assert all("go_home:" in text and "new_tab:" in text for text in system)
    home = script.requests[1].messages[-1].text
    assert "http://homepage.invalid/" in home
    assert re.search(r"link \[\d+\] 'shopping: .*Northfold", home)


def test_a_home_page_of_the_user_is_taken(shop, forum, maps, attempt):
    own = FixtureServer({"/": f"<title>Own list</title><a href={forum.url}>Forum</a>"})
    with own:
        task = task_over(shop, forum, home=own.url)
        trace, _ = attempt(task, AgentName.OCCAM, ["go_home", "click {link 'Forum'}", "stop []"], maps)
        address = own.url
    assert f"Own list at {address}" in trace[1]["message"]
    assert trace[-1]["url"] == forum.url


def test_sites_without_a_map_are_reached_by_links_and_other_hosts_are_not(shop, maps, attempt):
    with FixtureServer({"/": "<title>Out</title>"}) as out:
        pages = {"/": f"<title>Wiki</title><a href={out.url}>Out of scope</a>"}
        with FixtureServer(pages) as wiki:
            task = task_over(shop, wiki)
            link = f"click {{link 'forum: {site_key(wiki.url)}'}}"
            actions = ["navigate [forum] [x]", "navigate [elsewhere] [x]", "go_home", link]
            actions += ["click {link 'Out of scope'}", "stop []"]
            mapped = frozenset({site_key(shop.site.url)})
            trace, _ = attempt(task, AgentName.WEBNAVIGATOR, actions, maps, mapped=mapped)
        assert out.paths == []
    statuses = [line["status"] for line in steps_of(trace)]
    assert statuses == ["unparsed", "unparsed", "done", "done", "refused", "kept"]
    assert "The site forum has no map" in trace[1]["message"]
    assert "There is no map of 'elsewhere'; write one of these sites: shopping" in trace[2]["message"]


def test_the_greedy_agent_asks_the_maps_of_all_sites(shop, forum, maps, attempt):
    task = task_over(shop, forum).model_copy(update={"intent": "which lamp lasts longest, says Ada"})
    trace, _ = attempt(task, AgentName.GREEDY, [], maps)
    assert trace[-1]["url"] == f"{forum.url}lamps"


@pytest.mark.usefixtures("refreshing_at_once")
def test_a_map_that_is_published_anew_between_search_and_walk_is_no_end(shop, maps, encoder, attempt, tmp_path):
    folder = tmp_path / "maps"
    shutil.copytree(maps, folder)
    before = {"/": "<title>Old</title><a href=/old>Old page</a><a href=/x>X</a>", "/old": "<title>Old page</title>"}
    after = {"/": "<title>New</title><h1>New</h1><a href=/new>New page</a>", "/new": "<title>New page</title>"}
    with FixtureServer({**before, "/x": "<h1>X</h1>"}) as site:
        store = Store.open(str(folder))
        publish(store, site.url, encoder)
        site.pages = dict(after)
        renewed, address = draft_of(store, site.url, encoder), site.url

        def choose_and_renew(request):
            store.publish(renewed)
            number = re.search(r'^(\d+) .*"/old"', request.messages[-1].text, re.MULTILINE)[1]
            return json.dumps({"reasoning": "it fits", "choice": int(number)})

        actions = [
            "navigate [forum] [old page]",
            choose_and_renew,
            "navigate [forum] [new page]",
            first_choice,
            "stop []",
        ]
        trace, _ = attempt(task_over(shop, site), AgentName.OCCAM, actions, folder, select="model")
    missing, arrived, _ = steps_of(trace)
    assert missing["status"] == "failed"
    assert f"The map of forum ({site_key(address)}) has changed meanwhile" in missing["message"]
    assert arrived["status"] == "done"


def first_choice(request):
    return json.dumps({"reasoning": "it fits", "choice": 1})


def test_a_site_that_is_not_as_its_map_says_is_a_failed_step(shop, maps, encoder, attempt, tmp_path):
    folder = tmp_path / "maps"
    shutil.copytree(maps, folder)
    with FixtureServer({"/": "<title>Old</title><a href=/old>Old page</a>", "/old": "<title>Old page</title>"}) as site:
        publish(Store.open(str(folder)), site.url, encoder)
        site.pages = {"/": "<title>New</title><h1>New</h1><p>Everything has changed.</p>"}
        actions = ["navigate [forum] [old page]", "go_home", "stop []"]
        trace, _ = attempt(task_over(shop, site), AgentName.OCCAM, actions, folder)
    assert [line["status"] for line in steps_of(trace)] == ["failed", "done", "kept"]
    assert "was not reached" in steps_of(trace)[0]["message"]


def test_a_session_that_has_ended_at_one_site_is_a_line_of_the_trace(shop, maps, attempt, tmp_path):
    login = "<title>Log in</title><form action=/login><input type=password name=p><button>Log in</button></form>"
    pages = {"/": Page(redirect="/login"), "/login": login}
    with FixtureServer(pages) as site:
        origins = [
            {"origin": url.rstrip("/"), "localStorage": [{"name": "a", "value": "b"}]}
            for url in (site.url, shop.site.url)
        ]
        (tmp_path / "run").mkdir()
        (tmp_path / "run" / "both.json").write_text(json.dumps({"cookies": [], "origins": origins}))
        task = task_over(shop, site, storage_state="both.json")
        actions = ["go_home", f"click {{link 'forum: {site_key(site.url)}'}}", "stop []"]
        trace, _ = attempt(task, AgentName.OCCAM, actions, maps, mapped=frozenset({site_key(shop.site.url)}))
        address = site.url
    (warning,) = [line["problem"] for line in trace if line["kind"] == "warning"]
    assert f"{address}login does not look signed in although a session was given for forum" in warning
    assert "it shows a password field" in warning
    assert "asks for a password" in steps_of(trace)[1]["message"]
    assert trace[-1]["ended"] == "answered"


def test_the_command_takes_further_sites(shop, forum, maps, capsys):
    arguments = ["do", shop.site.url, "which lamp lasts longest, says Ada", "--site", site_key(forum.url)]
    assert main([*arguments, "--store", str(maps), "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["url"] == f"{forum.url}lamps"
    assert [site["key"] for site in document["sites"]] == [site_key(shop.site.url), site_key(forum.url)]


def test_two_sessions_are_given_to_the_command_unless_they_contradict_each_other(shop, tmp_path, capsys):
    def session(name, value):
        file = tmp_path / f"{name}-{value}.json"
        entry = {"name": name, "value": value, "domain": "127.0.0.1", "path": "/"}
        file.write_text(json.dumps({"cookies": [entry], "origins": []}))
        return str(file)

    arguments = ["do", shop.site.url, "returns", "--store", str(tmp_path), "--max-steps", "1", "--no-map"]
    assert main([*arguments, "--storage-state", session("a", "1"), "--storage-state", session("a", "2")]) == 2
    assert "differ in the cookie 'a' of 127.0.0.1" in capsys.readouterr().err
