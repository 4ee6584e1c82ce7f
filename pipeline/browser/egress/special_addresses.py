"""Which IP addresses are public: the special-purpose registries of IANA as a table, whatever Python's version says.

`ipaddress.is_global` follows the registries of the day on which a Python was released, and was corrected in minor
releases. This table is the registries as of their updates of 2025-10-09, with every row:

- IPv4: https://www.iana.org/assignments/iana-ipv4-special-registry
- IPv6: https://www.iana.org/assignments/iana-ipv6-special-registry

Besides them it holds the blocks of other registries that no public host has (multicast, site-local, IPv4-compatible,
IPv4-translated), and Azure's "wire server", a public address that answers only inside Azure, with secrets.
"""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass
from typing import Literal

_Address = ipaddress.IPv4Address | ipaddress.IPv6Address
#: Why an address is not public; `embedded`: it is as public as the IPv4 addresses in it.
Reach = Literal["public", "private", "loopback", "link-local", "multicast", "unspecified", "metadata", "embedded"]


@dataclass(frozen=True, slots=True)
class SpecialBlock:
    """One row of the table.

    Attributes
    ----------
    block
        The addresses, in CIDR notation.
    name
        Name in the registry, and the RFC.
    reach
        Whether its addresses are public: "Globally Reachable" of the registry. "N/A" there is not public.
    """

    block: str
    name: str
    reach: Reach = "private"

    @property
    def network(self) -> ipaddress.IPv4Network | ipaddress.IPv6Network:
        """The addresses."""
        return ipaddress.ip_network(self.block)


#: The most specific block that holds an address decides. IPv4 addresses in no block are public; IPv6 ones are public if
#: they are in 2000::/3, the only part of IPv6 from which public addresses are assigned (RFC 4291, section 2.4).
SPECIAL_BLOCKS = (
    # IPv4 Special-Purpose Address Registry
    SpecialBlock("0.0.0.0/8", "This network (RFC 791)"),
    SpecialBlock("0.0.0.0/32", "This host on this network (RFC 1122)", "unspecified"),
    SpecialBlock("10.0.0.0/8", "Private-Use (RFC 1918)"),
    SpecialBlock("100.64.0.0/10", "Shared Address Space (RFC 6598)"),
    SpecialBlock("127.0.0.0/8", "Loopback (RFC 1122)", "loopback"),
    SpecialBlock("169.254.0.0/16", "Link Local (RFC 3927)", "link-local"),
    SpecialBlock("172.16.0.0/12", "Private-Use (RFC 1918)"),
    SpecialBlock("192.0.0.0/24", "IETF Protocol Assignments (RFC 6890)"),
    SpecialBlock("192.0.0.0/29", "IPv4 Service Continuity Prefix (RFC 7335)"),
    SpecialBlock("192.0.0.8/32", "IPv4 dummy address (RFC 7600)"),
    SpecialBlock("192.0.0.9/32", "Port Control Protocol Anycast (RFC 7723)", "public"),
    SpecialBlock("192.0.0.10/32", "Traversal Using Relays around NAT Anycast (RFC 8155)", "public"),
    SpecialBlock("192.0.0.170/32", "NAT64/DNS64 Discovery (RFC 8880)"),
    SpecialBlock("192.0.0.171/32", "NAT64/DNS64 Discovery (RFC 8880)"),
    SpecialBlock("192.0.2.0/24", "Documentation (TEST-NET-1) (RFC 5737)"),
    SpecialBlock("192.31.196.0/24", "AS112-v4 (RFC 7535)", "public"),
    SpecialBlock("192.52.193.0/24", "AMT (RFC 7450)", "public"),
    SpecialBlock("192.88.99.0/24", "Deprecated (6to4 Relay Anycast) (RFC 7526)"),
    SpecialBlock("192.88.99.2/32", "6a44-relay anycast address (RFC 6751)"),
    SpecialBlock("192.168.0.0/16", "Private-Use (RFC 1918)"),
    SpecialBlock("192.175.48.0/24", "Direct Delegation AS112 Service (RFC 7534)", "public"),
    SpecialBlock("198.18.0.0/15", "Benchmarking (RFC 2544)"),
    SpecialBlock("198.51.100.0/24", "Documentation (TEST-NET-2) (RFC 5737)"),
    SpecialBlock("203.0.113.0/24", "Documentation (TEST-NET-3) (RFC 5737)"),
    SpecialBlock("240.0.0.0/4", "Reserved (RFC 1112)"),
    SpecialBlock("255.255.255.255/32", "Limited Broadcast (RFC 919)"),
    # IPv6 Special-Purpose Address Registry
    SpecialBlock("::1/128", "Loopback Address (RFC 4291)", "loopback"),
    SpecialBlock("::/128", "Unspecified Address (RFC 4291)", "unspecified"),
    SpecialBlock("::ffff:0:0/96", "IPv4-mapped Address (RFC 4291)", "embedded"),
    SpecialBlock("64:ff9b::/96", "IPv4-IPv6 Translat. (RFC 6052)", "embedded"),
    SpecialBlock("64:ff9b:1::/48", "IPv4-IPv6 Translat. (RFC 8215)"),
    SpecialBlock("100::/64", "Discard-Only Address Block (RFC 6666)"),
    SpecialBlock("100:0:0:1::/64", "Dummy IPv6 Prefix (RFC 9780)"),
    SpecialBlock("2001::/23", "IETF Protocol Assignments (RFC 2928)"),
    SpecialBlock("2001::/32", "TEREDO (RFC 4380)", "embedded"),
    SpecialBlock("2001:1::1/128", "Port Control Protocol Anycast (RFC 7723)", "public"),
    SpecialBlock("2001:1::2/128", "Traversal Using Relays around NAT Anycast (RFC 8155)", "public"),
    SpecialBlock("2001:1::3/128", "DNS-SD Service Registration Protocol Anycast (RFC 9665)", "public"),
    SpecialBlock("2001:2::/48", "Benchmarking (RFC 5180)"),
    SpecialBlock("2001:3::/32", "AMT (RFC 7450)", "public"),
    SpecialBlock("2001:4:112::/48", "AS112-v6 (RFC 7535)", "public"),
    SpecialBlock("2001:10::/28", "Deprecated (previously ORCHID) (RFC 4843)"),
    SpecialBlock("2001:20::/28", "ORCHIDv2 (RFC 7343)", "public"),
    SpecialBlock("2001:30::/28", "Drone Remote ID Protocol Entity Tags Prefix (RFC 9374)", "public"),
    SpecialBlock("2001:db8::/32", "Documentation (RFC 3849)"),
    SpecialBlock("2002::/16", "6to4 (RFC 3056)", "embedded"),
    SpecialBlock("2620:4f:8000::/48", "Direct Delegation AS112 Service (RFC 7534)", "public"),
    SpecialBlock("3fff::/20", "Documentation (RFC 9637)"),
    SpecialBlock("5f00::/16", "Segment Routing (SRv6) SIDs (RFC 9602)"),
    SpecialBlock("fc00::/7", "Unique-Local (RFC 4193)"),
    SpecialBlock("fe80::/10", "Link-Local Unicast (RFC 4291)", "link-local"),
    # Other registries and RFCs
    SpecialBlock("168.63.129.16/32", "Azure's wire server", "metadata"),
    SpecialBlock("224.0.0.0/4", "IPv4 Multicast (RFC 5771)", "multicast"),
    SpecialBlock("::/96", "IPv4-compatible Address, deprecated (RFC 4291)", "embedded"),
    SpecialBlock("::ffff:0:0:0/96", "IPv4-translated Address (RFC 2765)", "embedded"),
    SpecialBlock("fec0::/10", "Site-Local Unicast, deprecated (RFC 3879)"),
    SpecialBlock("ff00::/8", "IPv6 Multicast (RFC 4291)", "multicast"),
)

