"""HTTP/1.1 with limits, for the HTTP server of the service: time and size of heads, and a least speed of readers.

uvicorn limits neither how long a head may take nor how large it may be, and waits for ever for a client that does not
read. Ray Serve passes no such options on, and behind it there may be no other proxy that has limits.
"""

from __future__ import annotations

import asyncio
from typing import Any

from starlette.responses import JSONResponse
from uvicorn.protocols.http import auto
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol

from waygraph.serve.http.problems import plain_problem

#: Longest time for the head of a request, and for the rest of a body that nobody reads any more, in seconds.
HEAD_SECONDS = 10.0
#: Most bytes of a request that are not its body: the head, and the frames and trailers of chunks.
MAX_HEAD_BYTES = 65_536
#: Bytes that a header counts besides its name and value: it takes memory, however short it is.
_HEADER_BYTES = 32
#: Most requests of a connection that wait for the answer to the one before.
MAX_PIPELINED = 16
#: In this many seconds a client must read at least so many bytes of what waits for it.
READ_SECONDS, MIN_READ_BYTES = 15.0, 65_536


class _Refused(Exception):
    """Ends parsing; uvicorn then calls `send_400_response`."""


class LimitedHttpProtocol(HttpToolsProtocol):
    """One connection of a client.

    Parameters
    ----------
    *args
        Those of uvicorn.
    **kwargs
        Those of uvicorn.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:  # noqa: ANN401 - they are uvicorn's
        super().__init__(*args, **kwargs)
        self._deadline: asyncio.TimerHandle | None = None
        self._reader_check: asyncio.TimerHandle | None = None
        #: Bytes of the current request that are not its body, less those of its body: chunks may be short.
        self._overhead = 0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override] # as uvicorn declares it
        """Begin to wait for a head."""
        super().connection_made(transport)
        self._set_deadline()

    def connection_lost(self, exc: Exception | None) -> None:
        """End all waiting."""
        self._clear_deadline()
        self._stop_checking()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Parse what arrived."""
        self._overhead += len(data)
        super().data_received(data)
        if self.transport.is_closing():
            return
        if self._overhead > MAX_HEAD_BYTES:
            self.send_400_response("The head is too large.")
        elif self._deadline is None and (self.cycle is None or self.cycle.response_complete):
            self._set_deadline()

    def on_headers_complete(self) -> None:
        """Start to answer."""
        head = len(self.url) + sum(len(name) + len(value) + _HEADER_BYTES for name, value in self.headers)
        if head > MAX_HEAD_BYTES:
            self._overhead = head
            raise _Refused
        if len(self.pipeline) >= MAX_PIPELINED:
            raise _Refused
        self._clear_deadline()
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        """Take a part of a body."""
        self._overhead -= 2 * len(body)
        super().on_body(body)

    def on_response_complete(self) -> None:
        """Wait for the next request, or for the rest of this one."""
        super().on_response_complete()
        if self.cycle.response_complete and self.cycle.more_body:
            self._set_deadline()

    def on_message_complete(self) -> None:
        """End a request."""
        super().on_message_complete()
        self._overhead = 0
        if self.cycle.response_complete:
            self._clear_deadline()
            self.cycle.more_body = False

    def send_400_response(self, msg: str) -> None:
        """Refuse what is not HTTP, or is too large, and close the connection."""
        if self._overhead > MAX_HEAD_BYTES:
            self._refuse(plain_problem(431, f"The head of a request may have {MAX_HEAD_BYTES} bytes."))
        else:
            self._refuse(plain_problem(400, msg))

    def pause_writing(self) -> None:
        """Note that the client reads more slowly than the answer arrives."""
        super().pause_writing()
        if self._reader_check is None:
            self._check_reader(self.transport.get_write_buffer_size() + MIN_READ_BYTES)

    def resume_writing(self) -> None:
        """Note that the client has read."""
        super().resume_writing()
        self._stop_checking()

    def timeout_keep_alive_handler(self) -> None:
        """Close a connection without requests, also if the client does not read the last answer."""
        self._close()

    def _should_upgrade(self) -> bool:
        return False  # there are no web sockets here

    def _set_deadline(self) -> None:
        if self._deadline is None:
            self._deadline = self.loop.call_later(HEAD_SECONDS, self._miss_deadline)

    def _clear_deadline(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _miss_deadline(self) -> None:
        self._deadline = None
        if self.scope is not None and (self.cycle is None or self.cycle.scope is not self.scope):
            self._refuse(plain_problem(408, f"The head did not arrive within {HEAD_SECONDS:g} s."))
        self._close()

    def _check_reader(self, waiting_before: int) -> None:
        waiting = self.transport.get_write_buffer_size()
        if waiting_before - waiting < min(MIN_READ_BYTES, waiting):
            self.transport.abort()
            return
        self._reader_check = self.loop.call_later(READ_SECONDS, self._check_reader, waiting)

    def _stop_checking(self) -> None:
        if self._reader_check is not None:
            self._reader_check.cancel()
            self._reader_check = None

    def _refuse(self, answer: JSONResponse) -> None:
        """Answer what did not become a request, and close the connection."""
        if self.transport.is_closing():
            return
        head = [STATUS_LINE[answer.status_code], b"connection: close\r\n"]
        head += [b"%s: %s\r\n" % header for header in answer.raw_headers]
        self.transport.write(b"".join([*head, b"\r\n", bytes(answer.body)]))
        self.transport.close()

    def _close(self) -> None:
        """Close the connection; what the client has not read by now is dropped."""
        if self.transport.get_write_buffer_size():
            self.transport.abort()
        else:
            self.transport.close()


def install() -> None:
    """Make servers of this process that are started later limit their clients."""
    # uvicorn looks up its default protocol here, and Ray Serve has no option to choose another.
    auto.AutoHTTPProtocol = LimitedHttpProtocol
