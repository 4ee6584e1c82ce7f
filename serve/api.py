"""Which requests does the service answer? Routes only: what they mean is in `serve.maps`."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial
from http import HTTPStatus
from typing import Annotated, ParamSpec, TypeVar

import anyio
import anyio.to_thread
from fastapi import APIRouter, FastAPI, Header, Path, Query, Request, Response
from fastapi.openapi.utils import get_openapi
from starlette.responses import JSONResponse

import waygraph
from serve import problems
from serve.answers import SHORT_HASH
from serve.gate import ApiKeys, Gate
from serve.maps import Maps
from waygraph.errors import ServiceError
from waygraph.schemas import (
    Alive,
    LocateAnswer,
    LocateRequest,
    NodeAnswer,
    PathAnswer,
    PathRequest,
    Ready,
    SearchAnswer,
    SearchRequest,
    SiteDetail,
    SiteSummary,
)
from waygraph.settings import Settings

P = ParamSpec("P")
T = TypeVar("T")

Site = Annotated[str, Path(description="Key of the site: its exact host, with the port when it is not the default.")]
NodeId = Annotated[str, Path(description="Id of a state, or a unique beginning of one.", max_length=64)]

#: Threads that read maps and blobs.
READS_AT_ONCE = 16

#: Threads that search. They mostly wait to be encoded together, so there are more of them than CPUs.
SEARCHES_AT_ONCE = 32


class Workers:
    """Runs blocking calls in threads, so that the event loop goes on answering."""

    def __init__(self) -> None:
        self._reading = anyio.CapacityLimiter(READS_AT_ONCE)
        self._searching = anyio.CapacityLimiter(SEARCHES_AT_ONCE)

    async def read(self, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run what reads a map."""
        return await anyio.to_thread.run_sync(partial(function, *args, **kwargs), limiter=self._reading)

    async def search(self, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run what encodes a question."""
        return await anyio.to_thread.run_sync(partial(function, *args, **kwargs), limiter=self._searching)


def create_api(settings: Settings, maps: Maps) -> FastAPI:
    """Build the HTTP application over `maps`, which it starts when it starts and closes when it ends."""
    workers = Workers()

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        maps.start()
        try:
            yield
        finally:
            await workers.read(maps.close)

    app = FastAPI(
        title="waygraph",
        version=waygraph.__version__,
        summary="Where is the page that ...? How do I get there from here?",
        lifespan=lifespan,
        openapi_url=None,  # ours is below
        docs_url=None,  # the interactive pages load scripts from elsewhere
        redoc_url=None,
    )
    problems.install(app)
    app.add_middleware(Gate, keys=ApiKeys(settings.serve.api_keys))
    app.include_router(_health(settings, maps, workers))
    app.include_router(_sites(maps, workers))
    app.include_router(_questions(maps, workers))
    document = problems.describe(
        get_openapi(title=app.title, version=app.version, summary=app.summary, routes=app.routes),
        with_keys=bool(settings.serve.api_keys),
    )

    @app.get("/openapi.json", include_in_schema=False)
    async def openapi() -> JSONResponse:
        return JSONResponse(document)

    return app


def _health(settings: Settings, maps: Maps, workers: Workers) -> APIRouter:
    router = APIRouter(tags=["health"])

    @router.get("/healthz")
    async def healthz() -> Alive:
        """Whether the service runs."""
        return Alive()

    @router.get("/readyz", response_model=Ready)
    async def readyz(request: Request) -> Ready | Response:
        """Whether the store is open and the encoder loaded; if not, what is missing."""
        if missing := maps.missing():
            error = ServiceError("Not ready: " + " ".join(part.detail for part in missing), hint=missing[0].hint)
            extensions = {"missing": [part.model_dump() for part in missing]}
            return problems.problem(error, instance=request.url.path, extensions=extensions)
        return Ready(sites=await workers.read(maps.count), encoder=settings.encode.encoder)

    return router


def _sites(maps: Maps, workers: Workers) -> APIRouter:
    router = APIRouter(prefix="/v1/sites", tags=["sites"])

    @router.get("")
    async def sites() -> list[SiteSummary]:
        """All mapped sites, by key."""
        return await workers.read(maps.sites)

    @router.get("/{site}")
    async def site_detail(site: Site) -> SiteDetail:
        """One site: versions, sizes, encoder, capture profile, and the account of the run that made the map."""
        return await workers.read(maps.site, site)

    @router.get("/{site}/nodes/{node_id}")
    async def node(site: Site, node_id: NodeId) -> NodeAnswer:
        """One state: what it shows and what can be done from it; `node_id` tells which when another look was named."""
        return await workers.read(maps.node, site, node_id)

    @router.get(
        "/{site}/nodes/{node_id}/screenshot",
        response_class=Response,
        responses={200: {"content": {"image/jpeg": {}}}, 304: {"description": "The caller has it already."}},
    )
    async def screenshot(
        site: Site,
        node_id: NodeId,
        v: Annotated[str, Query(description="Content hash, as in the node's `screenshot`.", max_length=64)] = "",
        if_none_match: Annotated[str | None, Header()] = None,
    ) -> Response:
        """What the state looked like."""
        content = await workers.read(maps.screenshot_hash, site, node_id)
        # The address with the content's hash names this image for ever; without, the next version's may differ.
        unchanging = len(v) >= SHORT_HASH and content.startswith(v)
        headers = {
            "ETag": f'"{content}"',
            "Cache-Control": "private, max-age=31536000, immutable" if unchanging else "private, no-cache",
        }
        if if_none_match is not None and f'"{content}"' in if_none_match:
            return Response(status_code=HTTPStatus.NOT_MODIFIED, headers=headers)
        return Response(await workers.read(maps.blob, content), media_type="image/jpeg", headers=headers)

    return router


def _questions(maps: Maps, workers: Workers) -> APIRouter:
    router = APIRouter(prefix="/v1", tags=["questions"])

    @router.post("/search")
    async def search_everywhere(wanted: SearchRequest) -> SearchAnswer:
        """The states of all sites that answer a question best."""
        return await workers.search(maps.search, None, wanted.query, wanted.k)

    @router.post("/sites/{site}/search")
    async def search(site: Site, wanted: SearchRequest) -> SearchAnswer:
        """The states of one site that answer a question best."""
        return await workers.search(maps.search, site, wanted.query, wanted.k)

    @router.post("/sites/{site}/locate")
    async def locate(site: Site, seen: LocateRequest) -> LocateAnswer:
        """Which state the caller is in: by exact id, else by the nearest structure, else by URL."""
        return await workers.read(maps.locate, site, seen.url, seen.structure)

    @router.post("/sites/{site}/path")
    async def path(site: Site, wanted: PathRequest) -> PathAnswer:
        """The cheapest executable action sequence from one state to another."""
        return await workers.read(maps.path, site, wanted.source, wanted.target, wanted.allow_goto, wanted.avoid)

    return router
