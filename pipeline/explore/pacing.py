"""When may the next navigation go to a host? One `Pacer` per process, for all sites that are explored in it.

    async with slots.lease() as lease:              # one work item: a slot is held while the browser works
        async with pacer.turn(host, lease) as turn: # gives the slot back while it waits
            await page.goto(url, wait_until="commit")
            turn.over()                             # the answer has begun: the delay counts from here

The delay counts from the moment that an answer begins to the moment that the next request is made, so that the server
never sees a smaller gap, whatever the network does in between.
"""

from __future__ import annotations

import asyncio
import ipaddress
import logging
import time
from collections import Counter, deque
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC
from email.utils import parsedate_to_datetime
from urllib.parse import urlsplit

from pipeline.explore.slots import Lease, Slots

__all__ = ["Lease", "Pacer", "Slots", "Turn", "default_delay", "parse_retry_after"]

log = logging.getLogger(__name__)

#: Of public hosts, when the settings name no delay.
PUBLIC_DELAY_S = 1.0
#: A host that says "too much" without saying how long is left alone so long, then twice as long each time.
FIRST_COOL_DOWN_S = 5.0
#: No host is waited for longer. One that asks for more is turning us away.
MAX_COOL_DOWN_S = 300.0
#: A host that had to be left alone more often in a row, without a good answer in between, is turning us away.
MOST_COOL_DOWNS = 5
#: A redirect is held back no longer for the sake of a delay.
MAX_REDIRECT_S = 5.0
#: In-page actions are waited with when more than this share of the latest ones made requests.
_LIKELY = 0.5
_TOO_MANY_REQUESTS, _UNAVAILABLE, _SERVER_ERROR = 429, 503, 500


def default_delay(host: str) -> float:
    """Seconds between two navigations of `host` when the settings name none: none for loopback and private addresses.

    >>> default_delay("127.0.0.1:8000"), default_delay("localhost"), default_delay("example.org")
    (0.0, 0.0, 1.0)
    """
    name = urlsplit(f"//{host}").hostname or ""
    try:
        near = ipaddress.ip_address(name).is_private
    except ValueError:
        near = name == "localhost" or name.endswith(".localhost")
    return 0.0 if near else PUBLIC_DELAY_S


def parse_retry_after(value: str, now: float) -> float | None:
    """Seconds that a `Retry-After` header asks for (RFC 9110, 10.2.3); `now` in seconds since the epoch.

    >>> parse_retry_after("120", 0.0), parse_retry_after("Thu, 01 Jan 1970 00:01:00 GMT", 50.0)
    (120.0, 10.0)
    """
    text = value.strip()
    if text.isascii() and text.isdigit():
        return float(text[:9])
    try:
        date = parsedate_to_datetime(text)
    except (ValueError, IndexError, OverflowError):
        return None
    return max(0.0, date.replace(tzinfo=date.tzinfo or UTC).timestamp() - now)


