"""The benchmark of this build beside an older one: ratios, files of a commit, what a tree of processes takes."""

import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from bench.against import ratios, rows
from bench.against_parts import OLDER, THIS, UVICORN
from bench.builds import ROOT, Build, older
from bench.process_tree import Tree, measured


def test_a_ratio_is_the_median_of_the_ratios_of_the_runs():
    runs = [
        {OLDER: {"s": older_took}, THIS: {"s": took}} for older_took, took in ((10.0, 5.0), (40.0, 8.0), (10.0, 9.0))
    ]
    assert ratios(runs, THIS, OLDER) == {"s": 0.5}


def test_a_quantity_that_one_side_lacks_or_that_is_zero_has_no_ratio():
    assert ratios([{OLDER: {"a": 0.0}, THIS: {"a": 1.0, "b": 1.0}}], THIS, OLDER) == {}


def test_sites_are_compared_by_the_geometric_mean_of_their_ratios():
    run = {
        OLDER: {"tabler: seconds": 10.0, "node-red: seconds": 10.0},
        THIS: {"tabler: seconds": 1.0, "node-red: seconds": 4.0},
    }
    found = {row.what: (row.value, row.target, row.passed) for row in rows([run])}
    assert found["node-red: seconds"] == (0.4, 0.4, True)
    assert found["sites: seconds, geometric mean"] == (0.2, 0.6, True)


def test_maps_that_differ_fail():
    run = {OLDER: {"tabler: seconds": 2.0}, THIS: {"tabler: seconds": 1.0, "tabler: different exports": 1}}
    assert [row.what for row in rows([run]) if row.passed is False] == ["tabler: different exports"]


def test_services_are_also_compared_with_the_application_under_uvicorn():
    run = {side: {"MiB when ready": mib} for side, mib in {OLDER: 1700.0, THIS: 900.0, UVICORN: 500.0}.items()}
    assert [(row.value, row.passed) for row in rows([run])] == [(0.529, None), (1.8, False)]


def test_the_files_of_a_commit_are_those_that_its_build_runs(tmp_path: Path):
    commit = subprocess.run(["git", "rev-parse", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    build = older("HEAD", tmp_path, sys.executable)
    assert commit.startswith(build.name)
    loaded = build.script("import waygraph.index.graph as module; print(module.__file__)").strip()
    assert Path(loaded).is_relative_to(tmp_path / build.name)
    assert older("HEAD", tmp_path, sys.executable) == build  # made once
    assert build.environment["PYTHONDONTWRITEBYTECODE"] == ""
    assert build.versions["playwright"]


def test_a_command_does_not_connect_to_a_cluster(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("RAY_ADDRESS", "10.0.0.1:6379")
    assert "RAY_ADDRESS" not in Build("this", ROOT, sys.executable).environment


def test_cpu_time_of_processes_that_outlive_their_parent_is_counted(tmp_path: Path):
    busy = "import time\nwhile time.process_time() < 0.3: pass"
    parent = f"import subprocess, sys; subprocess.Popen([sys.executable, '-c', {busy!r}])"
    usage = measured([sys.executable, "-c", parent], {})
    assert usage.cpu_seconds >= 0.3
    assert usage.seconds > 0


def test_what_a_command_prints_is_kept_and_its_failure_ends_the_benchmark(tmp_path: Path):
    usage = measured([sys.executable, "-c", "print('found')"], {}, output=tmp_path / "out")
    assert (tmp_path / "out").read_text() == "found\n"
    assert usage.processes == 1
    with pytest.raises(SystemExit, match=r"(?s)ended with 3.*the reason"):
        measured([sys.executable, "-c", "import sys; sys.stderr.write('the reason'); sys.exit(3)"], {})


def test_cpu_time_of_processes_below_the_command_is_added_by_kind():
    busy = "import time; end = time.process_time() + 0.5\nwhile time.process_time() < end: pass\ninput()"
    with subprocess.Popen([sys.executable, "-c", busy, "ray::EncoderActor"], stdin=subprocess.PIPE) as child:
        tree = Tree(psutil.Process())
        for _ in range(10_000):
            tree.sample_cpu()
            if tree.cpu_by_kind().get("encoder", 0.0) >= 0.5:
                break
        child.communicate(b"\n")
    assert tree.cpu_by_kind()["encoder"] >= 0.5
