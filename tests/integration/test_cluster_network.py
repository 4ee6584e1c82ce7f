"""A cluster of simulated machines whose network or power fails without any message to the others.

Exploring is a stand-in. `make soak-cluster` runs this; machines are namespaces, which require root.
"""

import os
import queue
import random
import subprocess
import sys
import threading
import time

import pytest

from tests.integration.cluster_site import address
from tests.separate_machines import PYTHON, Network, can_be_made
from waygraph.index.store import Store
from waygraph.index.store.upkeep.checks import verify

LOSSES = int(os.environ.get("WAYGRAPH_LOSSES", "0"))
SEED = int(os.environ.get("WAYGRAPH_SEED", "1"))
#: Ray takes a machine for dead after 65 seconds of silence; here after 10.
SOONER_DEAD = {
    "RAY_health_check_initial_delay_ms": "1000",
    "RAY_health_check_period_ms": "1000",
    "RAY_health_check_timeout_ms": "1000",
    "RAY_health_check_failure_threshold": "5",
}
SITES = 30
#: A machine that cannot reach the head ends what runs on it after a minute; so does a run.
PATIENCE_S = 240

pytestmark = [
    pytest.mark.extended,
    pytest.mark.skipif(not LOSSES, reason="make soak-cluster"),
    pytest.mark.skipif(not can_be_made(), reason="machines take root, unshare, nsenter and ip"),
    pytest.mark.timeout(5400),
]


class Running:
    """A run on the head of a cluster, and its output."""

    def __init__(self, head, folder, urls):
        command = head.command(
            PYTHON, "-m", "tests.integration.cluster_run", str(folder), *urls, RAY_ADDRESS=head.cluster
        )  # fmt: skip
        self._process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        self._lines = queue.SimpleQueue()
        threading.Thread(target=self._read, daemon=True).start()
        self.explored, self.published = set(), {}
        """Sites; when it was said that they were published."""
        self.ended = False

    def _read(self):
        with self._process.stdout as lines:
            for line in lines:
                self._lines.put((time.monotonic(), line.split()))
        self._lines.put(None)

    def follow(self, seconds):
        """Read its output for a time, or until it exits."""
        until = time.monotonic() + seconds
        while not self.ended and (left := until - time.monotonic()) > 0:
            try:
                said = self._lines.get(timeout=left)
            except queue.Empty:
                return
            if said is None:
                self.ended = True
                self._process.wait()
                return
            when, (site, what) = said
            if what == "explored":
                self.explored.add(site)
            elif what in {"published", "unchanged"}:
                self.published[site] = when

    @property
    def code(self):
        return self._process.returncode


def go_on(head, folder, urls):
    """Repeat the same command until no site is left; return the exit code of each invocation."""
    calls = []
    while not calls or calls[-1].code:
        assert len(calls) < 10, [call.code for call in calls]
        calls.append(Running(head, folder, urls))
        calls[-1].follow(PATIENCE_S)
        assert calls[-1].ended
    return calls


def check_whole(folder, urls, states):
    store = Store.open(str(folder / "maps"))
    assert len(store.sites()) == len(urls)
    for site in store.sites():
        (published,) = store.versions(site)
        assert store.numbers(site) == [published]
        assert len(store.read(site).graph) == len(store.read(site).pages) == states
    assert verify(store).problems == []


def seconds_until_gone(machines, since):
    """Wait until no machine explores. Publisher and encoders wait minutes for Ray to detect the loss."""
    gone = {}
    while len(gone) < len(machines):
        assert time.monotonic() < since + PATIENCE_S, [m.number for m in machines]
        for machine in machines:
            if machine not in gone and not machine.processes("ExplorerActor"):
                gone[machine] = time.monotonic() - since
        time.sleep(0.5)
    return list(gone.values())


def told(name, seconds):
    return f"{name}: {', '.join(f'{each:.1f}' for each in sorted(seconds))} s"


