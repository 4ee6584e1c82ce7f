"""An actor ends when the Ray daemon on its machine is killed, or when it receives no calls for a while."""

import signal
import subprocess
import sys
from pathlib import Path

import psutil

from waygraph.pipeline.jobs.encoding.pool_size import cpu_share

ACTOR = """
import os, time
from waygraph.pipeline.jobs.actors.process import begin_actor
begin_actor()
print(os.getpid(), flush=True)
time.sleep(600)
"""
#: Starts an actor and tells its process id, as Ray's daemon would.
DAEMON = f"""
import subprocess, sys
with subprocess.Popen([sys.executable, "-c", {ACTOR!r}], stdout=subprocess.PIPE, text=True) as actor:
    print(actor.stdout.readline(), end="", flush=True)
    actor.wait()
"""


def test_an_actor_ends_when_the_daemon_that_started_it_is_killed():
    with subprocess.Popen(
        [sys.executable, "-c", DAEMON], stdout=subprocess.PIPE, text=True, cwd=Path(__file__).parents[4]
    ) as daemon:
        actor = psutil.Process(int(daemon.stdout.readline()))
        assert actor.is_running()
        daemon.kill()
    _, left = psutil.wait_procs([actor], timeout=60)
    assert all(process.status() == psutil.STATUS_ZOMBIE for process in left)  # its parent may not reap it


UNHEARD = """
import time
from waygraph.pipeline.jobs.actors.process import PollWatchdog
end, began = PollWatchdog(2.0), time.monotonic()
while time.monotonic() < began + 2.5:
    end.polled()
    time.sleep(0.02)
print("asked", flush=True)
time.sleep(600)
"""


def test_actor_ends_when_it_is_no_longer_polled():
    command = [sys.executable, "-c", UNHEARD]
    ended = subprocess.run(command, capture_output=True, text=True, cwd=Path(__file__).parents[4], check=False)
    assert (ended.stdout, ended.returncode) == ("asked\n", -signal.SIGKILL)
    assert "jobs/not_polled no poll for 2 s" in ended.stderr


def test_actors_ask_for_hundredths_of_a_cpu_never_for_none():
    assert [cpu_share(0.333, 0.5), cpu_share(3, 0.5), cpu_share(0, 1)] == [0.33, 0.5, 0.01]