@dataclass(slots=True)
class _Host:
    """What is known of one host; times are those of the event loop."""

    floor: float
    """The least delay: ours, or what its robots.txt asks for."""
    delay: float
    """The delay now: grows with slow answers and errors, never below the floor."""
    free_at: float = float("-inf")
    cooling_until: float = float("-inf")
    cool_downs: int = 0
    """In a row, without a good answer in between."""
    told_until: float = float("-inf")
    """Until then it asked to be left alone, when that is longer than it is waited for."""
    cooled: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when it has to be left alone."""
    requesting: float = 0.0
    """Share of the latest in-page actions that made requests."""
    taken: bool = False
    waiting: deque[asyncio.Future[None]] = field(default_factory=deque)
    counters: Counter[str] = field(default_factory=Counter)


class Turn:
    """The right to make one navigation."""

    def __init__(self, end: Callable[[], None]) -> None:
        self._end: Callable[[], None] | None = end

    def over(self) -> None:
        """The request has certainly arrived (its answer has begun, or it failed): the delay counts from now on.

        Leaving the `turn` block does the same, when this was not called.
        """
        end, self._end = self._end, None
        if end is not None:
            end()


class Pacer:
    """Keeps navigations of each host apart. Use it in one event loop.

    Hosts are named as by `index.graph.site_key`: with the port when it is not the default.

    Parameters
    ----------
    delay_seconds : least time between two navigations of a host; None: `default_delay`.
    max_delay_seconds : longest delay that a Crawl-delay or slow answers lead to.
    wall_clock : seconds since the epoch, to read dates in `Retry-After`.

    """

    def __init__(
        self,
        *,
        delay_seconds: float | None = None,
        max_delay_seconds: float = 30.0,
        wall_clock: Callable[[], float] = time.time,
    ) -> None:
        self._delay = delay_seconds
        self._longest = max_delay_seconds
        self._wall_clock = wall_clock
        self._hosts: dict[str, _Host] = {}

    # ---- waiting -------------------------------------------------------------------------------------------------

    @asynccontextmanager
    async def turn(self, host: str, lease: Lease | None = None) -> AsyncIterator[Turn]:
        """Wait until a navigation may go to `host`; first come, first served. The next one waits until this is over.

        A held `lease` is given back while there is something to wait for, and taken anew afterwards.
        """
        known = self._of(host)
        began = _now()
        # Without a delay there is nothing to keep apart: only cooling down is waited for.
        alone = known.delay > 0
        if alone:
            await self._enter(known, lease)
        turn = Turn(lambda: self._leave(known, alone=alone))
        try:
            await self._until_free(known, lease)
            known.counters["pace/turns"] += 1
            known.counters["pace/waited_ms"] += round((_now() - began) * 1000)
            yield turn
        finally:
            turn.over()

    async def redirected(self, host: str, lease: Lease | None = None) -> None:
        """Wait before a redirect to `host` is followed. It takes no turn: that of this very host may be held for it.

        Delays are not waited for to their end when they are long, since the navigation would be given up meanwhile.
        """
        known = self._of(host)
        with suppress(TimeoutError):
            async with asyncio.timeout(None if known.cooling_until > _now() else MAX_REDIRECT_S):
                await self._until_free(known, lease)
        self.used(host)

    async def before_action(self, host: str, lease: Lease | None = None) -> None:
        """Wait before an in-page action, if the latest ones made requests. It takes no turn: see `after_action`."""
        known = self._of(host)
        if known.requesting > _LIKELY:
            await self._until_free(known, lease)

    def after_action(self, host: str, *, requested: bool) -> None:
        """Tell whether an in-page action made requests to `host`; if so, the next navigation waits for the delay."""
        known = self._of(host)
        known.requesting += (float(requested) - known.requesting) / 2
        if requested:
            self.used(host)

    def used(self, host: str) -> None:
        """A request went to `host` without a turn: the next navigation waits for the delay from now on."""
        known = self._of(host)
        known.free_at = max(known.free_at, _now() + known.delay)

    # ---- what hosts ask for --------------------------------------------------------------------------------------

    def delay(self, host: str) -> float:
        """Seconds between two navigations of `host` as of now."""
        return self._of(host).delay

    def ask_delay(self, host: str, seconds: float | None) -> None:
        """Honour a Crawl-delay from robots.txt: it never shortens ours, and is capped."""
        if seconds is None:
            return
        known = self._of(host)
        if seconds > self._longest:
            log.warning("pace/capped %s asks for %g s between requests and gets %g", host, seconds, self._longest)
            seconds = self._longest
        known.floor = max(known.floor, seconds)
        known.delay = max(known.delay, known.floor)
        # It holds for what was requested just now, too.
        if known.free_at != float("-inf"):
            known.free_at = max(known.free_at, _now() + known.delay)

    def answered(self, host: str, *, seconds: float, status: int, retry_after: str = "") -> bool:
        """Learn from an answer to a navigation; returns whether the host asks to come again later.

        Parameters
        ----------
        seconds : from the request until its answer began, or until it was given up.
        status : HTTP status, 0 for none.
        retry_after : that header.

        """
        known = self._of(host)
        if status in {_TOO_MANY_REQUESTS, _UNAVAILABLE}:
            self.cool_down(host, f"HTTP {status}", parse_retry_after(retry_after, self._wall_clock()))
            return True
        if not status or status >= _SERVER_ERROR:
            self._slow_down(known, 2 * known.delay)
            return False
        known.cool_downs = 0
        # One request at a time, on average: the delay follows the latency, upwards at once, downwards by halves.
        self._slow_down(known, max(seconds, (known.delay + seconds) / 2))
        return False

    def cool_down(self, host: str, reason: str, seconds: float | None = None) -> float:
        """Leave `host` alone for so long, or for longer each time; returns the seconds until it is free again."""
        known = self._of(host)
        asked = 0.0 if seconds is None else seconds
        if _now() >= known.cooling_until:  # else this answer is to a request from before
            if seconds is None or known.cool_downs:
                asked = max(asked, FIRST_COOL_DOWN_S * 2 ** min(known.cool_downs, 10))
            known.cool_downs += 1
            known.counters["pace/cool_downs"] += 1
            log.warning("pace/cool_down %s: %s, to be left alone for %.0f s", host, reason, asked)
        if seconds is not None and seconds > MAX_COOL_DOWN_S:
            known.told_until = max(known.told_until, _now() + seconds)
        known.cooled.set()
        wait = min(max(asked, known.delay), MAX_COOL_DOWN_S)
        known.cooling_until = max(known.cooling_until, _now() + wait)
        known.free_at = max(known.free_at, known.cooling_until)
        return known.free_at - _now()

    def is_turning_away(self, host: str) -> bool:
        """Whether `host` asked for a longer rest than it is given, or had to be left alone again and again."""
        known = self._of(host)
        return known.cool_downs > MOST_COOL_DOWNS or known.told_until > _now()

    async def turns_away(self, host: str) -> None:
        """Wait until `host` is turning us away."""
        known = self._of(host)
        while not self.is_turning_away(host):
            known.cooled.clear()
            await known.cooled.wait()

    def take_counters(self, host: str) -> Mapping[str, int]:
        """Counters of `host` since the last call, see docs/counters.md."""
        known = self._of(host)
        taken, known.counters = known.counters, Counter()
        return taken

    # ---- inside --------------------------------------------------------------------------------------------------

    def _of(self, host: str) -> _Host:
        if host not in self._hosts:
            floor = default_delay(host) if self._delay is None else self._delay
            self._hosts[host] = _Host(floor, floor)
        return self._hosts[host]

    def _slow_down(self, known: _Host, wanted: float) -> None:
        # A host that needs no delay (loopback) needs no adaptive one: there, slow answers tell of our own load.
        if known.floor > 0:
            known.delay = max(known.floor, min(wanted, self._longest))

    async def _enter(self, known: _Host, lease: Lease | None) -> None:
        if not known.taken:
            known.taken = True
            return
        if lease is not None:
            lease.give_back()
        place: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        known.waiting.append(place)
        try:
            await place
        except asyncio.CancelledError:
            if place.cancelled():
                known.waiting.remove(place)
            else:
                self._hand_on(known)  # it was our turn already
            raise

    async def _until_free(self, known: _Host, lease: Lease | None) -> None:
        """Wait for the time and then, if it was given back, for the slot; meanwhile the time may have moved."""
        while True:
            while (wait := known.free_at - _now()) > 0:
                if lease is not None:
                    lease.give_back()
                await asyncio.sleep(wait)
            if lease is None or lease.held:
                return
            await lease.take()

    def _leave(self, known: _Host, *, alone: bool) -> None:
        known.free_at = max(known.free_at, _now() + known.delay)
        if alone:
            self._hand_on(known)

    def _hand_on(self, known: _Host) -> None:
        while known.waiting:
            place = known.waiting.popleft()
            if not place.done():
                place.set_result(None)
                return
        known.taken = False


def _now() -> float:
    return asyncio.get_running_loop().time()
