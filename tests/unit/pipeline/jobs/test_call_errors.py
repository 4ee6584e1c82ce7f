"""Errors of actors become errors of waygraph."""

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

from waygraph.core.errors import SiteUnreachable, StoreError, WaygraphError, WeightsMissing
from waygraph.pipeline.jobs.actors.protocol import ActorDied, ActorUnreachable
from waygraph.pipeline.jobs.actors.ray_actors import to_actor_error
from waygraph.pipeline.jobs.call_errors import resolve_actor_error
from waygraph.pipeline.jobs.call_errors import to_waygraph_error as to_waygraph_error_of_jobs
from waygraph.pipeline.jobs.failures import CaptureLost, MachineLost, WorkerLost


def to_waygraph_error(error, where):
    """Convert what a call of an actor on Ray raised."""
    return to_waygraph_error_of_jobs(to_actor_error(error), where)


def as_raised_by_ray(error):
    """What awaiting a task gives when `error` was raised in it."""
    return RayTaskError("explore", "Traceback ...", error).as_instanceof_cause()


def test_typed_error_is_restored():
    error = SiteUnreachable("no answer", hint="check")
    found = to_waygraph_error(as_raised_by_ray(error), "Exploring a.example")
    assert type(found) is SiteUnreachable
    assert (found.message, found.hint) == ("no answer", "check")


def test_error_that_crossed_two_processes_is_restored():
    assert type(to_waygraph_error(as_raised_by_ray(as_raised_by_ray(WeightsMissing("none"))), "x")) is WeightsMissing


def test_error_from_a_group_of_batches_is_restored():
    assert type(to_waygraph_error(ExceptionGroup("batches", [WeightsMissing("none")]), "x")) is WeightsMissing


def test_unexpected_error_is_reported_with_its_location_and_cause():
    raised = as_raised_by_ray(ZeroDivisionError("a bug"))
    found = to_waygraph_error(raised, "Exploring a.example")
    assert type(found) is WaygraphError
    assert found.message == "Exploring a.example: Unexpected error: ZeroDivisionError: a bug"
    assert found.__cause__ is raised.cause


def test_full_disk_error_of_a_task_names_the_path():
    found = to_waygraph_error(
        as_raised_by_ray(OSError(errno.ENOSPC, "No space left on device", "/a/b")), "Exploring a.example"
    )
    assert type(found) is StoreError
    assert found.message == "Exploring a.example: No space left on device (/a/b)."


@pytest.mark.parametrize("died", [ActorDiedError(), WorkerCrashedError()])
def test_a_dead_process_is_a_lost_worker(died):
    found = to_waygraph_error(died, "Exploring a.example")
    assert isinstance(found, WorkerLost)
    assert found.message.startswith("Exploring a.example: the worker process died.")


def test_actor_that_died_with_its_machine_is_a_lost_machine():
    lost = RayActorError(error_msg="The actor died because its node has died. Node Id: ab12")
    assert type(to_waygraph_error(lost, "Exploring a.example")) is MachineLost


async def test_unreachable_actor_is_queried_for_the_cause():
    died, unavailable = ActorDied(), ActorUnreachable("RpcError")
    asked = []

    async def ask():
        asked.append(1)
        raise died

    async def answers():
        asked.append(1)

    assert await resolve_actor_error(unavailable, ask) is died
    assert await resolve_actor_error(unavailable, answers) is unavailable
    assert len(asked) == 2
    assert await resolve_actor_error(died, ask) is died
    assert len(asked) == 2
    # It lives, so that no site is to blame for what was lost.
    assert type(to_waygraph_error(ActorUnavailableError("RpcError", None), "x")) is MachineLost


def test_object_that_died_with_its_machine_is_a_lost_capture():
    lost = ObjectLostError("00" * 28, None, "")
    assert type(to_waygraph_error(lost, "Publishing a.example")) is CaptureLost
    assert type(to_waygraph_error(as_raised_by_ray(lost), "Publishing a.example")) is CaptureLost
