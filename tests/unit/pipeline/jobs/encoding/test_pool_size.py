"""Number of encoders in the pool, and the CPUs and GPUs that they reserve."""

import pytest

from waygraph.cluster import ClusterMachine
from waygraph.core.settings import Settings
from waygraph.pipeline.jobs.encoding.pool_size import (
    IDLE_SECONDS,
    EncoderDemand,
    EncoderResources,
    machines_for_browsers,
    target_size,
)


def test_pool_keeps_its_minimum_without_work():
    assert target_size(EncoderDemand(0), 2, 4) == 2


def test_one_more_encoder_is_started_while_enough_batches_wait():
    assert target_size(EncoderDemand(1, waiting=2), 1, 4) == 1
    assert target_size(EncoderDemand(1, waiting=3), 1, 4) == 2


def test_only_one_encoder_starts_at_a_time():
    assert target_size(EncoderDemand(2, starting=1, waiting=100), 1, 4) == 2


def test_pool_never_exceeds_its_maximum():
    assert target_size(EncoderDemand(4, waiting=100), 1, 4) == 4


def test_idle_encoders_are_stopped_down_to_the_minimum():
    assert target_size(EncoderDemand(3, idle_seconds=IDLE_SECONDS - 1), 1, 4) == 3
    assert target_size(EncoderDemand(3, idle_seconds=IDLE_SECONDS), 1, 4) == 2
    assert target_size(EncoderDemand(1, idle_seconds=IDLE_SECONDS), 1, 4) == 1


def test_no_encoder_is_stopped_while_batches_wait():
    assert target_size(EncoderDemand(2, waiting=1, idle_seconds=IDLE_SECONDS), 1, 4) == 2


def test_pool_returns_to_its_minimum_after_the_work():
    encoders, waiting, seen = 1, 40, []
    for _ in range(20):
        encoders = target_size(
            EncoderDemand(encoders, waiting=waiting, idle_seconds=0 if waiting else IDLE_SECONDS), 1, 4
        )
        waiting = max(0, waiting - 2 * encoders)
        seen.append(encoders)
    assert max(seen) == 4
    assert seen[-1] == 1


def room(*, cpus=16.0, gpus=0.0, encoder="tests.patch_encoder:create", **jobs):
    return EncoderResources.of(Settings(encode={"encoder": encoder}, jobs=jobs), cpus=cpus, gpus=gpus)


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


def test_all_encoders_together_reserve_a_small_share_of_the_cpus():
    assert room(cpus=4.0, encoders_max=8).cpus * 8 <= 0.15 * 4


def test_browsers_use_gpu_machines_only_if_there_are_no_others():
    plain, other, gpu = ClusterMachine("a", 4.0), ClusterMachine("b", 4.0), ClusterMachine("c", 16.0, 1.0)
    assert machines_for_browsers([plain, gpu, other]) == [plain, other]
    assert machines_for_browsers([gpu]) == [gpu]
    assert list(machines_for_browsers([])) == []
