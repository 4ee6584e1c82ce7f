"""Frames and workers below a page start only after they are guarded."""

import asyncio
import json

import pytest

from waygraph.pipeline.browser.guard import child_targets as children
from waygraph.pipeline.browser.guard.child_targets import TargetTree
from waygraph.pipeline.browser.guard.network_guard import NetworkGuard
from waygraph.pipeline.browser.guard.request_policy import RequestPolicy

FRAME = {"sessionId": "1", "targetInfo": {"type": "iframe", "url": "https://other.example/a"}}


class Page:
    """A page's DevTools session with one frame below it, which gives no answer to the commands in `deaf_to`."""

    def __init__(self, deaf_to=()):
        self.deaf_to, self.sent, self.handlers = deaf_to, [], {}

    def on(self, event, handler):
        self.handlers[event] = handler

    async def send(self, method, params=None):
        if method != "Target.sendMessageToTarget":
            return
        message = json.loads(params["message"])
        self.sent.append(message["method"])
        if message["method"] not in self.deaf_to:
            answer = json.dumps({"id": message["id"], "result": {}})
            self.handlers["Target.receivedMessageFromTarget"]({"sessionId": "1", "message": answer})


async def start(page, guard, *, meanwhile=None):
    tasks = []
    tree = TargetTree(
        page,
        prepare=guard._prepare_target,
        may_run=guard._may_run_unguarded,
        on_event=lambda *_: None,
        spawn=lambda work: tasks.append(asyncio.ensure_future(work)),
    )
    await tree.watch()
    page.handlers["Target.attachedToTarget"](FRAME)
    await asyncio.sleep(0)
    if meanwhile:
        page.handlers[meanwhile](FRAME)
    await asyncio.gather(*tasks)
    return page.sent


@pytest.fixture
def impatient(monkeypatch):
    monkeypatch.setattr(children, "_COMMAND_TIMEOUT_S", 0.01)


async def test_a_frame_is_guarded_before_anything_else():
    guard = NetworkGuard(lambda _: None)
    assert await start(Page(), guard) == ["Fetch.enable", "Target.setAutoAttach", "Runtime.runIfWaitingForDebugger"]
    assert guard.take_stopped().blocked == ()


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize("command", ["Fetch.enable", "Target.setAutoAttach"])
async def test_frame_that_cannot_be_guarded_in_time_stays_paused_and_is_reported(command, caplog):
    guard, told = NetworkGuard(lambda _: None), []
    guard.on_unguarded = lambda: told.append(1)
    assert "Runtime.runIfWaitingForDebugger" not in await start(Page({command}), guard)
    (request,) = guard.take_stopped().blocked
    assert (request.url, request.kind) == ("https://other.example/a", "unguarded")
    assert told == [1]
    assert "https://other.example/a" in caplog.text


@pytest.mark.usefixtures("impatient")
async def test_unguarded_frame_is_resumed_in_observe_mode():
    guard = NetworkGuard(lambda _: None, request_policy=RequestPolicy("observe"))
    assert (await start(Page({"Fetch.enable"}), guard))[-1] == "Runtime.runIfWaitingForDebugger"


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize("end", ["Target.detachedFromTarget", "close"])
async def test_frame_removed_meanwhile_is_not_reported(end, caplog):
    guard = NetworkGuard(lambda _: None)
    await start(Page({"Fetch.enable"}), guard, meanwhile=end)
    assert guard.take_stopped().blocked == ()
    assert not caplog.records
