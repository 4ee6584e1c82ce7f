"""Several machines: a real Ray cluster of several nodes on this host, whose nodes are killed in the middle of runs.

Exploring is a stand-in where the browser is not the point. `make soak-cluster` loses machines many times.
"""

import os
import random
import subprocess
import sys
import threading
import time
from collections import Counter
from pathlib import Path

import psutil
import pytest
import ray
from ray._private import ray_constants
from ray.cluster_utils import Cluster as Nodes

from tests.browsers import LOOPBACK_ONLY
from tests.integration.cluster_run import index
from tests.integration.cluster_site import address
from tests.sites.server import FixtureServer, Page
from waygraph.cluster.private import private_ray
from waygraph.core.errors import EnvironmentMissing
from waygraph.index.graph.export import to_json
from waygraph.index.store import Store
from waygraph.index.store.upkeep.checks import verify
from waygraph.pipeline.jobs.events import Notice, SiteFinished, SitePhase, SiteProgress

pytestmark = pytest.mark.extended

LOSSES = int(os.environ.get("WAYGRAPH_LOSSES", "0"))
SEED = int(os.environ.get("WAYGRAPH_SEED", "1"))
MIB = 2**20
PATIENCE_S = 60
#: Ray takes a machine whose daemon is gone for dead after 15 seconds; here after 5.
SOONER_DEAD = {
    "health_check_initial_delay_ms": 1000,
    "health_check_period_ms": 1000,
    "health_check_failure_threshold": 5,
}


class Machines:
    """A cluster: a head without CPUs, which runs the driver, and machines that are added and killed."""

    def __init__(self) -> None:
        self._nodes = Nodes(
            initialize_head=True,
            head_node_args={
                "num_cpus": 0,
                "object_store_memory": 100 * MIB,
                "include_dashboard": False,
                "_system_config": SOONER_DEAD,
            },
        )
        self.there = {}
        self.address = self._nodes.address

    def add(self, **resources) -> str:
        node = self._nodes.add_node(object_store_memory=100 * MIB, **resources)
        self.there[node.node_id] = node, resources
        return node.node_id

    def lose(self, node_id: str) -> None:
        """Kill its raylet (SIGKILL): Ray treats the machine as dead, and its workers exit."""
        node, _ = self.there.pop(node_id)
        (raylet,) = node.all_processes[ray_constants.PROCESS_TYPE_RAYLET]
        raylet.process.kill()

    def only(self, *wanted: dict) -> list[str]:
        """Add and remove machines until exactly these exist; return their ids."""
        left, ids = {node_id: resources for node_id, (_, resources) in self.there.items()}, []
        for resources in wanted:
            ids.append(next((i for i, has in left.items() if has == resources), "") or self.add(**resources))
            left.pop(ids[-1], None)
        for node_id in left:
            self.lose(node_id)
        wait_until(lambda: {node["NodeID"] for node in ray.nodes() if node["Alive"]} - self.head == set(self.there))
        return ids

    @property
    def head(self) -> set[str]:
        return {self._nodes.head_node.node_id}

    def close(self) -> None:
        self._nodes.shutdown()


def wait_until(holds, what="") -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not holds():
        assert time.monotonic() < deadline, what
        time.sleep(0.05)


def running(process: psutil.Process) -> bool:
    try:
        return process.status() != psutil.STATUS_ZOMBIE  # its parent may not reap it
    except psutil.NoSuchProcess:
        return False


def wait_for_end(processes) -> None:
    wait_until(lambda: not any(running(process) for process in processes), f"still there: {processes}")


@pytest.fixture(scope="module")
def machines():
    made = Machines()
    ray.init(address=made.address, log_to_driver=False, logging_level="CRITICAL")
    try:
        yield made
    finally:
        ray.shutdown()
        made.close()


