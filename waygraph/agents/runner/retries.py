"""Which failures of an attempt are tried again."""

from __future__ import annotations

from collections import Counter
from enum import StrEnum


class AttemptFailure(StrEnum):
    """Why an attempt has no result. None of these is the agent's doing.

    `WORKER_LOST`: the process of the worker ended. `BROWSER_LOST`: its browser did. `START_FAILED`: the page that the
    task starts with could not be loaded. `HOOK_FAILED`: a site could not be reset or logged in to before the task.
    `MODEL_UNAVAILABLE`: the model gave no answer, after the retries of its client. `RUN_BUDGET_SPENT`: the tokens or
    the money of the run are spent.
    """

    WORKER_LOST = "worker_lost"
    BROWSER_LOST = "browser_lost"
    START_FAILED = "start_failed"
    HOOK_FAILED = "hook_failed"
    MODEL_UNAVAILABLE = "model_unavailable"
    RUN_BUDGET_SPENT = "run_budget_spent"


#: Attempts at a task that may end in each way. A task that ends a process each time must not end all of them.
MAX_FAILURES = {
    AttemptFailure.WORKER_LOST: 3,
    AttemptFailure.BROWSER_LOST: 3,
    AttemptFailure.START_FAILED: 2,
    AttemptFailure.HOOK_FAILED: 2,
    AttemptFailure.MODEL_UNAVAILABLE: 2,
    AttemptFailure.RUN_BUDGET_SPENT: 1,
}


def may_try_again(failures: Counter[AttemptFailure]) -> bool:
    """Return whether a task is tried again.

    Parameters
    ----------
    failures
        Number of its attempts that failed, by kind.

    Returns
    -------
    bool
        Whether no kind has reached its limit.

    Examples
    --------
    >>> may_try_again(Counter({AttemptFailure.START_FAILED: 1, AttemptFailure.WORKER_LOST: 2}))
    True
    >>> may_try_again(Counter({AttemptFailure.START_FAILED: 2}))
    False

    """
    return all(count < MAX_FAILURES[kind] for kind, count in failures.items())
