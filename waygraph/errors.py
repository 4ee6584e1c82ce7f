"""What can go wrong, what the user should do about it, and how each front door reports it.

Every error that waygraph raises on purpose is a `WaygraphError`. The CLI turns it into one message and `exit_code`,
the service into an RFC 9457 problem with `http_status` and `slug`.
"""

from __future__ import annotations

from typing import ClassVar

from waygraph.spelling import spellable


class WaygraphError(Exception):
    """Base of all expected errors: `message` says what happened and where, `hint` what to do about it."""

    exit_code: ClassVar[int] = 1
    http_status: ClassVar[int] = 500
    slug: ClassVar[str] = "internal"
    title: ClassVar[str] = "Internal error"
    #: After so many seconds the same call may work; 0: waiting does not help.
    after_s: float = 0.0

    def __init__(self, message: str, *, hint: str = "", after_s: float | None = None) -> None:
        # Both may quote a page, and are written to terminals, reports and answers.
        self.message = spellable(message)
        self.hint = spellable(hint)
        super().__init__(self.message)
        if after_s is not None:
            self.after_s = after_s

    def __str__(self) -> str:
        return f"{self.message} {self.hint}".strip()

    def __reduce__(self) -> tuple[object, ...]:
        # Keyword-only arguments do not survive the default pickling, which Ray uses between processes.
        return (_rebuild, (type(self), self.message, self.hint, self.after_s))


def _rebuild(kind: type[WaygraphError], message: str, hint: str, after_s: float) -> WaygraphError:
    error = kind(message, hint=hint)
    error.after_s = after_s
    return error


class InvalidInput(WaygraphError):
    """A URL, a flag, a rule or a request body that cannot mean anything."""

    exit_code, http_status, slug, title = 2, 422, "invalid-input", "Invalid input"


class NotFound(WaygraphError):
    """A site, a node or a version that the store does not hold."""

    exit_code, http_status, slug, title = 3, 404, "not-found", "Not found"


class Gone(NotFound):
    """A state of an earlier version that the current one does not have any more."""

    http_status, slug, title = 410, "gone", "Gone"


class Superseded(NotFound):
    """A state of an earlier version that has another id by now: `successor`."""

    http_status, slug, title = 308, "superseded", "Superseded"

    def __init__(self, message: str, *, successor: str = "", hint: str = "") -> None:
        super().__init__(message, hint=hint)
        self.successor = successor


class NoPath(WaygraphError):
    """Both states exist, but the map holds no way from one to the other under the given conditions."""

    exit_code, http_status, slug, title = 3, 404, "no-path", "No path"


class SiteUnreachable(WaygraphError):
    """The start page could not be mapped: DNS, connection, HTTP status, redirect loop, not HTML."""

    exit_code, http_status, slug, title = 4, 502, "site-unreachable", "Site unreachable"


class SiteMoved(WaygraphError):
    """The start page of a mapped site leads to another site by now: what is there is no new version of this map."""

    exit_code, http_status, slug, title = 4, 502, "site-moved", "Site moved"


class RobotsForbidden(WaygraphError):
    """The site's robots.txt forbids the start page to our user agent."""

    exit_code, http_status, slug, title = 4, 403, "robots-forbidden", "Forbidden by robots.txt"


class LoggedOut(WaygraphError):
    """The site shows its login page where it showed content before: the prepared session has ended."""

    exit_code, http_status, slug, title = 4, 502, "logged-out", "Logged out"


class TermsDiffer(WaygraphError):
    """A map was made with a session, a password, headers or rules that its refresh was not given."""

    exit_code, http_status, slug, title = 2, 409, "terms-differ", "Not what the map was made with"


class SomeSitesFailed(WaygraphError):
    """A bulk run finished, and at least one site, but not all, failed."""

    exit_code, slug, title = 5, "some-sites-failed", "Some sites failed"


class RunUnfinished(WaygraphError):
    """A bulk run ended in order before its end, since its budget was spent; the same command goes on with it."""

    exit_code, slug, title = 11, "run-unfinished", "Run unfinished"


class EnvironmentMissing(WaygraphError):
    """A browser, an extra or model weights that this command needs are not installed."""

    exit_code, http_status, slug, title = 6, 503, "environment-missing", "Environment incomplete"


class BrowserMissing(EnvironmentMissing):
    """No usable Chromium was found."""

    slug, title = "browser-missing", "No browser"


class WeightsMissing(EnvironmentMissing):
    """The encoder's weights are neither on disk nor reachable."""

    slug, title = "weights-missing", "No encoder weights"


class EncodingFailed(WaygraphError):
    """A page or a question cannot be turned into vectors: its image is damaged, or the model's output is not finite."""

    slug, title = "encoding-failed", "Encoding failed"


class BadImage(EncodingFailed):
    """A screenshot that is no image, is cut off, or has a shape that no encoder reads."""

    http_status, slug, title = 422, "bad-image", "Unreadable image"


class StoreError(WaygraphError):
    """The store directory is foreign, unwritable, damaged, or of a newer schema."""

    exit_code, http_status, slug, title = 7, 503, "store", "Store not usable"


class NoStore(StoreError):
    """There is nothing at the store's place yet."""

    slug, title = "no-store", "No store"


class NewerSchema(StoreError):
    """A newer waygraph wrote this; it is not damaged, and must not be mended."""

    slug, title = "newer-schema", "Newer schema"


class PublishConflict(StoreError):
    """Another writer published this version first."""

    http_status, slug, title = 409, "publish-conflict", "Publish conflict"


class InUse(StoreError):
    """Another process is at this very exploration or run."""

    http_status, slug, title = 409, "in-use", "In use"


class EncoderMismatch(WaygraphError):
    """The index was made by another encoder (or other settings of it) than the one that encodes the query."""

    exit_code, http_status, slug, title = 8, 409, "encoder-mismatch", "Encoder mismatch"


class ServiceError(WaygraphError):
    """The service could not start (port in use, no API key) or could not be reached."""

    exit_code, http_status, slug, title = 9, 503, "service", "Service not available"


class Unauthorized(ServiceError):
    """The API key is missing or wrong."""

    http_status, slug, title = 401, "unauthorized", "Unauthorized"


class Overloaded(ServiceError):
    """More is asked of the service than it can answer in time; nothing was done."""

    http_status, slug, title = 503, "overloaded", "Overloaded"
    after_s = 1.0


class RateLimited(ServiceError):
    """A caller asks more often than it may."""

    http_status, slug, title = 429, "rate-limited", "Too many requests"


class TeleportFailed(WaygraphError):
    """The walk ended somewhere else than at its target; nothing was reported as reached."""

    exit_code, http_status, slug, title = 10, 409, "teleport-failed", "Teleport did not arrive"


class BrowserFailure(WaygraphError):
    """The browser crashed, hung or refused a command; the work item is retried in a fresh one, then failed."""

    exit_code, http_status, slug, title = 1, 502, "browser-failure", "Browser failure"


def by_slug(slug: str) -> type[WaygraphError] | None:
    """Find the kind of error that a problem names.

    >>> by_slug("no-path").__name__
    'NoPath'
    """
    kinds = [WaygraphError]
    while kinds:
        kind = kinds.pop()
        if kind.slug == slug:
            return kind
        kinds += kind.__subclasses__()
    return None
