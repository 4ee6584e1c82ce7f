"""A body arrives unchanged, forwarded or not, and a disconnect is passed on."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

from hypothesis import given
from hypothesis import strategies as st
from starlette.requests import Request
from starlette.types import Message, Scope

from waygraph.serve.http import request_bodies as bodies
from waygraph.serve.http.request_bodies import BodyForwardingMiddleware, receive_forwarded


class Wire:
    """A client that sends pieces of a body, and disconnects when the test allows it."""

    def __init__(self, pieces: Iterable[bytes], *, held: bool = False) -> None:
        sent = list(pieces) or [b""]
        self._messages: list[Message] = [
            {"type": "http.request", "body": piece, "more_body": number < len(sent)}
            for number, piece in enumerate(sent, start=1)
        ]
        self.let = asyncio.Event()
        if not held:
            self.let.set()
        self.hung_up = asyncio.Event()

    async def receive(self) -> Message:
        if self._messages:
            await self.let.wait()
            return self._messages.pop(0)
        await self.hung_up.wait()
        return {"type": "http.disconnect"}


class Replica:
    """Reads a body and then waits for the end of the request, as the application behind the middleware does."""

    def __init__(self) -> None:
        self.body = b""
        self.was_carried = False
        self.last: Message = {}

    async def __call__(self, scope: Scope, receive, _send) -> None:
        took = receive_forwarded(scope, receive)
        self.was_carried = took is not receive
        self.body = await Request(scope, took).body()
        self.last = await took()


def head(**headers: str) -> Scope:
    return {
        "type": "http",
        "method": "POST",
        "headers": [(name.replace("_", "-").encode(), value.encode()) for name, value in headers.items()],
    }


async def pass_on(wire: Wire, scope: Scope) -> Replica:
    replica = Replica()
    passing = asyncio.create_task(BodyForwardingMiddleware(replica)(scope, wire.receive, None))
    wire.hung_up.set()
    await passing
    return replica


@given(st.lists(st.binary(min_size=1, max_size=50), max_size=5), st.booleans())
def test_a_body_arrives_unchanged_in_any_number_of_pieces(pieces: list[bytes], announced: bool) -> None:
    whole = b"".join(pieces)

    async def sent() -> Replica:
        headers = {"content_length": str(len(whole))} if announced else {"transfer_encoding": "chunked"}
        return await pass_on(Wire(pieces), head(**headers))

    replica = asyncio.run(sent())
    assert replica.body == whole
    assert replica.was_carried == announced
    assert replica.last == {"type": "http.disconnect"}


async def test_a_long_body_is_not_forwarded():
    whole = b"x" * (bodies.MAX_BYTES + 1)
    replica = await pass_on(Wire([whole]), head(content_length=str(len(whole))))
    assert (replica.body, replica.was_carried) == (whole, False)


async def test_a_late_body_is_not_forwarded_and_arrives_whole(monkeypatch):
    monkeypatch.setattr(bodies, "WAIT_SECONDS", 0.0)
    wire = Wire([b"late", b"r"], held=True)
    asyncio.get_running_loop().call_later(0.05, wire.let.set)
    replica = await pass_on(wire, head(content_length="5"))
    assert (replica.body, replica.was_carried) == (b"later", False)
    assert replica.last == {"type": "http.disconnect"}


async def test_a_disconnect_in_the_middle_of_a_body_is_passed_on():
    wire = Wire([b"ha"])
    wire._messages[0]["more_body"] = True
    wire.hung_up.set()
    seen: list[Message] = []

    async def app(scope, receive, send):
        seen.extend([await receive(), await receive()])
        assert receive_forwarded(scope, receive) is receive

    await BodyForwardingMiddleware(app)(head(content_length="4"), wire.receive, None)
    assert [message["type"] for message in seen] == ["http.request", "http.disconnect"]


async def test_a_request_that_is_cancelled_while_its_body_is_read_leaves_no_task():
    wire = Wire([b"never"], held=True)
    passing = asyncio.create_task(BodyForwardingMiddleware(Replica())(head(content_length="5"), wire.receive, None))
    await asyncio.sleep(0)
    passing.cancel()
    await asyncio.wait({passing})
    await asyncio.sleep(0)
    assert asyncio.all_tasks() == {asyncio.current_task()}
