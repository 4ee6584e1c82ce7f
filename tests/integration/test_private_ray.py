"""A private Ray one of whose daemons is killed."""

import select

import psutil
import pytest

from waygraph.cluster.private import private_ray

pytestmark = pytest.mark.extended

MIB = 2**20
PATIENCE_S = 30


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


def is_left(process):
    try:
        return process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False
