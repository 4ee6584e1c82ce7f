"""Name resolution of the egress proxy: every name is resolved here once, and every address is checked."""

from __future__ import annotations

import asyncio
import ipaddress
import socket
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

from waygraph.pipeline.browser.egress.special_addresses import non_public_reason

#: Returns the addresses of (host, port) in the order in which to try them; raises OSError if there are none.
Resolver = Callable[[str, int], Awaitable[Sequence[str]]]

_DEFAULT_PORTS = frozenset({80, 443})


class AddressRefused(Exception):
    """A host has an address that is not public, and the user did not name the host."""


class NameUnresolved(Exception):
    """A host has no address."""


async def resolve_with_system(host: str, port: int) -> Sequence[str]:
    """Resolve a name with the resolver of the operating system."""
    if host == "localhost" or host.endswith(".localhost"):
        return ("127.0.0.1", "::1")  # RFC 6761, section 6.3: these names are not sent to DNS
    found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return tuple(dict.fromkeys(str(address[0]) for *_, address in found))


@dataclass(frozen=True, slots=True)
class HostRules:
    """Rules of Chromium's `--host-resolver-rules`.

    Behind a proxy Chromium resolves no names, hence the proxy applies the rules.

    Attributes
    ----------
    maps
        Triples (glob, host or address, port or None). `~NOTFOUND` as the host means that the name does not exist.
    excludes
        Globs of names that are not mapped.
    """

    maps: tuple[tuple[str, str, int | None], ...] = ()
    excludes: tuple[str, ...] = ()

    @classmethod
    def parse(cls, arguments: Sequence[str]) -> HostRules:
        """Read the rules from a browser's command line; the last switch counts, as in Chromium."""
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
        """Return the (host, port) that `host` is mapped to, or None."""
        if any(fnmatchcase(host, glob) for glob in self.excludes):
            return None
        return next(((target, port) for glob, target, port in self.maps if fnmatchcase(host, glob)), None)


@dataclass(frozen=True, slots=True)
class Destination:
    """Checked addresses to try in this order, and the port."""

    addresses: tuple[str, ...]
    port: int


class AddressResolver:
    """Resolver of host names that checks every address.

    Parameters
    ----------
    allowed
        Hosts that may have addresses that are not public: `host` (ports 80 and 443), `host:port`, or `.domain` for all
        hosts under a domain, with any port.
    resolver
        Replaces the resolver of the operating system.
    rules
        Mappings that replace name resolution. The user named their targets, hence these are allowed.
    cache_s
        Time that resolved addresses are kept, in seconds.
    """

    def __init__(
        self, allowed: frozenset[str], *, resolver: Resolver | None = None, rules: HostRules, cache_s: float
    ) -> None:
        self._allowed = frozenset(name.lower() for name in allowed)
        self._resolver = resolver or resolve_with_system
        self._rules = rules
        self._cache_s = cache_s
        self._cache: dict[str, tuple[float, tuple[str, ...]]] = {}
        self._had_private_address: dict[str, bool] = {}
        """By name, at the first lookup: a public name that later points inside is refused (DNS rebinding)."""

    async def find(self, host: str, port: int) -> Destination:
        """Resolve a host and check its addresses.

        Parameters
        ----------
        host
            Host name or IP address, without brackets or in brackets.
        port
            The port, which `allowed` may restrict.

        Returns
        -------
        Destination
            The checked addresses.

        Raises
        ------
        AddressRefused
            If an address is not public and the user did not name the host.
        NameUnresolved
            If the host has no address.
        """
        name = host.strip("[]").rstrip(".").lower()
        mapped = self._rules.find(name)
        if mapped is not None:
            target, other_port = mapped
            if target.upper().startswith("~NOTFOUND"):
                raise NameUnresolved(name)
            return Destination(await self._resolve(target, other_port or port), other_port or port)
        addresses = await self._resolve(name, port)
        private = next(((a, reason) for a in addresses if (reason := non_public_reason(a))), None)
        if not self._is_allowed(name, port):
            if private:
                raise AddressRefused(f"{private[0]} is a {private[1]} address")
        elif self._had_private_address.setdefault(name, private is not None) is False and private:
            raise AddressRefused(f"the name was public and now is {private[0]}, a {private[1]} address")
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
            pass  # a name, not an address
        known = self._cache.get(name)
        if known is not None and known[0] > time.monotonic():
            return known[1]
        try:
            addresses = tuple(await self._resolver(name, port))
        except (OSError, UnicodeError) as error:
            raise NameUnresolved(name) from error
        if not addresses:
            raise NameUnresolved(name)
        self._cache[name] = (time.monotonic() + self._cache_s, addresses)
        return addresses
