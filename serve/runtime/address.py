"""Reservation of the address and port that the service binds."""

from __future__ import annotations

import errno
import ipaddress
import os
import socket
from typing import Any

from waygraph.core.errors import ServiceError
from waygraph.core.settings import ServeSettings


def reserve(settings: ServeSettings) -> socket.socket:
    """Check that the service may and can bind its address, and reserve the port as long as the socket is open.

    The proxy of Ray Serve binds the same port next to this socket, which never listens: both set SO_REUSEPORT.

    Parameters
    ----------
    settings
        Host, port and API keys.

    Returns
    -------
    socket.socket
        The bound socket, which the caller closes.

    Raises
    ------
    ServiceError
        If the address is not this machine's, the port is in use, or the address is not loopback and there is no API
        key.
    """
    try:
        family, _, _, _, address = socket.getaddrinfo(
            settings.host, settings.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
    except OSError as error:
        raise ServiceError(
            f"'{settings.host}' is not an address of this machine ({error}).",
            hint="Use --host 127.0.0.1 or --host 0.0.0.0.",
        ) from error
    if not (settings.api_keys or settings.keys_file) and not ipaddress.ip_address(address[0]).is_loopback:
        raise ServiceError(
            f"Refusing to bind {settings.host} without an API key: all machines that reach it could read every map.",
            hint="Make one with 'waygraph keys add' and set WAYGRAPH_SERVE__KEYS_FILE, or bind --host 127.0.0.1.",
        )
    try:
        return _bind(family, address)
    except OSError as error:
        raise ServiceError(
            _bind_problem(settings, error), hint="Choose another with --port; 0 takes any free one."
        ) from error


def _bind(family: int, address: tuple[Any, ...]) -> socket.socket:
    """Bind the address exclusively, then allow the proxy to bind it too."""
    reserved = socket.socket(family, socket.SOCK_STREAM)
    try:
        try:
            reserved.bind(address)
        except OSError as error:
            # Old connections of a service that just ended (TIME_WAIT) do not matter, a listening one does.
            if error.errno != errno.EADDRINUSE or _is_listening(family, address):
                raise
            reserved.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
            reserved.bind(address)
        reserved.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    except OSError:
        reserved.close()
        raise
    return reserved


def _is_listening(family: int, address: tuple[Any, ...]) -> bool:
    with socket.socket(family, socket.SOCK_STREAM) as probe:
        probe.settimeout(1)
        # Connecting to the unspecified address reaches this machine.
        return probe.connect_ex(address) == 0


def _bind_problem(settings: ServeSettings, error: OSError) -> str:
    if error.errno == errno.EADDRINUSE:
        return f"Port {settings.port} of {settings.host} is in use."
    reason = os.strerror(error.errno) if error.errno else str(error)
    return f"Port {settings.port} of {settings.host} cannot be bound: {reason}."


def local_url(reserved: socket.socket) -> str:
    """Return the URL at which this machine reaches the reserved address."""
    host, port = reserved.getsockname()[:2]
    address = ipaddress.ip_address(host)
    if address.is_unspecified:
        address = ipaddress.ip_address("127.0.0.1" if address.version == 4 else "::1")
    return f"http://{address}:{port}" if address.version == 4 else f"http://[{address}]:{port}"
