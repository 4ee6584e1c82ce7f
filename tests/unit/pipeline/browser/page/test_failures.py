"""Errors of Playwright and messages in old records become kinds of failures, in one place."""

import pickle

import pytest
from playwright.async_api import Error as PlaywrightError
from playwright.async_api import TimeoutError as PlaywrightTimeoutError

from waygraph.core.errors import StoreError
from waygraph.pipeline.browser.page.evaluate import PageUnresponsive
from waygraph.pipeline.browser.page.failures import (
    FailureKind,
    NotActionable,
    PageFailure,
    failure_cause,
    recorded_cause,
)


@pytest.mark.parametrize(
    ("message", "kind", "net_code"),
    [
        ("Page.goto: net::ERR_CONNECTION_RESET at http://a/", FailureKind.CONNECTION_FAILED, "ERR_CONNECTION_RESET"),
        ("net::ERR_HTTP2_PROTOCOL_ERROR at http://a/", FailureKind.CONNECTION_FAILED, "ERR_HTTP2_PROTOCOL_ERROR"),
        ("Page.goto: net::ERR_NAME_NOT_RESOLVED at http://a/", FailureKind.NETWORK_ERROR, "ERR_NAME_NOT_RESOLVED"),
        ("Page.goto: net::ERR_CERT_DATE_INVALID at http://a/", FailureKind.NETWORK_ERROR, "ERR_CERT_DATE_INVALID"),
        ("Page.goto: net::ERR_ABORTED; maybe frame was detached?", FailureKind.NAVIGATION_ABORTED, "ERR_ABORTED"),
        ("Page.goto: Download is starting", FailureKind.DOWNLOAD_STARTED, ""),
        ("Page.evaluate: Target page, context or browser has been closed", FailureKind.BROWSER_LOST, ""),
        ("Page.evaluate: Target crashed", FailureKind.PAGE_CRASHED, ""),
        ("Page.goto: Navigation failed because page crashed!", FailureKind.PAGE_CRASHED, ""),
        ("Page.evaluate: Execution context was destroyed, ...", FailureKind.DOCUMENT_REPLACED, ""),
        ("Protocol error (Runtime.evaluate): Cannot find context with specified id", FailureKind.DOCUMENT_REPLACED, ""),
        ("Protocol error (Runtime.evaluate): Cannot find default execution context", FailureKind.DOCUMENT_REPLACED, ""),
        ("Protocol error (Runtime.evaluate): Promise was collected", FailureKind.DOCUMENT_REPLACED, ""),
        ("Protocol error (Runtime.evaluate): Inspected target navigated or closed", FailureKind.DOCUMENT_REPLACED, ""),
        ("Frame.evaluate: Frame was detached", FailureKind.DOCUMENT_REPLACED, ""),
        ("Page.goto: Timeout 20000ms exceeded.", FailureKind.TIMEOUT, ""),
        ("Page.evaluate: ReferenceError: x is not defined", FailureKind.OTHER, ""),
    ],
)  # fmt: skip
def test_errors_of_playwright_are_classified_by_their_first_line(message, kind, net_code):
    cause = failure_cause(PlaywrightError(f"{message}\nCall log:\n  - navigating to http://timeout.test/Timeout"))
    assert (cause.kind, cause.net_code, cause.message) == (kind, net_code, message)


def test_errors_of_other_libraries_are_classified_by_their_type():
    assert failure_cause(PlaywrightTimeoutError("slow")).kind is FailureKind.TIMEOUT
    assert failure_cause(TimeoutError()).kind is FailureKind.TIMEOUT
    assert failure_cause(PageUnresponsive("http://a/ gave no answer for 3 s.")).kind is FailureKind.NO_ANSWER
    assert failure_cause(StoreError("Timeout")).kind is FailureKind.OTHER
    assert failure_cause(NotActionable("It is gone.", FailureKind.ELEMENT_MISSING)).kind is FailureKind.ELEMENT_MISSING


def test_page_failure_names_what_failed_and_keeps_the_kind():
    failure = PageFailure.of(PlaywrightError("Page.goto: net::ERR_TIMED_OUT at http://a/\nCall log:"), "http://a/")
    assert failure.message == "http://a/: Page.goto: net::ERR_TIMED_OUT at http://a/"
    assert (failure.kind, failure.net_code) == (FailureKind.CONNECTION_FAILED, "ERR_TIMED_OUT")


def test_the_kind_survives_pickling_as_ray_does_it():
    copied = pickle.loads(pickle.dumps(PageFailure("gone", FailureKind.BROWSER_LOST, net_code="X", hint="h")))  # noqa: S301
    assert (copied.message, copied.kind, copied.net_code, copied.hint) == ("gone", FailureKind.BROWSER_LOST, "X", "h")


@pytest.mark.parametrize(
    ("message", "kind"),
    [
        ("click button 'x' on http://a/ takes no pointer: it lies outside the page.", FailureKind.ELEMENT_COVERED),
        ("http://a/: the process of the page crashed.", FailureKind.PAGE_CRASHED),
        ("http://a/ gave no answer for 12 s.", FailureKind.NO_ANSWER),
        ("It took longer than 60 s.", FailureKind.TIMEOUT),
        ("http://a/ shows a block page (datadome).", FailureKind.BLOCKED_OR_RATE_LIMITED),
        ("http://a/ answers 429, even after waiting.", FailureKind.BLOCKED_OR_RATE_LIMITED),
        ("http://a/ could not be reached again: http://a/ answers 503.", FailureKind.SERVER_ERROR),
        ("net::ERR_EMPTY_RESPONSE (it does not answer)", FailureKind.CONNECTION_FAILED),
        ("net::ERR_EMPTY_RESPONSE (its name cannot be resolved (DNS))", FailureKind.NETWORK_ERROR),
        ("net::ERR_EMPTY_RESPONSE (10.0.0.1 is a private address, which may only be visited when you name the host)",
         FailureKind.NETWORK_ERROR),
        ("", FailureKind.OTHER),
    ],
)  # fmt: skip
def test_messages_in_older_records_are_classified_like_their_errors(message, kind):
    assert recorded_cause(message).kind is kind


def test_covered_outside_and_missing_targets_take_no_pointer():
    assert {kind for kind in FailureKind if kind.takes_no_pointer} == {
        FailureKind.ELEMENT_COVERED,
        FailureKind.ELEMENT_OUTSIDE,
        FailureKind.ELEMENT_DISABLED,
        FailureKind.FRAME_MISSING,
        FailureKind.OPTION_MISSING,
        FailureKind.VALUE_REJECTED,
    }
