"""API keys from the settings and from a file that may change: which sites a caller may access, and how often."""

from __future__ import annotations

import hmac
import logging
import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from pydantic import ValidationError

from waygraph.core.errors import InvalidInput, RateLimited, Unauthorized, not_mapped
from waygraph.core.key_file import KeyEntry, KeyFile, key_digest, key_problem
from waygraph.core.settings import ServeSettings

log = logging.getLogger("ray.serve.waygraph")

#: Least time between two checks whether the key file changed, in seconds.
CHECK_SECONDS = 1.0
#: A caller that paused may send this many times its rate at once.
BURST_FACTOR = 2


class TokenBucket:
    """Limits the rate of requests.

    Parameters
    ----------
    rate
        Requests per second.
    burst
        Requests that may be sent at once after a pause.
    clock
        Returns the time in seconds.
    """

    def __init__(self, rate: float, burst: int, clock: Callable[[], float]) -> None:
        self._rate, self._burst, self._clock = rate, burst, clock
        self._tokens, self._updated = float(burst), clock()

    def take(self) -> float:
        """Take a token and return 0, or return the seconds until there is one."""
        now = self._clock()
        self._tokens = min(self._burst, self._tokens + (now - self._updated) * self._rate)
        self._updated = now
        if self._tokens >= 1:
            self._tokens -= 1
            return 0.0
        return (1 - self._tokens) / self._rate

    def spend(self, tokens: int) -> None:
        """Take tokens whether or not there are as many; requests then wait until the rest is there too."""
        self._tokens -= tokens


@dataclass(frozen=True, slots=True)
class Caller:
    """The sender of a request.

    Attributes
    ----------
    identity
        Digest of the API key; empty if the service needs none.
    sites
        Keys of the sites that the caller may access; None: all.
    bucket
        Limit of the caller's rate; None: unlimited.
    """

    identity: str = ""
    sites: frozenset[str] | None = None
    bucket: TokenBucket | None = None

    def may_access(self, site: str) -> bool:
        """Whether the caller may access a site."""
        return self.sites is None or site in self.sites

    def count_queries(self, queries: int) -> None:
        """Count a request as its number of queries; it has been counted as one."""
        if self.bucket is not None:
            self.bucket.spend(queries - 1)

    def require_access(self, site: str) -> None:
        """Reject a site that the caller may not access.

        Parameters
        ----------
        site
            Key of the site.

        Raises
        ------
        NotFound
            If the caller may not access it: the error is that of a site that is not mapped.
        """
        if not self.may_access(site):
            raise not_mapped(site)


class ApiKeys:
    """The valid API keys. Only digests are kept, and they are compared in constant time. Thread-safe.

    Parameters
    ----------
    settings
        `api_keys` have access to all sites; `keys_file` holds more keys, each with its sites and rate.
    clock
        Returns the time in seconds.

    Raises
    ------
    InvalidInput
        If the key file cannot be read. If that happens later, the keys stay as they were, and the error is logged.
    """

    def __init__(self, settings: ServeSettings, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._default_rate = settings.rate_per_second
        self._from_settings = tuple(
            KeyEntry(name=f"key-{i + 1}", sha256=key_digest(key)) for i, key in enumerate(settings.api_keys)
        )
        self._file = settings.keys_file
        self._lock = threading.Lock()
        self._buckets: dict[str, TokenBucket] = {}
        self._file_stamp: tuple[int, int] | None = None
        self._checked = clock()
        self._entries = self._from_settings
        if self._file is not None:
            self._entries = (*self._from_settings, *self._read(self._file))

    def __bool__(self) -> bool:
        """Whether requests need a key. With a key file that holds no keys, every request is rejected."""
        return bool(self._from_settings) or self._file is not None

    def authenticate(self, authorization: str | None) -> Caller:
        """Return the caller that sends `Bearer <key>`; without keys, all callers are one. Counts the request.

        Parameters
        ----------
        authorization
            The request's Authorization header.

        Returns
        -------
        Caller
            The caller, with the sites that the key gives access to.

        Raises
        ------
        Unauthorized
            If the header is missing, has another scheme, or holds no valid key.
        RateLimited
            If the key is used more often than it may be.
        """
        entry = self.entry_of(authorization)
        if entry is None:
            return Caller(bucket=self._limit("", self._default_rate))
        bucket = self._limit(entry.sha256, entry.rate_per_second or self._default_rate)
        return Caller(entry.sha256, frozenset(entry.sites) if entry.sites is not None else None, bucket)

    def entry_of(self, authorization: str | None) -> KeyEntry | None:
        """Return the entry of the key that a caller sends (errors: `Unauthorized`); None if requests need no key."""
        if not self:
            return None
        self._reload()
        if authorization is None:
            raise Unauthorized("This service needs an API key.", hint="Send it as 'Authorization: Bearer <key>'.")
        scheme, _, key = authorization.strip().partition(" ")
        key = key.strip()
        entry = _matching_entry(key_digest(key), self._entries)
        # A file holds digests, which do not show that a key is too short; it is seen when the key is sent.
        if scheme.lower() != "bearer" or entry is None or key_problem(key):
            raise Unauthorized("The API key is not valid.", hint="Send a valid key as 'Authorization: Bearer <key>'.")
        return entry

    def _limit(self, identity: str, rate: float) -> TokenBucket | None:
        if not rate:
            return None
        with self._lock:
            bucket = self._buckets.get(identity)
            if bucket is None:
                burst = max(1, round(BURST_FACTOR * rate))
                bucket = self._buckets[identity] = TokenBucket(rate, burst, self._clock)
            wait = bucket.take()
        if wait:
            raise RateLimited(
                f"More than {rate:g} requests a second.",
                hint="Send it again later, or request a higher rate.",
                retry_after_s=wait,
            )
        return bucket

    def _reload(self) -> None:
        """Read the key file again if it changed."""
        now = self._clock()
        if self._file is None or now - self._checked < CHECK_SECONDS:
            return
        with self._lock:
            self._checked = now
            try:
                if (stamp := _stamp(self._file)) != self._file_stamp:
                    self._entries = (*self._from_settings, *self._read(self._file))
                    self._file_stamp = stamp
                    self._buckets.clear()
                    log.info("reloaded %d API keys", len(self._entries))
            except InvalidInput as error:
                log.error("the API keys stay as they were: %s", error)  # noqa: TRY400 - expected

    def _read(self, path: Path) -> tuple[KeyEntry, ...]:
        stamp = _stamp(path)
        try:
            entries = KeyFile.read(path).keys
        except (OSError, ValueError, ValidationError) as error:
            raise InvalidInput(
                f"The key file {path} cannot be read: {error}", hint="'waygraph keys' writes such files."
            ) from error
        self._file_stamp = stamp
        return tuple(entries)


def _stamp(path: Path) -> tuple[int, int]:
    """Return what changes when a file is written or replaced: modification time and inode."""
    try:
        status = path.stat()
    except OSError as error:
        raise InvalidInput(f"The key file {path} cannot be read: {error}", hint="'waygraph keys' writes it.") from error
    return status.st_mtime_ns, status.st_ino


def _matching_entry(digest: str, entries: Iterable[KeyEntry]) -> KeyEntry | None:
    """Return the entry with this digest. All are compared, so that the time taken reveals nothing about the digests."""
    match = None
    for entry in entries:
        if hmac.compare_digest(digest, entry.sha256):
            match = entry
    return match
