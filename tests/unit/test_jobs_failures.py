"""What does an error mean that comes out of Ray?"""

import errno

import pytest
from ray.exceptions import (
    ActorDiedError,
    ActorUnavailableError,
    ObjectLostError,
    RayActorError,
    RayTaskError,
    WorkerCrashedError,
)

from pipeline.jobs.actors import share
from pipeline.jobs.failures import CaptureLost, MachineLost, WorkerLost, typed, verdict
from waygraph.errors import SiteUnreachable, StoreError, WaygraphError, WeightsMissing


def as_raised_by_ray(error):
    """What awaiting a task gives when `error` was raised in it."""
    return RayTaskError("explore", "Traceback ...", error).as_instanceof_cause()


def test_a_typed_error_comes_back_as_itself():
    error = SiteUnreachable("no answer", hint="check")
    found = typed(as_raised_by_ray(error), "Exploring a.example")
    assert type(found) is SiteUnreachable
    assert (found.message, found.hint) == ("no answer", "check")


def test_an_error_that_crossed_two_processes_comes_back_as_itself():
    assert type(typed(as_raised_by_ray(as_raised_by_ray(WeightsMissing("none"))), "x")) is WeightsMissing


def test_an_error_from_a_group_of_batches_comes_back_as_itself():
    assert type(typed(ExceptionGroup("batches", [as_raised_by_ray(WeightsMissing("none"))]), "x")) is WeightsMissing


def test_an_unexpected_error_is_named_with_its_place_and_keeps_its_cause():
    raised = as_raised_by_ray(ZeroDivisionError("a bug"))
    found = typed(raised, "Exploring a.example")
    assert type(found) is WaygraphError
    assert found.message == "Exploring a.example: Unexpected error: ZeroDivisionError: a bug"
    assert found.__cause__ is raised


def test_a_full_disk_is_said_wherever_it_was_noticed():
    found = typed(as_raised_by_ray(OSError(errno.ENOSPC, "No space left on device", "/a/b")), "Exploring a.example")
    assert type(found) is StoreError
    assert found.message == "Exploring a.example: No space left on device (/a/b)."


@pytest.mark.parametrize("died", [ActorDiedError(), WorkerCrashedError()])
def test_a_dead_process_is_a_lost_worker(died):
    found = typed(died, "Exploring a.example")
    assert isinstance(found, WorkerLost)
    assert found.message.startswith("Exploring a.example: the worker process died.")


def test_what_died_with_its_machine_is_a_lost_machine():
    lost = RayActorError(error_msg="The actor died because its node has died. Node Id: ab12")
    assert type(typed(lost, "Exploring a.example")) is MachineLost


async def test_of_an_actor_that_cannot_be_reached_ray_is_asked_what_became_of_it():
    died, unavailable = ActorDiedError(), ActorUnavailableError("RpcError", None)
    asked = []

    async def ask():
        asked.append(1)
        raise died

    async def answers():
        asked.append(1)

    assert await verdict(unavailable, ask) is died
    assert await verdict(unavailable, answers) is unavailable
    assert len(asked) == 2
    assert await verdict(died, ask) is died
    assert len(asked) == 2
    # It lives, so that no site is to blame for what was lost.
    assert type(typed(unavailable, "x")) is MachineLost


def test_an_object_that_died_with_its_machine_is_a_lost_capture_whoever_wanted_to_read_it():
    lost = ObjectLostError("00" * 28, None, "")
    assert type(typed(lost, "Publishing a.example")) is CaptureLost
    assert type(typed(as_raised_by_ray(lost), "Publishing a.example")) is CaptureLost


def test_actors_ask_for_hundredths_of_a_cpu_never_for_none():
    assert [share(0.333, 0.5), share(3, 0.5), share(0, 1)] == [0.33, 0.5, 0.01]
