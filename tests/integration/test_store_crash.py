"""A publishing process is killed at random moments: published versions stay intact, and the next process continues."""

import multiprocessing
import os
import random
import signal
import time
from multiprocessing.connection import Connection
from pathlib import Path

import numpy as np
import pytest

from waygraph.index.graph import Action, Edge, InteractionGraph, Node, Observation
from waygraph.index.store import EncoderInfo, MapDraft, Store
from waygraph.index.store.tables import blobs_of_observations
from waygraph.index.vectors import EncodedPage

# Real processes, forked from a clean one that has imported everything: so most of their life is publishing.
PROCESSES = multiprocessing.get_context("forkserver")
PROCESSES.set_forkserver_preload(["waygraph.index.store", "pyarrow.parquet", __name__])

SITE = "shop.example"
STATES = 40
KILLS = 20


def draft(store: Store, marker: str) -> MapDraft:
    """A map whose every part contains `marker`, so that a mix of two versions is detected."""
    nodes = [
        Node(f"{marker}-{i}", f"http://{SITE}/{i}", marker, (marker, "h"), i, addressable=True) for i in range(STATES)
    ]
    edges = [Edge(nodes[i].id, nodes[(i + 1) % STATES].id, Action("click", name=marker)) for i in range(STATES)]
    blobs = [store.blobs.put(f"{marker} {i}".encode() * 100) for i in range(4)]
    seen = {n.id: Observation(n.id, n.url, marker, (), screenshot=blobs[n.depth % 4]) for n in nodes}
    pages = {n.id: EncodedPage(np.ones((8, 32), np.float32), (marker,) * 8, ((),) * 8) for n in nodes}
    return MapDraft(
        SITE, f"http://{SITE}/", InteractionGraph(nodes, edges), seen, pages, EncoderInfo("t", 32, marker), report={}
    )


def publish_for_ever(location: str, reports: Connection, environment: dict[str, str]) -> None:
    """Publish in a loop, and print each version only after it is published."""
    os.environ.update(environment)  # a process that is forked from a clean one has that one's
    store = Store.open(location, create=True)
    while True:
        reports.send_bytes(str(store.publish(draft(store, f"{os.getpid()}-{time.monotonic_ns()}"))).encode())


def check_complete(store: Store, version: int | None = None) -> int:
    """Read all files of a version (each is compared with its hash) and check that they belong together."""
    read = store.read(SITE, version)
    marker = read.manifest.encoder.fingerprint
    assert len(read.graph) == len(read.pages) == len(read.observations) == STATES
    assert {n.title for n in read.graph.nodes.values()} == {marker}
    assert {e.action.name for e in read.graph.edges} == {marker}
    assert {row for page in read.pages.values() for row in page.rows} == {marker}
    for digest in blobs_of_observations(read.observations.values()):
        assert store.blobs.get(digest).startswith(marker.encode())
    return read.manifest.version


class Publisher:
    """A separate process that publishes until it is killed."""

    def __init__(self, location: Path | str, environment: dict[str, str] | None = None) -> None:
        self._reports, theirs = PROCESSES.Pipe(duplex=False)
        self._process = PROCESSES.Process(target=publish_for_ever, args=(str(location), theirs, environment or {}))
        self._process.start()
        theirs.close()

    def next_report(self) -> int:
        return int(self._reports.recv_bytes())

    def kill(self) -> list[int]:
        """Kill it (SIGKILL), and return the published versions not yet read from its output."""
        self._process.kill()
        self._process.join()
        assert self._process.exitcode == -signal.SIGKILL
        self._process.close()
        reported = []
        try:
            while True:
                reported.append(self.next_report())
        except (EOFError, OSError):  # the end of the pipe, or half a message
            self._reports.close()
        return reported


@pytest.mark.timeout(120)
def test_publisher_killed_at_random_moments_never_leaves_a_partial_version(tmp_path):
    rng = random.Random()
    location = tmp_path / "maps"
    store = Store.open(str(location), create=True)
    head = store.publish(draft(store, "first"))
    reported_in_all = 0
    for number in range(KILLS):
        publisher = Publisher(location)
        # Half of them die somewhere in their first publish, half of them later.
        reported = [publisher.next_report()] if number % 2 else []
        time.sleep(rng.uniform(0, 0.15))
        reported += publisher.kill()
        store = Store.open(str(location))
        current = check_complete(store)
        # What was reported is published, and the head never goes back.
        assert current >= max(reported, default=head)
        head = store.publish(draft(store, f"after-{current}"))
        assert check_complete(store) == head > current
        assert set(reported) <= set(store.versions(SITE))
        reported_in_all += len(reported)
    assert reported_in_all >= KILLS // 2
    for version in store.versions(SITE):
        check_complete(store, version)
    # The dead left nothing in the site but what is published.
    site = location / "sites" / SITE
    assert sorted(int(p.name) for p in (site / "versions").iterdir()) == store.versions(SITE)
    assert [p.name for p in (site / "claims").iterdir() if not p.name.endswith(".tmp")] == []


def open_store(location: str) -> None:
    Store.open(location, create=True)


@pytest.mark.timeout(60)
def test_process_killed_while_creating_the_store_does_not_prevent_others_from_creating_it(tmp_path):
    rng = random.Random()
    for number in range(10):
        location = tmp_path / str(number)
        process = PROCESSES.Process(target=open_store, args=(str(location),))
        process.start()
        time.sleep(rng.uniform(0, 0.02))
        process.kill()
        process.join()
        store = Store.open(str(location), create=True)
        store.publish(draft(store, "a"))
        check_complete(store)


@pytest.mark.timeout(120)
def test_concurrent_publishers_do_not_disturb_each_other_or_readers(tmp_path):
    location = tmp_path / "maps"
    store = Store.open(str(location), create=True)
    publishers = [Publisher(location) for _ in range(3)]
    reported = [publisher.next_report() for publisher in publishers]
    seen = [check_complete(store) for _ in range(15)]
    for publisher in publishers:
        reported += publisher.kill()
    assert seen == sorted(seen)
    assert len(reported) == len(set(reported))
    assert set(reported) <= set(store.versions(SITE))
    for version in reported:
        check_complete(store, version)
