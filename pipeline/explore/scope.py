"""Which URLs belong to the site? Those of its host, or of its domain, and of the hosts that the user named."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass
from functools import cache
from urllib.parse import urlsplit

from publicsuffixlist import PublicSuffixList

from index.graph import PASSIVE, parse_start_url, site_key
from pipeline.browser.foreign import FrameScope
from pipeline.browser.snapshot import Candidate, Snapshot
from pipeline.explore.policy import Refusal
from waygraph.errors import InvalidInput
from waygraph.settings import ExploreSettings

#: Schemes that a link may have without leading anywhere: the click runs the page's own script.
_IN_PAGE_SCHEMES = frozenset({"", "javascript"})


@dataclass(frozen=True, slots=True)
class Scope:
    """The site that is being explored.

    Attributes
    ----------
    site : its key: the host, with the port when it is not the scheme's default.
    hosts : keys of further hosts that belong to it.
    domain : a registrable domain whose hosts all belong to it, with any port; empty: none.
    """

    site: str
    hosts: frozenset[str] = frozenset()
    domain: str = ""

    @classmethod
    def of(cls, site: str, explore: ExploreSettings, *, start: str = "") -> Scope:
        """The scope that the settings ask for.

        Parameters
        ----------
        site : key of the site that the start page led to.
        start : key of the site that the user asked for, when that may be another one.

        Raises
        ------
        InvalidInput
            When a host is malformed, there is no domain to take, or the start page leads out of the hosts listed.
        """
        hosts = frozenset(_host_key(text) for text in explore.scope_hosts)
        domain = ""
        if explore.scope == "domain":
            domain = registrable_domain(site)
            if not domain:
                raise InvalidInput(
                    f"'{site}' belongs to no registrable domain, so the scope cannot be its domain.",
                    hint="Use --scope host, and name further hosts with --scope-host.",
                )
        scope = cls(site, hosts, domain)
        if hosts and start and start != site and site not in hosts and not scope.covers(start):
            raise InvalidInput(
                f"The start page of '{start}' leads to '{site}', which is not among the hosts of the scope.",
                hint=f"Start at '{site}', or add it with --scope-host.",
            )
        return scope

    @property
    def named(self) -> frozenset[str]:
        """What the user named, as `EgressProxy` takes it: these hosts may be at addresses that are not public."""
        return frozenset({self.site, *self.hosts, *([f".{self.domain}"] if self.domain else ())})

    @property
    def frames(self) -> FrameScope:
        """Whose frames are looked into."""
        return FrameScope(frozenset({self.site, *self.hosts}), self.domain)

    def covers(self, key: str) -> bool:
        """Whether a host, by its key, belongs to the site."""
        if key == self.site or key in self.hosts:
            return True
        host = _host_of(key)
        return bool(self.domain) and (host == self.domain or host.endswith(f".{self.domain}"))

    def refuse_url(self, url: str) -> Refusal | None:
        """Why a document must not be loaded."""
        scheme = url.partition(":")[0].lower()
        if scheme not in {"http", "https"}:
            return Refusal("scheme", scheme)
        return None if self.covers(site_key(url)) else Refusal("external", url)

    def refuse(self, candidate: Candidate, seen: Snapshot) -> Refusal | None:  # noqa: ARG002 - a Policy
        """Why a link must not be followed."""
        target = candidate.action.target
        if candidate.action.kind in PASSIVE or target.partition(":")[0].lower() in _IN_PAGE_SCHEMES:
            return None
        if candidate.download:
            return Refusal("download", target)
        return self.refuse_url(target)


def registrable_domain(key: str) -> str:
    """The part of a host's name that somebody registered (public suffix plus one label); empty when there is none.

    >>> registrable_domain("www.shop.example.co.uk:8443"), registrable_domain("127.0.0.1:8000")
    ('example.co.uk', '')
    """
    host = _host_of(key)
    try:
        ipaddress.ip_address(host)
    except ValueError:
        found: str | None = _suffixes().privatesuffix(host)
        return found or ""
    return ""


@cache
def _suffixes() -> PublicSuffixList:
    return PublicSuffixList()  # the list that comes with the package: nothing is fetched


def _host_of(key: str) -> str:
    return urlsplit(f"//{key}").hostname or ""


def _host_key(text: str) -> str:
    """Key of a host that the user wrote."""
    written = text.strip()
    if not written or any(character in written for character in "/?#@*, "):
        raise InvalidInput(f"'{text}' is no host that a scope can hold.", hint="Write host or host:port, nothing else.")
    # Either scheme would do: the key drops the default ports of both.
    port = written.rpartition(":")[2] if written.count(":") == 1 or "]:" in written else ""
    return site_key(parse_start_url(f"{'https' if port == '443' else 'http'}://{written}/"))
