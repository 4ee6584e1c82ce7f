"""Which addresses are public: every row of IANA's special-purpose registries, and IPv4 addresses inside IPv6 ones."""

import ipaddress

import pytest

from waygraph.pipeline.browser.egress import non_public_reason
from waygraph.pipeline.browser.egress.special_addresses import SPECIAL_BLOCKS
from waygraph.pipeline.explore.politeness.pacer import default_delay

#: An address of every row of both registries as of 2025-10-09, and the reason that it is refused for.
ROWS = [
    ("0.1.2.3", "private"),
    ("0.0.0.0", "unspecified"),  # noqa: S104
    ("10.0.0.1", "private"),
    ("100.64.0.1", "private"),
    ("100.127.255.254", "private"),
    ("127.0.0.1", "loopback"),
    ("127.255.255.255", "loopback"),
    ("169.254.169.254", "link-local"),
    ("172.16.0.1", "private"),
    ("172.31.255.255", "private"),
    ("192.0.0.200", "private"),
    ("192.0.0.1", "private"),
    ("192.0.0.8", "private"),
    ("192.0.0.9", None),
    ("192.0.0.10", None),
    ("192.0.0.170", "private"),
    ("192.0.0.171", "private"),
    ("192.0.2.1", "private"),
    ("192.31.196.1", None),
    ("192.52.193.1", None),
    ("192.88.99.1", "private"),
    ("192.88.99.2", "private"),
    ("192.168.1.1", "private"),
    ("192.175.48.1", None),
    ("198.18.0.1", "private"),
    ("198.19.255.255", "private"),
    ("198.51.100.1", "private"),
    ("203.0.113.1", "private"),
    ("240.0.0.1", "private"),
    ("255.255.255.255", "private"),
    ("::1", "loopback"),
    ("::", "unspecified"),
    ("::ffff:10.0.0.1", "private"),
    ("64:ff9b::a00:1", "private"),
    ("64:ff9b:1::1", "private"),
    ("64:ff9b:1:ffff::1", "private"),
    ("100::1", "private"),
    ("100:0:0:1::1", "private"),
    ("2001:1ff::1", "private"),
    ("2001:0:0a00:1::1", "private"),
    ("2001:1::1", None),
    ("2001:1::2", None),
    ("2001:1::3", None),
    ("2001:1::4", "private"),
    ("2001:2::1", "private"),
    ("2001:3::1", None),
    ("2001:4:112::1", None),
    ("2001:4:113::1", "private"),
    ("2001:10::1", "private"),
    ("2001:20::1", None),
    ("2001:30::1", None),
    ("2001:40::1", "private"),
    ("2001:db8::1", "private"),
    ("2002:a00:1::1", "private"),
    ("2620:4f:8000::1", None),
    ("3fff::1", "private"),
    ("3fff:fff::1", "private"),
    ("5f00::1", "private"),
    ("fc00::1", "private"),
    ("fd00:ec2::254", "private"),
    ("fe80::1", "link-local"),
]

#: Blocks of other registries, and addresses beside special blocks.
OTHERS = [
    ("168.63.129.16", "metadata"),
    ("224.0.0.1", "multicast"),
    ("239.255.255.255", "multicast"),
    ("ff02::1", "multicast"),
    ("ff0e::1", "multicast"),
    ("fec0::1", "private"),
    ("fe80::1%eth0", "link-local"),
    ("4000::1", "private"),  # not assigned: outside of 2000::/3
    ("not an address", "malformed"),
    ("9.9.9.9", None),
    ("100.63.255.255", None),
    ("100.128.0.0", None),
    ("172.32.0.0", None),
    ("192.0.1.0", None),
    ("198.20.0.0", None),
    ("223.255.255.255", None),
    ("2001:200::1", None),
    ("2606:4700::1", None),
    ("3fff:1000::1", None),
]


@pytest.mark.parametrize(("address", "reason"), ROWS + OTHERS)
def test_an_address_is_public_only_if_the_registries_say_so(address, reason):
    assert non_public_reason(address) == reason


def test_every_row_of_the_table_has_an_address_here_that_it_decides():
    def deciding(address):
        ip = ipaddress.ip_address(address)
        return max((row for row in SPECIAL_BLOCKS if ip in row.network), key=lambda row: row.network.prefixlen)

    registered = [row for row in SPECIAL_BLOCKS if "RFC" in row.name and "deprecated" not in row.name]
    decided = {deciding(address) for address, _ in ROWS} | {deciding("224.0.0.1"), deciding("ff02::1")}
    assert set(registered) - decided == {row for row in registered if row.block == "::ffff:0:0:0/96"}


EMBEDDING = {
    "mapped": "::ffff:{}",
    "compatible": "::{}",
    "translated": "::ffff:0:{}",
    "NAT64": "64:ff9b::{}",
    "6to4": "2002:{hex}::1",
    "Teredo client": "2001:0:808:808:0:0:{inverted}",
    "Teredo server": "2001:0:{hex}:0:0:f7f7:f7f7",
}


@pytest.mark.parametrize("form", EMBEDDING.values(), ids=EMBEDDING)
@pytest.mark.parametrize(
    ("inner", "reason"),
    [
        ("127.0.0.1", "loopback"),
        ("10.1.2.3", "private"),
        ("100.64.0.1", "private"),
        ("169.254.169.254", "link-local"),
        ("198.18.0.1", "private"),
        ("168.63.129.16", "metadata"),
        ("224.0.0.1", "multicast"),
        ("8.8.4.4", None),
    ],
)
def test_an_ipv6_address_is_as_public_as_the_ipv4_address_in_it(form, inner, reason):
    number = int(ipaddress.IPv4Address(inner))
    words = {
        name: f"{value >> 16:x}:{value & 0xFFFF:x}"
        for name, value in (("hex", number), ("inverted", number ^ 0xFFFFFFFF))
    }
    assert non_public_reason(form.format(inner, **words)) == reason


@pytest.mark.parametrize("address", ["100.64.0.1", "198.18.0.1", "64:ff9b:1::1", "::ffff:10.0.0.1", "192.168.0.1"])
def test_the_delay_for_private_addresses_follows_the_same_table(address):
    host = f"[{address}]:8000" if ":" in address else f"{address}:8000"
    assert default_delay(host) == 0.0
