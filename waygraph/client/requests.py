"""Requests about mapped sites: the endpoints of the HTTP API, and what is sent to them.

A `MapRequest` is independent of how it is answered. A service client sends its `http_path` and `http_body`; a store in
this process passes its `arguments` to the method of `waygraph.serve.query.maps.Maps` for the endpoint.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar
from urllib.parse import quote, urlencode

from pydantic import BaseModel, TypeAdapter, ValidationError

from waygraph.core import schemas
from waygraph.core.errors import InvalidInput
from waygraph.core.schemas import (
    BatchSearchAnswer,
    FeedbackAnswer,
    LocateAnswer,
    LocateRequest,
    NavigateAnswer,
    NodeAnswer,
    PathAnswer,
    SearchAnswer,
    SiteDetail,
    SiteSummary,
    ToolsAnswer,
)

T = TypeVar("T")
RequestModel = TypeVar("RequestModel", bound=BaseModel)


@dataclass(frozen=True, slots=True, eq=False)
class Endpoint(Generic[T]):
    """One operation of the HTTP API.

    Attributes
    ----------
    method
        HTTP method.
    path
        Path, with `{}` for each name in it: a site key, then a node id.
    parse_answer
        Parser of the response body. Raises pydantic's `ValidationError` for a body that is not such an answer.
    repeatable
        Whether sending a request twice has the same effect as sending it once.
    """

    method: str
    path: str
    parse_answer: Callable[[bytes], T]
    repeatable: bool = True


SITES = Endpoint("GET", "/v1/sites", TypeAdapter(list[SiteSummary]).validate_json)
SITE = Endpoint("GET", "/v1/sites/{}", SiteDetail.model_validate_json)
SEARCH = Endpoint("POST", "/v1/sites/{}/search", SearchAnswer.model_validate_json)
SEARCH_ALL_SITES = Endpoint("POST", "/v1/search", SearchAnswer.model_validate_json)
SEARCH_BATCH = Endpoint("POST", "/v1/search/batch", BatchSearchAnswer.model_validate_json)
LOCATE = Endpoint("POST", "/v1/sites/{}/locate", LocateAnswer.model_validate_json)
PATH = Endpoint("POST", "/v1/sites/{}/path", PathAnswer.model_validate_json)
NAVIGATE = Endpoint("POST", "/v1/navigate", NavigateAnswer.model_validate_json)
FEEDBACK = Endpoint("POST", "/v1/sites/{}/feedback", FeedbackAnswer.model_validate_json, repeatable=False)
NODE = Endpoint("GET", "/v1/sites/{}/nodes/{}", NodeAnswer.model_validate_json)
TOOLS = Endpoint("GET", "/v1/sites/{}/tools", ToolsAnswer.model_validate_json)
SCREENSHOT = Endpoint("GET", "/v1/sites/{}/nodes/{}/screenshot", bytes)


@dataclass(frozen=True, slots=True)
class MapRequest(Generic[T]):
    """One request to a source of maps.

    Attributes
    ----------
    endpoint
        The operation.
    names
        The names in its path: a site key, then a node id.
    body
        Request model. It may be unvalidated (`model_construct`): the limits of the HTTP API apply to requests that are
        sent to a service, not to a store in this process.
    """

    endpoint: Endpoint[T]
    names: tuple[str, ...] = ()
    body: BaseModel | None = None

    @property
    def arguments(self) -> tuple[object, ...]:
        """The names and the body, as positional arguments."""
        return self.names if self.body is None else (*self.names, self.body)

    def http_path(self) -> str:
        """Return the URL path.

        Returns
        -------
        str
            The path, with percent-encoded names, and with the body of a GET request as its query.

        Raises
        ------
        InvalidInput
            If a name is empty or consists of dots only: URL rules would resolve it away, and nothing in a store has
            such a name; or if the query violates the schema.
        """
        if any(not name.strip(".") for name in self.names):
            raise InvalidInput(
                f"'{'/'.join(self.names)}' is not a valid name.", hint="'waygraph sites' lists the sites."
            )
        path = self.endpoint.path.format(*(quote(name, safe=":") for name in self.names))
        if self.body is None or self.endpoint.method != "GET":
            return path
        query = urlencode(_json_body(_revalidate(self.body)))
        return f"{path}?{query}" if query else path

    def http_body(self) -> dict[str, Any] | None:
        """Return the JSON body, validated.

        It holds only values that differ from the defaults: an older service rejects fields that it does not know.

        Returns
        -------
        dict[str, Any] | None
            The body; None if the request has none, as GET requests.

        Raises
        ------
        InvalidInput
            If the body violates the schema, so that an invalid request fails the same way without a service.
        """
        if self.body is None or self.endpoint.method == "GET":
            return None
        if isinstance(self.body, LocateRequest):
            return _locate_body(self.body)
        return _json_body(_revalidate(self.body))


def validate_request(kind: type[RequestModel], **values: object) -> RequestModel:
    """Return a validated request model.

    Parameters
    ----------
    kind
        The model.
    **values
        Its values.

    Returns
    -------
    RequestModel
        The request.

    Raises
    ------
    InvalidInput
        If a value violates the schema; names the first such field.
    """
    try:
        return kind.model_validate(values)
    except ValidationError as error:
        first = error.errors()[0]
        name = ".".join(str(part) for part in first["loc"])
        raise InvalidInput(f"{name}: {first['msg']}.", hint="See the API description.") from error


def _locate_body(body: LocateRequest) -> dict[str, Any]:
    """Return the body of a `locate` request; of a very large page, without what exceeds the limits of a request."""
    if max(len(body.structure or ()), len(body.features or ())) > schemas.MAX_STRUCTURE:
        body = body.model_copy(update={"structure": None, "features": None})
    request = _revalidate(body)
    content = _json_body(request)
    if request.features and len(json.dumps(content)) > schemas.MAX_BODY_BYTES:
        # All features or none: those that are left out would count as absent from the page.
        content = _json_body(request.model_copy(update={"features": None}))
    return content


def _revalidate(body: RequestModel) -> RequestModel:
    return validate_request(type(body), **body.model_dump(warnings=False))


def _json_body(body: BaseModel) -> dict[str, Any]:
    return body.model_dump(mode="json", by_alias=True, exclude_defaults=True)
