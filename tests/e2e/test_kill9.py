"""A killed or interrupted `waygraph index` leaves an intact store and no process.

`WAYGRAPH_KILLS=20` kills more often (`make soak-crash`); the moments are random, their seed is printed.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from tests.sites.mutable import MutableSite
from tests.sites.server import FixtureServer
from waygraph.demo_site import DemoSite
from waygraph.index.store import Store

pytestmark = pytest.mark.extended

KILLS = int(os.environ.get("WAYGRAPH_KILLS", "2"))
#: Two kills need no long run to come in the middle of.
DEPTH = "1" if KILLS <= 2 else "2"
#: Processes of the command, and a private Ray.
BOTH = pytest.mark.parametrize("engine", ["--no-ray", "--ray"])
#: Longer than a whole run takes on a busy machine; nothing waits for it to pass.
PATIENCE = 240.0


class Indexing:
    """A `waygraph index` in a session of its own, and all processes that it starts."""

    def __init__(self, url: str, store: Path, *options: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "waygraph", "index", url, "--store", str(store), *options],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        self._seen: dict[int, psutil.Process] = {}

    def watch(self, seconds: float) -> None:
        """Let it run for a time and record every process that it starts."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline and self.process.poll() is None:
            self._look()
            time.sleep(0.02)  # a poll: nothing tells us of a grandchild

    def watch_until_publishing(self, folder: Path) -> None:
        """Let it run until the first file of its new version appears, or until it exits."""
        before = _paths(folder)
        while self.process.poll() is None and _paths(folder) == before:
            self.watch(0.02)

    def _look(self) -> None:
        try:
            for child in psutil.Process(self.process.pid).children(recursive=True):
                self._seen.setdefault(child.pid, child)
        except psutil.NoSuchProcess:
            pass  # it ended between two looks

    def kill(self) -> None:
        """Kill the main process alone (SIGKILL), as the kernel would."""
        self._look()
        self.process.kill()  # nothing, when the run was faster
        self.process.communicate()

    def left_over(self) -> list[str]:
        """Return the processes that still run after a grace period."""
        _, alive = psutil.wait_procs([p for p in self._seen.values() if not _is_zombie(p)], timeout=20)
        return [_name(p) for p in alive if not _is_zombie(p)]

    @property
    def started_a_browser(self) -> bool:
        """Return whether a browser was started."""
        return any("chrom" in _name(p) for p in self._seen.values())


def _paths(folder: Path) -> set[Path]:
    return set(folder.rglob("*"))


