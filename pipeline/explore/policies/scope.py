"""Policy for the scope: documents outside the site (`external`, `scheme`) and downloads (`download`) are refused.

The site is the host of the start page, or its registrable domain (`--scope domain`), and further hosts that the user
names (`--scope-host`). The scope can be widened by these options, not switched off.
"""

from __future__ import annotations

import ipaddress
import re
from dataclasses import dataclass
from functools import cache
from urllib.parse import urlsplit

from publicsuffixlist import PublicSuffixList

from waygraph.core.errors import InvalidInput
from waygraph.core.settings import ExploreSettings
from waygraph.core.urls import parse_start_url, site_key
from waygraph.index.graph import PASSIVE_KINDS
from waygraph.pipeline.browser.page.frame_scope import FrameScope
from waygraph.pipeline.browser.page.snapshot import Candidate, Snapshot
from waygraph.pipeline.explore.policies.policy import Refusal

#: Schemes of links that lead nowhere: the click runs the page's own script.
_IN_PAGE_SCHEMES = frozenset({"", "javascript"})
#: What people write for the address of a host. Other names with dots are names of files, packages and users as well.
_HOST_LIKE = re.compile(r"www\d?\.(?:[\w-]+\.)+[a-z]{2,}(?=[/?#:]|$)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Scope:
    """Hosts that belong to the site.

    Attributes
    ----------
    site
        Key of the site: the host, with the port if it is not the scheme's default.
    hosts
        Keys of further hosts that belong to it.
    domain
        Registrable domain whose hosts all belong to it, with any port; empty for none.
    """

    site: str
    hosts: frozenset[str] = frozenset()
    domain: str = ""

    @classmethod
    def of(cls, site: str, explore: ExploreSettings, *, start: str = "") -> Scope:
        """Return the scope that the settings define.

        Parameters
        ----------
        site
            Key of the site that the start page led to.
        explore
            Settings with `scope` and `scope_hosts`.
        start
            Key of the site that the user asked for, if it may differ from `site`.

        Returns
        -------
        Scope
            The scope of the site.

        Raises
        ------
        InvalidInput
            If a host is malformed, the site has no registrable domain, or the start page leads out of the listed hosts.
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
        """Hosts that the user named, as `EgressProxy` takes them. These may have addresses that are not public."""
        return frozenset({self.site, *self.hosts, *([f".{self.domain}"] if self.domain else ())})

    @property
    def frames(self) -> FrameScope:
        """Hosts whose frames are read."""
        return FrameScope(frozenset({self.site, *self.hosts}), self.domain)

    def covers(self, key: str) -> bool:
        """Return whether a host, given by its key, belongs to the site."""
        if key == self.site or key in self.hosts:
            return True
        host = _host_of(key)
        return bool(self.domain) and (host == self.domain or host.endswith(f".{self.domain}"))

    def refuse(self, candidate: Candidate, snapshot: Snapshot) -> Refusal | None:
        """Return why a link is not followed."""
        target = candidate.action.target
        if candidate.action.kind in PASSIVE_KINDS or target.partition(":")[0].lower() in _IN_PAGE_SCHEMES:
            return None
        if candidate.download:
            return Refusal("download", target)
        if _forgot_scheme(target, snapshot.raw_url):
            return Refusal("external", target)
        return self.refuse_url(target)

    def refuse_url(self, url: str) -> Refusal | None:
        """Return why a document is not loaded."""
        scheme = url.partition(":")[0].lower()
        if scheme not in {"http", "https"}:
            return Refusal("scheme", scheme)
        return None if self.covers(site_key(url)) else Refusal("external", url)


def _forgot_scheme(target: str, here: str) -> bool:
    """Return whether a link is the address of another host without its scheme, which browsers read as a relative path.

    >>> _forgot_scheme("http://x/a/www.partner.example/shop", "http://x/a/b"), _forgot_scheme("http://x/www/b", "http://x/")
    (True, False)
    """
    folder = here.partition("?")[0].partition("#")[0].rpartition("/")[0] + "/"
    return target.startswith(folder) and _HOST_LIKE.match(target, len(folder)) is not None


def registrable_domain(key: str) -> str:
    """Return the registrable domain of a host: its public suffix and one more label. Empty if it has none.

    >>> registrable_domain("www.shop.example.co.uk:8443"), registrable_domain("127.0.0.1:8000")
    ('example.co.uk', '')
    """
    host = _host_of(key)
    try:
        ipaddress.ip_address(host)
    except ValueError:
        domain: str | None = _suffixes().privatesuffix(host)
        return domain or ""
    return ""


@cache
def _suffixes() -> PublicSuffixList:
    return PublicSuffixList()  # The list that comes with the package; nothing is downloaded.


def _host_of(key: str) -> str:
    return urlsplit(f"//{key}").hostname or ""


def _host_key(text: str) -> str:
    """Return the key of a host as the user wrote it."""
    written = text.strip()
    if not written or any(character in written for character in "/?#@*, "):
        raise InvalidInput(f"'{text}' is not a host.", hint="Write host or host:port, nothing else.")
    # Either scheme works: the key drops the default ports of both.
    port = written.rpartition(":")[2] if written.count(":") == 1 or "]:" in written else ""
    return site_key(parse_start_url(f"{'https' if port == '443' else 'http'}://{written}/"))
