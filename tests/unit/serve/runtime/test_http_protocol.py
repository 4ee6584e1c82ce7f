"""The server of the proxies limits heads, connections that wait, and clients that do not read."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
import uvicorn
from starlette.requests import Request
from starlette.responses import PlainTextResponse

from waygraph.serve.runtime import http_protocol
from waygraph.serve.runtime.http_protocol import MAX_HEAD_BYTES, LimitedHttpProtocol

LONG = 4_000_000


async def application(scope, receive, send) -> None:
    """Answers with the length of the body, or at once with a long text."""
    if scope["path"] == "/long":
        await PlainTextResponse("x" * LONG)(scope, receive, send)
    elif scope["path"] == "/at-once":
        await PlainTextResponse("at once")(scope, receive, send)
    else:
        body = await Request(scope, receive).body()
        await PlainTextResponse(f"{scope['method']} {len(body)}")(scope, receive, send)


class Connection:
    """A client that sends what the test wants, byte by byte."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer

    async def send(self, data: bytes) -> None:
        self.writer.write(data)
        await self.writer.drain()

    async def answer(self) -> tuple[int, bytes]:
        """Return status and body of the next answer."""
        head = await self.reader.readuntil(b"\r\n\r\n")
        (length,) = [line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:")]
        return int(head.split()[1]), await self.reader.readexactly(int(length.split()[1]))

    async def is_closed(self) -> bool:
        try:
            return await self.reader.read() == b""
        except ConnectionError:
            return True


@asynccontextmanager
async def connected(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Connection]:
    http_protocol_before = http_protocol.auto.AutoHTTPProtocol
    monkeypatch.setattr(http_protocol.auto, "AutoHTTPProtocol", http_protocol_before)  # restores it
    http_protocol.install()
    config = uvicorn.Config(application, log_level="critical", lifespan="off", ws="none", log_config=None)
    config.load()
    assert config.http_protocol_class is LimitedHttpProtocol
    state = uvicorn.server.ServerState()
    loop = asyncio.get_running_loop()
    server = await loop.create_server(
        lambda: config.http_protocol_class(config=config, server_state=state, app_state={}), "127.0.0.1", 0
    )
    reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname()[:2], limit=2 * LONG)
    try:
        async with server:
            yield Connection(reader, writer)
    finally:
        writer.close()


async def test_requests_are_answered_as_before(monkeypatch) -> None:
    async with connected(monkeypatch) as client:
        await client.send(b"POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 5\r\n\r\nhello")
        assert await client.answer() == (200, b"POST 5")
        chunks = b"".join(b"1\r\nx\r\n" for _ in range(5_000))
        await client.send(b"POST / HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n" + chunks + b"0\r\n\r\n")
        assert await client.answer() == (200, b"POST 5000")
        await client.send(b"GET / HTTP/1.1\r\nhost: x\r\ncookie: " + b"c" * (MAX_HEAD_BYTES - 100) + b"\r\n\r\n")
        assert await client.answer() == (200, b"GET 0")
        await client.send(b"GET /long HTTP/1.1\r\nhost: x\r\n\r\n")
        assert len((await client.answer())[1]) == LONG
        await client.send(b"GET / HTTP/1.1\r\nhost: x\r\n\r\n" * 16)
        assert [await client.answer() for _ in range(16)] == [(200, b"GET 0")] * 16
        await client.send(b"GET / HTTP/1.1\r\nhost: x\r\nconnection: upgrade\r\nupgrade: websocket\r\n\r\n")
        assert await client.answer() == (200, b"GET 0")


TOO_LARGE = {
    "one header": (b"GET / HTTP/1.1\r\nhost: x\r\na: ", b"a" * 1_000, b""),
    "many headers": (b"GET / HTTP/1.1\r\nhost: x\r\n", b"a: b\r\n" * 100, b"\r\n"),
    "an address": (b"GET /", b"a" * 1_000, b" HTTP/1.1\r\n\r\n"),
    "a chunk's extension": (b"POST / HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n1;", b"a" * 1_000, b""),
    "trailers": (
        b"POST / HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n1\r\nx\r\n0\r\n",
        b"a: b\r\n" * 100,
        b"\r\n",
    ),
    "tiny chunks": (b"POST / HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n", b"1\r\nx\r\n" * 100, b""),
}


