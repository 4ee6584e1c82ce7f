"""The parts of the day in operation: restarts as by Docker, a shifted clock, changing sites, gaps, alerts."""

import os
import shutil
import subprocess
import sys
import time

import httpx
import pytest

from bench.compose_file import command, fast_refresh, settings_without_qdrant
from bench.day.__main__ import _judged
from bench.day.agents import ANSWERED, UNREACHABLE, Outcome, longest_gap
from bench.day.clock import ShiftedClock
from bench.day.container import Container
from bench.day.faults import VICTIMS
from bench.day.monitoring import panel_queries
from bench.day.sites import NAMES, ChangingSite, Edition

DAY_S = 86_400
needs_namespaces = pytest.mark.skipif(
    os.geteuid() != 0 or not shutil.which("tini") or not shutil.which("unshare"),
    reason="PID namespaces need root; Debian's package tini contains tini",
)
needs_compiler = pytest.mark.skipif(shutil.which("cc") is None, reason="there is no C compiler")


def wait_for(condition):
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


@pytest.mark.extended
@needs_namespaces
def test_container_starts_again_until_it_is_stopped(tmp_path):
    with Container("short", ["sh", "-c", "exit 3"], os.environ, tmp_path) as container:
        wait_for(lambda: len(container.exits) >= 2)
    assert {end.code for end in container.exits} == {3}
    ended = len(container.exits)
    time.sleep(0.3)
    assert len(container.exits) == ended


@pytest.mark.extended
@needs_namespaces
def test_container_is_stopped_by_sigterm_and_leaves_no_process(tmp_path):
    script = "trap 'exit 7' TERM; sleep 100 & wait"
    with Container("long", ["bash", "-c", script], os.environ, tmp_path) as container:
        wait_for(lambda: len(container.processes()) == 3)
        processes = container.processes()
        assert container.stop().code == 7
    assert not [process for process in processes if process.is_running()]


@pytest.mark.extended
@needs_compiler
def test_clock_shifts_for_running_processes_and_waits_stay_as_long(tmp_path):
    clock = ShiftedClock(tmp_path)
    code = (
        "import time\nfor _ in range(2):\n    input(); began = time.monotonic(); time.sleep(0.1)\n"
        "    print(time.time(), time.monotonic() - began, flush=True)"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code], env={**os.environ, **clock.environment},
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    ) as process:  # fmt: skip
        for shift in (DAY_S, -DAY_S):
            clock.shift(shift)
            process.stdin.write("\n")
            process.stdin.flush()
            now, slept = map(float, process.stdout.readline().split())
            assert now - time.time() == pytest.approx(shift, abs=5)
            assert 0.1 <= slept < 5


def test_site_shows_new_editions_and_drops_old_ones():
    with ChangingSite(NAMES[0]) as site:
        before = httpx.get(site.url, trust_env=False).text
        edition = site.publish()
        after = httpx.get(site.url, trust_env=False).text
        assert edition.path in after
        assert edition.path not in before
        assert Edition(0).path not in after
        assert edition.words in httpx.get(site.url + edition.path[1:], trust_env=False).text


def test_gap_ends_with_an_answer_and_counts_from_the_last_one_before():
    outcomes = [
        Outcome(0, 1, ANSWERED), Outcome(3, 0.1, UNREACHABLE), Outcome(6, 1, ANSWERED), Outcome(8, 1, ANSWERED),
    ]  # fmt: skip
    assert longest_gap(outcomes, since=2, until=10) == 6
    assert longest_gap(outcomes, since=7.5, until=30) == 21
    assert longest_gap([], since=2, until=10) == 8


def test_alerts_that_must_fire_are_told_from_those_that_must_not():
    judged = _judged({"WaygraphErrors": {}, "WaygraphQdrantDown": {}}, service_was_off=True, seconds=1_200)
    assert judged["missing"] == ["WaygraphDown"]
    assert judged["unexpected"] == ["WaygraphErrors"]
    assert "WaygraphSlow" in judged["silent"]


def test_services_are_those_of_the_compose_file():
    assert {service for service, _ in VICTIMS.values()} == {"serve", "refresh"}
    assert settings_without_qdrant("serve", {"API_KEYS": "[]"})["WAYGRAPH_SERVE__API_KEYS"] == "[]"
    assert "sleep 3600" in command("refresh")[-1]
    assert "sleep 5\n" in fast_refresh(5)[-1]
    assert "$" not in "".join(query for _, query in panel_queries())
