"""A body arrives unchanged, forwarded or not, and a disconnect is passed on."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st
from starlette.requests import ClientDisconnect, Request
from starlette.types import Message

from waygraph.serve.http.request_bodies import (
    MAX_FORWARDED_BYTES,
    read_body,
    receive_forwarded,
    with_body,
    without_body,
)


class Wire:
    """A client that sends pieces of a body, and disconnects when the test allows it."""

    def __init__(self, pieces: Iterable[bytes]) -> None:
        sent = list(pieces) or [b""]
        self._messages: list[Message] = [
            {"type": "http.request", "body": piece, "more_body": number < len(sent)}
            for number, piece in enumerate(sent, start=1)
        ]
        self.hung_up = asyncio.Event()

    async def receive(self) -> Message:
        if self._messages:
            return self._messages.pop(0)
        await self.hung_up.wait()
        return {"type": "http.disconnect"}


@given(st.lists(st.binary(min_size=1, max_size=50), max_size=5))
def test_a_body_arrives_unchanged_in_any_number_of_pieces(pieces: list[bytes]) -> None:
    async def passed_on() -> tuple[bytes, Message]:
        wire = Wire(pieces)
        scope, receive = with_body({"type": "http"}, wire.receive, await read_body(wire.receive))
        wire.hung_up.set()
        received = receive_forwarded(scope, receive)
        return await Request({**scope, "method": "POST"}, received).body(), await received()

    assert asyncio.run(passed_on()) == (b"".join(pieces), {"type": "http.disconnect"})


@pytest.mark.parametrize(("length", "is_forwarded"), [(MAX_FORWARDED_BYTES, True), (MAX_FORWARDED_BYTES + 1, False)])
async def test_a_short_body_is_in_the_scope(length: int, is_forwarded: bool) -> None:
    wire = Wire([b"x" * length])
    scope, receive = with_body({"type": "http"}, wire.receive, await read_body(wire.receive))
    assert (receive == wire.receive) == is_forwarded == ("extensions" in scope)
    assert await Request({**scope, "method": "POST"}, receive_forwarded(scope, receive)).body() == b"x" * length


async def test_a_body_that_ends_early_is_not_used() -> None:
    wire = Wire([b"ha", b"lf"])
    wire._messages.pop()
    wire.hung_up.set()
    with pytest.raises(ClientDisconnect):
        await read_body(wire.receive)


async def test_a_body_is_dropped_for_a_request_that_has_none() -> None:
    wire = Wire([b"some", b"thing"])
    receive = without_body(wire.receive)
    assert await receive() == {"type": "http.request", "body": b"", "more_body": False}
    wire.hung_up.set()
    assert await receive() == {"type": "http.disconnect"}
