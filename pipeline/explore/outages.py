"""Does a failure say something about a page, or only about the moment at which it was asked for?"""

from __future__ import annotations

import re

#: What Chromium says when no connection was made, or it broke off before an answer was complete.
_CONNECTION = (
    "ERR_CONNECTION_", "ERR_EMPTY_RESPONSE", "ERR_TIMED_OUT", "ERR_TUNNEL_CONNECTION_FAILED",
    "ERR_PROXY_CONNECTION_FAILED", "ERR_SOCKS_CONNECTION_", "ERR_ADDRESS_UNREACHABLE", "ERR_INTERNET_DISCONNECTED",
    "ERR_NETWORK_", "ERR_SOCKET_NOT_CONNECTED", "ERR_HTTP2_", "ERR_QUIC_", "ERR_INCOMPLETE_CHUNKED_ENCODING",
    "ERR_CONTENT_LENGTH_MISMATCH", "ERR_INVALID_HTTP_RESPONSE", "ERR_RESPONSE_HEADERS_TRUNCATED",
)  # fmt: skip
#: What a page or an action says that took too long, or that a host did not let through.
_TOO_LATE = ("It took longer than", "gave no answer", "Timeout", "shows a block page", "even after waiting")
#: What the egress proxy says of a connection that it will not make the next time either (`EgressProxy.problem`).
_LASTING = ("cannot be resolved", "may only be visited")
_SERVER_ERROR = re.compile(r"\banswers 5\d\d\b")


def is_connection_failure(problem: str) -> bool:
    """Whether a host could not be connected to, or broke off; not when there is no such host.

    >>> is_connection_failure("net::ERR_CONNECTION_RESET at http://a.test/")
    True
    >>> is_connection_failure("net::ERR_TUNNEL_CONNECTION_FAILED (its name cannot be resolved (DNS))")
    False
    """
    return any(mark in problem for mark in _CONNECTION) and not any(mark in problem for mark in _LASTING)


def is_outage(problem: str, status: int = 0) -> bool:
    """Whether an answer says nothing about the page: no connection, a timeout, a server's error, a block page.

    >>> is_outage("Timeout 20000ms exceeded"), is_outage("", 502), is_outage("net::ERR_NAME_NOT_RESOLVED")
    (True, True, False)
    """
    return (
        status >= 500
        or is_connection_failure(problem)
        or any(mark in problem for mark in _TOO_LATE)
        or _SERVER_ERROR.search(problem) is not None
    )