_BLOCKS = tuple(sorted(((each.network, each.reach) for each in SPECIAL_BLOCKS), key=lambda pair: -pair[0].prefixlen))
_GLOBAL_UNICAST = ipaddress.ip_network("2000::/3")


def non_public_reason(address: str) -> str | None:
    """Return why an IP address is not public (`loopback`, `private`, `link-local`, ...), or None for a public one.

    An IPv6 address that holds IPv4 addresses (mapped, translated, NAT64, 6to4, Teredo) is as public as they are.

    >>> non_public_reason("169.254.169.254"), non_public_reason("::ffff:127.0.0.1"), non_public_reason("9.9.9.9")
    ('link-local', 'loopback', None)
    """
    try:
        ip = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return "malformed"
    default: Reach = "public" if ip.version == 4 or ip in _GLOBAL_UNICAST else "private"
    reach = next((reach for block, reach in _BLOCKS if ip in block), default)
    if reach == "embedded":
        reasons = (non_public_reason(str(inner)) for inner in _embedded(ip))
        return next((reason for reason in reasons if reason), None)
    return None if reach == "public" else reach


def _embedded(ip: _Address) -> tuple[ipaddress.IPv4Address, ...]:
    """Return the IPv4 addresses in an IPv6 address of an `embedded` block."""
    if not isinstance(ip, ipaddress.IPv6Address):
        return ()
    if ip.sixtofour is not None:
        return (ip.sixtofour,)
    if ip.teredo is not None:
        return ip.teredo  # server and client
    return (ipaddress.IPv4Address(ip.packed[-4:]),)
