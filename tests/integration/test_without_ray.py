"""One site is mapped and encoded again by processes of the command, none of which imports Ray."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.sites.server import FixtureServer
from waygraph.cluster import ClusterMachine
from waygraph.core.settings import Settings
from waygraph.pipeline.jobs.actors.choice import uses_ray

ROOT = Path(__file__).parents[2]


@pytest.fixture
def waygraph(tmp_path):
    """Run a command that cannot import Ray. Return its report."""
    blocked = tmp_path / "blocked"
    blocked.mkdir()
    (blocked / "ray.py").write_text("raise AssertionError('Ray is imported')")
    environment = {name: value for name, value in os.environ.items() if not name.startswith("RAY_")}

    def run(*words):
        done = subprocess.run(
            [sys.executable, "-m", "waygraph", *words, "--store", str(tmp_path / "maps"), "--json"],
            capture_output=True,
            text=True,
            check=False,
            env={**environment, "PYTHONPATH": f"{blocked}:{ROOT}"},
        )
        assert done.returncode == 0, done.stderr + done.stdout
        return json.loads(done.stdout)

    return run


def test_no_process_of_a_run_of_one_site_imports_ray(waygraph):
    with FixtureServer({"/": "<title>One</title><h1>The only page</h1>"}) as site:
        mapped = waygraph("index", site.url, "--depth", "0", "--encoder", "tests.patch_encoder:create")
    (outcome,) = mapped["sites"]
    assert (outcome["status"], outcome["publication"]["encoded"]) == ("published", 1)
    assert mapped["encoding"]["actors_started"] == 1
    again = waygraph("reencode", outcome["site"], "--encoder", "tests.patch_encoder:create")
    assert [site["status"] for site in again["sites"]] == ["unchanged"]


CORES, GPU, GPUS = ClusterMachine("", 2.0), ClusterMachine("", 8.0, 1.0), ClusterMachine("", 8.0, 2.0)


@pytest.mark.parametrize(
    ("settings", "sites", "machine", "expected"),
    [
        ({}, 2, CORES, False),
        ({}, 3, CORES, True),
        ({"jobs": {"ray": False}}, 3, CORES, False),
        ({"jobs": {"ray": True}}, 1, CORES, True),
        ({}, 1, GPUS, False),  # its encoder uses none
        ({"encode": {"encoder": "jina-v4"}}, 1, GPU, False),
        ({"encode": {"encoder": "jina-v4"}}, 1, GPUS, True),
    ],
)
def test_ray_is_used_for_more_sites_than_cpus_and_for_several_gpus(settings, sites, machine, expected, monkeypatch):
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    chosen = Settings(**settings)
    assert uses_ray(chosen, sites=sites, machine=machine) is expected
    if chosen.jobs.ray is None:
        monkeypatch.setenv("RAY_ADDRESS", "10.0.0.1:6379")
        assert uses_ray(chosen, sites=sites, machine=machine)