class Events(list):
    """Events of a run. `after` are pairs of condition and action, which runs once, in the event loop of the run."""

    def __init__(self, *after):
        super().__init__()
        self._after = list(after)

    def __call__(self, event):
        self.append(event)
        for reaction in [r for r in self._after if r[0](self)]:
            self._after.remove(reaction)
            reaction[1]()

    @property
    def notices(self) -> list[str]:
        return [event.text for event in self if isinstance(event, Notice)]

    def count(self, kind, **values):
        return sum(isinstance(e, kind) and all(getattr(e, n) == v for n, v in values.items()) for e in self)


def started_sites(events) -> set[str]:
    return {event.site for event in events if isinstance(event, SiteProgress)}


def check_whole(folder, report, events, states=3):
    """Check that every site is published once, with all states and vectors, and that all checksums match."""
    assert {site.site: (site.status, site.error) for site in report.sites} == {
        site.site: ("published", None) for site in report.sites
    }
    store = Store.open(str(folder / "maps"))
    assert store.sites() == sorted(site.site for site in report.sites)
    assert Counter(e.outcome.site for e in events if isinstance(e, SiteFinished)) == Counter(store.sites())
    for site in store.sites():
        (published,) = store.versions(site)
        # The number of a version that a publisher was about to write when it was lost is not used again.
        assert store.numbers(site) == [published]
        assert len(store.read(site).graph) == len(store.read(site).pages) == states
    assert verify(store).problems == []


def actors(kind: str) -> list[dict]:
    """Return the state of all actors of a class from Ray, dead ones included."""
    return [actor for actor in ray._private.state.actors().values() if kind in actor["ActorClassName"]]


def machines_of(kind: str, since=frozenset()) -> set[str]:
    return {actor["Address"]["NodeID"] for actor in actors(kind) if actor["ActorID"] not in since}


def known() -> frozenset[str]:
    return frozenset(actor["ActorID"] for actor in actors(""))


def test_browsers_run_on_machines_without_gpu_and_encoders_on_machines_with_gpu(machines, tmp_path):
    plain, other, with_gpu = machines.only({"num_cpus": 2}, {"num_cpus": 2}, {"num_cpus": 2, "num_gpus": 1})
    before, events = known(), Events()
    report = index([address(f"s{i}") for i in range(8)], tmp_path, events)
    check_whole(tmp_path, report, events)
    assert machines_of("ExplorerActor", before) == {plain, other}
    assert machines_of("EncoderActor", before) == {with_gpu}
    explored_on = {site.exploration.counters["cluster/machine"] for site in report.sites}
    # Not both: on a busy machine one explorer starts so late that the other one has explored all sites.
    assert explored_on <= {int(node[:12], 16) for node in (plain, other)}


def test_machine_lost_during_a_run_loses_no_site(machines, tmp_path):
    """Two of its sites are in work, others are published or waiting; those in work are repeated on other machines."""
    hold = tmp_path / "go on"
    machines.only({"num_cpus": 2}, {"num_cpus": 2})
    before = known()

    def lose():
        lost = min(machines_of("ExplorerActor", before))
        of_it = [actor for actor in actors("ExplorerActor") if actor["Address"]["NodeID"] == lost]
        explorers = [psutil.Process(actor["Pid"]) for actor in of_it if actor["ActorID"] not in before]
        machines.lose(lost)
        wait_for_end(explorers)
        hold.touch()

    held = [address(f"held{i}", hold=hold) for i in range(4)]
    events = Events(
        (lambda seen: len(started_sites(seen)) == 4 and len(machines_of("ExplorerActor", before)) == 2, lose)
    )
    report = index([*held, *(address(f"s{i}") for i in range(6))], tmp_path, events)
    check_whole(tmp_path, report, events)
    tried_again = [site.site for site in report.sites if site.attempts > 1]
    assert tried_again
    assert all(any(text.startswith(f"{site}: ") for text in events.notices) for site in tried_again)


