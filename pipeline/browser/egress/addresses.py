"""May this host be connected to, and at which address? Names are resolved here, once, and every address is checked."""

from __future__ import annotations

import asyncio
import ipaddress
import socket
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

#: Addresses of a name, in the order in which they should be tried; raises OSError when there are none.
Resolver = Callable[[str, int], Awaitable[Sequence[str]]]

_DEFAULT_PORTS = frozenset({80, 443})

#: Azure's "wire server": a public address that only answers inside, with secrets.
_METADATA = frozenset({"168.63.129.16"})
_NAT64 = ipaddress.ip_network("64:ff9b::/96")


class Refused(Exception):
    """A host whose address is not public, and which the user did not name."""


class Unresolved(Exception):
    """A host without an address."""


def why_not_public(address: str) -> str | None:
    """What is special about an IP address (`loopback`, `private`, `link-local`, ...); nothing for public ones.

    IPv4 addresses inside of IPv6 ones (mapped, NAT64, 6to4, Teredo) are looked at as well.

    >>> why_not_public("169.254.169.254"), why_not_public("::ffff:127.0.0.1"), why_not_public("9.9.9.9")
    ('link-local', 'loopback', None)
    """
    try:
        ip = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return "malformed"
    if isinstance(ip, ipaddress.IPv6Address):
        inner = ip.ipv4_mapped or ip.sixtofour or (ip.teredo[1] if ip.teredo else None)
        if inner is None and ip in _NAT64:
            inner = ipaddress.IPv4Address(ip.packed[-4:])
        if inner is not None:
            return why_not_public(str(inner))
    if ip.is_unspecified:
        return "unspecified"
    if ip.is_loopback:
        return "loopback"
    if ip.is_link_local:
        return "link-local"
    if ip.is_multicast:
        return "multicast"
    if str(ip) in _METADATA:
        return "metadata"
    return None if ip.is_global else "private"


async def resolve_by_system(host: str, port: int) -> Sequence[str]:
    """Ask the machine's resolver."""
    if host == "localhost" or host.endswith(".localhost"):
        return ("127.0.0.1", "::1")  # RFC 6761: these never leave the machine
    found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return tuple(dict.fromkeys(str(address[0]) for *_, address in found))


@dataclass(frozen=True, slots=True)
class HostRules:
    """Chromium's `--host-resolver-rules`: it resolves nothing itself behind a proxy, so the proxy follows them.

    Attributes
    ----------
    maps : (glob, host or address, port or nothing); `~NOTFOUND` as the host means that there is none.
    excludes : globs that nothing is mapped for.
    """

    maps: tuple[tuple[str, str, int | None], ...] = ()
    excludes: tuple[str, ...] = ()

    @classmethod
    def of(cls, arguments: Sequence[str]) -> HostRules:
        """Those in a browser's command line; the last switch counts, as in Chromium."""
        prefix = "--host-resolver-rules="
        texts = [argument.removeprefix(prefix) for argument in arguments if argument.startswith(prefix)]
        maps, excludes = [], []
        for rule in texts[-1].split(",") if texts else ():
            words = rule.split()
            if len(words) == 3 and words[0].upper() == "MAP":
                host, _, port = words[2].rpartition(":") if words[2].count(":") == 1 else (words[2], "", "")
                maps.append((words[1].lower(), host.strip("[]"), int(port) if port.isdigit() else None))
            elif len(words) == 2 and words[0].upper() == "EXCLUDE":
                excludes.append(words[1].lower())
        return cls(tuple(maps), tuple(excludes))

    def find(self, host: str) -> tuple[str, int | None] | None:
        """Where `host` is mapped to, as (host, port)."""
        if any(fnmatchcase(host, glob) for glob in self.excludes):
            return None
        return next(((target, port) for glob, target, port in self.maps if fnmatchcase(host, glob)), None)


@dataclass(frozen=True, slots=True)
class Destination:
    """Where to connect: addresses that were checked, to be tried in this order."""

    addresses: tuple[str, ...]
    port: int


class AddressBook:
    """Resolves and checks.

    Parameters
    ----------
    allowed : hosts that may have addresses that are not public: `host` (ports 80 and 443), `host:port`, or `.domain`
        for all hosts under a domain, with any port.
    rules : mappings that replace name resolution; their targets are named by the user, hence allowed.
    """

    def __init__(
        self, allowed: frozenset[str], *, resolver: Resolver | None = None, rules: HostRules, cache_s: float
    ) -> None:
        self._allowed = frozenset(name.lower() for name in allowed)
        self._resolver = resolver or resolve_by_system
        self._rules = rules
        self._cache_s = cache_s
        self._cache: dict[str, tuple[float, tuple[str, ...]]] = {}
        self._inside: dict[str, bool] = {}

    async def find(self, host: str, port: int) -> Destination:
        """Checked addresses of a host.

        Raises
        ------
        Refused
            When an address is not public and the user did not name the host.
        Unresolved
            When it has none.
        """
        name = host.strip("[]").rstrip(".").lower()
        mapped = self._rules.find(name)
        if mapped is not None:
            target, other_port = mapped
            if target.upper().startswith("~NOTFOUND"):
                raise Unresolved(name)
            return Destination(await self._resolve(target, other_port or port), other_port or port)
        addresses = await self._resolve(name, port)
        inside = next(((a, why) for a in addresses if (why := why_not_public(a))), None)
        if not self._is_allowed(name, port):
            if inside:
                raise Refused(f"{inside[0]} is a {inside[1]} address")
        elif self._inside.setdefault(name, inside is not None) is False and inside:
            raise Refused(f"the name was public and now is {inside[0]}, a {inside[1]} address")
        return Destination(addresses, port)

    def _is_allowed(self, name: str, port: int) -> bool:
        shown = f"[{name}]" if ":" in name else name
        if f"{shown}:{port}" in self._allowed or (port in _DEFAULT_PORTS and shown in self._allowed):
            return True
        labels = name.split(".")
        return any(f".{'.'.join(labels[i:])}" in self._allowed for i in range(len(labels)))

    async def _resolve(self, name: str, port: int) -> tuple[str, ...]:
        try:
            return (str(ipaddress.ip_address(name)),)
        except ValueError:
            pass  # a name, then
        known = self._cache.get(name)
        if known is not None and known[0] > time.monotonic():
            return known[1]
        try:
            addresses = tuple(await self._resolver(name, port))
        except (OSError, UnicodeError) as error:
            raise Unresolved(name) from error
        if not addresses:
            raise Unresolved(name)
        self._cache[name] = (time.monotonic() + self._cache_s, addresses)
        return addresses
