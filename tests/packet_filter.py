"""NetworkPolicies as rules of nftables, as a network plugin that routes enforces them: at the switch, by address.

Both sides must agree: a connection passes the rules of its source's egress and those of its target's ingress. What no
rule admits is rejected, so that a forbidden connection fails at once with an error of its own.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from tests.networking import Pod, selects

Policy = Mapping[str, Any]


def ruleset(policies: Sequence[Policy], pods: Mapping[str, tuple[Pod, Sequence[str]]]) -> str:
    """Return the rules for pods with their addresses, as `nft -f` reads them."""
    chains: list[str] = []
    jumps: list[str] = []
    for number, (pod, addresses) in enumerate(pods.values()):
        for direction, side in (("Egress", "saddr"), ("Ingress", "daddr")):
            applying = _applying(policies, direction, pod)
            if not applying:
                continue  # no policy selects it: everything is allowed
            name = f"{direction.lower()}{number}"
            rules = [f"    {rule} return" for spec in applying for rule in _rules(spec, direction, pods)]
            chains.append("\n".join([f"  chain {name} {{", *rules, "    reject with icmpx admin-prohibited", "  }"]))
            jumps += [f"    {_family(address)} {side} {address} jump {name}" for address in addresses]
    forward = [
        "  chain forward {",
        "    type filter hook forward priority 0; policy accept;",
        "    ct state established,related accept",
        "    meta l4proto ipv6-icmp icmpv6 type { nd-neighbor-solicit, nd-neighbor-advert } accept",
        *jumps,
        "  }",
    ]
    return "\n".join(["table inet policies {", *chains, *forward, "}"]) + "\n"


def _applying(policies: Sequence[Policy], direction: str, pod: Pod) -> list[Policy]:
    if pod.namespace:
        return []  # the policies are of another namespace
    specs = (policy["spec"] for policy in policies)
    return [
        spec for spec in specs if direction in spec["policyTypes"] and selects(spec["podSelector"], pod.labels)
    ]  # fmt: skip


def _rules(spec: Policy, direction: str, pods: Mapping[str, tuple[Pod, Sequence[str]]]) -> Iterator[str]:
    """Return the conditions under which one policy admits a connection."""
    key, peers, side = ("egress", "to", "daddr") if direction == "Egress" else ("ingress", "from", "saddr")
    for rule in spec.get(key, ()):
        ports = list(_ports(rule.get("ports")))
        if peers not in rule:
            yield from ports
            continue
        for peer in rule[peers]:
            for port in ports:
                yield from (f"{match} {port}" for match in _matches(peer, side, pods))


def _ports(ports: Sequence[Mapping[str, Any]] | None) -> Iterator[str]:
    if ports is None:
        yield ""
        return
    for each in ports:
        protocol = each.get("protocol", "TCP").lower()
        yield f"{protocol} dport {each['port']}" if "port" in each else f"meta l4proto {protocol}"


def _matches(peer: Policy, side: str, pods: Mapping[str, tuple[Pod, Sequence[str]]]) -> Iterator[str]:
    if "ipBlock" in peer:
        block = peer["ipBlock"]
        family = _family(block["cidr"])
        excepted = block.get("except", ())
        kept = f" {family} {side} != {{ {', '.join(excepted)} }}" if excepted else ""
        yield f"{family} {side} {block['cidr']}{kept}"
        return
    for pod, addresses in pods.values():
        if _is_peer(peer, pod):
            yield from (f"{_family(address)} {side} {address}" for address in addresses)


def _is_peer(peer: Policy, pod: Pod) -> bool:
    if "namespaceSelector" in peer:
        return selects(peer["namespaceSelector"], pod.namespace) and selects(peer.get("podSelector", {}), pod.labels)
    return not pod.namespace and selects(peer["podSelector"], pod.labels)


def _family(address: str) -> str:
    return "ip" if ipaddress.ip_network(address, strict=False).version == 4 else "ip6"