def test_captures_lost_with_their_machines_are_explored_again(machines, tmp_path):
    """The encoder loads only after the machines with the captures are lost."""
    machines.only({"num_cpus": 2}, {"num_cpus": 2})
    weights = tmp_path / "weights"

    def lose():
        for node_id in list(machines.there):
            machines.lose(node_id)
        machines.add(num_cpus=2)
        weights.touch()

    # More than Ray keeps with the coordinator.
    urls = [address(f"s{i}", kilobytes=300) for i in range(6)]
    events = Events((lambda seen: seen.count(SitePhase, phase="encoding") == 3, lose))
    os.environ["WAYGRAPH_TEST_WEIGHTS"] = str(weights)
    report = index(urls, tmp_path, events, encoder="tests.integration.cluster_site:create_encoder")
    check_whole(tmp_path, report, events)
    assert any("the exploration is lost" in text for text in events.notices)


def test_captures_larger_than_the_object_store_are_published_one_after_another(machines, tmp_path):
    """200 MiB of captures on a machine with an object store of 100 MiB: at most four exist at a time."""
    machines.only({"num_cpus": 2})
    waiting, most = set(), 0

    def follow(event):
        nonlocal most
        events(event)
        if isinstance(event, SitePhase) and event.phase == "encoding":
            waiting.add(event.site)
        elif isinstance(event, SiteFinished):
            waiting.discard(event.outcome.site)
        most = max(most, len(waiting))

    events = Events()
    urls = [address(f"s{i}", states=5, kilobytes=4096) for i in range(10)]
    report = index(urls, tmp_path, follow, sites_at_once=2)
    check_whole(tmp_path, report, events, states=5)
    assert [site.attempts for site in report.sites] == [1] * 10
    assert most <= 4


def coordinator(machines, folder, urls) -> subprocess.Popen:
    """Start a run in a process of its own that prints which sites are being explored and finished."""
    return subprocess.Popen(
        [sys.executable, "-m", "tests.integration.cluster_run", str(folder), *urls],
        env={**os.environ, "RAY_ADDRESS": machines.address},
        cwd=Path(__file__).parents[2],
        stdout=subprocess.PIPE,
        text=True,
    )


def heard(command: subprocess.Popen, *wanted: str) -> None:
    """Read the output until all of these lines have appeared."""
    left = set(wanted)
    while left:
        line = command.stdout.readline()
        assert line, f"it ended without saying {left}"
        left.discard(line.strip())


def test_second_job_on_a_site_is_refused_and_the_first_publishes(machines, tmp_path):
    machines.only({"num_cpus": 2}, {"num_cpus": 2})
    hold = tmp_path / "go on"
    urls = [address("a"), address("held", hold=hold)]
    with coordinator(machines, tmp_path, urls) as first:
        heard(first, "held.example explored")
        second = index(urls[1:], tmp_path)
        hold.touch()
        heard(first, "held.example published")
    (refused,) = second.sites
    assert (refused.status, refused.error.type, second.exit_code) == ("failed", "in-use", 7)
    assert "in progress already, in process" in refused.error.message
    assert Store.open(str(tmp_path / "maps")).versions("held.example") == [1]


def test_killed_coordinator_leaves_no_actor_and_the_next_one_finishes(machines, tmp_path):
    machines.only({"num_cpus": 2}, {"num_cpus": 2})
    before, hold = known(), tmp_path / "go on"
    urls = [address("a"), address("b"), *(address(f"held{i}", hold=hold) for i in range(4))]
    command = coordinator(machines, tmp_path, urls)
    heard(command, "a.example published", "b.example published")
    command.kill()
    command.wait()
    command.stdout.close()
    wait_until(lambda: {actor["State"] for actor in actors("") if actor["ActorID"] not in before} == {"DEAD"})
    store = Store.open(str(tmp_path / "maps"))
    assert store.sites() == ["a.example", "b.example"]

    hold.touch()
    report = index(urls, tmp_path)
    assert {site.status for site in report.sites} <= {"published", "unchanged"}
    assert len(store.sites()) == len(urls)
    assert verify(store).problems == []


