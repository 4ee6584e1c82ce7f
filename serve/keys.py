"""Who may ask, for which sites, how often? API keys from the settings, and from a file that may change at any time."""

from __future__ import annotations

import hmac
import logging
import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from pydantic import ValidationError

from waygraph.errors import InvalidInput, NotFound, RateLimited, Unauthorized
from waygraph.key_file import KeyEntry, KeyFile, digest_of
from waygraph.settings import ServeSettings

log = logging.getLogger("ray.serve.waygraph")

#: How often the key file is looked at.
CHECK_SECONDS = 1.0


@dataclass(frozen=True, slots=True)
class Caller:
    """Who asks.

    Attributes
    ----------
    name : of the key; empty when the service needs none.
    sites : keys of the sites that may be asked for; nothing: all.
    """

    name: str = ""
    sites: frozenset[str] | None = None

    def may_see(self, site: str) -> bool:
        """Whether a site may be asked for."""
        return self.sites is None or site in self.sites

    def check(self, site: str) -> None:
        """Refuse a site that may not be asked for, in the words for one that is not mapped (NotFound)."""
        if not self.may_see(site):
            raise NotFound(f"'{site}' is not mapped.", hint="'waygraph sites' lists what is.")


#: Who asks a service without keys.
ANYBODY = Caller()


class Bucket:
    """Lets `rate` requests a second through, and after a pause up to `burst` at once (a token bucket)."""

    def __init__(self, rate: float, burst: int, clock: Callable[[], float]) -> None:
        self._rate, self._burst, self._clock = rate, burst, clock
        self._left, self._at = float(burst), clock()

    def take(self) -> float:
        """Take a token; returns 0, or how many seconds until there is one."""
        now = self._clock()
        self._left = min(self._burst, self._left + (now - self._at) * self._rate)
        self._at = now
        if self._left >= 1:
            self._left -= 1
            return 0.0
        return (1 - self._left) / self._rate


class ApiKeys:
    """The keys that callers may use. Only digests are kept, and they are compared in constant time. Thread-safe.

    Parameters
    ----------
    settings : `api_keys` may ask for everything; `keys_file` names more, each with its sites and rate.

    Raises
    ------
    InvalidInput
        When the key file cannot be read. One that breaks later leaves the keys as they were, and is logged.
    """

    def __init__(self, settings: ServeSettings, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._default_rate = settings.rate_per_second
        fixed = [KeyEntry(name=f"key-{i + 1}", sha256=digest_of(key)) for i, key in enumerate(settings.api_keys)]
        self._fixed = tuple(fixed)
        self._file = settings.keys_file
        self._lock = threading.Lock()
        self._buckets: dict[str, Bucket] = {}
        self._stamp: tuple[int, int] | None = None
        self._checked = clock()
        self._entries = self._fixed
        if self._file is not None:
            self._entries = (*self._fixed, *self._read(self._file))

    def __bool__(self) -> bool:
        """Whether a key is needed at all. A file without keys lets nobody in."""
        return bool(self._fixed) or self._file is not None

    def check(self, authorization: str | None) -> Caller:
        """Who sends `Bearer <key>`; anybody when there are no keys.

        Raises
        ------
        Unauthorized
            When the header is missing, of another scheme, or names no known key.
        RateLimited
            When the key was used more often than it may be.
        """
        if not self:
            self._limit("", self._default_rate)
            return ANYBODY
        self._refresh()
        if authorization is None:
            raise Unauthorized("This service needs an API key.", hint="Send it as 'Authorization: Bearer <key>'.")
        scheme, _, key = authorization.strip().partition(" ")
        entry = _known(digest_of(key.strip()), self._entries)
        if scheme.lower() != "bearer" or entry is None:
            raise Unauthorized("The API key is not valid.", hint="Send a known key as 'Authorization: Bearer <key>'.")
        self._limit(entry.name, entry.rate_per_second or self._default_rate)
        return Caller(entry.name, frozenset(entry.sites) if entry.sites is not None else None)

    def _limit(self, name: str, rate: float) -> None:
        if not rate:
            return
        with self._lock:
            bucket = self._buckets.get(name)
            if bucket is None:
                bucket = self._buckets[name] = Bucket(rate, max(1, round(2 * rate)), self._clock)
            wait = bucket.take()
        if wait:
            raise RateLimited(
                f"More than {rate:g} requests a second.", hint="Ask again later, or for a higher rate.", after_s=wait
            )

    def _refresh(self) -> None:
        """Read the file anew when it changed."""
        now = self._clock()
        if self._file is None or now - self._checked < CHECK_SECONDS:
            return
        with self._lock:
            self._checked = now
            try:
                if (stamp := _stamp(self._file)) != self._stamp:
                    self._entries = (*self._fixed, *self._read(self._file))
                    self._stamp = stamp
                    self._buckets.clear()
                    log.info("read %d API keys anew", len(self._entries))
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
        self._stamp = stamp
        return tuple(entries)


def _stamp(path: Path) -> tuple[int, int]:
    try:
        status = path.stat()
    except OSError as error:
        raise InvalidInput(f"The key file {path} cannot be read: {error}", hint="'waygraph keys' writes it.") from error
    return status.st_mtime_ns, status.st_ino


def _known(digest: str, entries: Iterable[KeyEntry]) -> KeyEntry | None:
    """The entry with this digest. Every one is compared, so that the time taken does not tell which was close."""
    found = None
    for entry in entries:
        if hmac.compare_digest(digest, entry.sha256):
            found = entry
    return found
