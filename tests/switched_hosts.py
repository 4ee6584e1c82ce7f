"""Hosts in network namespaces of their own, connected by a switch that routes and filters. Requires root.

Namespaces belong to this process and end with it: threads enter them, and their sockets stay there.
"""

from __future__ import annotations

import ctypes
import errno
import ipaddress
import os
import select
import shutil
import socket
import subprocess
import threading
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Self, TypeVar

_CLONE_NEWNET = 0x40000000
_LIBC = ctypes.CDLL(None, use_errno=True)
_GATEWAY, _GATEWAY6 = "169.254.1.1", "fe80::1"
#: What a sender is told by `reject with icmpx admin-prohibited`.
_REJECTED = (errno.EHOSTUNREACH, errno.EACCES)
#: How long a connection that is neither accepted nor rejected may take, in seconds.
_CAP_S = 30.0
T = TypeVar("T")


def why_not() -> str:
    """Return what this machine lacks for them."""
    missing = [name for name in ("ip", "nft") if shutil.which(name) is None]
    if missing:
        return f"{' and '.join(missing)} not installed (Debian: iproute2, nftables)"
    if os.geteuid() != 0:
        return "network namespaces need root"
    return ""


class _Namespace:
    """A network namespace that lives as long as this object."""

    def __init__(self) -> None:
        self.file = self._in_thread(self._make)

    @staticmethod
    def _make() -> int:
        _check(_LIBC.unshare(_CLONE_NEWNET))
        return os.open(f"/proc/self/task/{threading.get_native_id()}/ns/net", os.O_RDONLY)

    @staticmethod
    def _in_thread(work: Callable[[], T]) -> T:
        results: list[T] = []
        errors: list[BaseException] = []

        def run() -> None:
            try:
                results.append(work())
            except BaseException as error:  # noqa: BLE001 - raised again in the caller's thread
                errors.append(error)

        thread = threading.Thread(target=run)
        thread.start()
        thread.join()
        if errors:
            raise errors[0]
        return results[0]

    def run(self, work: Callable[[], T]) -> T:
        """Call a function inside the namespace."""

        def inside() -> T:
            _check(_LIBC.setns(self.file, _CLONE_NEWNET))
            return work()

        return self._in_thread(inside)

    def command(self, *words: str, given: str | None = None) -> None:
        """Run a command inside the namespace."""

        def work() -> None:
            done = subprocess.run(words, input=given, capture_output=True, text=True, check=False)
            assert done.returncode == 0, f"{words}: {done.stderr}"

        self.run(work)

    def write(self, setting: str, value: str) -> None:
        self.run(lambda: Path("/proc/sys/net", setting).write_text(value))

    def close(self) -> None:
        os.close(self.file)


def _check(result: int) -> None:
    if result:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


class Switch:
    """The switch. A context manager that ends all hosts."""

    def __init__(self) -> None:
        self._namespace = _Namespace()
        self._hosts: list[Host] = []
        self._namespace.write("ipv4/ip_forward", "1")
        self._namespace.write("ipv6/conf/all/forwarding", "1")
        for setting in ("ipv4/icmp_ratelimit", "ipv6/icmp/ratelimit"):  # every rejected packet is answered
            self._namespace.write(setting, "0")
        self._namespace.command("ip", "link", "set", "lo", "up")

    def add(self, addresses: Sequence[str]) -> Host:
        """Connect a host with these addresses."""
        number, space = len(self._hosts), _Namespace()
        port = f"port{number}"
        there = f"/proc/{os.getpid()}/fd/{space.file}"
        self._namespace.command("ip", "link", "add", port, "type", "veth", "peer", "name", "eth0", "netns", there)
        self._namespace.write(f"ipv4/conf/{port}/proxy_arp", "1")
        self._namespace.command("ip", "addr", "add", f"{_GATEWAY}/32", "dev", port)
        self._namespace.command("ip", "addr", "add", f"{_GATEWAY6}/64", "dev", port, "nodad")
        self._namespace.command("ip", "link", "set", port, "up")
        space.command("ip", "link", "set", "lo", "up")
        space.command("ip", "link", "set", "eth0", "up")
        for address in addresses:
            parsed = ipaddress.ip_address(address)
            space.command("ip", "addr", "add", f"{address}/{parsed.max_prefixlen}", "dev", "eth0", *_nodad(parsed))
            self._namespace.command("ip", "route", "add", f"{address}/{parsed.max_prefixlen}", "dev", port)
        space.command("ip", "route", "add", _GATEWAY, "dev", "eth0")
        space.command("ip", "route", "add", "default", "via", _GATEWAY, "dev", "eth0")
        space.command("ip", "-6", "route", "add", "default", "via", _GATEWAY6, "dev", "eth0")
        self._hosts.append(Host(space, tuple(addresses)))
        return self._hosts[-1]

    def filter(self, rules: str) -> None:
        """Replace the packet filter of the switch."""
        self._namespace.command("nft", "-f", "-", given=f"flush ruleset\n{rules}")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for host in self._hosts:
            host.close()
        self._namespace.close()


def _nodad(address: ipaddress.IPv4Address | ipaddress.IPv6Address) -> list[str]:
    return ["nodad"] if address.version == 6 else []


class Host:
    """A host that accepts connections at the ports it opens."""

    def __init__(self, namespace: _Namespace, addresses: tuple[str, ...]) -> None:
        self.addresses = addresses
        self._namespace = namespace
        self._sockets: list[socket.socket] = []

    def open(self, ports: Iterable[int]) -> None:
        """Listen on TCP ports of all addresses; the kernel accepts."""
        for port in ports:
            self._sockets.append(
                self._namespace.run(
                    lambda port=port: socket.create_server(("::", port), family=socket.AF_INET6, dualstack_ipv6=True)
                )
            )

    def open_udp(self, port: int) -> socket.socket:
        """Listen on a UDP port."""

        def work() -> socket.socket:
            opened = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
            opened.bind(("", port))
            opened.settimeout(_CAP_S)
            return opened

        self._sockets.append(self._namespace.run(work))
        return self._sockets[-1]

    def connects(self, address: str, port: int) -> bool:
        """Return whether a connection is accepted; one that is not must be rejected by the filter."""

        def work() -> bool:
            try:
                socket.create_connection((address, port), _CAP_S).close()
            except OSError as error:
                if error.errno not in _REJECTED:
                    raise
                return False
            return True

        return self._namespace.run(work)

    def sends(self, address: str, port: int, receiver: socket.socket) -> bool:
        """Return whether a datagram arrives; one that does not must be rejected by the filter."""

        def work() -> bool:
            with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
                sender.connect((address, port))
                sender.send(b"anybody there?")
                receiver.setblocking(False)
                return _first_event(sender, receiver)

        return self._namespace.run(work)

    def close(self) -> None:
        for opened in self._sockets:
            opened.close()
        self._namespace.close()


def _first_event(sender: socket.socket, receiver: socket.socket) -> bool:
    """Wait until the datagram arrives, or the sender is told that it was rejected."""
    events = select.poll()
    events.register(receiver, select.POLLIN)
    events.register(sender, select.POLLERR)
    found = events.poll(_CAP_S * 1_000)
    assert found, "neither delivered nor rejected"
    if any(number == receiver.fileno() for number, _ in found):
        receiver.recv(100)
        return True
    return False