def test_head_power_cut_repeatedly_loses_no_site(tmp_path):
    """The coordinator runs on it. A new cluster is created at once, while the machines of the first one still run."""
    chance, times = random.Random(SEED), max(1, LOSSES // 4)
    back, gone, calls, repeated = [], [], [], 0
    for number in range(times):
        folder = tmp_path / str(number)
        folder.mkdir()
        urls = [address(f"s{i}", ms=200, kilobytes=chance.choice((1, 300))) for i in range(SITES)]
        with Network() as network:
            head = network.head(SOONER_DEAD)
            old = [network.worker(head) for _ in range(2)]
            run, enough = Running(head, folder, urls), chance.randint(1, SITES - 5)
            while len(run.published) < enough:
                run.follow(0.05)
                assert not run.ended, run.code
            head.cut_power()
            cut = time.monotonic()
            run.follow(PATIENCE_S)
            before = Store.open(str(folder / "maps")).sites()
            assert set(run.published) <= set(before)

            head = network.head(SOONER_DEAD)
            for _ in range(2):
                network.worker(head)
            began = time.monotonic()
            again = go_on(head, folder, urls)
            check_whole(folder, urls, states=3)
            assert not set(before) & set.union(*(call.explored for call in again))
            calls.append([call.code for call in again])
            back.append(min(at for call in again for site, at in call.published.items() if site not in before) - began)
            repeated += len((run.explored - set(before)) & again[0].explored)
            gone += seconds_until_gone(old, cut)
    sys.stdout.write(
        f"power of the head cut {times} times in runs of {SITES} sites; {repeated} explorations begun again; "
        f"exit codes of the calls after it: {calls}\n"
        f"{told('the next site was published, after the new cluster was there', back)}\n"
        f"{told('exploring on the old machines ended after', gone)}\n"
    )


class Cable:
    """A pulled cable of a machine with explorers: its cost, and how long the explorers keep running."""

    def __init__(self, machine, *, back_after):
        machine.pull()
        self.machine, self.pulled, self.gone = machine, time.monotonic(), None
        self._back_at = self.pulled + back_after

    def look(self):
        """Plug it in when due; record when the processes of the machine have ended."""
        if self._back_at is not None and time.monotonic() > self._back_at:
            self.machine.plug_in()
            self._back_at = None
        if self.gone is None and not self.machine.processes("ExplorerActor"):
            self.gone = time.monotonic() - self.pulled


def test_cables_pulled_repeatedly_lose_no_site(tmp_path):
    """Permanently, or for longer or shorter than the timeout of Ray; each machine treated as dead is replaced."""
    chance, losses, rounds = random.Random(SEED), 0, 0
    back, gone, codes, kinds = [], [], [], {2: 0, 20: 0, 10_000: 0}
    while losses < LOSSES:
        folder = tmp_path / str(rounds)
        folder.mkdir()
        rounds += 1
        urls = [address(f"s{i}", ms=500, kilobytes=chance.choice((1, 300))) for i in range(SITES)]
        with Network() as network:
            head = network.head(SOONER_DEAD)
            workers, cables = [network.worker(head) for _ in range(3)], []
            run, moments = Running(head, folder, urls), sorted(chance.sample(range(1, SITES - 5), 4))
            while not run.ended:
                run.follow(0.2)
                for cable in cables:
                    cable.look()
                if moments and len(run.published) >= moments[0]:
                    moments.pop(0)
                    machine = chance.choice(workers)
                    back_after = chance.choice(list(kinds))
                    cables.append(Cable(machine, back_after=back_after))
                    kinds[back_after] += 1
                    losses += 1
                    if back_after > 2:
                        workers.remove(machine)
                        workers.append(network.worker(head))
            later = sorted(run.published.values())
            back += [next((at - cable.pulled for at in later if at > cable.pulled), None) for cable in cables]
            codes.append([run.code, *(call.code for call in (go_on(head, folder, urls) if run.code else []))])
            check_whole(folder, urls, states=3)
            dead = [cable for cable in cables if cable.machine not in workers]
            while any(cable.gone is None for cable in dead):
                assert time.monotonic() < dead[-1].pulled + PATIENCE_S
                for cable in dead:
                    cable.look()
                time.sleep(0.5)
            gone += [cable.gone for cable in dead]
    sys.stdout.write(
        f"{losses} cables pulled in {rounds} runs of {SITES} sites (for 2 s, 20 s, for good: {list(kinds.values())}); "
        f"exit codes of the calls: {codes}\n"
        f"{told('the next site was published after', [each for each in back if each is not None])}\n"
        f"{told('exploring on machines that Ray took for dead ended after', gone)}\n"
    )
