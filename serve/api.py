"""Which requests does the service answer? Routes only: what they mean is in `serve.maps`."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial
from http import HTTPStatus
from typing import Annotated, ParamSpec, TypeVar

import anyio
import anyio.to_thread
from fastapi import APIRouter, Depends, FastAPI, Header, Path, Query, Request, Response
from fastapi.openapi.utils import get_openapi
from starlette.responses import JSONResponse

import waygraph
from pipeline.browser.fingerprint import fingerprint_script
from serve import problems
from serve.answers import SHORT_HASH
from serve.gate import Gate
from serve.keys import ApiKeys, Caller
from serve.maps import Maps
from serve.mcp.http import McpEndpoint
from waygraph.errors import Overloaded, ServiceError
from waygraph.schemas import (
    Alive,
    BatchSearchAnswer,
    BatchSearchRequest,
    FeedbackAnswer,
    FeedbackRequest,
    LocateAnswer,
    LocateRequest,
    NavigateAnswer,
    NavigateRequest,
    NodeAnswer,
    PathAnswer,
    PathRequest,
    Ready,
    SearchAnswer,
    SearchRequest,
    SiteDetail,
    SiteSummary,
    filter_of,
)
from waygraph.settings import ServeSettings, Settings

P = ParamSpec("P")
T = TypeVar("T")

NodeId = Annotated[str, Path(description="Id of a state, or a unique beginning of one.", max_length=64)]


# Coroutines: FastAPI would run plain functions in threads.
async def _caller(request: Request) -> Caller:
    caller: Caller = request.state.caller  # the gate says who it is
    return caller


Asking = Annotated[Caller, Depends(_caller)]


async def _allowed(
    site: Annotated[
        str, Path(description="Key of the site: its exact host, with the port when it is not the default.")
    ],
    caller: Asking,
) -> str:
    caller.check(site)
    return site


#: A site that the caller may ask for.
Site = Annotated[str, Depends(_allowed)]

#: Threads that read maps and blobs.
READS_AT_ONCE = 16

#: Threads that search. They mostly wait to be encoded together, so there are more of them than CPUs.
SEARCHES_AT_ONCE = 32


class Workers:
    """Runs blocking calls in threads, so that the event loop goes on answering.

    So many may wait for a thread; whoever comes then is told to come again, and loses no time by waiting in vain.
    """

    def __init__(self, settings: ServeSettings) -> None:
        self._settings = settings
        self._reading = anyio.CapacityLimiter(READS_AT_ONCE)
        self._searching = anyio.CapacityLimiter(SEARCHES_AT_ONCE)
        self._under_way = Counter[anyio.CapacityLimiter]()

    async def read(self, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run what reads a map (Overloaded)."""
        return await self._run(self._reading, partial(function, *args, **kwargs))

    async def search(self, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run what encodes a question (Overloaded)."""
        return await self._run(self._searching, partial(function, *args, **kwargs))

    async def _run(self, limiter: anyio.CapacityLimiter, work: Callable[[], T]) -> T:
        waiting = self._under_way[limiter] - int(limiter.total_tokens)
        if waiting >= self._settings.max_waiting:
            raise Overloaded(f"{waiting} requests are waiting already.", hint="Send it again a little later.")
        # Counted here: a limiter knows only of those that got as far as waiting.
        self._under_way[limiter] += 1
        try:
            with anyio.fail_after(self._settings.request_seconds):
                # A thread that is at it cannot be stopped; it ends by itself, and its answer reaches nobody.
                return await anyio.to_thread.run_sync(work, limiter=limiter, abandon_on_cancel=True)
        except TimeoutError as error:
            raise Overloaded(
                f"No answer within {self._settings.request_seconds:g} s.", hint="Send it again a little later."
            ) from error
        finally:
            self._under_way[limiter] -= 1


def create_api(settings: Settings, maps: Maps) -> FastAPI:
    """Build the HTTP application over `maps`, which it starts when it starts and closes when it ends."""
    workers = Workers(settings.serve)

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        maps.start()
        try:
            async with mcp.run():
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
    keys = ApiKeys(settings.serve)
    app.add_middleware(Gate, keys=keys)
    app.include_router(_health(settings, maps, workers))
    inside = FastAPI(openapi_url=None)  # the same calls for the MCP tools, whose callers have passed the gate already
    problems.install(inside)
    for router in (_sites(maps, workers), _questions(maps, workers), _ways(maps, workers)):
        app.include_router(router)
        inside.include_router(router)
    mcp = McpEndpoint(inside, with_keys=bool(keys))
    app.router.routes.append(mcp.route)
    document = problems.describe(
        get_openapi(title=app.title, version=app.version, summary=app.summary, routes=app.routes),
        with_keys=bool(keys),
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
    async def sites(caller: Asking) -> list[SiteSummary]:
        """All mapped sites that the caller may ask for, by key."""
        return [site for site in await workers.read(maps.sites) if caller.may_see(site.site)]

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
    async def search_everywhere(wanted: SearchRequest, caller: Asking) -> SearchAnswer:
        """The states of all sites that answer a question best."""
        return await workers.search(maps.search, None, wanted.query, wanted.k, filter_of(wanted), sites=caller.sites)

    @router.post("/search/batch")
    async def search_batch(wanted: BatchSearchRequest, caller: Asking) -> BatchSearchAnswer:
        """Several questions at once; when one cannot be answered, none is."""
        if wanted.site is not None:
            caller.check(wanted.site)
        found: list[SearchAnswer | None] = [None] * len(wanted.searches)

        async def answer(number: int, each: SearchRequest) -> None:
            found[number] = await workers.search(
                maps.search, wanted.site, each.query, each.k, filter_of(each), sites=caller.sites
            )

        try:
            async with anyio.create_task_group() as group:
                for number, each in enumerate(wanted.searches):
                    group.start_soon(answer, number, each)
        except ExceptionGroup as errors:
            raise errors.exceptions[0] from errors
        return BatchSearchAnswer(answers=[each for each in found if each is not None])

    @router.post("/sites/{site}/search")
    async def search(site: Site, wanted: SearchRequest) -> SearchAnswer:
        """The states of one site that answer a question best."""
        return await workers.search(maps.search, site, wanted.query, wanted.k, filter_of(wanted))

    @router.post("/navigate")
    async def navigate(wanted: NavigateRequest, caller: Asking) -> NavigateAnswer:
        """Find the state that is meant, and the way to it from where the caller is, in one call."""
        caller.check(wanted.site)
        return await workers.search(maps.navigate, wanted)

    return router


def _ways(maps: Maps, workers: Workers) -> APIRouter:
    router = APIRouter(prefix="/v1", tags=["ways"])

    @router.get("/fingerprint.js", response_class=Response, responses={200: {"content": {"text/javascript": {}}}})
    async def fingerprint() -> Response:
        """A script that computes what `locate` takes: run it in the caller's page (see its first lines)."""
        return Response(fingerprint_script(), media_type="text/javascript")

    @router.post("/sites/{site}/locate")
    async def locate(site: Site, seen: LocateRequest) -> LocateAnswer:
        """Which state the caller is in: by exact id, else by the nearest structure, else by URL."""
        return await workers.read(maps.locate, site, seen.url, seen.structure)

    @router.post("/sites/{site}/path")
    async def path(site: Site, wanted: PathRequest) -> PathAnswer:
        """The cheapest executable action sequence from one state to another."""
        return await workers.read(
            maps.path,
            site,
            wanted.source,
            wanted.target,
            allow_goto=wanted.allow_goto,
            avoid=wanted.avoid,
            others=wanted.alternatives,
        )

    @router.post("/sites/{site}/feedback", status_code=HTTPStatus.ACCEPTED)
    async def feedback(site: Site, report: FeedbackRequest) -> FeedbackAnswer:
        """How steps of paths worked: paths avoid what failed for a while, and maintenance looks at it."""
        return await workers.read(maps.feedback, site, report.walked)

    return router
