"""A killed `waygraph refresh` leaves the old version, and checkpoints from which the next refresh resumes.

Longer than a minute for each kill: `make soak-refresh-kills` does 20 (`WAYGRAPH_KILLS`); the moments are random, their
seed is printed.
"""

import os
import random
import subprocess
import sys
import time

import pytest

from tests.sites.mutable import MutableSite, Mutation
from waygraph.index.graph.export import to_json
from waygraph.index.store import Store

KILLS = int(os.environ.get("WAYGRAPH_KILLS", "0"))
#: An undisturbed refresh takes less time.
PATIENCE_S = 240.0


def start(*words):
    return subprocess.Popen(
        [sys.executable, "-m", "waygraph", *words],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
        env={**os.environ, "WAYGRAPH_EXPLORE__DEPTH": "2"},
    )


def export(store, version):
    (site,) = store.sites()
    return to_json(site, 1, store.read(site, version).graph)


@pytest.mark.skipif(not KILLS, reason="longer than a minute: make soak-refresh-kills")
@pytest.mark.timeout(120 + 120 * KILLS)
def test_killed_refresh_leaves_the_old_version_and_is_resumed(tmp_path):
    seed = int(os.environ.get("WAYGRAPH_SEED", time.time_ns() % 10**6))
    chance = random.Random(seed)
    print(f"seed {seed}")  # noqa: T201 - shown when it fails
    folder = str(tmp_path / "maps")
    with MutableSite() as site:
        assert start("index", site.url, "--store", folder).wait(PATIENCE_S) == 0
        store = Store.open(folder)
        (key,) = store.sites()
        site.mutate(Mutation("edit", "/guide"), Mutation("add", "/team"), Mutation("menu", "/news"))
        killed = 0
        while killed < KILLS:
            refresh = start("refresh", key, "--full", "--store", folder)
            before = store.head(key)
            try:
                refresh.wait(chance.uniform(2, 25))
                continue  # it was faster; what is published is refreshed again
            except subprocess.TimeoutExpired:
                refresh.kill()
                refresh.wait()
            killed += 1
            assert before <= store.head(key) <= before + 1
            assert set(store.read(key).pages) == set(store.read(key).graph.nodes)
        assert start("refresh", key, "--full", "--store", folder).wait(PATIENCE_S) == 0
        fresh = str(tmp_path / "fresh")
        assert start("index", site.url, "--store", fresh).wait(PATIENCE_S) == 0
    assert export(store, None) == export(Store.open(fresh), None)
