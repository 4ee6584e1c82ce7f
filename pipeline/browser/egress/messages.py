"""Requests and WebSocket messages that a browser sends through the egress proxy."""

from __future__ import annotations

import re
from collections.abc import Callable, Generator
from dataclasses import dataclass
from urllib.parse import urlsplit

from websockets.exceptions import PayloadTooBig, ProtocolError
from websockets.frames import DATA_OPCODES, Frame, Opcode
from websockets.streams import StreamReader

from waygraph.pipeline.browser.guard.outgoing import MAX_BODY_CHARS, OutgoingRequest

_HOP_BY_HOP = frozenset(
    {
        b"proxy-connection",
        b"proxy-authorization",
        b"keep-alive",
        b"te",
        b"trailer",
        b"transfer-encoding",
        b"content-length",
    }
)
_MAX_MESSAGE_BYTES = 16 << 20
_PATH = re.compile(rb"[/?].*", re.DOTALL)


class MalformedTraffic(Exception):
    """Bytes from the browser are not a request or WebSocket traffic that the proxy can parse."""


@dataclass(frozen=True, slots=True)
class ProxiedRequest:
    """A request as the browser sent it: `target` is absolute, or a path inside a tunnel."""

    method: bytes
    target: bytes
    headers: tuple[tuple[bytes, bytes], ...]
    body: bytes = b""

    def header(self, name: bytes) -> bytes:
        """Return the first value of a header (name in lower case), empty if there is none."""
        return next((value for key, value in self.headers if key.lower() == name), b"")

    @property
    def opens_websocket(self) -> bool:
        """Whether the request is an upgrade to the WebSocket protocol."""
        return self.header(b"upgrade").lower() == b"websocket"

    def destination(self) -> tuple[str, int]:
        """Parse the host and port that the request names.

        Returns
        -------
        tuple
            Host and port.

        Raises
        ------
        MalformedTraffic
            If it names none.
        """
        try:
            target = self.target.decode("ascii")
            parts = urlsplit(f"//{target}" if self.method == b"CONNECT" else target)
            host, port = parts.hostname, parts.port
        except ValueError as error:
            raise MalformedTraffic(f"{self.target!r:.100}: {error}") from error
        if self.method == b"CONNECT":
            if not host or not port:
                raise MalformedTraffic(f"{self.target!r:.100} is not a host and port")
            return host, port
        if parts.scheme != "http" or not host:
            raise MalformedTraffic(f"{self.target!r:.100} is not an http URL")
        return host, port or 80

    def path(self) -> bytes:
        """Return the part of `target` after the host, as the browser sent it.

        >>> [ProxiedRequest(b"GET", b"http://x" + rest, ()).path() for rest in (b"/mark?", b"", b"?a", b"//b")]
        [b'/mark?', b'/', b'/?a', b'//b']
        """
        if self.target.startswith(b"/"):
            return self.target
        path = _PATH.search(self.target.partition(b"://")[2])
        return b"/" + path[0].removeprefix(b"/") if path else b"/"

    def head(self, *, absolute: str = "", extra: bytes = b"") -> bytes:
        """Serialise request line and headers for the next hop.

        Parameters
        ----------
        absolute
            Target for a proxy; empty: the path, for the origin server.
        extra
            Header lines to add.

        Returns
        -------
        bytes
            The head with the empty line after it.
        """
        target = absolute.encode("ascii") if absolute else self.path()
        lines = [b"%b %b HTTP/1.1\r\n" % (self.method, target)]
        for key, value in self.headers:
            name = key.lower()
            # Without an extension messages are not compressed, and each can be checked.
            if name not in _HOP_BY_HOP and not (name == b"sec-websocket-extensions" and self.opens_websocket):
                lines.append(b"%b: %b\r\n" % (key, value))
        if self.body or self.header(b"content-length") or self.header(b"transfer-encoding"):
            lines.append(b"Content-Length: %d\r\n" % len(self.body))
        return b"".join(lines) + extra + b"\r\n"

    def to_outgoing(self, url: str) -> OutgoingRequest:
        """Convert the request to the form that the request policy checks."""
        body: str | None = None
        if len(self.body) <= MAX_BODY_CHARS:
            try:
                body = self.body.decode()
            except UnicodeDecodeError:
                body = None
        headers = {key.decode("latin-1").lower(): value.decode("latin-1") for key, value in self.headers}
        return OutgoingRequest(self.method.decode("latin-1"), url, headers, body)


class MessageFilter:
    """Filter of the bytes that a browser sends over a WebSocket; whole messages pass or are dropped.

    Parameters
    ----------
    may_pass
        Called for every message with its text, or with its bytes; True lets it pass.
    """

    def __init__(self, may_pass: Callable[[str | bytes], bool]) -> None:
        self._may_pass = may_pass
        self._reader = StreamReader()
        self._parser = self._parse()
        next(self._parser)
        self._passed: list[bytes] = []

    def feed(self, received: bytes) -> bytes:
        """Take received bytes and return the messages that are complete and may pass.

        Parameters
        ----------
        received
            Bytes from the browser, with parts of frames.

        Returns
        -------
        bytes
            Whole frames for the server.

        Raises
        ------
        MalformedTraffic
            If the bytes are not WebSocket traffic, or a message is larger than 16 MiB.
        """
        self._reader.feed_data(received)
        try:
            next(self._parser)
        except (ProtocolError, PayloadTooBig, UnicodeDecodeError) as error:
            raise MalformedTraffic(str(error)) from error
        passed = b"".join(self._passed)
        self._passed.clear()
        return passed

    def _parse(self) -> Generator[None, None, None]:
        fragments: list[Frame] = []
        while True:
            frame = yield from Frame.parse(self._reader.read_exact, mask=True, max_size=_MAX_MESSAGE_BYTES)
            if frame.opcode not in DATA_OPCODES:
                self._passed.append(frame.serialize(mask=True))
                continue
            fragments.append(frame)
            if sum(len(fragment.data) for fragment in fragments) > _MAX_MESSAGE_BYTES:
                raise ProtocolError("a message of more than 16 MiB")
            if frame.fin:
                content = b"".join(fragment.data for fragment in fragments)
                if self._may_pass(content.decode() if fragments[0].opcode is Opcode.TEXT else content):
                    self._passed += [fragment.serialize(mask=True) for fragment in fragments]
                fragments.clear()
