"""An actor ends with Ray's daemon on its machine, whatever it is at, or when nobody asks it any more."""

import signal
import subprocess
import sys
from pathlib import Path

import psutil

ACTOR = """
import os, time
from pipeline.jobs.actors import end_with_ray
end_with_ray()
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
        [sys.executable, "-c", DAEMON], stdout=subprocess.PIPE, text=True, cwd=Path(__file__).parents[2]
    ) as daemon:
        actor = psutil.Process(int(daemon.stdout.readline()))
        assert actor.is_running()
        daemon.kill()
    _, left = psutil.wait_procs([actor], timeout=10)
    assert all(process.status() == psutil.STATUS_ZOMBIE for process in left)  # there may be nobody to reap it


UNHEARD = """
import time
from pipeline.jobs.actors import EndUnheard
end, began = EndUnheard(1.0), time.monotonic()
while time.monotonic() < began + 1.5:
    end.heard()
print("asked", flush=True)
time.sleep(600)
"""


def test_an_actor_ends_when_nobody_asks_it_any_more():
    command = [sys.executable, "-c", UNHEARD]
    ended = subprocess.run(command, capture_output=True, text=True, cwd=Path(__file__).parents[2], check=False)
    assert (ended.stdout, ended.returncode) == ("asked\n", -signal.SIGKILL)
    assert "Nobody has asked for 1 s" in ended.stderr
