"""How many encoders are there, and what do they reserve?"""

import pytest

from pipeline.jobs.encoding.pool_size import IDLE_SECONDS, Demand, EncoderRoom, wanted, without_gpus
from waygraph.cluster import Machine
from waygraph.settings import Settings


def test_the_least_are_there_without_any_work():
    assert wanted(Demand(0), 2, 4) == 2


def test_one_more_is_started_while_more_batches_wait_than_it_would_take():
    assert wanted(Demand(1, waiting=2), 1, 4) == 1
    assert wanted(Demand(1, waiting=3), 1, 4) == 2


def test_only_one_starts_at_a_time():
    assert wanted(Demand(2, starting=1, waiting=100), 1, 4) == 2


def test_there_are_never_more_than_the_most():
    assert wanted(Demand(4, waiting=100), 1, 4) == 4


def test_one_that_idled_is_let_go_down_to_the_least():
    assert wanted(Demand(3, idle_seconds=IDLE_SECONDS - 1), 1, 4) == 3
    assert wanted(Demand(3, idle_seconds=IDLE_SECONDS), 1, 4) == 2
    assert wanted(Demand(1, idle_seconds=IDLE_SECONDS), 1, 4) == 1


def test_nobody_is_let_go_while_work_waits():
    assert wanted(Demand(2, waiting=1, idle_seconds=IDLE_SECONDS), 1, 4) == 2


def test_a_demand_that_ends_brings_the_number_back_to_the_least():
    encoders, waiting, seen = 1, 40, []
    for _ in range(20):
        encoders = wanted(Demand(encoders, waiting=waiting, idle_seconds=0 if waiting else IDLE_SECONDS), 1, 4)
        waiting = max(0, waiting - 2 * encoders)
        seen.append(encoders)
    assert max(seen) == 4
    assert seen[-1] == 1


def room(*, cpus=16.0, gpus=0.0, encoder="tests.patch_encoder:create", **jobs):
    return EncoderRoom.of(Settings(encode={"encoder": encoder}, jobs=jobs), cpus=cpus, gpus=gpus)


def test_without_gpus_there_is_one_encoder_unless_more_are_asked_for():
    assert (room().least, room().most, room().gpus) == (1, 1, 0)
    assert (room(encoders_max=3).least, room(encoders_max=3).most) == (1, 3)
    assert (room(encoders_min=2).least, room(encoders_min=2).most) == (2, 2)


@pytest.mark.parametrize(("each", "most", "gpus"), [(None, 4, 1.0), (0.5, 8, 0.5), (2, 2, 2.0), (0, 1, 0.0)])
def test_with_gpus_there_are_as_many_as_fit(each, most, gpus):
    found = room(gpus=4.0, gpus_per_encoder=each)
    assert (found.most, found.gpus) == (most, gpus)


def test_an_encoder_that_gains_nothing_from_a_gpu_reserves_none():
    assert room(gpus=4.0, encoder="text").gpus == 0


def test_all_encoders_together_leave_most_cpus_to_others():
    assert room(cpus=4.0, encoders_max=8).cpus * 8 <= 0.15 * 4


def test_browsers_leave_machines_with_gpus_alone_unless_there_are_no_others():
    plain, other, gpu = Machine("a", 4.0), Machine("b", 4.0), Machine("c", 16.0, 1.0)
    assert without_gpus([plain, gpu, other]) == [plain, other]
    assert without_gpus([gpu]) == [gpu]
    assert list(without_gpus([])) == []