def _is_zombie(process: psutil.Process) -> bool:
    try:
        return bool(process.status() == psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return True


def _name(process: psutil.Process) -> str:
    try:
        return " ".join(process.cmdline())[:120]
    except psutil.Error:
        return ""


def check_whole(store: Path) -> list[int]:
    """Check that every published version is readable completely; return the versions."""
    if not (store / "store.json").exists():
        return []  # killed before the store was made
    opened = Store.open(str(store))
    versions: list[int] = []
    for site in opened.sites():
        for number in opened.versions(site):
            version = opened.read(site, number)
            assert set(version.pages) == set(version.graph.nodes) == set(version.observations)
            for observation in version.observations.values():
                for blob in (observation.screenshot, observation.dom, observation.aria):
                    assert not blob or opened.blobs.get(blob)
            versions.append(number)
    return versions


def search(store: Path, site: str, query: str) -> list[dict]:
    result = subprocess.run(
        [sys.executable, "-m", "waygraph", "search", "--store", str(store), "--json", site, query],
        capture_output=True,
        text=True,
        check=True,
    )
    return json.loads(result.stdout)["hits"]


@pytest.fixture(scope="module")
def shop():
    with DemoSite() as site:
        yield site


@BOTH
@pytest.mark.timeout(PATIENCE * (KILLS + 2))
def test_kill_9_leaves_an_intact_store_and_no_process(tmp_path, engine):
    with MutableSite() as running:
        kill_often(running.url, tmp_path / "maps", engine)


def kill_often(url, store, engine):
    seed = int(os.environ.get("WAYGRAPH_SEED", time.time_ns() % 10**6))
    print(f"WAYGRAPH_SEED={seed}")  # noqa: T201 - to repeat a failure
    chance = random.Random(seed)
    site = url.removeprefix("http://").rstrip("/")

    # A first complete run tells how long a run takes here and now, and publishes a version to be kept.
    started = time.monotonic()
    first = Indexing(url, store, "--depth", DEPTH, "--json")
    out, errors = first.process.communicate(timeout=PATIENCE)
    assert first.process.returncode == 0, errors
    duration = time.monotonic() - started
    assert json.loads(out)["totals"]["published"] == 1
    assert check_whole(store) == [1]

    for kill in range(KILLS):
        versions = check_whole(store)
        run = Indexing(url, store, "--depth", DEPTH, engine)
        if kill % 2:  # publishing is short: a moment of the whole run would hardly ever hit it
            run.watch_until_publishing(store / "sites")
            run.watch(chance.uniform(0, 0.3))
        else:
            run.watch(chance.uniform(0, duration))
        run.kill()
        assert run.left_over() == []
        assert check_whole(store)[: len(versions)] == versions
        assert Store.open(str(store)).head(site) >= versions[-1]

    head = Store.open(str(store)).head(site)
    assert search(store, site, "first steps with a compass")
    last = Indexing(url, store, "--depth", DEPTH, "--json")
    out, errors = last.process.communicate(timeout=PATIENCE)
    assert last.process.returncode == 0, errors
    outcome = json.loads(out)["sites"][0]
    # The last kill may have come when the map was published already: then it is not made twice.
    assert outcome["publication"]["version"] >= head
    assert outcome["exploration"]["states"] == len(Store.open(str(store)).read(site, 1).graph)


@BOTH
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_signal_while_exploring_ends_the_run_within_seconds_with_a_message(shop, tmp_path, number, engine):
    store = tmp_path / "maps"
    run = Indexing(shop.url, store, "--depth", "3", "--json", engine)
    deadline = time.monotonic() + PATIENCE
    while not run.started_a_browser and time.monotonic() < deadline:
        run.watch(0.2)
    run.watch(2.0)
    run.process.send_signal(number)
    out, errors = run.process.communicate(timeout=60)
    assert run.process.returncode == 130, errors
    assert run.left_over() == []
    report = json.loads(out)
    assert report["interrupted"]
    assert [site["status"] for site in report["sites"]] == ["interrupted"]
    written = json.loads((store / "runs" / report["run_id"] / "report.json").read_text())
    assert written == report
    assert Store.open(str(store)).sites() == []


@BOTH
def test_signal_during_the_start_ends_the_run(tmp_path, engine):
    run = Indexing("http://127.0.0.1:9/", tmp_path / "maps", "--json", engine)
    deadline = time.monotonic() + PATIENCE
    while not (tmp_path / "maps" / "store.json").exists() and time.monotonic() < deadline:
        run.watch(0.05)
    run.process.send_signal(signal.SIGINT)
    out, errors = run.process.communicate(timeout=60)
    # CPython dies of the signal, for a shell that is 130 as well, when it came inside an exec of some import.
    assert run.process.returncode in {130, -signal.SIGINT}, errors
    reports = list((tmp_path / "maps" / "runs").glob("*/report.json"))
    if out or reports:  # else the signal came before there was a run
        assert json.loads(out)["interrupted"]
        assert len(reports) == 1
    assert run.left_over() == []


def test_site_without_response_gives_one_message_and_exit_code_4(tmp_path):
    with FixtureServer({}) as site:
        url = site.url
    run = Indexing(url, tmp_path / "maps")
    out, errors = run.process.communicate(timeout=PATIENCE)
    assert run.process.returncode == 4, errors
    assert "failed" in out
    assert "ray" not in (out + errors).lower()
    assert "Traceback" not in out + errors
