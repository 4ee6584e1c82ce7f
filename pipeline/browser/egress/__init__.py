"""Where may the browser connect to? All of its traffic goes through a proxy of ours that checks addresses."""

from pipeline.browser.egress.addresses import HostRules, Refused, Resolver, Unresolved, why_not_public
from pipeline.browser.egress.proxy import EgressProxy
from pipeline.browser.egress.upstream import UpstreamProxy

__all__ = ["EgressProxy", "HostRules", "Refused", "Resolver", "Unresolved", "UpstreamProxy", "why_not_public"]
