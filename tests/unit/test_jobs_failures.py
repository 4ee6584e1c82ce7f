"""What does an error mean that comes out of Ray?"""

import pytest
from ray.exceptions import ActorDiedError, RayTaskError, WorkerCrashedError

from pipeline.jobs.actors import share
from pipeline.jobs.failures import WorkerLost, typed
from waygraph.errors import SiteUnreachable, WaygraphError, WeightsMissing


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


@pytest.mark.parametrize("died", [ActorDiedError(), WorkerCrashedError()])
def test_a_dead_process_is_a_lost_worker(died):
    found = typed(died, "Exploring a.example")
    assert isinstance(found, WorkerLost)
    assert found.message.startswith("Exploring a.example: the worker process died.")


def test_actors_ask_for_hundredths_of_a_cpu_never_for_none():
    assert [share(0.333, 0.5), share(3, 0.5), share(0, 1)] == [0.33, 0.5, 0.01]
