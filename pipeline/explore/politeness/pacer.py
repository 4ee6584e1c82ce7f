"""Schedule of requests by host. One `Pacer` per process serves all sites that are explored in it.

    async with slots.lease() as lease:              # one work item: a slot is held while the browser works
        async with pacer.turn(host, lease) as turn: # the slot is released during the wait
            await page.goto(url, wait_until="commit")
            turn.end()                              # the answer has begun: the delay counts from here

The delay counts from the moment an answer begins to the moment the next request is sent. The server therefore never
sees a smaller gap, whatever the network does in between.

Delays are switched off by `explore.delay_seconds: 0`. Cool-downs that a host asks for are always obeyed.
"""

from __future__ import annotations

import asyncio
import ipaddress
import logging
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from http import HTTPStatus
from urllib.parse import urlsplit

from waygraph.core.retry_after import parse_retry_after
from waygraph.pipeline.browser.egress import non_public_reason
from waygraph.pipeline.explore.politeness.slots import SlotLease

log = logging.getLogger(__name__)

#: Delay of public hosts if the settings name none, in seconds.
PUBLIC_DELAY_S = 1.0
#: First cool-down of a host that refuses without naming a time, in seconds. It doubles each time.
FIRST_COOL_DOWN_S = 5.0
#: Longest cool-down that is waited for, in seconds. A host that asks for more is given up.
MAX_COOL_DOWN_S = 300.0
#: Cool-downs in a row, without a good answer in between, after which a host is given up.
MAX_COOL_DOWNS_IN_A_ROW = 5
#: Longest time that a redirect waits for a delay, in seconds.
MAX_REDIRECT_S = 5.0
#: Share of the latest in-page actions that made requests, above which in-page actions wait for the delay.
_LIKELY_REQUEST_SHARE = 0.5
#: HTTP statuses that ask to come again later.
_COME_AGAIN = frozenset({HTTPStatus.TOO_MANY_REQUESTS, HTTPStatus.SERVICE_UNAVAILABLE})
#: Doublings of the first cool-down at most.
_MAX_DOUBLINGS = 10


def default_delay(host: str) -> float:
    """Return the delay of a host if the settings name none, in seconds; 0 for loopback and private addresses.

    >>> default_delay("127.0.0.1:8000"), default_delay("localhost"), default_delay("example.org")
    (0.0, 0.0, 1.0)
    """
    name = urlsplit(f"//{host}").hostname or ""
    try:
        is_private = non_public_reason(str(ipaddress.ip_address(name))) is not None
    except ValueError:
        is_private = name == "localhost" or name.endswith(".localhost")
    return 0.0 if is_private else PUBLIC_DELAY_S


@dataclass(slots=True)
class _HostPace:
    """Schedule of one host. Times are those of the event loop.

    Attributes
    ----------
    min_delay
        Least delay, from the settings or robots.txt.
    delay
        Present delay. It grows with slow answers and errors, and is never below `min_delay`.
    free_at
        Time from which on a request may be sent.
    cooling_until
        End of the present cool-down.
    cool_downs
        Cool-downs in a row, without a good answer in between.
    blocked_urls
        URLs that showed a block page, without a good answer in between.
    given_up_until
        Time until which the host asked not to be visited, if it is more than `MAX_COOL_DOWN_S` away.
    cooled
        Set when a cool-down begins.
    requesting
        Share of the latest in-page actions that made requests, exponentially weighted.
    turn
        Held by the navigation whose turn it is.
    waiting
        Number of navigations that wait for `turn`.
    counters
        Counters since they were last taken.
    """

    min_delay: float
    delay: float
    free_at: float = float("-inf")
    cooling_until: float = float("-inf")
    cool_downs: int = 0
    blocked_urls: set[str] = field(default_factory=set)
    given_up_until: float = float("-inf")
    cooled: asyncio.Event = field(default_factory=asyncio.Event)
    requesting: float = 0.0
    turn: asyncio.Lock = field(default_factory=asyncio.Lock)
    waiting: int = 0
    counters: Counter[str] = field(default_factory=Counter)


class NavigationTurn:
    """Permission for one navigation.

    Parameters
    ----------
    end
        Called once, when the turn ends.
    """

    def __init__(self, end: Callable[[], None]) -> None:
        self._end: Callable[[], None] | None = end

    def end(self) -> None:
        """End the turn: the request has arrived (its answer has begun, or it failed), and the delay counts from now on.

        Leaving the `turn` block does the same if this was not called.
        """
        end, self._end = self._end, None
        if end is not None:
            end()


