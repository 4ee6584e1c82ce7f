"""Retries of work items and loads."""

from __future__ import annotations

from dataclasses import dataclass

from waygraph.pipeline.browser.page.failures import FailureKind

#: A failed item or load is retried once, in a new page.
MAX_FAILURES = 2
#: A lost browser does not count as a failure of the page, unless it is lost this often.
MAX_LOST_BROWSERS = 3
#: Attempts that end with a block page or a rate limit. The host is left alone for longer after each.
MAX_BLOCKED_ATTEMPTS = 3


@dataclass(slots=True)
class Retries:
    """Attempts of one item or load that failed so far.

    Attributes
    ----------
    failures
        Failures that count.
    lost_browsers
        Lost browsers that do not count as failures.
    blocked_attempts
        Attempts that ended with a block page or a request to come again later.
    """

    failures: int = 0
    lost_browsers: int = 0
    blocked_attempts: int = 0

    def record(self, kind: FailureKind) -> None:
        """Count a failed attempt."""
        if kind is FailureKind.BLOCKED_OR_RATE_LIMITED:
            self.blocked_attempts += 1
        elif kind is FailureKind.BROWSER_LOST and self.lost_browsers < MAX_LOST_BROWSERS:
            self.lost_browsers += 1
        else:
            self.failures += 1

    @property
    def are_exhausted(self) -> bool:
        """Whether no further attempt is made."""
        return self.failures >= MAX_FAILURES or self.blocked_attempts >= MAX_BLOCKED_ATTEMPTS
