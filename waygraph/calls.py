"""What does each question to a service look like on the wire? Shared by the sync and the async client."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar
from urllib.parse import quote

from pydantic import BaseModel, TypeAdapter, ValidationError

from waygraph import schemas
from waygraph.errors import InvalidInput
from waygraph.schemas import (
    AvoidedStep,
    BatchSearchAnswer,
    BatchSearchRequest,
    FeedbackAnswer,
    FeedbackRequest,
    Filter,
    LocateAnswer,
    LocateRequest,
    NavigateAnswer,
    NavigateRequest,
    NodeAnswer,
    PathAnswer,
    PathRequest,
    SearchAnswer,
    SearchRequest,
    SiteDetail,
    SiteSummary,
    WalkedStep,
)

T = TypeVar("T")
Request = TypeVar("Request", bound=BaseModel)


@dataclass(frozen=True, slots=True)
class Call(Generic[T]):
    """One request, and how to read its answer.

    Attributes
    ----------
    repeatable : sending it twice does no more than sending it once.
    """

    method: str
    path: str
    answer: TypeAdapter[T]
    body: dict[str, Any] | None = None
    repeatable: bool = True


def sites() -> Call[list[SiteSummary]]:
    """All mapped sites."""
    return Call("GET", "/v1/sites", TypeAdapter(list[SiteSummary]))


def site(key: str) -> Call[SiteDetail]:
    """One site."""
    return Call("GET", path_of("sites", key), TypeAdapter(SiteDetail))


def search(site: str | None, query: str, k: int, where: Filter | None) -> Call[SearchAnswer]:
    """States that answer a question."""
    path = path_of("search") if site is None else path_of("sites", site, "search")
    return _post(SearchAnswer, path, SearchRequest, query=query, k=k, **_filter(where))


def search_batch(site: str | None, queries: Sequence[str], k: int, where: Filter | None) -> Call[BatchSearchAnswer]:
    """States that answer several questions."""
    searches = [{"query": query, "k": k, **_filter(where)} for query in queries]
    return _post(BatchSearchAnswer, path_of("search", "batch"), BatchSearchRequest, site=site, searches=searches)


def locate(
    site: str, url: str, structure: list[str] | None, features: Mapping[str, int] | None = None
) -> Call[LocateAnswer]:
    """Which state a page shows. Of a very large page, what does not fit into a request is left out."""
    if max(len(structure or ()), len(features or ())) > schemas.MAX_STRUCTURE:
        structure = features = None
    where, seen = path_of("sites", site, "locate"), {"url": url, "structure": structure}
    call = _post(LocateAnswer, where, LocateRequest, **seen, features=features)
    if features and len(json.dumps(call.body)) > schemas.MAX_BODY_BYTES:
        # All or nothing: features that were left out would count as not there.
        return _post(LocateAnswer, where, LocateRequest, **seen)
    return call


def path(
    site: str, source: str | None, target: str, *, allow_goto: bool, avoid: Sequence[AvoidedStep], others: int
) -> Call[PathAnswer]:
    """The way from one state to another."""
    wanted = {"source": source, "target": target, "allow_goto": allow_goto, "avoid": list(avoid)}
    return _post(PathAnswer, path_of("sites", site, "path"), PathRequest, **wanted, alternatives=others)


def navigate(wanted: NavigateRequest) -> Call[NavigateAnswer]:
    """Retrieve, choose, plan."""
    return Call("POST", path_of("navigate"), TypeAdapter(NavigateAnswer), _body(wanted))


def feedback(site: str, walked: Sequence[WalkedStep]) -> Call[FeedbackAnswer]:
    """Report on steps that were walked."""
    call = _post(FeedbackAnswer, path_of("sites", site, "feedback"), FeedbackRequest, walked=list(walked))
    return Call(call.method, call.path, call.answer, call.body, repeatable=False)


def node(site: str, node_id: str) -> Call[NodeAnswer]:
    """One state."""
    return Call("GET", path_of("sites", site, "nodes", node_id), TypeAdapter(NodeAnswer))


def screenshot_path(site: str, node_id: str) -> str:
    """Where the image of a state is."""
    return path_of("sites", site, "nodes", node_id, "screenshot")


def path_of(*pieces: str) -> str:
    """A path below `/v1` (InvalidInput for pieces that URL rules would resolve away)."""
    # A piece of dots only would be resolved away by URL rules; nothing in a store is named like that.
    if any(not piece.strip(".") for piece in pieces):
        raise InvalidInput(f"'{'/'.join(pieces)}' cannot name anything.", hint="'waygraph sites' lists what is mapped.")
    return "/v1/" + "/".join(quote(piece, safe=":") for piece in pieces)


def checked(kind: type[Request], **values: object) -> Request:
    """A request that is checked before it is sent, so that a wrong one gives the same error without a service.

    Raises
    ------
    InvalidInput
        When it is not valid.
    """
    try:
        return kind.model_validate(values)
    except ValidationError as error:
        first = error.errors()[0]
        name = ".".join(str(piece) for piece in first["loc"])
        raise InvalidInput(f"{name}: {first['msg']}.", hint="See the API description.") from error


def _post(answer: type[T], path: str, kind: type[BaseModel], **values: object) -> Call[T]:
    return Call("POST", path, TypeAdapter(answer), _body(checked(kind, **values)))


def _body(request: BaseModel) -> dict[str, Any]:
    """What differs from the defaults: a service that is older than this client refuses what it does not know."""
    return request.model_dump(mode="json", by_alias=True, exclude_defaults=True)


def _filter(where: Filter | None) -> dict[str, Any]:
    return {} if where is None else where.model_dump()
