"""What does a browser send through the proxy? Whole requests, and messages over WebSockets."""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import dataclass
from urllib.parse import urlsplit

from websockets.exceptions import PayloadTooBig, ProtocolError
from websockets.frames import DATA_OPCODES, Frame, Opcode
from websockets.streams import StreamReader

from pipeline.browser.guard.reads import MAX_BODY_CHARS, Sent

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
_MOST_MESSAGE_BYTES = 16 << 20


class Malformed(Exception):
    """What was received is no request that a proxy could understand."""


@dataclass(frozen=True, slots=True)
class Request:
    """One request as it was received: `target` is absolute, or a path inside of a tunnel."""

    method: bytes
    target: bytes
    headers: tuple[tuple[bytes, bytes], ...]
    body: bytes = b""

    def header(self, name: bytes) -> bytes:
        """First value of a header (name in lower case), empty when there is none."""
        return next((value for key, value in self.headers if key.lower() == name), b"")

    @property
    def opens_websocket(self) -> bool:
        """Whether it asks to go on with the WebSocket protocol."""
        return self.header(b"upgrade").lower() == b"websocket"

    def destination(self) -> tuple[str, int]:
        """Host and port that it is meant for.

        Raises
        ------
        Malformed
            When it names none.
        """
        try:
            target = self.target.decode("ascii")
            parts = urlsplit(f"//{target}" if self.method == b"CONNECT" else target)
            host, port = parts.hostname, parts.port
        except ValueError as error:
            raise Malformed(f"{self.target!r:.100}: {error}") from error
        if self.method == b"CONNECT":
            if not host or not port:
                raise Malformed(f"{self.target!r:.100} is no host and port")
            return host, port
        if parts.scheme != "http" or not host:
            raise Malformed(f"{self.target!r:.100} is no http URL")
        return host, port or 80

    def path(self) -> bytes:
        """What follows the host in `target`."""
        if self.target.startswith(b"/"):
            return self.target
        parts = urlsplit(self.target)
        return (parts.path or b"/") + (b"?" + parts.query if parts.query else b"")

    def head(self, *, absolute: str = "", extra: bytes = b"") -> bytes:
        """Request line and headers as they are sent on, for the origin, or with an `absolute` target for a proxy."""
        target = absolute.encode("ascii") if absolute else self.path()
        lines = [b"%b %b HTTP/1.1\r\n" % (self.method, target)]
        for key, value in self.headers:
            name = key.lower()
            # Compressed messages could not be judged one by one.
            if name not in _HOP_BY_HOP and not (name == b"sec-websocket-extensions" and self.opens_websocket):
                lines.append(b"%b: %b\r\n" % (key, value))
        if self.body or self.header(b"content-length") or self.header(b"transfer-encoding"):
            lines.append(b"Content-Length: %d\r\n" % len(self.body))
        return b"".join(lines) + extra + b"\r\n"

    def sent(self, url: str) -> Sent:
        """The same for the guard."""
        body: str | None = None
        if len(self.body) <= MAX_BODY_CHARS:
            try:
                body = self.body.decode()
            except UnicodeDecodeError:
                body = None
        headers = {key.decode("latin-1").lower(): value.decode("latin-1") for key, value in self.headers}
        return Sent(self.method.decode("latin-1"), url, headers, body)


class MessageFilter:
    """Takes the bytes that a browser sends over a WebSocket, returns those that may pass: whole messages.

    Parameters
    ----------
    may_pass : asked for every message, with its text, or nothing for a binary one.
    """

    def __init__(self, may_pass: Callable[[str | None], bool]) -> None:
        self._may_pass = may_pass
        self._reader = StreamReader()
        self._parser = self._parse()
        next(self._parser)
        self._passed: list[bytes] = []

    def feed(self, received: bytes) -> bytes:
        """Judge what is complete by now.

        Raises
        ------
        Malformed
            When this is no WebSocket traffic, or a message is larger than 16 MiB.
        """
        self._reader.feed_data(received)
        try:
            next(self._parser)
        except (ProtocolError, PayloadTooBig, UnicodeDecodeError) as error:
            raise Malformed(str(error)) from error
        passed = b"".join(self._passed)
        self._passed.clear()
        return passed

    def _parse(self) -> Generator[None, None, None]:
        fragments: list[Frame] = []
        while True:
            frame = yield from Frame.parse(self._reader.read_exact, mask=True, max_size=_MOST_MESSAGE_BYTES)
            if frame.opcode not in DATA_OPCODES:
                self._passed.append(frame.serialize(mask=True))
                continue
            fragments.append(frame)
            if sum(len(fragment.data) for fragment in fragments) > _MOST_MESSAGE_BYTES:
                raise ProtocolError("a message of more than 16 MiB")
            if frame.fin:
                content = b"".join(fragment.data for fragment in fragments)
                text = content.decode() if fragments[0].opcode is Opcode.TEXT else None
                if self._may_pass(text):
                    self._passed += [fragment.serialize(mask=True) for fragment in fragments]
                fragments.clear()
