"""A private Ray: who may reach its files, and what happens if one of its daemons is killed."""

import os
import select
import stat

import psutil
import pytest

from waygraph.cluster.private import private_ray

MIB = 2**20
PATIENCE_S = 30


@pytest.mark.extended
@pytest.mark.parametrize("name", ["raylet", "gcs_server"])
def test_a_private_ray_ends_with_each_of_its_daemons(name):
    others = set(psutil.Process().children(recursive=True))
    with private_ray(object_store_bytes=100 * MIB, num_cpus=1, environment={}) as private:
        started = set(psutil.Process().children(recursive=True)) - others
        daemons = [process for process in started if process.name() == name]
        assert not private.has_ended
        for daemon in daemons:
            daemon.kill()
        assert daemons
        assert select.select([private.lifeline], [], [], PATIENCE_S)[0]
        psutil.wait_procs(started, PATIENCE_S)
        assert not [each for each in started if is_left(each)]


def test_sockets_and_logs_of_a_private_ray_are_closed_to_other_users():
    with private_ray(object_store_bytes=100 * MIB, num_cpus=1, environment={}) as private:
        (folder,) = [each for each in private.logs.parents if each.name.startswith("wg-ray-")]
        assert (stat.S_IMODE(folder.stat().st_mode), folder.stat().st_uid) == (0o700, os.getuid())
        sockets = [each for each in folder.rglob("*") if each.is_socket()]
        assert sockets
        assert max(len(os.fsencode(each)) for each in sockets) <= 107
    assert not folder.exists()


def is_left(process):
    try:
        return process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False
