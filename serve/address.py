"""Where may the service bind, and is that place free?"""

from __future__ import annotations

import errno
import ipaddress
import os
import socket
from typing import Any

from waygraph.errors import ServiceError
from waygraph.settings import ServeSettings


def reserve(settings: ServeSettings) -> socket.socket:
    """Check that the service may and can bind, and keep the port: nobody else gets it while the socket is open.

    The proxy of Ray Serve binds the same port beside this socket, which never listens: both set SO_REUSEPORT.

    Raises
    ------
    ServiceError
        When the address is not this machine's, the port is taken, or the address is beyond loopback and there is no
        API key.

    """
    try:
        family, _, _, _, address = socket.getaddrinfo(
            settings.host, settings.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
    except OSError as error:
        raise ServiceError(
            f"'{settings.host}' is no address of this machine ({error}).",
            hint="Use --host 127.0.0.1 or --host 0.0.0.0.",
        ) from error
    if not (settings.api_keys or settings.keys_file) and not ipaddress.ip_address(address[0]).is_loopback:
        raise ServiceError(
            f"Refusing to bind {settings.host} without an API key: whoever reaches the port could read every map.",
            hint="Make one with 'waygraph keys add' and set WAYGRAPH_SERVE__KEYS_FILE, or bind --host 127.0.0.1.",
        )
    try:
        return _bind(family, address)
    except OSError as error:
        raise ServiceError(_why(settings, error), hint="Choose another with --port; 0 takes any free one.") from error


def _bind(family: int, address: tuple[Any, ...]) -> socket.socket:
    """Bind for ourselves alone, then let the proxy in."""
    held = socket.socket(family, socket.SOCK_STREAM)
    try:
        try:
            held.bind(address)
        except OSError as error:
            # Connections of a service that just ended (TIME_WAIT) are no reason to refuse, one that listens is.
            if error.errno != errno.EADDRINUSE or _answers(family, address):
                raise
            held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
            held.bind(address)
        held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    except OSError:
        held.close()
        raise
    return held


def _answers(family: int, address: tuple[Any, ...]) -> bool:
    with socket.socket(family, socket.SOCK_STREAM) as probe:
        probe.settimeout(1)
        # Connecting to the unspecified address reaches this machine.
        return probe.connect_ex(address) == 0


def _why(settings: ServeSettings, error: OSError) -> str:
    if error.errno == errno.EADDRINUSE:
        return f"Port {settings.port} of {settings.host} is in use."
    reason = os.strerror(error.errno) if error.errno else str(error)
    return f"Port {settings.port} of {settings.host} cannot be bound: {reason}."


def url_of(held: socket.socket) -> str:
    """URL under which this machine reaches the reserved address."""
    host, port = held.getsockname()[:2]
    address = ipaddress.ip_address(host)
    if address.is_unspecified:
        address = ipaddress.ip_address("127.0.0.1" if address.version == 4 else "::1")
    return f"http://{address}:{port}" if address.version == 4 else f"http://[{address}]:{port}"
