"""Which failures of a Qdrant server pass by waiting, and what is said when one does not?"""

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

from waygraph.errors import ServiceError, Unauthorized, WaygraphError

log = logging.getLogger(__name__)

T = TypeVar("T")

_GRPC_PASSES = frozenset(
    {grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.DEADLINE_EXCEEDED, grpc.StatusCode.RESOURCE_EXHAUSTED}
)
_GRPC_REFUSES = frozenset({grpc.StatusCode.UNAUTHENTICATED, grpc.StatusCode.PERMISSION_DENIED})
_HTTP_PASSES = frozenset({408, 429, 500, 502, 503, 504})
_HTTP_REFUSES = frozenset({401, 403})

#: Everything that the client raises for a server that fails, refuses or is not there.
SERVER_FAILURES = (
    ResponseHandlingException,
    UnexpectedResponse,
    ResourceExhaustedResponse,
    grpc.RpcError,
    httpx.TransportError,
    ConnectionError,
)


@dataclass(frozen=True, slots=True)
class Retries:
    """How often and how long a server is waited for.

    Attributes
    ----------
    attempts : calls in all.
    first_wait_s : before the second call; doubled each time, and varied so that many clients do not return at once.
    longest_wait_s : cap of one wait, also of one that the server asks for.

    """

    attempts: int = 5
    first_wait_s: float = 0.5
    longest_wait_s: float = 30.0

    def call(self, doing: str, function: Callable[[], T]) -> T:
        """Call until it works; only for what may safely happen twice.

        Raises
        ------
        Unauthorized
            When the server refuses the API key.
        ServiceError
            When it fails in another way, `attempts` times or for good.

        """
        for attempt in range(1, self.attempts + 1):
            try:
                return function()
            except SERVER_FAILURES as failure:
                if attempt == self.attempts or not _passes(failure):
                    raise explained(doing, failure, attempt) from failure
                wait = self._wait(attempt, failure)
                log.warning("%s failed (%s), trying again in %.1f s", doing, _said(failure), wait)
                time.sleep(wait)
        raise AssertionError("unreachable: the last attempt returns or raises")

    def _wait(self, attempt: int, failure: Exception) -> float:
        asked = getattr(failure, "retry_after_s", 0) or 0
        grown = self.first_wait_s * 2 ** (attempt - 1) * random.uniform(0.5, 1.5)  # noqa: S311 - no secret
        return float(min(self.longest_wait_s, max(asked, grown)))


def explained(doing: str, failure: Exception, attempts: int = 1) -> WaygraphError:
    """The error that tells a user what the server said."""
    if _status(failure) in (_HTTP_REFUSES | _GRPC_REFUSES):
        return Unauthorized(f"{doing}: Qdrant refuses the API key.", hint="Check WAYGRAPH_VECTORS__API_KEY.")
    tries = f" ({attempts} tries)" if attempts > 1 else ""
    return ServiceError(
        f"{doing} failed{tries}: {_said(failure)}.",
        hint="Check the Qdrant server and repeat the call: writing the same points again changes nothing.",
    )


def _passes(failure: Exception) -> bool:
    status = _status(failure)
    if status is None:
        return True  # no answer at all: the connection broke, or there was none
    return status in (_HTTP_PASSES | _GRPC_PASSES)


def _status(failure: Exception) -> int | grpc.StatusCode | None:
    if isinstance(failure, UnexpectedResponse):
        return failure.status_code
    if isinstance(failure, ResourceExhaustedResponse):
        return 429
    if isinstance(failure, grpc.RpcError) and hasattr(failure, "code"):
        code: grpc.StatusCode = failure.code()
        return code
    return None


def _said(failure: Exception) -> str:
    if isinstance(failure, grpc.RpcError) and hasattr(failure, "details"):
        return f"{failure.code().name}: {failure.details()}" if hasattr(failure, "code") else str(failure.details())
    text = " ".join(str(failure).split())
    return text[:300] or type(failure).__name__
