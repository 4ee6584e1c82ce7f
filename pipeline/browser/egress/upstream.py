"""Connections through the user's own proxy: HTTP (with or without a password) or SOCKS5."""

from __future__ import annotations

import base64
import socket
from dataclasses import dataclass
from urllib.parse import unquote, urlsplit

from python_socks import ProxyError, ProxyTimeoutError, ProxyType
from python_socks.async_.asyncio import Proxy

from waygraph.core.errors import InvalidInput

_DEFAULT_PORTS = {"http": 8080, "socks5": 1080}
_TYPES = {"http": ProxyType.HTTP, "socks5": ProxyType.SOCKS5}


@dataclass(frozen=True, slots=True)
class UpstreamProxy:
    """Address and credentials of the user's proxy; `repr` shows no password."""

    scheme: str
    host: str
    port: int
    user: str = ""
    password: str = ""

    @classmethod
    def parse(cls, text: str) -> UpstreamProxy | None:
        """Parse the address of a proxy.

        Parameters
        ----------
        text
            `http://[user:password@]host:port` or `socks5://[user:password@]host:port`, or an empty text.

        Returns
        -------
        UpstreamProxy or None
            The proxy; None for an empty text.

        Raises
        ------
        InvalidInput
            If the text is anything else.
        """
        if not text:
            return None
        hint = "Use http://[user:password@]host:port or socks5://[user:password@]host:port."
        try:
            parts = urlsplit(text if "://" in text else f"http://{text}")
            scheme = {"socks5h": "socks5"}.get(parts.scheme.lower(), parts.scheme.lower())
            host, port = parts.hostname, parts.port
        except ValueError as error:
            raise InvalidInput(f"The proxy address is malformed: {error}.", hint=hint) from error
        if scheme not in _DEFAULT_PORTS:
            raise InvalidInput(f"Proxies with the scheme '{parts.scheme}' are not supported.", hint=hint)
        if not host or parts.path not in {"", "/"} or parts.query:
            raise InvalidInput("The proxy address names no host, or has a path or query.", hint=hint)
        user, password = unquote(parts.username or ""), unquote(parts.password or "")
        return cls(scheme, host, port or _DEFAULT_PORTS[scheme], user, password)

    def __repr__(self) -> str:
        return f"UpstreamProxy({self.scheme}://{self.host}:{self.port})"

    @property
    def authorization(self) -> bytes:
        """Header line for requests that go to this proxy itself; empty without a user."""
        if not self.user:
            return b""
        credentials = base64.b64encode(f"{self.user}:{self.password}".encode())
        return b"Proxy-Authorization: Basic " + credentials + b"\r\n"

    async def tunnel(self, host: str, port: int, timeout_s: float) -> socket.socket:
        """Return a socket that is connected to `host` through the proxy, which resolves the name.

        Parameters
        ----------
        host
            Host name or IP address of the destination.
        port
            Port of the destination.
        timeout_s
            Timeout in seconds.

        Returns
        -------
        socket
            The connected socket.

        Raises
        ------
        OSError
            If the connection fails.
        """
        proxy = Proxy(
            _TYPES[self.scheme],
            self.host,
            self.port,
            username=self.user or None,
            password=self.password or None,
            rdns=True,
        )
        try:
            connected: socket.socket = await proxy.connect(dest_host=host, dest_port=port, timeout=timeout_s)
        except ProxyTimeoutError as error:
            raise TimeoutError(str(error)) from error
        except ProxyError as error:
            raise ConnectionError(str(error)) from error
        return connected
