"""Outages: failures that say something about the moment of a request, not about the page."""

from __future__ import annotations

from waygraph.pipeline.browser.page.failures import FailureKind, recorded_cause
from waygraph.pipeline.explore.records.outcome import ActionOutcome
from waygraph.pipeline.explore.records.state import Load

_OUTAGES = frozenset(
    {
        FailureKind.CONNECTION_FAILED,
        FailureKind.TIMEOUT,
        FailureKind.NO_ANSWER,
        FailureKind.BLOCKED_OR_RATE_LIMITED,
        FailureKind.SERVER_ERROR,
    }
)


def failure_kind(answer: Load | ActionOutcome) -> FailureKind | None:
    """Return the kind of failure of a load or an action, or None if it did not fail.

    Records of earlier versions have a message without a kind, which is classified here.

    >>> failure_kind(Load(problem="net::ERR_CONNECTION_RESET at http://a.test/"))
    <FailureKind.CONNECTION_FAILED: 'connection_failed'>
    """
    if not answer.problem:
        return None
    return answer.failure or recorded_cause(answer.problem).kind


def is_outage(answer: Load | ActionOutcome, status: int = 0) -> bool:
    """Return whether an answer is an outage: no connection, a timeout, a server error, or a block page.

    Parameters
    ----------
    answer
        Result of a load or an action.
    status
        HTTP status of the page that it shows; 0 without a page.

    Returns
    -------
    bool
        True for an outage.

    Examples
    --------
    >>> is_outage(Load(problem="no time", failure=FailureKind.TIMEOUT)), is_outage(Load(), 502)
    (True, True)
    >>> is_outage(Load(problem="no such name", failure=FailureKind.NETWORK_ERROR))
    False
    """
    return status >= 500 or failure_kind(answer) in _OUTAGES
