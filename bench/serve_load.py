"""Load generator of `bench.serve`: a small HTTP client that uses little CPU."""

from __future__ import annotations

import asyncio
import itertools
import json
import math
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from bench.result_files import quantiles


@dataclass(frozen=True)
class Ask:
    """One request."""

    path: str
    body: dict[str, Any] | None = None


@dataclass(frozen=True)
class Reply:
    """What became of it; status 0: the connection broke. Times are those of `time.perf_counter`."""

    ask: Ask
    sent: float
    took: float
    status: int
    headers: dict[str, str] = field(default_factory=dict)
    content: bytes = b""

    @property
    def clean(self) -> bool:
        """Whether a refusal is one that a client can work with."""
        return (
            self.status in {429, 503}
            and self.headers.get("content-type") == "application/problem+json"
            and float(self.headers.get("retry-after", 0)) > 0
        )


class Connection:
    """One kept-alive connection, reopened after it broke."""

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        self._host, self._port = parts.hostname, parts.port
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def send(self, ask: Ask, *, keep: bool = False) -> Reply:
        """Send one request; the content of a good answer is kept only if wanted."""
        content = b"" if ask.body is None else json.dumps(ask.body).encode()
        head = (
            f"{'GET' if ask.body is None else 'POST'} {ask.path} HTTP/1.1\r\nhost: {self._host}\r\n"
            f"content-type: application/json\r\ncontent-length: {len(content)}\r\n\r\n"
        )
        sent = time.perf_counter()
        while True:
            fresh = self._streams is None
            try:
                if self._streams is None:
                    self._streams = await asyncio.open_connection(self._host, self._port)
                reader, writer = self._streams
                writer.write(head.encode() + content)
                status, headers, body = await _read(reader)
            except (OSError, asyncio.IncompleteReadError) as error:
                self.close()
                # A kept connection that the server closed meanwhile: nothing was answered, as HTTP clients know.
                if not fresh and not getattr(error, "partial", b""):
                    continue
                return Reply(ask, sent, time.perf_counter() - sent, 0)
            if headers.get("connection") == "close":
                self.close()
            took = time.perf_counter() - sent
            return Reply(ask, sent, took, status, headers, body if keep or status != 200 else b"")

    def close(self) -> None:
        """Hang up."""
        if self._streams is not None:
            self._streams[1].close()
        self._streams = None


async def _read(reader: asyncio.StreamReader) -> tuple[int, dict[str, str], bytes]:
    lines = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines[1:] if line)}
    if headers.get("transfer-encoding") == "chunked":
        body = b""
        while size := int(await reader.readline(), 16):
            body += (await reader.readexactly(size + 2))[:-2]
        await reader.readline()
    else:
        body = await reader.readexactly(int(headers.get("content-length", 0)))
    return int(lines[0].split()[1]), headers, body


async def closed_loop(
    url: str,
    asks: Iterator[Ask],
    *,
    clients: int,
    calls: int | None = None,
    seconds: float | None = None,
    keep: bool = False,
    during: Callable[[], Any] | None = None,
    rate: float = float("inf"),
) -> list[Reply]:
    """Each client asks again as soon as it has its answer, until so many calls were made or so long has passed.

    `during` is awaited meanwhile; the loop goes on for `seconds` after it. No more than `rate` requests a second are
    sent, whatever the number of clients.
    """
    replies: list[Reply] = []
    numbers = itertools.count()
    began = time.perf_counter()
    until = float("inf") if during is not None or seconds is None else began + seconds

    async def client() -> None:
        connection = Connection(url)
        for number in numbers:
            if time.perf_counter() >= until or (calls is not None and number >= calls):
                break
            await asyncio.sleep(max(0.0, began + number / rate - time.perf_counter()))
            reply = await connection.send(next(asks), keep=keep)
            replies.append(reply)
            if reply.status == 0:
                await asyncio.sleep(0.02)  # no tight loop of refused connections
        connection.close()

    async with asyncio.TaskGroup() as group:
        for _ in range(clients):
            group.create_task(client())
        if during is not None:
            await during()
            until = time.perf_counter() + (seconds or 0)
    return replies


async def open_loop(url: str, asks: Iterator[Ask], *, rate: float, seconds: float) -> list[Reply]:
    """`rate` requests a second, whether the ones before were answered or not, as strangers ask."""
    replies: list[Reply] = []
    free: list[Connection] = []

    async def one() -> None:
        connection = free.pop() if free else Connection(url)
        replies.append(await connection.send(next(asks)))
        free.append(connection)

    began = time.perf_counter()
    async with asyncio.TaskGroup() as group:
        for number in range(int(rate * seconds)):
            await asyncio.sleep(max(0.0, began + number / rate - time.perf_counter()))
            group.create_task(one())
    for connection in free:
        connection.close()
    return replies


def percentiles_ms(replies: Sequence[Reply]) -> tuple[float, float]:
    """Return median and 99th percentile of the response times."""
    p50, p99 = quantiles([reply.took * 1_000 for reply in replies], (0.5, 0.99), 1) or (math.nan, math.nan)
    return p50, p99
