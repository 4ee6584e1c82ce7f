"""Egress proxy: all traffic of one browser goes through it, and it connects to checked addresses only."""

from waygraph.pipeline.browser.egress.addresses import (
    AddressRefused,
    HostRules,
    NameUnresolved,
    Resolver,
)
from waygraph.pipeline.browser.egress.problems import ConnectionProblem, ConnectionProblemKind
from waygraph.pipeline.browser.egress.proxy import EgressCallbacks, EgressLimits, EgressProxy
from waygraph.pipeline.browser.egress.special_addresses import non_public_reason
from waygraph.pipeline.browser.egress.upstream import UpstreamProxy

__all__ = [
    "AddressRefused",
    "ConnectionProblem",
    "ConnectionProblemKind",
    "EgressCallbacks",
    "EgressLimits",
    "EgressProxy",
    "HostRules",
    "NameUnresolved",
    "Resolver",
    "UpstreamProxy",
    "non_public_reason",
]
