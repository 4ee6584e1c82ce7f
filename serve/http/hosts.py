"""Requests that web pages of other sites cause: a service without API keys refuses them.

A page cannot send another `Host` than the name that it addressed. So a page that reaches the service by a name that its
owner points to loopback (DNS rebinding) is recognised by that name, on every route. A page that addresses the service
by its own name is recognised by `Origin` or `Sec-Fetch-Site`: it could read no answer, but images tell what exists.
"""

from __future__ import annotations

import ipaddress
import re
from http import HTTPStatus

from starlette.datastructures import Headers
from starlette.responses import JSONResponse

from waygraph.core.settings import ServeSettings
from waygraph.serve.http.problems import plain_problem

_AUTHORITY = re.compile(r"(?:\[([^\]]*)\]|([^:\[\]]*))(?::\d*)?")
_SCHEMES = frozenset({"http", "https"})


class HostCheck:
    """Decides whether a request may come from a web page of another site.

    With API keys every request passes: browsers do not add keys by themselves, and behind an ingress and in clusters a
    service has names and addresses that only the operator knows.

    Parameters
    ----------
    settings
        The bound address, and further names of the service.
    with_keys
        Whether requests need a key.
    """

    def __init__(self, settings: ServeSettings, *, with_keys: bool) -> None:
        self._is_off = with_keys
        self._names = {name.lower() for name in ("localhost", settings.host, *settings.hosts)}

    def refusal(self, headers: Headers, *, instance: str) -> JSONResponse | None:
        """Return the refusal of a request, or None if it may pass.

        Parameters
        ----------
        headers
            The request's headers.
        instance
            Path of the request.

        Returns
        -------
        JSONResponse | None
            421 for a name that is not this service's, 403 for a page of another site.
        """
        if self._is_off:
            return None
        # Browsers send exactly one; programs that check health by HTTP/1.0 send none.
        if not all(self._is_own(host) for host in headers.getlist("host")):
            return plain_problem(
                HTTPStatus.MISDIRECTED_REQUEST,
                "This service has no such name.",
                hint="Use localhost, or name it in WAYGRAPH_SERVE__HOSTS, a JSON list.",
                instance=instance,
            )
        if self._is_of_another_site(headers):
            return plain_problem(
                HTTPStatus.FORBIDDEN,
                "A web page of another site sent this request.",
                hint="This service answers web pages only if they are its own.",
                instance=instance,
            )
        return None

    def _is_of_another_site(self, headers: Headers) -> bool:
        if (origin := headers.get("origin")) is not None:
            scheme, _, authority = origin.partition("://")
            return scheme not in _SCHEMES or not self._is_own(authority)
        # A document that is loaded into a tab of its own, for example by a link, tells the other page nothing.
        return headers.get("sec-fetch-site") == "cross-site" and headers.get("sec-fetch-dest") != "document"

    def _is_own(self, authority: str) -> bool:
        """Whether `name:port` is an address of this service: loopback, the bound one, or a configured one."""
        if (match := _AUTHORITY.fullmatch(authority.lower())) is None:
            return False
        name = match[1] or match[2].removesuffix(".")
        if name in self._names:
            return True
        try:
            return ipaddress.ip_address(name).is_loopback
        except ValueError:
            return False