class Pacer:
    """Delays and cool-downs of all hosts. For one event loop.

    Hosts are named by their site key (`waygraph.core.urls.site_key`): with the port if it is not the default.

    Parameters
    ----------
    delay_seconds
        Least time between two navigations of a host, in seconds; None: `default_delay`.
    max_delay_seconds
        Longest delay that a Crawl-delay or slow answers lead to, in seconds.
    wall_clock
        Returns the seconds since the epoch, to read dates in `Retry-After`.
    """

    def __init__(
        self,
        *,
        delay_seconds: float | None = None,
        max_delay_seconds: float = 30.0,
        wall_clock: Callable[[], float] = time.time,
    ) -> None:
        self._delay = delay_seconds
        self._max_delay = max_delay_seconds
        self._wall_clock = wall_clock
        self._hosts: dict[str, _HostPace] = {}

    # ---- waiting -------------------------------------------------------------------------------------------------

    @asynccontextmanager
    async def turn(self, host: str, lease: SlotLease | None = None) -> AsyncIterator[NavigationTurn]:
        """Wait until a navigation may go to `host`; first come, first served. The next one waits until this one ends.

        Parameters
        ----------
        host
            Key of the host.
        lease
            Slot that is released during the wait and acquired again afterwards.

        Yields
        ------
        NavigationTurn
            To be ended as soon as the answer begins.
        """
        pace = self._host_pace(host)
        began = _now()
        # Without a delay, navigations may overlap: only cool-downs are waited for.
        is_exclusive = pace.delay > 0
        if is_exclusive:
            await self._wait_for_turn(pace, lease)
        turn = NavigationTurn(lambda: self._end_turn(pace, is_exclusive=is_exclusive))
        try:
            await self._wait_until_free(pace, lease)
            pace.counters["pace/turns"] += 1
            pace.counters["pace/waited_ms"] += round((_now() - began) * 1000)
            yield turn
        finally:
            turn.end()

    async def wait_for_redirect(self, host: str, lease: SlotLease | None = None) -> None:
        """Wait before a redirect to `host` is followed, at most `MAX_REDIRECT_S` except during a cool-down.

        It takes no turn, since the navigation may hold the turn of this very host. After a longer wait the browser
        would give the navigation up.

        Parameters
        ----------
        host
            Key of the host.
        lease
            Slot that is released during the wait and acquired again afterwards.
        """
        pace = self._host_pace(host)
        with suppress(TimeoutError):
            async with asyncio.timeout(None if pace.cooling_until > _now() else MAX_REDIRECT_S):
                await self._wait_until_free(pace, lease)
        self.note_request(host)

    async def wait_for_action(self, host: str, lease: SlotLease | None = None) -> None:
        """Wait before an in-page action, if the latest ones made requests. It takes no turn, see `note_action`."""
        pace = self._host_pace(host)
        if pace.requesting > _LIKELY_REQUEST_SHARE:
            await self._wait_until_free(pace, lease)

    def note_action(self, host: str, *, requested: bool) -> None:
        """Record whether an in-page action made requests to `host`; if so, the delay counts from now on."""
        pace = self._host_pace(host)
        pace.requesting += (float(requested) - pace.requesting) / 2
        if requested:
            self.note_request(host)

    def note_request(self, host: str) -> None:
        """Record a request that was sent to `host` without a turn: the delay counts from now on."""
        pace = self._host_pace(host)
        pace.free_at = max(pace.free_at, _now() + pace.delay)

    # ---- what hosts ask for --------------------------------------------------------------------------------------

    def delay(self, host: str) -> float:
        """Return the present delay between two navigations of `host`, in seconds."""
        return self._host_pace(host).delay

    def set_crawl_delay(self, host: str, seconds: float | None) -> None:
        """Apply a Crawl-delay of robots.txt. It never shortens the delay of the settings, and is capped."""
        if seconds is None:
            return
        pace = self._host_pace(host)
        if seconds > self._max_delay:
            log.warning("pace/capped %s asks for %g s between requests and gets %g", host, seconds, self._max_delay)
            seconds = self._max_delay
        pace.min_delay = max(pace.min_delay, seconds)
        pace.delay = max(pace.delay, pace.min_delay)
        # It also applies to the request that was just sent.
        if pace.free_at != float("-inf"):
            pace.free_at = max(pace.free_at, _now() + pace.delay)

    def record_answer(self, host: str, *, seconds: float, status: int, retry_after: str = "") -> bool:
        """Adapt the delay to an answer to a navigation.

        Parameters
        ----------
        host
            Key of the host.
        seconds
            Time from the request until its answer began, or until it was given up, in seconds.
        status
            HTTP status; 0 for none.
        retry_after
            The `Retry-After` header; empty for none.

        Returns
        -------
        bool
            Whether the host asks to come again later.
        """
        pace = self._host_pace(host)
        if status in _COME_AGAIN:
            self.cool_down(host, f"HTTP {status}", parse_retry_after(retry_after, self._wall_clock()))
            return True
        if not status or status >= HTTPStatus.INTERNAL_SERVER_ERROR:
            self._adapt_delay(pace, 2 * pace.delay)
            return False
        pace.cool_downs = 0
        pace.blocked_urls.clear()
        # One request at a time, on average: the delay follows the latency, upwards at once, downwards by halves.
        self._adapt_delay(pace, max(seconds, (pace.delay + seconds) / 2))
        return False

    def record_block_page(self, host: str, url: str, reason: str, *, status: int, retry_after: str = "") -> None:
        """Start a cool-down of a host that showed a block page.

        A URL that is blocked again counts once, since a site may block single pages only. HTTP 429 and 503 are about
        the host and count each time.

        Parameters
        ----------
        host
            Key of the host.
        url
            URL that was requested.
        reason
            Why, for the log.
        status
            HTTP status.
        retry_after
            The `Retry-After` header; empty for none.
        """
        pace = self._host_pace(host)
        counts = url not in pace.blocked_urls or status in _COME_AGAIN
        pace.blocked_urls.add(url)
        self.cool_down(host, reason, parse_retry_after(retry_after, self._wall_clock()), counts=counts)

    def cool_down(self, host: str, reason: str, seconds: float | None = None, *, counts: bool = True) -> float:
        """Send no requests to `host` for some time.

        Parameters
        ----------
        host
            Key of the host.
        reason
            Why, for the log.
        seconds
            Time that the host asks for, in seconds. None: `FIRST_COOL_DOWN_S`, doubled with each cool-down in a row.
        counts
            Whether it is one more cool-down in a row.

        Returns
        -------
        float
            Seconds until a request may be sent.
        """
        pace = self._host_pace(host)
        wanted = 0.0 if seconds is None else seconds
        # During a cool-down, the answer is to a request that was sent before it.
        if _now() >= pace.cooling_until:
            if seconds is None or pace.cool_downs:
                wanted = max(wanted, FIRST_COOL_DOWN_S * 2 ** min(pace.cool_downs, _MAX_DOUBLINGS))
            pace.cool_downs += counts
            pace.counters["pace/cool_downs"] += 1
            log.warning("pace/cool_down %s: %s, no requests for %.0f s", host, reason, wanted)
        if seconds is not None and seconds > MAX_COOL_DOWN_S:
            pace.given_up_until = max(pace.given_up_until, _now() + seconds)
        pace.cooled.set()
        wait = min(max(wanted, pace.delay), MAX_COOL_DOWN_S)
        pace.cooling_until = max(pace.cooling_until, _now() + wait)
        pace.free_at = max(pace.free_at, pace.cooling_until)
        return pace.free_at - _now()

    def has_given_up(self, host: str) -> bool:
        """Return whether `host` is no longer visited: it asked for too long a cool-down, or for too many in a row."""
        pace = self._host_pace(host)
        return pace.cool_downs > MAX_COOL_DOWNS_IN_A_ROW or pace.given_up_until > _now()

    async def wait_until_given_up(self, host: str) -> None:
        """Wait until `host` is given up."""
        pace = self._host_pace(host)
        while not self.has_given_up(host):
            pace.cooled.clear()
            await pace.cooled.wait()

    def take_counters(self, host: str) -> Mapping[str, int]:
        """Return the counters of `host` since the last call, see docs/counters.md."""
        pace = self._host_pace(host)
        taken, pace.counters = pace.counters, Counter()
        return taken

    # ---- internals -----------------------------------------------------------------------------------------------

    def _host_pace(self, host: str) -> _HostPace:
        if host not in self._hosts:
            delay = default_delay(host) if self._delay is None else self._delay
            self._hosts[host] = _HostPace(delay, delay)
        return self._hosts[host]

    def _adapt_delay(self, pace: _HostPace, delay: float) -> None:
        # A host without a delay (loopback) gets no adaptive one: its slow answers are due to this machine's load.
        if pace.min_delay > 0:
            pace.delay = max(pace.min_delay, min(delay, self._max_delay))

    async def _wait_for_turn(self, pace: _HostPace, lease: SlotLease | None) -> None:
        # A lock that was just released to a waiting navigation is not locked until that one runs.
        if lease is not None and (pace.turn.locked() or pace.waiting):
            lease.release()
        pace.waiting += 1
        try:
            await pace.turn.acquire()
        finally:
            pace.waiting -= 1

    async def _wait_until_free(self, pace: _HostPace, lease: SlotLease | None) -> None:
        """Wait for the delay, then for the slot if it was released. The delay may grow during either wait."""
        while True:
            while (wait := pace.free_at - _now()) > 0:
                if lease is not None:
                    lease.release()
                await asyncio.sleep(wait)
            if lease is None or lease.held:
                return
            await lease.acquire()

    def _end_turn(self, pace: _HostPace, *, is_exclusive: bool) -> None:
        pace.free_at = max(pace.free_at, _now() + pace.delay)
        if is_exclusive:
            pace.turn.release()


def _now() -> float:
    return asyncio.get_running_loop().time()
