"""Evaluate NetworkPolicies by Kubernetes' rules: pods of one namespace, pods of others, IP addresses."""

import ipaddress
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Pod:
    labels: dict
    namespace: dict = field(default_factory=dict)
    """Labels of its namespace; none: that of the policies."""


def selects(selector, labels):
    """Return whether a label selector selects a pod."""
    unknown = set(selector) - {"matchLabels", "matchExpressions"}
    assert not unknown, unknown
    wanted = selector.get("matchLabels", {}).items()
    return all(labels.get(key) == value for key, value in wanted) and all(
        _holds(expression, labels) for expression in selector.get("matchExpressions", ())
    )


def _holds(expression, labels):
    assert expression["operator"] == "In"
    return labels.get(expression["key"]) in expression["values"]


def may_connect(policies, source, target, port, protocol="TCP"):
    """Return whether egress of the source and ingress of the target are allowed. Either may be an IP address."""
    connection = (port, protocol)
    return _passes(policies, "Egress", source, target, connection) and _passes(
        policies, "Ingress", target, source, connection
    )


def _passes(policies, direction, end, other, connection):
    if not isinstance(end, Pod) or end.namespace:
        return True  # not in our namespace: other policies, if any
    applying = [
        policy["spec"]
        for policy in policies
        if direction in policy["spec"]["policyTypes"] and selects(policy["spec"]["podSelector"], end.labels)
    ]
    if not applying:
        return True
    peers, rules = ("from", "ingress") if direction == "Ingress" else ("to", "egress")
    return any(
        _port_fits(rule.get("ports"), *connection)
        and (peers not in rule or any(_is_peer(peer, other) for peer in rule[peers]))
        for spec in applying
        for rule in spec.get(rules, ())
    )


def _port_fits(ports, port, protocol):
    return ports is None or any(
        each.get("protocol", "TCP") == protocol and each.get("port", port) == port for each in ports
    )


def _is_peer(peer, other):
    if "ipBlock" in peer:
        if isinstance(other, Pod):
            return False  # pods have addresses that are not public
        address = ipaddress.ip_address(other)
        block = peer["ipBlock"]
        return address in ipaddress.ip_network(block["cidr"]) and not any(
            address in ipaddress.ip_network(excepted) for excepted in block.get("except", ())
        )
    if not isinstance(other, Pod):
        return False
    if "namespaceSelector" in peer:
        return selects(peer["namespaceSelector"], other.namespace) and selects(
            peer.get("podSelector", {}), other.labels
        )
    return not other.namespace and selects(peer["podSelector"], other.labels)
