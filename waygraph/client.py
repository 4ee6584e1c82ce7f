"""How does a program ask a running waygraph service? Over HTTP, with the service's errors as typed exceptions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self, TypeVar
from urllib.parse import quote

import httpx
from pydantic import BaseModel, TypeAdapter, ValidationError

from waygraph import schemas
from waygraph.errors import InvalidInput, ServiceError, Unauthorized, WaygraphError, by_slug
from waygraph.schemas import (
    AvoidedStep,
    LocateAnswer,
    LocateRequest,
    NodeAnswer,
    PathAnswer,
    PathRequest,
    Problem,
    SearchAnswer,
    SearchRequest,
    SiteDetail,
    SiteSummary,
)

T = TypeVar("T")
Answer = TypeVar("Answer", bound=BaseModel)

#: The first question to a site makes the service open its map; after that answers take milliseconds.
TIMEOUT = httpx.Timeout(30.0, connect=5.0)

_SITES = TypeAdapter(list[SiteSummary])

#: For problems that say no more than their status, and answers of something in between.
_BY_STATUS: dict[int, type[WaygraphError]] = {401: Unauthorized, 413: InvalidInput, 422: InvalidInput}


class ServiceMap:
    """The maps of a running service. Safe to use from several threads.

    Parameters
    ----------
    base_url : where the service answers, for example `http://127.0.0.1:8321`.
    api_key : sent as `Authorization: Bearer`; needed when the service was started with keys.

    """

    def __init__(self, base_url: str, api_key: str | None = None) -> None:
        self.base_url = _service_url(base_url)
        headers = {"Authorization": f"Bearer {api_key}"} if api_key else {}
        self._http = httpx.Client(base_url=self.base_url, headers=headers, timeout=TIMEOUT)

    def sites(self) -> list[SiteSummary]:
        """All mapped sites, by key."""
        return self._read(_SITES, self._send("GET", "/v1/sites"))

    def site(self, key: str) -> SiteDetail:
        """One site."""
        return self._get(SiteDetail, _path("sites", key))

    def search(self, site: str | None, query: str, k: int = 10) -> SearchAnswer:
        """The k states that answer a question best, on one site or (`None`) on all."""
        path = _path("search") if site is None else _path("sites", site, "search")
        return self._post(SearchAnswer, path, _request(SearchRequest, query=query, k=k))

    def locate(self, site: str, url: str, structure: list[str] | None = None) -> LocateAnswer:
        """Which state shows this URL and (when given) this set of element hashes."""
        if structure is not None and len(structure) > schemas.MAX_STRUCTURE:
            structure = None
        return self._post(
            LocateAnswer, _path("sites", site, "locate"), _request(LocateRequest, url=url, structure=structure)
        )

    def path(
        self,
        site: str,
        source: str | None,
        target: str,
        allow_goto: bool = True,
        avoid: Sequence[AvoidedStep] = (),
    ) -> PathAnswer:
        """The cheapest known way to a state; `source=None` starts by loading a URL."""
        wanted = _request(PathRequest, source=source, target=target, allow_goto=allow_goto, avoid=list(avoid))
        return self._post(PathAnswer, _path("sites", site, "path"), wanted)

    def node(self, site: str, node_id: str) -> NodeAnswer:
        """One state and what can be done from it."""
        return self._get(NodeAnswer, _path("sites", site, "nodes", node_id))

    def screenshot(self, site: str, node_id: str) -> bytes:
        """The JPEG image of one state."""
        return self._send("GET", _path("sites", site, "nodes", node_id, "screenshot")).content

    def close(self) -> None:
        """Close the connections. Closing twice is allowed."""
        self._http.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _get(self, kind: type[Answer], path: str) -> Answer:
        return self._read(TypeAdapter(kind), self._send("GET", path))

    def _post(self, kind: type[Answer], path: str, body: BaseModel) -> Answer:
        return self._read(TypeAdapter(kind), self._send("POST", path, json=body.model_dump(by_alias=True)))

    def _read(self, kind: TypeAdapter[T], response: httpx.Response) -> T:
        try:
            return kind.validate_json(response.content)
        except ValidationError as error:
            raise ServiceError(
                f"{self.base_url} did not answer as a waygraph service ({error.error_count()} differences).",
                hint="Check the address, and that service and client are of the same version.",
            ) from error

    def _send(self, method: str, path: str, *, json: object = None) -> httpx.Response:
        try:
            response = self._http.request(method, path, json=json)
        except httpx.ConnectError as error:
            raise ServiceError(
                f"Nothing answers at {self.base_url} ({error}).",
                hint="Start it with 'waygraph serve', or check the URL.",
            ) from error
        except httpx.TimeoutException as error:
            raise ServiceError(
                f"{self.base_url} did not answer in time.", hint="Ask /readyz whether it is ready; try again."
            ) from error
        except httpx.HTTPError as error:
            raise ServiceError(f"The connection to {self.base_url} failed ({error}).", hint="Try again.") from error
        if response.is_success:
            return response
        raise _error(response)


def _service_url(text: str) -> str:
    try:
        url = httpx.URL(text.rstrip("/"))
    except httpx.InvalidURL as error:
        raise InvalidInput(f"'{text}' is not a valid URL: {error}.", hint="Example: http://127.0.0.1:8321") from error
    if url.scheme not in {"http", "https"} or not url.host:
        raise InvalidInput(f"'{text}' is not a service address.", hint="Example: http://127.0.0.1:8321")
    return str(url)


def _path(*pieces: str) -> str:
    # A piece of dots only would be resolved away by URL rules; nothing in a store is named like that.
    if any(not piece.strip(".") for piece in pieces):
        raise InvalidInput(f"'{'/'.join(pieces)}' cannot name anything.", hint="'waygraph sites' lists what is mapped.")
    return "/v1/" + "/".join(quote(piece, safe=":") for piece in pieces)


def _request(kind: type[Answer], **values: object) -> Answer:
    """Check a request before it is sent, so that a wrong one gives the same error without a service."""
    try:
        return kind.model_validate(values)
    except ValidationError as error:
        first = error.errors()[0]
        name = ".".join(str(piece) for piece in first["loc"])
        raise InvalidInput(f"{name}: {first['msg']}.", hint="See the API description.") from error


def _error(response: httpx.Response) -> WaygraphError:
    try:
        problem = Problem.model_validate_json(response.content)
    except ValidationError:
        kind = _BY_STATUS.get(response.status_code, ServiceError)
        where = f"{response.request.method} {response.request.url}"
        return kind(f"{where} answered {response.status_code}.", hint="Is that a waygraph service?")
    kind = by_slug(schemas.problem_slug(problem.type)) or _BY_STATUS.get(problem.status, ServiceError)
    return kind(problem.detail, hint=problem.hint)
