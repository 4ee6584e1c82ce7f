"""Kinds of failures of a page or an action, and their classification.

Control flow uses `FailureKind`, never the text of a message. Playwright and the DevTools protocol report errors as text
only, and this module is the one place that reads that text: where an error is caught, `failure_cause` turns it into a
kind, a message and, for network errors, Chromium's error code.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from waygraph.core.errors import BrowserFailure, WaygraphError

if TYPE_CHECKING:  # readers of records use no browser
    from playwright.async_api import Error as PlaywrightError


class FailureKind(StrEnum):
    """Why a page could not be loaded or an action could not be performed.

    The values are stored in records; members may be added, values must not change.
    """

    BROWSER_LOST = "browser_lost"
    """The browser, the context or the page was closed under a call. The page did not cause it."""
    PAGE_CRASHED = "page_crashed"
    """The process that renders the page crashed."""
    NO_ANSWER = "no_answer"
    """The page does not answer: a script of it runs in an endless loop, for example."""
    TIMEOUT = "timeout"
    """A navigation or a work item took longer than its limit."""
    CONNECTION_FAILED = "connection_failed"
    """No connection was made, or it broke off before the response was complete. A retry may work."""
    NETWORK_ERROR = "network_error"
    """Chromium rejects the address, the certificate or the response. A retry gives the same result."""
    NAVIGATION_ABORTED = "navigation_aborted"
    """The navigation ended without a document (`ERR_ABORTED`): a download, no content, or a stopped request."""
    DOWNLOAD_STARTED = "download_started"
    """The navigation became a download."""
    DOCUMENT_REPLACED = "document_replaced"
    """The document or the frame was replaced while a call to it was under way."""
    ELEMENT_MISSING = "element_missing"
    """The recorded element is not in the page."""
    ELEMENT_COVERED = "element_covered"
    """Another element covers the recorded one and takes the pointer."""
    ELEMENT_OUTSIDE = "element_outside"
    """No point of the recorded element can be scrolled into view."""
    ELEMENT_DISABLED = "element_disabled"
    """The element takes no input."""
    FRAME_MISSING = "frame_missing"
    """The cross-origin frame that holds the recorded element is gone."""
    OPTION_MISSING = "option_missing"
    """The recorded option is not in its list."""
    VALUE_REJECTED = "value_rejected"
    """The field accepts no such value: a date field accepts dates only."""
    BLOCKED_OR_RATE_LIMITED = "turned_away"
    """The host answers with a block page or a CAPTCHA, or limits the rate of requests."""
    SERVER_ERROR = "server_error"
    """The server answers with a status of 500 or above."""
    OTHER = "other"
    """Anything else; the message says what."""

    @property
    def takes_no_pointer(self) -> bool:
        """Whether the recorded element is in the page but cannot be acted on; nothing was done to the page."""
        return self in _TAKES_NO_POINTER


_TAKES_NO_POINTER = frozenset(
    {
        FailureKind.ELEMENT_COVERED,
        FailureKind.ELEMENT_OUTSIDE,
        FailureKind.ELEMENT_DISABLED,
        FailureKind.FRAME_MISSING,
        FailureKind.OPTION_MISSING,
        FailureKind.VALUE_REJECTED,
    }
)


@dataclass(frozen=True, slots=True)
class FailureCause:
    """A classified failure.

    Attributes
    ----------
    kind
        The kind that control flow uses.
    message
        Text for people: one line, without a stack or a call log.
    net_code
        Chromium's network error without the `net::` prefix, such as `ERR_CONNECTION_RESET`; empty for other failures.
    """

    kind: FailureKind
    message: str
    net_code: str = ""


class ClassifiedError(WaygraphError):
    """Base of the errors that carry a `FailureKind`.

    Parameters
    ----------
    message
        What happened, and on which page.
    kind
        The kind of the failure.
    net_code
        Chromium's network error, see `FailureCause`.
    hint
        What the user can do about it.
    retry_after_s
        Time after which the same call may work, in seconds; None keeps the default of the class.
    """

    def __init__(
        self,
        message: str,
        kind: FailureKind = FailureKind.OTHER,
        *,
        net_code: str = "",
        hint: str = "",
        retry_after_s: float | None = None,
    ) -> None:
        super().__init__(message, hint=hint, retry_after_s=retry_after_s)
        self.kind = kind
        self.net_code = net_code

    @property
    def cause(self) -> FailureCause:
        """The failure as a record."""
        return FailureCause(self.kind, self.message, self.net_code)

    def __reduce__(self) -> tuple[object, ...]:
        # A third item is the state that unpickling sets on the error that the first two rebuild.
        return (*super().__reduce__(), {"kind": self.kind, "net_code": self.net_code})


class PageFailure(ClassifiedError, BrowserFailure):
    """The browser or the page failed while it was used: it was lost, crashed, hangs, or could not load an address."""

    @classmethod
    def of(cls, error: PlaywrightError, where: str) -> PageFailure:
        """Build the failure for a Playwright error.

        Parameters
        ----------
        error
            The error as it was caught.
        where
            What failed, such as the URL; the message starts with it.

        Returns
        -------
        PageFailure
            The failure, to be raised from the error.
        """
        cause = failure_cause(error)
        return cls(f"{where}: {cause.message}", cause.kind, net_code=cause.net_code)


class NotActionable(ClassifiedError):
    """The recorded element is missing or takes no pointer; nothing was done to the page."""

    exit_code, http_status, slug, title = 1, 409, "not-actionable", "Element not actionable"


_NET_CODE = re.compile(r"\bnet::(ERR_[A-Z0-9_]+)")

#: Chromium's errors when no connection was made, or it broke off before the response was complete
#: (net/base/net_error_list.h).
_CONNECTION_CODES = (
    "ERR_CONNECTION_", "ERR_EMPTY_RESPONSE", "ERR_TIMED_OUT", "ERR_TUNNEL_CONNECTION_FAILED",
    "ERR_PROXY_CONNECTION_FAILED", "ERR_SOCKS_CONNECTION_", "ERR_ADDRESS_UNREACHABLE", "ERR_INTERNET_DISCONNECTED",
    "ERR_NETWORK_", "ERR_SOCKET_NOT_CONNECTED", "ERR_HTTP2_", "ERR_QUIC_", "ERR_INCOMPLETE_CHUNKED_ENCODING",
    "ERR_CONTENT_LENGTH_MISMATCH", "ERR_INVALID_HTTP_RESPONSE", "ERR_RESPONSE_HEADERS_TRUNCATED",
)  # fmt: skip
_ABORTED_CODE = "ERR_ABORTED"

#: Fragments of messages of Playwright and of Chromium's DevTools protocol. The first kind that matches counts.
_BROWSER_MESSAGES: tuple[tuple[FailureKind, tuple[str, ...]], ...] = (
    (FailureKind.DOWNLOAD_STARTED, ("Download is starting",)),
    (FailureKind.BROWSER_LOST, ("browser has been closed",)),
    (FailureKind.PAGE_CRASHED, ("Page crashed", "page crashed", "Target crashed")),
    (
        FailureKind.DOCUMENT_REPLACED,
        (
            "Execution context was destroyed", "Cannot find context", "Cannot find default execution context",
            "frame was detached", "Frame was detached", "Promise was collected", "Inspected target navigated",
        ),
    ),
    (FailureKind.TIMEOUT, ("Timeout",)),
)  # fmt: skip

#: Messages of this package in records that were written before kinds were stored.
_RECORDED_MESSAGES: tuple[tuple[FailureKind, re.Pattern[str]], ...] = (
    (FailureKind.ELEMENT_COVERED, re.compile("takes no pointer")),
    (FailureKind.PAGE_CRASHED, re.compile("the process of the page crashed")),
    (FailureKind.NO_ANSWER, re.compile("gave no answer")),
    (FailureKind.TIMEOUT, re.compile("It took longer than")),
    (FailureKind.BLOCKED_OR_RATE_LIMITED, re.compile("shows a block page|even after waiting")),
    (FailureKind.SERVER_ERROR, re.compile(r"\banswers 5\d\d\b")),
)
#: Reasons of the egress proxy that make a failed connection a lasting error, in such records.
_RECORDED_LASTING = ("cannot be resolved", "may only be visited")


def failure_cause(error: Exception) -> FailureCause:
    """Classify an error that was caught while a page was used.

    >>> from playwright.async_api import Error
    >>> failure_cause(Error("Page.goto: net::ERR_CONNECTION_RESET at http://a.test/")).net_code
    'ERR_CONNECTION_RESET'
    >>> failure_cause(PageFailure("a.test hangs", FailureKind.NO_ANSWER)).kind
    <FailureKind.NO_ANSWER: 'no_answer'>
    """
    if isinstance(error, ClassifiedError):
        return error.cause
    if isinstance(error, WaygraphError):
        return FailureCause(FailureKind.OTHER, error.message)
    message = first_line(error)
    if any(kind.__name__ == "TimeoutError" for kind in type(error).__mro__):  # Playwright's is another than Python's
        return FailureCause(FailureKind.TIMEOUT, message)
    net_code = _net_code(message)
    return FailureCause(_browser_kind(message, net_code), message, net_code)


def recorded_cause(message: str) -> FailureCause:
    """Classify the message of a failure in a record that holds no kind, as older versions wrote them.

    >>> recorded_cause("net::ERR_TUNNEL_CONNECTION_FAILED (it does not answer)").kind
    <FailureKind.CONNECTION_FAILED: 'connection_failed'>
    >>> recorded_cause("net::ERR_TUNNEL_CONNECTION_FAILED (its name cannot be resolved (DNS))").kind
    <FailureKind.NETWORK_ERROR: 'network_error'>
    """
    net_code = _net_code(message)
    kind = next((kind for kind, pattern in _RECORDED_MESSAGES if pattern.search(message)), None)
    if kind is None:
        kind = _browser_kind(message, net_code)
        if kind is FailureKind.CONNECTION_FAILED and any(reason in message for reason in _RECORDED_LASTING):
            kind = FailureKind.NETWORK_ERROR
    return FailureCause(kind, message, net_code)


def first_line(error: Exception) -> str:
    """Return the first line of an error's text: Playwright's errors end with a call log of many lines."""
    return next(iter(str(error).splitlines()), "")


def _net_code(message: str) -> str:
    match = _NET_CODE.search(message)
    return match.group(1) if match else ""


def _browser_kind(message: str, net_code: str) -> FailureKind:
    if net_code == _ABORTED_CODE:
        return FailureKind.NAVIGATION_ABORTED
    if net_code:
        return FailureKind.CONNECTION_FAILED if net_code.startswith(_CONNECTION_CODES) else FailureKind.NETWORK_ERROR
    for kind, fragments in _BROWSER_MESSAGES:
        if any(fragment in message for fragment in fragments):
            return kind
    return FailureKind.OTHER