@pytest.mark.parametrize(("begin", "more", "end"), TOO_LARGE.values(), ids=TOO_LARGE)
@pytest.mark.parametrize("pieces", [1, 300])
async def test_a_head_that_does_not_end_is_refused(monkeypatch, begin, more, end, pieces) -> None:
    async with connected(monkeypatch) as client:
        await client.send(begin)
        whole = more * 300
        size = len(whole) // pieces
        try:
            for start in range(0, len(whole), size):
                await client.send(whole[start : start + size])
            await client.send(end)
            status, body = await client.answer()
        except (ConnectionError, asyncio.IncompleteReadError):
            return  # closed before everything was sent
        assert (status, json.loads(body)["status"]) == (431, 431)
        assert await client.is_closed()


async def test_more_requests_than_may_wait_are_refused(monkeypatch) -> None:
    async with connected(monkeypatch) as client:
        await client.send(b"POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 1\r\n\r\n")
        await client.send(b"x" + b"GET / HTTP/1.1\r\nhost: x\r\n\r\n" * 40)
        answers = (await client.reader.read()).split(b"HTTP/1.1 ")[1:]
        assert [answer[:3] for answer in answers].count(b"400") == 1
        assert len(answers) < 40


async def test_what_is_not_http_is_refused(monkeypatch) -> None:
    async with connected(monkeypatch) as client:
        await client.send(b"hello\r\n\r\n")
        assert (await client.answer())[0] == 400
        assert await client.is_closed()


@pytest.mark.parametrize(
    ("sent", "status"), [(b"", None), (b"GET / HT", 408), (b"GET / HTTP/1.1\r\nhost: x\r\n", 408), (b"\r\n", None)]
)
async def test_a_head_that_is_late_is_refused(monkeypatch, sent: bytes, status: int | None) -> None:
    monkeypatch.setattr(http_protocol, "HEAD_SECONDS", 0.05)
    async with connected(monkeypatch) as client:
        await client.send(sent)
        if status is not None:
            assert (await client.answer())[0] == status
        assert await client.is_closed()


async def test_a_head_after_an_answer_may_be_late_neither(monkeypatch) -> None:
    async with connected(monkeypatch) as client:
        await client.send(b"GET / HTTP/1.1\r\nhost: x\r\n\r\n")
        assert await client.answer() == (200, b"GET 0")
        monkeypatch.setattr(http_protocol, "HEAD_SECONDS", 0.05)
        await client.send(b"GET / HT")
        assert (await client.answer())[0] == 408
        assert await client.is_closed()


async def test_the_rest_of_a_body_that_nobody_reads_has_a_time(monkeypatch) -> None:
    async with connected(monkeypatch) as client:
        await client.send(b"POST /at-once HTTP/1.1\r\nhost: x\r\ncontent-length: 10\r\n\r\nx")
        assert await client.answer() == (200, b"at once")
        await client.send(b"x" * 9)
        await client.send(b"GET / HTTP/1.1\r\nhost: x\r\n\r\n")
        assert await client.answer() == (200, b"GET 0")
        monkeypatch.setattr(http_protocol, "HEAD_SECONDS", 0.05)
        await client.send(b"POST /at-once HTTP/1.1\r\nhost: x\r\ncontent-length: 10\r\n\r\nx")
        assert await client.answer() == (200, b"at once")
        assert await client.is_closed()


async def test_a_client_that_does_not_read_is_dropped(monkeypatch) -> None:
    monkeypatch.setattr(http_protocol, "READ_SECONDS", 0.05)
    lost = asyncio.Event()
    before = LimitedHttpProtocol.connection_lost

    def connection_lost(self, exc) -> None:
        before(self, exc)
        lost.set()

    monkeypatch.setattr(LimitedHttpProtocol, "connection_lost", connection_lost)
    async with connected(monkeypatch) as client:
        client.writer.transport.pause_reading()
        for _ in range(8):
            client.writer.write(b"GET /long HTTP/1.1\r\nhost: x\r\n\r\n")
        await lost.wait()
