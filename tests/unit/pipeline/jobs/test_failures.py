"""Decisions about failed attempts, as tables: sites, invocations, publisher calls, batches and the encoder pool."""

import copy

import pytest
from hypothesis import given
from hypothesis import strategies as st

from waygraph.core.errors import (
    BrowserFailure,
    EncoderMismatch,
    InUse,
    NewerSchema,
    PublishConflict,
    RobotsForbidden,
    SiteUnreachable,
    StoreError,
    WaygraphError,
    WeightsMissing,
)
from waygraph.pipeline.jobs.failures import (
    MAX_EXCUSED_FAILURES,
    MAX_LOST_MACHINES,
    RETRY_POLICIES,
    BatchLosses,
    BatchRetry,
    CallRetries,
    CaptureLost,
    EncoderLost,
    FailureCounts,
    MachineLost,
    PoolLoss,
    RetryPolicy,
    WorkerLost,
    counted_attempts,
    decide_batch_retry,
    decide_call_retry,
    decide_pool_action,
    decide_site_retry,
    is_worker_crash,
    keeps_outcome,
    max_losses_in_row,
    retry_pause_seconds,
    retry_policy,
    sites_for_next_invocation,
)

# -- sites -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("error", "policy"),
    [
        (WorkerLost("died"), RetryPolicy("now", is_final=True)),
        (BrowserFailure("crashed"), RetryPolicy("now", is_final=True)),
        (SiteUnreachable("HTTP 404"), RetryPolicy("never", is_final=True)),
        (SiteUnreachable("no answer", retry_after_s=5), RetryPolicy("later", is_final=True)),
        (RobotsForbidden("robots.txt"), RetryPolicy("never", is_final=True)),
        (StoreError("full"), RetryPolicy("later", is_final=False)),
        (PublishConflict("another was first"), RetryPolicy("later", is_final=False)),
        (InUse("somebody is at it"), RetryPolicy("never", is_final=False)),
        (NewerSchema("newer"), RetryPolicy("never", is_final=False)),
        (WeightsMissing("none"), RetryPolicy("never", is_final=False)),
        (EncoderLost("out of memory"), RetryPolicy("never", is_final=False)),
        (WaygraphError("a defect"), RetryPolicy("never", is_final=True)),
    ],
)
def test_each_kind_of_error_has_its_policy(error, policy):
    assert retry_policy(error) == policy
    assert retry_policy(copy.copy(error)) == policy  # a copy, as made by Ray


def test_a_site_that_an_explorer_without_a_machine_still_has_is_tried_again_later():
    assert retry_policy(InUse("by an explorer that was cut off"), excused=1) == RetryPolicy("later", is_final=False)


def test_every_error_has_a_policy():
    assert WaygraphError in RETRY_POLICIES


@given(st.integers(1, 10_000), st.floats(0, 10_000))
def test_pauses_grow_and_are_bounded(failures, after):
    error = SiteUnreachable("no answer", retry_after_s=after)
    assert 5 <= retry_pause_seconds(error, failures) <= retry_pause_seconds(error, failures + 1) <= 600


@pytest.mark.parametrize(
    ("error", "before", "isolated", "retry", "after"),
    [
        (BrowserFailure("gone"), (0, 0), True, "now", (1, 0)),
        (BrowserFailure("gone"), (0, 0), False, "now", (1, 0)),  # a browser crash is the site's own
        (BrowserFailure("gone"), (2, 0), True, "never", (3, 0)),
        (StoreError("full"), (0, 0), True, "later", (1, 0)),
        (StoreError("full"), (2, 0), True, "never", (3, 0)),
        (WaygraphError("a defect"), (0, 0), True, "never", (1, 0)),
        (WorkerLost("killed"), (0, 0), True, "now", (1, 0)),
        (WorkerLost("killed"), (2, 0), False, "now", (2, 1)),  # another site of the process may be the cause
        (WorkerLost("killed"), (2, MAX_EXCUSED_FAILURES), False, "never", (3, MAX_EXCUSED_FAILURES + 1)),
        (MachineLost("gone"), (2, 0), True, "now", (2, 1)),
        (MachineLost("gone"), (2, MAX_EXCUSED_FAILURES), True, "never", (3, MAX_EXCUSED_FAILURES + 1)),
        (CaptureLost("gone"), (2, 3), True, "now", (2, 4)),
        (InUse("another run"), (0, 0), True, "never", (1, 0)),
        (InUse("a cut-off explorer"), (1, 1), True, "later", (1, 2)),
    ],
)
def test_decision_after_a_failed_attempt(error, before, isolated, retry, after):
    decision = decide_site_retry(error, FailureCounts(*before), isolated=isolated, retries=2)
    assert decision.retry == retry
    assert decision.failures == FailureCounts(*after)
    assert (decision.pause_seconds > 0) == (retry == "later")
    assert decision.is_final == retry_policy(error, excused=before[1]).is_final


def test_the_pause_of_a_site_that_a_cut_off_explorer_holds_grows_with_each_excused_attempt():
    pauses = [
        decide_site_retry(InUse("held"), FailureCounts(0, excused), isolated=True, retries=1).pause_seconds
        for excused in (1, 2, 3)
    ]
    assert pauses == [10.0, 20.0, 40.0]


