"""Folders of processes are removed by the next one when all their processes were killed, and only then."""

import os
import stat
import subprocess
import sys

import psutil

from waygraph.core.locked_folders import locked_folder

HOLD = """import subprocess, sys
from waygraph.core.locked_folders import locked_folder
with locked_folder(sys.argv[1], "wg-") as (folder, lock):
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
    with locked_folder(str(tmp_path), "wg-") as (own, _):
        assert folders(tmp_path) == {own.name, name}  # the child still holds the lock
        orphan = psutil.Process(int(child))
        orphan.kill()
        orphan.wait(10)
        with locked_folder(str(tmp_path), "wg-") as (second, _):
            assert folders(tmp_path) == {own.name, second.name}
    assert folders(tmp_path) == set()


def test_folders_without_a_lock_file_stay(tmp_path):
    (tmp_path / "wg-of-another-version").mkdir()
    with locked_folder(str(tmp_path), "wg-"):
        pass
    assert folders(tmp_path) == {"wg-of-another-version"}


def test_the_folder_is_closed_to_other_users(tmp_path):
    with locked_folder(str(tmp_path), "wg-") as (folder, _):
        assert (stat.S_IMODE(folder.stat().st_mode), folder.stat().st_uid) == (0o700, os.getuid())


def test_what_others_could_have_made_or_changed_is_not_touched(tmp_path):
    open_to_others, fifo, link = (tmp_path / f"wg-{name}" for name in ("open", "fifo", "link"))
    for folder in (open_to_others, fifo):
        folder.mkdir(0o700)
    (open_to_others / "in-use").touch()
    open_to_others.chmod(0o777)
    os.mkfifo(fifo / "in-use")  # reading it would wait for a writer
    (tmp_path / "target").mkdir(0o700)
    (tmp_path / "target" / "in-use").touch()
    link.symlink_to(tmp_path / "target")
    with locked_folder(str(tmp_path), "wg-"):
        pass
    assert folders(tmp_path) == {open_to_others.name, fifo.name, link.name, "target"}
    assert (tmp_path / "target" / "in-use").exists()
