"""Folders of private Rays are removed by the next one when all their processes were killed, and only then."""

import subprocess
import sys

import psutil

from waygraph.cluster.ray_folders import locked_folder

HOLD = """import subprocess, sys
from waygraph.cluster.ray_folders import locked_folder
with locked_folder(sys.argv[1]) as (folder, lock):
    child = subprocess.Popen(["sleep", "100"], stdout=subprocess.DEVNULL, pass_fds=(lock,))
    print(folder, child.pid, flush=True)
    sys.stdin.read()
"""


def folders(parent):
    return {path.name for path in parent.iterdir()}


def test_folder_is_removed_once_its_process_and_those_that_inherited_the_lock_are_dead(tmp_path):
    with subprocess.Popen(
        [sys.executable, "-c", HOLD, str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        folder, child = process.stdout.readline().split()
        process.kill()
    name = folder.rpartition("/")[2]
    with locked_folder(str(tmp_path)) as (own, _):
        assert folders(tmp_path) == {own.name, name}  # the child still holds the lock
        orphan = psutil.Process(int(child))
        orphan.kill()
        orphan.wait(10)
        with locked_folder(str(tmp_path)) as (second, _):
            assert folders(tmp_path) == {own.name, second.name}
    assert folders(tmp_path) == set()


def test_folders_without_a_lock_file_stay(tmp_path):
    (tmp_path / "wg-ray-of-another-version").mkdir()
    with locked_folder(str(tmp_path)):
        pass
    assert folders(tmp_path) == {"wg-ray-of-another-version"}
