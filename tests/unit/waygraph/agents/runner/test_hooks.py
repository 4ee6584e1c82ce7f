"""Hooks reset sites and make session files before tasks, with real commands and a real server."""

import asyncio
import json
import os
import sys
from contextlib import suppress

import psutil
import pytest

from waygraph.agents.runner.hooks import HookFailed, HookOptions, SiteHook, TaskHooks, parse_hooks
from waygraph.agents.tasks.task import Task, TaskBenchmark
from waygraph.core.errors import InvalidInput
from waygraph.demo_site.local_server import LocalServer, Response


def make_task(task_id="7", *, sites=("shop",), storage_state="", start="http://127.0.0.1:80/"):
    return Task(
        task_id=task_id,
        benchmark=TaskBenchmark.WEBARENA,
        intent="i",
        sites=sites,
        start_urls=(start,),
        storage_state=storage_state,
    )


def python(code, *arguments):
    return SiteHook(command=(sys.executable, "-c", code, *arguments))


#: Adds a line to the file that the first argument names.
APPEND = "import sys; open(sys.argv[1], 'a').write(sys.argv[2] + chr(10))"


async def test_a_reset_runs_before_every_task_of_its_site_and_no_other(tmp_path):
    log = tmp_path / "log"
    hooks = TaskHooks(HookOptions(resets={"shop": python(APPEND, str(log), "task {task}")}))
    for task in (make_task("1"), make_task("2", sites=("forum",)), make_task("3", sites=("forum", "shop"))):
        await hooks.prepare(task)
    assert log.read_text().splitlines() == ["task 1", "task 3"]


def test_a_site_can_be_named_by_the_host_of_a_start_url():
    hooks = TaskHooks(HookOptions(resets={"127.0.0.1:80": python("")}))
    assert hooks.reset_sites(make_task(sites=())) == {"127.0.0.1:80"}
    assert hooks.reset_sites(make_task(sites=(), start="http://127.0.0.1:81/")) == frozenset()


async def test_a_url_is_posted_and_its_status_counts():
    requests = []

    def answer(request):
        requests.append((request.method, request.path))
        return Response(status=200 if request.path == "/reset" else 503)

    with LocalServer(answer) as control:
        for path, works in (("reset", True), ("broken", False)):
            hooks = TaskHooks(HookOptions(resets={"shop": SiteHook(url=f"{control.url}{path}")}))
            if works:
                await hooks.prepare(make_task())
            else:
                with pytest.raises(HookFailed, match="503"):
                    await hooks.prepare(make_task())
    assert requests == [("POST", "/reset"), ("POST", "/broken")]
    with pytest.raises(HookFailed, match="reset of 'shop' failed"):  # the server is gone
        await hooks.prepare(make_task())


@pytest.mark.parametrize(
    ("hook", "message"),
    [
        (python("import sys; sys.exit('no database')"), "exit code 1: no database"),
        (SiteHook(command=("/nowhere/reset",)), "could not start '/nowhere/reset'"),
    ],
)
async def test_a_command_that_fails_is_named_with_its_reason(hook, message):
    with pytest.raises(HookFailed, match=message):
        await TaskHooks(HookOptions(resets={"shop": hook})).prepare(make_task())


async def test_a_command_that_takes_too_long_is_killed_with_what_it_started(tmp_path):
    written = tmp_path / "child"
    command = ("sh", "-c", 'sleep 600 & echo $! > "$0"; wait', str(written))
    with pytest.raises(HookFailed, match="more than 2 s"):
        await TaskHooks(HookOptions(resets={"shop": SiteHook(command=command)}, limit_s=2.0)).prepare(make_task())
    child = int(written.read_text())
    with suppress(psutil.NoSuchProcess):
        psutil.Process(child).wait(timeout=30)
    assert not psutil.pid_exists(child)


async def test_a_login_writes_the_session_file_once_for_tasks_that_share_it(tmp_path):
    login = python(APPEND, "{session}", "{}")
    options = HookOptions(logins={"shop": login}, sessions=tmp_path, login_max_age_s=3600.0)
    hooks = TaskHooks(options)
    task = make_task(storage_state="./.auth/shop.json")
    await asyncio.gather(hooks.prepare(task), hooks.prepare(task))
    session = tmp_path / ".auth" / "shop.json"
    assert session.read_text() == "{}\n"
    os.utime(session, (1, 1))
    await hooks.prepare(task)
    assert session.read_text() == "{}\n{}\n"
    await hooks.prepare(make_task())  # it needs no session
    assert session.read_text() == "{}\n{}\n"


def login_script(cookie, value="1", domain="127.0.0.1"):
    """Return a login that writes a session with one cookie."""
    entry = {"name": cookie, "value": value, "domain": domain, "path": "/"}
    return python(APPEND, "{session}", json.dumps({"cookies": [entry], "origins": []}))


async def test_logins_at_two_sites_of_a_task_are_merged_into_its_session_file(tmp_path):
    logins = {"shop": login_script("shop"), "forum": login_script("forum")}
    hooks = TaskHooks(HookOptions(logins=logins, sessions=tmp_path))
    task = make_task(sites=("shop", "forum"), storage_state="both.json")
    await asyncio.gather(hooks.prepare(task), hooks.prepare(task))
    merged = json.loads((tmp_path / "both.json").read_text())
    assert [cookie["name"] for cookie in merged["cookies"]] == ["forum", "shop"]
    assert (tmp_path / "both.json").stat().st_mode & 0o077 == 0
    await hooks.prepare(make_task(sites=("shop",), storage_state="shop.json"))
    assert "forum" not in (tmp_path / "shop.json").read_text()


async def test_sessions_of_two_sites_that_contradict_each_other_are_named_without_their_values(tmp_path):
    logins = {"shop": login_script("id", "s3cret"), "forum": login_script("id", "other")}
    hooks = TaskHooks(HookOptions(logins=logins, sessions=tmp_path))
    with pytest.raises(HookFailed, match="differ in the cookie 'id'") as failed:
        await hooks.prepare(make_task(sites=("shop", "forum"), storage_state="both.json"))
    assert "s3cret" not in str(failed.value)


async def test_a_login_that_writes_no_session_file_has_failed(tmp_path):
    hooks = TaskHooks(HookOptions(logins={"shop": python("")}, sessions=tmp_path, login_max_age_s=0.0))
    task = make_task(storage_state="shop.json")
    for _ in range(2):
        with pytest.raises(HookFailed, match="did not write"):
            await hooks.prepare(task)
        (tmp_path / "shop.json").write_text("{}")  # an old one does not count


def test_hooks_are_commands_in_posix_quoting_or_urls():
    hooks = parse_hooks(["shop=./reset 'my shop' a=b", "forum=http://127.0.0.1:1/reset?a=b"], "--reset")
    assert hooks == {
        "shop": SiteHook(command=("./reset", "my shop", "a=b")),
        "forum": SiteHook(url="http://127.0.0.1:1/reset?a=b"),
    }


@pytest.mark.parametrize("values", [["shop"], ["=x"], ["shop="], ["shop='x"], ["shop=a", "shop=b"]])
def test_malformed_hooks_are_refused(values):
    with pytest.raises(InvalidInput):
        parse_hooks(values, "--reset")