@pytest.mark.parametrize(
    ("error", "crashed"),
    [(WorkerLost("x"), True), (MachineLost("x"), False), (CaptureLost("x"), False), (BrowserFailure("x"), False)],
)
def test_only_a_process_that_died_by_itself_may_have_been_killed_by_a_site(error, crashed):
    assert is_worker_crash(error) == crashed


# -- invocations of a run --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("begun", "cut_short", "counted"), [(0, False, 0), (1, False, 1), (1, True, 0), (3, True, 2)])
def test_an_attempt_that_the_end_of_an_invocation_cut_short_does_not_count(begun, cut_short, counted):
    assert counted_attempts(begun, cut_short=cut_short) == counted


@pytest.mark.parametrize(
    ("is_final", "interrupted", "kept"), [(True, False, True), (False, False, False), (True, True, False)]
)
def test_outcomes_kept_by_the_next_invocation(is_final, interrupted, kept):
    assert keeps_outcome(is_final=is_final, interrupted=interrupted) == kept


@pytest.mark.parametrize(("final", "ended_early", "left"), [(5, True, 0), (3, True, 2), (3, False, 0)])
def test_sites_tried_by_the_next_invocation(final, ended_early, left):
    assert sites_for_next_invocation(5, final, ended_early=ended_early) == left


# -- calls of the publisher ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("error", "left", "after"),
    [
        (WorkerLost("x"), CallRetries(1, 2), CallRetries(0, 2)),
        (WorkerLost("x"), CallRetries(0, 2), None),
        (MachineLost("x"), CallRetries(0, 2), CallRetries(0, 1)),
        (MachineLost("x"), CallRetries(1, 0), None),
        (CaptureLost("x"), CallRetries(1, 2), None),
        (StoreError("x"), CallRetries(1, 2), None),
    ],
)
def test_publisher_calls_that_are_repeated(error, left, after):
    assert decide_call_retry(error, left) == after


# -- batches of states -----------------------------------------------------------------------------------------------

DIED, LOST, RAISED = WorkerLost("died"), MachineLost("gone"), WaygraphError("a defect")


@pytest.mark.parametrize(
    ("error", "losses", "batch", "decision"),
    [
        # A process that died: all calls failed, and only a batch that was alone can have killed it.
        (DIED, (0, 0), (8, False, True), ("isolate", (0, 0))),
        (DIED, (0, 0), (8, False, False), ("isolate", (0, 0))),
        (DIED, (0, 0), (8, True, True), ("isolate", (1, 0))),
        (DIED, (1, 0), (8, True, True), ("split", (2, 0))),
        (DIED, (1, 0), (1, True, True), ("give up", (2, 0))),
        # A lost machine: no batch is the cause, up to a bound.
        (LOST, (1, 0), (1, True, True), ("requeue", (1, 1))),
        (LOST, (0, MAX_LOST_MACHINES - 1), (8, False, False), ("requeue", (0, MAX_LOST_MACHINES))),
        (LOST, (0, MAX_LOST_MACHINES), (8, False, True), ("isolate", (0, MAX_LOST_MACHINES))),
        (LOST, (1, MAX_LOST_MACHINES), (8, True, True), ("split", (2, MAX_LOST_MACHINES))),
        # An unexpected error: the batch of the failed call is the cause, even in company.
        (RAISED, (0, 0), (8, False, True), ("isolate", (1, 0))),
        (RAISED, (1, 0), (8, False, True), ("split", (2, 0))),
        (RAISED, (1, 0), (8, False, False), ("requeue", (1, 0))),
    ],
)
def test_decision_after_a_lost_encoder_for_its_batch(error, losses, batch, decision):
    (states, alone, failed_call), (action, after) = batch, decision
    found = decide_batch_retry(error, BatchLosses(*losses), states=states, alone=alone, failed_call=failed_call)
    assert found == BatchRetry(action, BatchLosses(*after))


# -- the encoder pool ------------------------------------------------------------------------------------------------


def loss(*, was_loaded=True, any_loaded=True, remaining=1, least=1, in_a_row=1):
    return PoolLoss(was_loaded, any_loaded, remaining, least, in_a_row, max_in_a_row=16)


@pytest.mark.parametrize(
    ("error", "situation", "action"),
    [
        (DIED, loss(), "continue"),
        (DIED, loss(was_loaded=False, any_loaded=False), "continue"),  # it may have died of something else
        (DIED, loss(in_a_row=16), "continue"),
        (DIED, loss(in_a_row=17), "fail as lost"),
        (RAISED, loss(), "continue"),
        (RAISED, loss(in_a_row=17), "fail as lost"),
        (WeightsMissing("none"), loss(was_loaded=False, any_loaded=False), "fail"),
        (WeightsMissing("none"), loss(was_loaded=False, remaining=0), "fail"),
        (WeightsMissing("none"), loss(was_loaded=False, remaining=1), "stop growing"),
        (EncoderMismatch("differs"), loss(was_loaded=False, remaining=1), "stop growing"),
    ],
)
def test_decision_of_the_pool_after_a_lost_encoder(error, situation, action):
    assert decide_pool_action(error, situation) == action


@pytest.mark.parametrize("size", [1, 2, 33])
def test_the_bound_on_losses_grows_with_the_logarithm_of_the_batch(size):
    assert max_losses_in_row(2 * size) == max_losses_in_row(size) + 1
