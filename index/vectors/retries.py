"""Retries of calls to a Qdrant server: which failures are transient, and the error that reports a permanent one."""

from __future__ import annotations

import logging
import random
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

import grpc
import httpx
from qdrant_client.common.client_exceptions import ResourceExhaustedResponse
from qdrant_client.http.exceptions import ResponseHandlingException, UnexpectedResponse

from waygraph.core.errors import ServiceError, Unauthorized, WaygraphError

log = logging.getLogger(__name__)

T = TypeVar("T")

_TRANSIENT = frozenset(
    {
        grpc.StatusCode.UNAVAILABLE,
        grpc.StatusCode.DEADLINE_EXCEEDED,
        grpc.StatusCode.RESOURCE_EXHAUSTED,
        *(408, 429, 500, 502, 503, 504),
    }
)
_UNAUTHORIZED = frozenset({grpc.StatusCode.UNAUTHENTICATED, grpc.StatusCode.PERMISSION_DENIED, 401, 403})

#: Characters of a server's message that an error repeats.
_MESSAGE_CHARACTERS = 300

#: Everything that the client raises if the server fails, rejects a request, or cannot be reached.
SERVER_FAILURES = (
    ResponseHandlingException,
    UnexpectedResponse,
    ResourceExhaustedResponse,
    grpc.RpcError,
    httpx.TransportError,
    ConnectionError,
)


@dataclass(frozen=True, slots=True)
class ServerRetries:
    """Retry policy with exponential backoff.

    Attributes
    ----------
    attempts
        Number of calls in all.
    first_wait_s
        Wait before the second call, in seconds; doubled each time, with jitter so that clients do not retry at once.
    longest_wait_s
        Maximum of one wait in seconds, also of one that the server requests.
    """

    attempts: int = 5
    first_wait_s: float = 0.5
    longest_wait_s: float = 30.0

    def call(self, operation: str, function: Callable[[], T]) -> T:
        """Call an idempotent function until it succeeds.

        Parameters
        ----------
        operation
            What the call does, for messages ("Opening Qdrant collection 'x'").
        function
            The function.

        Returns
        -------
        T
            Its result.

        Raises
        ------
        Unauthorized
            If the server rejects the API key.
        ServiceError
            If the call fails `attempts` times, or permanently.
        """
        for attempt in range(1, self.attempts + 1):
            try:
                return function()
            except SERVER_FAILURES as failure:
                if attempt == self.attempts or not _is_transient(failure):
                    raise server_error(operation, failure, attempt) from failure
                wait = self._wait(attempt, failure)
                log.warning("%s failed (%s), retrying in %.1f s", operation, _message(failure), wait)
                time.sleep(wait)
        raise AssertionError("unreachable: the last attempt returns or raises")

    def _wait(self, attempt: int, failure: Exception) -> float:
        requested = getattr(failure, "retry_after_s", 0) or 0
        backoff = self.first_wait_s * 2 ** (attempt - 1) * random.uniform(0.5, 1.5)  # noqa: S311 - no secret
        return float(min(self.longest_wait_s, max(requested, backoff)))


def server_error(operation: str, failure: Exception, attempts: int = 1) -> WaygraphError:
    """Build the error that reports a server's failure to the user.

    Parameters
    ----------
    operation
        What the call does.
    failure
        What the client raised.
    attempts
        Number of calls.

    Returns
    -------
    WaygraphError
        The error to raise.
    """
    if _status(failure) in _UNAUTHORIZED:
        return Unauthorized(f"{operation}: Qdrant refuses the API key.", hint="Check WAYGRAPH_VECTORS__API_KEY.")
    tries = f" ({attempts} tries)" if attempts > 1 else ""
    return ServiceError(
        f"{operation} failed{tries}: {_message(failure)}.",
        hint="Check the Qdrant server and repeat the call: writing the same points again changes nothing.",
    )


def _is_transient(failure: Exception) -> bool:
    status = _status(failure)
    # Without a status there was no answer at all: the connection broke, or could not be opened.
    return status is None or status in _TRANSIENT


def _status(failure: Exception) -> int | grpc.StatusCode | None:
    if isinstance(failure, UnexpectedResponse):
        return failure.status_code
    if isinstance(failure, ResourceExhaustedResponse):
        return 429
    if isinstance(failure, grpc.RpcError) and hasattr(failure, "code"):
        code: grpc.StatusCode = failure.code()
        return code
    return None


def _message(failure: Exception) -> str:
    if isinstance(failure, grpc.RpcError) and hasattr(failure, "details"):
        return f"{failure.code().name}: {failure.details()}" if hasattr(failure, "code") else str(failure.details())
    text = " ".join(str(failure).split())
    return text[:_MESSAGE_CHARACTERS] or type(failure).__name__
