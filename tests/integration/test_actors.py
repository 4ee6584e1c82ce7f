"""What runs of jobs rely on, of actors that are processes of the command and of those on a real Ray."""

import asyncio
import os
import signal
import subprocess
import sys
import time
import traceback
from concurrent.futures import Future
from contextlib import suppress
from types import SimpleNamespace

import psutil
import pytest

from tests.actors import ON_BOTH
from waygraph.core.errors import StoreError
from waygraph.pipeline.browser.process.process_tree import is_alive
from waygraph.pipeline.jobs.actors import local_actors as local_actors_module
from waygraph.pipeline.jobs.actors.local_actors import local_actors
from waygraph.pipeline.jobs.actors.protocol import ActorDied
from waygraph.pipeline.jobs.actors.ray_actors import RayActors
from waygraph.pipeline.jobs.call_errors import to_waygraph_error

#: Much longer than it takes on a busy machine; nothing waits for it to pass.
PATIENCE_S = 60


@pytest.fixture
def actors(one_cpu):
    if one_cpu == "ray":
        yield RayActors()
        return
    with local_actors() as local:
        yield local


def start(actors, kind="Counter", *arguments):
    return actors.start(f"tests.actor_kinds:{kind}", *arguments, cpus=0.01, concurrency=4)


@ON_BOTH
async def test_methods_return_raise_and_keep_what_is_large(actors):
    actor = start(actors, "Counter", 1)
    assert [await actor.call("add", 2), await actor.call("add", 3)] == [3, 6]
    hanging = asyncio.ensure_future(actor.call("hang"))
    assert await actor.call("add", 1) == 7  # calls overlap
    first, second = await actor.call_keeping("both")
    assert first == "small"
    value = second if isinstance(second, bytes) else await second
    assert value == b"large" * 100_000
    with pytest.raises(ZeroDivisionError) as raised:
        await actor.call("divide")
    assert "in divide" in "".join(traceback.format_exception(raised.value))  # where it was raised
    with pytest.raises(OSError, match="No space") as full:
        await actor.call("fill_disk")
    assert type(to_waygraph_error(full.value, "Exploring a.example")) is StoreError
    assert await actor.call("nice") == os.nice(0)
    light = actors.start("tests.actor_kinds:Light", cpus=0.01, concurrency=4, is_light=True)
    assert (await actor.call("ask", light)).startswith("asked ")
    actor.kill()
    with pytest.raises(ActorDied):
        await hanging
    with pytest.raises(ActorDied):
        await actor.call("add", 1)


@ON_BOTH
async def test_an_actor_whose_process_is_killed_or_does_not_start_has_died(actors):
    dying, unstartable = start(actors, "Counter", 1), start(actors, "Unstartable")
    with pytest.raises(ActorDied):
        await dying.call("die")
    with pytest.raises(ActorDied, match="cannot be started"):
        await unstartable.call("process")


async def test_an_actor_that_finds_no_room_has_died():
    with local_actors() as local:
        local._folder /= "missing"  # as if the disk were full
        with pytest.raises(ActorDied, match=r"could not be started: .*missing"):
            await start(local).call("add", 1)


async def test_result_that_is_there_before_anybody_waits_for_it_is_sent():
    sent, done = Future(), Future()
    done.set_result(7)
    channel = SimpleNamespace(answer=lambda call, work: sent.set_result((call, work())))
    await asyncio.to_thread(local_actors_module._answer, asyncio.get_running_loop(), channel, "call", done)
    assert await asyncio.wait_for(asyncio.wrap_future(sent), PATIENCE_S) == ("call", 7)


async def test_an_actor_imports_nothing_from_the_folder_of_the_command(tmp_path, monkeypatch):
    (tmp_path / "json.py").write_text("raise SystemExit")
    monkeypatch.chdir(tmp_path)
    with local_actors() as local:
        assert await start(local, "Counter", 1).call("add", 1) == 2


async def test_what_a_killed_actor_started_ends_with_it(actors):
    actor = start(actors, "Counter", 1)
    child = psutil.Process(await actor.call("start_deaf_child"))
    with pytest.raises(ActorDied, match="SIGKILL"):
        await actor.call("die")
    assert not is_alive(child)


#: A coordinator below a process that adopts what its actor leaves and collects nothing, as the first process of a
#: container may. It would wait for hours.
LEAVING = """
import asyncio, subprocess, sys
from waygraph.pipeline.jobs.actors import local_actors
from waygraph.pipeline.browser.process.process_tree import adopt_orphans

async def main(actors):
    actor = actors.start("tests.actor_kinds:Counter", 1, cpus=1, concurrency=2)
    await actor.call("start_deaf_child")

if len(sys.argv) < 3:
    adopt_orphans()
    sys.exit(subprocess.run([sys.executable, "-c", sys.argv[1], *sys.argv[1:], "coordinator"]).returncode)
local_actors._END_SECONDS = local_actors._MAX_WAIT_SECONDS = 10_000.0
with local_actors.local_actors() as actors:
    asyncio.run(main(actors))
print("ended")
"""


def test_what_an_actor_left_is_not_waited_for_once_it_has_ended():
    command = [sys.executable, "-c", LEAVING, LEAVING]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, start_new_session=True) as ran:
        try:
            out, _ = ran.communicate(timeout=PATIENCE_S)
        finally:
            with suppress(ProcessLookupError):
                os.killpg(ran.pid, signal.SIGKILL)
    assert (out, ran.returncode) == ("ended\n", 0)


#: A coordinator that prints the ids of its actor's processes.
COORDINATOR = """
import asyncio, sys
from waygraph.pipeline.jobs.actors.local_actors import local_actors

async def main(actors):
    actor = actors.start("tests.actor_kinds:Counter", 1, cpus=1, concurrency=2)
    print(await actor.call("process"), await actor.call("start_deaf_child"), flush=True)
    await actor.call("hang")

with local_actors() as actors:
    asyncio.run(main(actors))
"""


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_actors_and_what_they_started_end_with_the_coordinator(number):
    with subprocess.Popen([sys.executable, "-c", COORDINATOR], stdout=subprocess.PIPE, text=True) as coordinator:
        below = [psutil.Process(int(pid)) for pid in coordinator.stdout.readline().split()]
        assert len(below) == 2
        coordinator.send_signal(number)
    deadline = time.monotonic() + PATIENCE_S
    while any(map(is_alive, below)):
        assert time.monotonic() < deadline
        time.sleep(0.02)  # a poll: nothing tells of a grandchild


async def test_an_actor_without_ray_imports_neither_ray_nor_what_it_does_not_need(actors):
    modules = await start(actors, "Counter", 1).call("modules")
    assert not {"ray", "torch", "transformers", "numpy", "playwright"} & set(modules)
