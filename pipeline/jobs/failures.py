"""Errors of bulk runs, and the decisions that follow from a failed attempt.

Every decision is a pure function over plain data: whether a site, a call of the publisher or a batch of states is tried
again and when, whether a failure counts as an attempt, and what a lost machine means. The coordinator, the publisher
client and the encoder pool carry the decisions out. docs/runs.md shows the table for users.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import ceil, log2
from typing import Literal

from waygraph.core.errors import (
    BrowserFailure,
    ContentStopped,
    EncoderMismatch,
    EnvironmentMissing,
    InUse,
    LoggedOut,
    NewerSchema,
    ProvenanceMismatch,
    StoreError,
    WaygraphError,
)


class WorkerLost(WaygraphError):
    """A process that worked on a site died (killed, out of memory, machine gone). The site is retried elsewhere."""

    slug, title = "worker-lost", "Worker lost"


class MachineLost(WorkerLost):
    """A machine of the cluster is gone or unreachable. This does not count as a failed attempt of the site."""

    slug, title = "machine-lost", "Machine lost"


class CaptureLost(WorkerLost):
    """An exploration was lost with the machine that held it, before it was published. The site is explored again."""

    slug, title = "capture-lost", "Capture lost"


class EncoderLost(WaygraphError):
    """Encoders die one after the other, whatever their input. Vectors that exist are kept for the next run."""

    slug, title = "encoder-lost", "Encoder lost"


#: Failed attempts of one site that do not count (`FailureCounts.excused`), whatever excuses them.
MAX_EXCUSED_FAILURES = 10
#: Lost machines that do not count as failures of one publisher call or batch.
MAX_LOST_MACHINES = 10

# -- sites -----------------------------------------------------------------------------------------------------------

#: When a site is tried again: at once, later (after other sites, with a growing pause), or never in this invocation.
Retry = Literal["now", "later", "never"]


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """Consequence of a kind of error.

    Attributes
    ----------
    retry
        When the site is tried again, while it has attempts left.
    is_final
        True if the failure is the site's own and final. False if its cause is outside the site: the site stays
        unfinished, and the next invocation of the run tries it again.
    """

    retry: Retry
    is_final: bool


#: Retry policy by kind of error. For other kinds the nearest base class counts. Errors with a `retry_after_s` (a host
#: that does not answer, HTTP 429 and 5xx) are retried later even if the table says never.
RETRY_POLICIES: Mapping[type[WaygraphError], RetryPolicy] = {
    # Defects, robots.txt, HTTP 4xx, pages without HTML, impossible settings.
    WaygraphError: RetryPolicy("never", is_final=True),
    WorkerLost: RetryPolicy("now", is_final=True),
    MachineLost: RetryPolicy("now", is_final=True),  # does not count as an attempt, see `decide_site_retry`
    CaptureLost: RetryPolicy("now", is_final=True),  # likewise
    BrowserFailure: RetryPolicy("now", is_final=True),
    StoreError: RetryPolicy("later", is_final=False),  # disk full, access refused, another writer was faster
    InUse: RetryPolicy("never", is_final=False),
    NewerSchema: RetryPolicy("never", is_final=False),
    EnvironmentMissing: RetryPolicy("never", is_final=False),  # no browser, no weights: the same for all sites
    EncoderLost: RetryPolicy("never", is_final=False),
    ContentStopped: RetryPolicy("never", is_final=False),  # the next invocation may bring rules
    LoggedOut: RetryPolicy("never", is_final=False),  # works after another `waygraph login`
    ProvenanceMismatch: RetryPolicy("never", is_final=False),  # the next invocation may supply what is missing
    EncoderMismatch: RetryPolicy("never", is_final=False),
}

#: Pause before a later retry: the first one, doubled each time, up to the longest.
FIRST_PAUSE_SECONDS, LONGEST_PAUSE_SECONDS = 5.0, 600.0


@dataclass(frozen=True, slots=True)
class FailureCounts:
    """Failed attempts of one site.

    Attributes
    ----------
    counted
        Attempts that count against `jobs.site_retries`.
    excused
        Attempts that do not count, since a lost machine or another site caused the failure.
    """

    counted: int = 0
    excused: int = 0


@dataclass(frozen=True, slots=True)
class SiteRetry:
    """Decision about a site after a failed attempt.

    Attributes
    ----------
    retry
        When the site is tried again.
    is_final
        See `RetryPolicy`.
    failures
        Failed attempts, this one included.
    pause_seconds
        Pause before a later retry.
    """

    retry: Retry
    is_final: bool
    failures: FailureCounts
    pause_seconds: float = 0.0


def retry_policy(error: WaygraphError, *, excused: int = 0) -> RetryPolicy:
    """Return the retry policy of an error.

    Parameters
    ----------
    error
        The error of an attempt.
    excused
        Earlier attempts of the site that were excused. An `InUse` after a lost machine comes from an explorer that was
        cut off and holds the site until it notices, so it is retried.

    Returns
    -------
    RetryPolicy
        An entry of `RETRY_POLICIES`, or a variant of it.

    Examples
    --------
    >>> retry_policy(BrowserFailure("gone")).retry, retry_policy(WaygraphError("a bug")).retry
    ('now', 'never')
    >>> retry_policy(InUse("in use")).retry, retry_policy(InUse("in use"), excused=1).retry
    ('never', 'later')
    """
    if excused and isinstance(error, InUse):
        return RetryPolicy("later", is_final=False)
    policy = next(RETRY_POLICIES[kind] for kind in type(error).__mro__ if kind in RETRY_POLICIES)
    if error.retry_after_s and policy.retry == "never":
        return RetryPolicy("later", is_final=policy.is_final)
    return policy


def retry_pause_seconds(error: WaygraphError, failures: int) -> float:
    """Return the pause before a later retry of a site that failed `failures` times, in seconds.

    >>> [retry_pause_seconds(StoreError("full"), failures) for failures in (1, 2, 3, 30)]
    [5.0, 10.0, 20.0, 600.0]
    """
    first = max(error.retry_after_s, FIRST_PAUSE_SECONDS)
    return min(LONGEST_PAUSE_SECONDS, first * 2.0 ** min(failures - 1, 20))


def is_worker_crash(error: WaygraphError) -> bool:
    """Return whether a worker process died by itself, so that one of its sites may have killed it."""
    return isinstance(error, WorkerLost) and not isinstance(error, MachineLost | CaptureLost)


def decide_site_retry(error: WaygraphError, failures: FailureCounts, *, isolated: bool, retries: int) -> SiteRetry:
    """Decide what to do with a site after a failed attempt.

    The attempt does not count if the site did not cause the failure: a machine or a capture was lost, an explorer that
    was cut off still holds the site, or a worker died that had other sites too. Beyond `MAX_EXCUSED_FAILURES` it
    counts.

    Parameters
    ----------
    error
        The error of the attempt.
    failures
        Failed attempts before this one.
    isolated
        Whether the worker had no other site, so that only this one can have killed it.
    retries
        Counted failures after which one more fails the site (`jobs.site_retries`).

    Returns
    -------
    SiteRetry
        With the updated counts.

    Examples
    --------
    >>> decide_site_retry(BrowserFailure("gone"), FailureCounts(), isolated=True, retries=1).retry
    'now'
    >>> decide_site_retry(BrowserFailure("gone"), FailureCounts(counted=1), isolated=True, retries=1).retry
    'never'
    >>> decide_site_retry(MachineLost("gone"), FailureCounts(counted=1), isolated=True, retries=1).failures
    FailureCounts(counted=1, excused=1)
    """
    policy = retry_policy(error, excused=failures.excused)
    held_by_lost_explorer = isinstance(error, InUse) and policy.retry == "later"
    is_excused = (
        isinstance(error, MachineLost | CaptureLost)
        or held_by_lost_explorer
        or (isinstance(error, WorkerLost) and not isolated)
    )
    if is_excused:
        failures = replace(failures, excused=failures.excused + 1)
    if not is_excused or failures.excused > MAX_EXCUSED_FAILURES:
        failures = replace(failures, counted=failures.counted + 1)
    if policy.retry == "never" or failures.counted > retries:
        return SiteRetry("never", policy.is_final, failures)
    if policy.retry == "now":
        return SiteRetry("now", policy.is_final, failures)
    times = failures.excused if held_by_lost_explorer else failures.counted
    return SiteRetry("later", policy.is_final, failures, retry_pause_seconds(error, times))


# -- invocations of a run --------------------------------------------------------------------------------------------


def counted_attempts(begun: int, *, cut_short: bool) -> int:
    """Return how many attempts of a site count: one that the end of an invocation cut short does not.

    >>> counted_attempts(2, cut_short=True), counted_attempts(2, cut_short=False)
    (1, 2)
    """
    return begun - cut_short


def keeps_outcome(*, is_final: bool, interrupted: bool) -> bool:
    """Return whether the next invocation of the run keeps an outcome. It tries all other sites again."""
    return is_final and not interrupted


def sites_for_next_invocation(sites: int, final: int, *, ended_early: bool) -> int:
    """Return how many sites the next invocation of the run tries.

    An invocation that ends by itself ends the run: repeating the command maps all sites again, in a new run.

    Parameters
    ----------
    sites
        Number of sites of the run.
    final
        Number of sites whose outcome is kept, see `keeps_outcome`.
    ended_early
        Whether the invocation was stopped, spent its budget or had to give up.

    Returns
    -------
    int
        0 if the run is finished.

    Examples
    --------
    >>> sites_for_next_invocation(5, 3, ended_early=True), sites_for_next_invocation(5, 3, ended_early=False)
    (2, 0)
    """
    return sites - final if ended_early else 0


# -- calls of the publisher ------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class CallRetries:
    """Repetitions that a call of the publisher has left.

    Attributes
    ----------
    crashes
        Crashes of its process after which the call is repeated.
    lost_machines
        Lost machines after which the call is repeated.
    """

    crashes: int
    lost_machines: int = MAX_LOST_MACHINES


def decide_call_retry(error: WaygraphError, left: CallRetries) -> CallRetries | None:
    """Decide whether a failed call of the publisher is repeated with a new publisher.

    A lost capture is an argument of the call, so that repeating it cannot succeed.

    Parameters
    ----------
    error
        The error of the call.
    left
        Repetitions left before this failure.

    Returns
    -------
    CallRetries or None
        Repetitions left afterwards, or None if the call is not repeated.

    Examples
    --------
    >>> decide_call_retry(WorkerLost("died"), CallRetries(1, 2)), decide_call_retry(CaptureLost("lost"), CallRetries(1))
    (CallRetries(crashes=0, lost_machines=2), None)
    """
    if isinstance(error, CaptureLost) or not isinstance(error, WorkerLost):
        return None
    if isinstance(error, MachineLost):
        return replace(left, lost_machines=left.lost_machines - 1) if left.lost_machines else None
    return replace(left, crashes=left.crashes - 1) if left.crashes else None


# -- batches of states -----------------------------------------------------------------------------------------------

#: Number of encoders that a batch may kill while it is alone in them, before it is split.
MAX_ENCODERS_PER_BATCH = 2

#: What happens to a batch: it returns to the queue unchanged, gets an encoder for itself, is cut into two halves, or
#: its only state gets no vectors.
BatchAction = Literal["requeue", "isolate", "split", "give up"]


@dataclass(frozen=True, slots=True)
class BatchLosses:
    """Encoders that were lost with a batch.

    Attributes
    ----------
    alone
        Encoders that died while the batch was alone in them.
    machines
        Machines that were lost while an encoder there had the batch.
    """

    alone: int = 0
    machines: int = 0


@dataclass(frozen=True, slots=True)
class BatchRetry:
    """Decision about a batch whose encoder was lost.

    Attributes
    ----------
    action
        What happens to the batch.
    losses
        Losses of the batch, this one included.
    """

    action: BatchAction
    losses: BatchLosses


def decide_batch_retry(
    error: WaygraphError, losses: BatchLosses, *, states: int, alone: bool, failed_call: bool
) -> BatchRetry:
    """Decide what to do with a batch whose encoder was lost.

    The batch may have killed the encoder (memory, a defect), or anything else may have. So:

    1. Batches that were in the encoder together are repeated, each alone in an encoder. A batch that kills an encoder
       is then known.
    2. A batch that kills an encoder while alone is repeated alone once more.
    3. Then it is split, and its halves are encoded alone, down to the single state that kills encoders. That state
       gets no vectors; all others do.

    A lost machine is not caused by a batch, up to `MAX_LOST_MACHINES`. An unexpected error that an encoder raised is
    caused by the batch of the failed call; its other batches are repeated unchanged.

    Parameters
    ----------
    error
        Why the encoder was lost.
    losses
        Losses of the batch before this one.
    states
        Number of states in the batch.
    alone
        Whether the encoder had no other batch.
    failed_call
        Whether the error was raised by the call that encoded this batch. If the process died, the calls of all its
        batches failed, and it is unknown which of them it computed.

    Returns
    -------
    BatchRetry
        With the updated losses.

    Examples
    --------
    >>> decide_batch_retry(WorkerLost("died"), BatchLosses(), states=8, alone=False, failed_call=True).action
    'isolate'
    >>> decide_batch_retry(WorkerLost("died"), BatchLosses(alone=1), states=8, alone=True, failed_call=True).action
    'split'
    """
    if isinstance(error, MachineLost) and losses.machines < MAX_LOST_MACHINES:
        return BatchRetry("requeue", replace(losses, machines=losses.machines + 1))
    process_died = isinstance(error, WorkerLost)
    if not process_died and not failed_call:
        return BatchRetry("requeue", losses)
    if process_died and not alone:
        return BatchRetry("isolate", losses)
    losses = replace(losses, alone=losses.alone + 1)
    if losses.alone < MAX_ENCODERS_PER_BATCH:
        return BatchRetry("isolate", losses)
    return BatchRetry("give up" if states == 1 else "split", losses)


# -- the encoder pool ------------------------------------------------------------------------------------------------

#: What happens to the pool: it continues, it starts no more encoders than it has, it fails with the error of the
#: encoder, or it fails with `EncoderLost`.
PoolAction = Literal["continue", "stop growing", "fail", "fail as lost"]


@dataclass(frozen=True, slots=True)
class PoolLoss:
    """Situation of the encoder pool after it lost an encoder.

    Attributes
    ----------
    was_loaded
        Whether the lost encoder had been loaded.
    any_loaded
        Whether any encoder of the pool has been loaded.
    remaining
        Number of encoders left.
    least
        Minimal number of encoders.
    in_a_row
        Encoders that died since one encoded a batch, except those on lost machines.
    max_in_a_row
        See `max_losses_in_row`.
    """

    was_loaded: bool
    any_loaded: bool
    remaining: int
    least: int
    in_a_row: int
    max_in_a_row: int


def decide_pool_action(error: WaygraphError, loss: PoolLoss) -> PoolAction:
    """Decide what the encoder pool does after it lost an encoder.

    An encoder that cannot be loaded concerns its machine if others were loaded, and the whole run if none was, or if
    the pool would have too few. Encoders that die in a row without a finished batch are not killed by single states.

    Parameters
    ----------
    error
        Why the encoder was lost.
    loss
        Situation of the pool.

    Returns
    -------
    PoolAction
        What to do.
    """
    if not isinstance(error, WorkerLost) and not loss.was_loaded:
        return "fail" if not loss.any_loaded or loss.least > loss.remaining else "stop growing"
    return "fail as lost" if loss.in_a_row > loss.max_in_a_row else "continue"


def max_losses_in_row(batch_states: int) -> int:
    """Return how many encoders single states may kill in a row without a finished batch.

    The bound is one death in company, the attempts of the whole batch, one death per size below it, and then four bad
    states in a row.

    >>> max_losses_in_row(1), max_losses_in_row(32)
    (11, 16)
    """
    return 1 + MAX_ENCODERS_PER_BATCH + ceil(log2(batch_states)) + 4 * MAX_ENCODERS_PER_BATCH
