"""Agents that search and navigate all the time, and what became of each of their requests."""

from __future__ import annotations

import http.client
import itertools
import json
import threading
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self

from bench.day.sites import ChangingSite
from waygraph.client.requests import NAVIGATE, MapRequest
from waygraph.client.service import ServiceMap
from waygraph.core.errors import WaygraphError
from waygraph.core.schemas import NavigateRequest
from waygraph.core.urls import site_key

ANSWERED, REFUSED, UNREACHABLE = "answered", "refused with Retry-After", "unreachable"
_PAUSE_S, _TIMEOUT_S = 0.3, 60.0


@dataclass(frozen=True)
class Outcome:
    """What became of a request, at a time of `time.monotonic`."""

    at: float
    took_s: float
    kind: str


class Agents:
    """Agents in threads, for the time of a block.

    `raw` agents send each request once, and count what they get. The others use waygraph's own client, which repeats
    requests: what they count is what an agent sees.

    Parameters
    ----------
    url
        The service.
    key
        Its API key.
    sites
        The mapped sites.
    raw, clients
        How many agents of each kind.
    """

    def __init__(self, url: str, key: str, sites: Sequence[ChangingSite], *, raw: int = 3, clients: int = 1) -> None:
        self.outcomes: list[Outcome] = []
        self.client_outcomes: list[Outcome] = []
        self.regressions: list[str] = []
        """Answers from an older version than one that was answered before the request was sent."""
        self._host, _, port = url.removeprefix("http://").partition(":")
        self._port, self._url, self._key = int(port), url, key
        self._questions = [(site_key(site.url), question) for site in sites for question in site.questions]
        self._newest: Counter[str] = Counter()
        self._end = threading.Event()
        self._threads = [threading.Thread(target=self._ask_raw, args=(number,)) for number in range(raw)]
        self._threads += [threading.Thread(target=self._ask_as_client, args=(number,)) for number in range(clients)]

    def __enter__(self) -> Self:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._end.set()
        for thread in self._threads:
            thread.join()

    def _ask_raw(self, agent: int) -> None:
        for number in itertools.count():
            site, question = self._questions[(number * 3 + agent) % len(self._questions)]
            if number % 2:
                question += f" {number}"  # no cache answers it
            is_search = number % 3 == 0
            path = f"/v1/sites/{site}/search" if is_search else "/v1/navigate"
            body = {"query": question} if is_search else {"query": question, "site": site}
            newest, began = self._newest[site], time.monotonic()
            kind, version, pause = self._send(path, body)
            self.outcomes.append(Outcome(began, time.monotonic() - began, kind))
            if 0 < version < newest:
                self.regressions.append(f"{site}: {version} after {newest}")
            self._newest[site] = max(self._newest[site], version)
            if self._end.wait(pause):
                return

    def _send(self, path: str, body: dict[str, str]) -> tuple[str, int, float]:
        """Send a request; return what became of it, the version of the map, and the pause before the next one."""
        connection = http.client.HTTPConnection(self._host, self._port, timeout=_TIMEOUT_S)
        try:
            connection.connect()
        except OSError:
            return UNREACHABLE, 0, _PAUSE_S
        try:
            headers = {"authorization": f"Bearer {self._key}", "content-type": "application/json"}
            connection.request("POST", path, json.dumps(body), headers)
            answer = connection.getresponse()
            content = answer.read()
        except (OSError, http.client.HTTPException) as error:
            return f"broken: {type(error).__name__}", 0, _PAUSE_S
        finally:
            connection.close()
        return _classified(answer, content)

    def _ask_as_client(self, agent: int) -> None:
        with ExitStack() as stack:
            source = ServiceMap(self._url, self._key)
            stack.callback(source.close)
            for number in itertools.count():
                site, question = self._questions[(number * 5 + agent) % len(self._questions)]
                began, kind = time.monotonic(), ANSWERED
                try:
                    source.send(MapRequest(NAVIGATE, body=NavigateRequest(site=site, query=question)))
                except WaygraphError as error:
                    kind = error.slug
                self.client_outcomes.append(Outcome(began, time.monotonic() - began, kind))
                if self._end.wait(_PAUSE_S):
                    return


def _classified(answer: http.client.HTTPResponse, content: bytes) -> tuple[str, int, float]:
    if answer.status == 200:
        found: dict[str, Any] = json.loads(content)
        has_result = bool(found["hits"]) if "hits" in found else found["path"] is not None
        return ANSWERED if has_result else "answered with nothing", int(found["version"]), _PAUSE_S
    if answer.status == 503:
        wait = answer.headers.get("Retry-After")
        return (REFUSED, 0, float(wait)) if wait else ("refused without Retry-After", 0, _PAUSE_S)
    return f"status {answer.status}", 0, _PAUSE_S


def counts(outcomes: Sequence[Outcome]) -> dict[str, int]:
    """Count outcomes by kind, the most frequent first."""
    return dict(Counter(each.kind for each in outcomes).most_common())


def longest_gap(outcomes: Sequence[Outcome], since: float, until: float) -> float:
    """Return the longest time without an answer that began after `since`, in seconds.

    Parameters
    ----------
    outcomes
        What became of requests.
    since, until
        The time that is looked at, as of `time.monotonic`.

    Returns
    -------
    float
        Seconds between the ends of two answers, or between the last one and `until`.

    Examples
    --------
    >>> answered = [Outcome(at, 0.5, ANSWERED) for at in (1.0, 2.0, 5.0)]
    >>> longest_gap(answered, 1.0, 7.0)
    3.0
    """
    ends = sorted(each.at + each.took_s for each in outcomes if each.kind == ANSWERED)
    before = [end for end in ends if end <= since]
    points = [max(before, default=since), *(end for end in ends if since < end < until), until]
    return round(max(later - sooner for sooner, later in itertools.pairwise(points)), 1)