def test_browsers_explore_the_same_map_after_their_machine_is_lost(machines, tmp_path):
    machines.only({"num_cpus": 2}, {"num_cpus": 2})
    links = "".join(f"<a href=/{n}>Page {n}</a><button>More {n}</button>" for n in range(3))
    pages = {f"/{n}": f"<title>{n}</title><h1>Page {n}</h1>{'<p>own</p>' * (n + 1)}" for n in range(3)}
    before, gone = known(), threading.Event()
    browsers: list[psutil.Process] = []

    def lose():
        (explorer,) = [actor for actor in actors("ExplorerActor") if actor["ActorID"] not in before]
        worker = psutil.Process(explorer["Pid"])
        browsers.extend(worker.children(recursive=True))
        machines.lose(explorer["Address"]["NodeID"])
        wait_for_end([worker])
        gone.set()

    real = {
        "explore": "waygraph.pipeline.explore.exploration:explore_site",
        "browser": LOOPBACK_ONLY,
        "sites_at_once": 1,
    }
    real["encoder"] = "bench.scale_site:create_encoder"
    with FixtureServer({"/": f"<title>Start</title><h1>Start</h1>{links}", **pages}) as site:
        index([site.url], tmp_path / "whole", **real)
        before, last = known(), site.pages["/2"]
        site.pages["/2"] = Page(last, hold=gone, hold_at_most_s=PATIENCE_S)
        events = Events((lambda seen: any(isinstance(e, SiteProgress) and e.progress.states >= 2 for e in seen), lose))
        report = index([site.url], tmp_path / "lost", events, **real)
    (outcome,) = report.sites
    assert (outcome.error, outcome.attempts) == (None, 2), events.notices
    maps = [Store.open(str(tmp_path / each / "maps")).read(outcome.site) for each in ("whole", "lost")]
    assert to_json(outcome.site, 1, maps[1].graph) == to_json(outcome.site, 1, maps[0].graph)
    assert len(maps[0].graph) == 4
    assert browsers
    wait_for_end(browsers)


@pytest.mark.skipif(not LOSSES, reason="make soak-cluster")
@pytest.mark.timeout(3600)
def test_machines_lost_repeatedly_lose_no_site(machines, tmp_path):
    """`WAYGRAPH_LOSSES` machines are killed at random moments and replaced; every site is complete at the end."""
    chance, losses, rounds, back = random.Random(SEED), 0, 0, []
    while losses < LOSSES:
        machines.only({"num_cpus": 2}, {"num_cpus": 2}, {"num_cpus": 2})
        folder = tmp_path / str(rounds)
        folder.mkdir()
        rounds += 1
        lost_at = 0.0

        def lose():
            nonlocal losses, lost_at
            machines.lose(chance.choice(sorted(machines.there)))
            machines.add(num_cpus=2)
            losses += 1
            lost_at = time.monotonic()

        def finished_after(number, events=()):
            return lambda seen: seen.count(SiteFinished) >= number

        moments = [finished_after(number) for number in sorted(chance.sample(range(1, 35), 5))]
        events = Events(*((moment, lose) for moment in moments))

        def follow(event, events=events):
            nonlocal lost_at
            if lost_at and isinstance(event, SiteFinished):
                back.append(time.monotonic() - lost_at)
                lost_at = 0.0
            events(event)

        urls = [address(f"s{i}", states=1, kilobytes=chance.choice((1, 300))) for i in range(40)]
        report = index(urls, folder, follow, site_retries=20)
        check_whole(folder, report, events, states=1)
    again = sorted(round(seconds, 1) for seconds in back)
    sys.stdout.write(
        f"{losses} machines lost in {rounds} runs of 40 sites; the next site was finished after {again} s\n"
    )


def test_a_private_ray_that_cannot_start_says_why():
    with (
        pytest.raises(EnvironmentMissing, match=r"object store memory .* at 1 bytes, but the minimum allowed is"),
        private_ray(object_store_bytes=1, num_cpus=1, environment={}),
    ):
        pass
