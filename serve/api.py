"""Which requests does the service answer? Routes only: what they mean is in `serve.maps`."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Hashable
from contextlib import asynccontextmanager
from http import HTTPStatus
from typing import Annotated

import anyio
import anyio.to_thread
from fastapi import APIRouter, Depends, FastAPI, Header, Path, Query, Request, Response
from fastapi.openapi.utils import get_openapi
from starlette.responses import JSONResponse

import waygraph
from pipeline.browser.fingerprint import fingerprint_script
from serve import problems
from serve.answers import SHORT_HASH
from serve.encoding import Encoding, EncodingHere, Remembered
from serve.gate import Gate
from serve.keys import ApiKeys, Caller
from serve.maps import Maps
from serve.mcp.http import McpEndpoint
from serve.metrics import CONTENT_TYPE, Metrics
from serve.questions import Questions
from serve.tracing import Tracing
from serve.workers import Workers
from waygraph.errors import ServiceError
from waygraph.schemas import (
    Alive,
    BatchSearchAnswer,
    BatchSearchRequest,
    FeedbackAnswer,
    FeedbackRequest,
    LocateAnswer,
    LocateRequest,
    MissingPart,
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
    problem_type,
)
from waygraph.settings import Settings

#: Pages of so many elements are located in about a millisecond.
SMALL = 2_000

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


def create_api(
    settings: Settings, maps: Maps, encode_elsewhere: Callable[[Metrics], Encoding] | None = None
) -> FastAPI:
    """Build the HTTP application over `maps`, which it starts when it starts and closes when it ends.

    Parameters
    ----------
    encode_elsewhere : makes what encodes questions; nothing: this process does.

    """
    serve = settings.serve
    tracing = Tracing.from_environment()
    metrics = Metrics(tracing)
    maps.stage = metrics.stage
    workers = Workers(serve.max_waiting, metrics)
    encoding: Encoding = (
        encode_elsewhere(metrics)
        if encode_elsewhere is not None
        else EncodingHere(maps.encoder, max_waiting=serve.max_waiting, metrics=metrics)
    )
    remembered = Remembered(encoding, serve.question_cache_bytes, metrics)
    questions = Questions(maps, remembered, workers, metrics, most_bytes=serve.answer_cache_bytes)
    _watch(metrics, maps, workers, encoding, remembered, questions)

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        maps.start()
        encoding.start()
        try:
            async with mcp.run():
                yield
        finally:
            encoding.close()
            workers.close()
            await anyio.to_thread.run_sync(maps.close)
            tracing.close()

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
    app.add_middleware(Gate, keys=keys, metrics=metrics, request_seconds=serve.request_seconds)
    app.include_router(_health(settings, maps, encoding, workers))
    inside = FastAPI(openapi_url=None)  # the same calls for the MCP tools, whose callers have passed the gate already
    problems.install(inside)
    for router in (_sites(maps, workers), _questions(questions), _ways(maps, workers)):
        app.include_router(router)
        inside.include_router(router)
    mcp = McpEndpoint(inside, with_keys=bool(keys))
    app.router.routes.append(mcp.route)
    document = problems.describe(
        get_openapi(title=app.title, version=app.version, summary=app.summary, routes=app.routes),
        with_keys=bool(keys),
    )

    @app.get("/metrics", include_in_schema=False)
    async def measured() -> Response:
        return Response(metrics.page(), media_type=CONTENT_TYPE)

    @app.get("/openapi.json", include_in_schema=False)
    async def openapi() -> JSONResponse:
        return JSONResponse(document)

    return app


def _watch(  # noqa: PLR0917 - a list of what there is
    metrics: Metrics, maps: Maps, workers: Workers, encoding: Encoding, remembered: Remembered, questions: Questions
) -> None:
    """What is read when somebody looks at the metrics."""
    metrics.watch("waygraph_open_sites", "Maps that are open.", lambda: maps.held.maps)
    metrics.watch("waygraph_open_bytes", "About what open maps take in memory.", lambda: maps.held.bytes)
    metrics.watch_counter(
        "waygraph_closed_for_room", "Maps closed because open ones took too much.", lambda: maps.held.let_go
    )
    metrics.watch("waygraph_waiting_for_encoder", "Questions waiting or being encoded.", lambda: encoding.waiting)
    metrics.watch("waygraph_waiting_for_thread", "Calls waiting for a thread.", lambda: workers.waiting)
    metrics.watch("waygraph_question_cache_bytes", "Remembered questions.", lambda: remembered.known.bytes)
    metrics.watch("waygraph_answer_cache_bytes", "Remembered answers.", lambda: questions.known.bytes)


def _health(settings: Settings, maps: Maps, encoding: Encoding, workers: Workers) -> APIRouter:
    router = APIRouter(tags=["health"])

    @router.get("/healthz")
    async def healthz() -> Alive:
        """Whether the service runs."""
        return Alive()

    @router.get("/readyz", response_model=Ready)
    async def readyz(request: Request) -> Ready | Response:
        """Whether the store is open and the encoder loaded; if not, what is missing."""
        found = (("store", maps.missing, False), ("encoder", encoding.missing, encoding.failed))
        missing = [
            MissingPart(part=part, type=problem_type(why.slug), detail=why.message, hint=why.hint, final=final)
            for part, why, final in found
            if why is not None
        ]
        if missing:
            error = ServiceError("Not ready: " + " ".join(part.detail for part in missing), hint=missing[0].hint)
            extensions = {"missing": [part.model_dump() for part in missing]}
            return problems.problem(error, instance=request.url.path, extensions=extensions)
        return Ready(sites=await workers.run(maps.count), encoder=settings.encode.encoder)

    return router


def _sites(maps: Maps, workers: Workers) -> APIRouter:
    router = APIRouter(prefix="/v1/sites", tags=["sites"])

    @router.get("")
    async def sites(caller: Asking) -> list[SiteSummary]:
        """All mapped sites that the caller may ask for, by key."""
        return [site for site in await workers.run(maps.sites) if caller.may_see(site.site)]

    @router.get("/{site}")
    async def site_detail(site: Site) -> SiteDetail:
        """One site: versions, sizes, encoder, capture profile, and the account of the run that made the map."""
        return await workers.run(maps.site, site)

    @router.get("/{site}/nodes/{node_id}")
    async def node(site: Site, node_id: NodeId) -> NodeAnswer:
        """One state: what it shows and what can be done from it; `node_id` tells which when another look was named."""
        return await workers.run(maps.node, site, node_id)

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
        content = await workers.run(maps.screenshot_hash, site, node_id)
        # The address with the content's hash names this image for ever; without, the next version's may differ.
        unchanging = len(v) >= SHORT_HASH and content.startswith(v)
        headers = {
            "ETag": f'"{content}"',
            "Cache-Control": "private, max-age=31536000, immutable" if unchanging else "private, no-cache",
        }
        if if_none_match is not None and f'"{content}"' in if_none_match:
            return Response(status_code=HTTPStatus.NOT_MODIFIED, headers=headers)
        return Response(await workers.run(maps.blob, content), media_type="image/jpeg", headers=headers)

    return router


def _questions(questions: Questions) -> APIRouter:
    router = APIRouter(prefix="/v1", tags=["questions"])

    @router.post("/search", response_model=SearchAnswer)
    async def search_everywhere(wanted: SearchRequest, caller: Asking) -> Response:
        """The states of all sites that answer a question best."""
        return _json(await questions.search(None, wanted.query, wanted.k, filter_of(wanted), sites=caller.sites))

    @router.post("/search/batch", response_model=BatchSearchAnswer)
    async def search_batch(wanted: BatchSearchRequest, caller: Asking) -> Response:
        """Several questions at once; when one cannot be answered, none is."""
        if wanted.site is not None:
            caller.check(wanted.site)
        found = [b""] * len(wanted.searches)

        async def answer(number: int, each: SearchRequest) -> None:
            found[number] = await questions.search(wanted.site, each.query, each.k, filter_of(each), sites=caller.sites)

        try:
            async with anyio.create_task_group() as group:
                for number, each in enumerate(wanted.searches):
                    group.start_soon(answer, number, each)
        except ExceptionGroup as errors:
            raise errors.exceptions[0] from errors
        return _json(b'{"answers":[' + b",".join(found) + b"]}")

    @router.post("/sites/{site}/search", response_model=SearchAnswer)
    async def search(site: Site, wanted: SearchRequest) -> Response:
        """The states of one site that answer a question best."""
        return _json(await questions.search(site, wanted.query, wanted.k, filter_of(wanted)))

    @router.post("/navigate")
    async def navigate(wanted: NavigateRequest, caller: Asking) -> NavigateAnswer:
        """Find the state that is meant, and the way to it from where the caller is, in one call."""
        caller.check(wanted.site)
        return await questions.navigate(wanted)

    return router


def _kind(call: str, maps: Maps, site: str) -> Hashable:
    """Calls that take about equally long: of one open map. Nothing where it is not open, since opening takes long."""
    version = maps.version_now(site)
    return None if version is None else (call, site, version)


def _json(content: bytes) -> Response:
    return Response(content, media_type="application/json")


def _ways(maps: Maps, workers: Workers) -> APIRouter:
    router = APIRouter(prefix="/v1", tags=["ways"])

    @router.get("/fingerprint.js", response_class=Response, responses={200: {"content": {"text/javascript": {}}}})
    async def fingerprint() -> Response:
        """A script that computes what `locate` takes: run it in the caller's page (see its first lines)."""
        return Response(fingerprint_script(), media_type="text/javascript")

    @router.post("/sites/{site}/locate")
    async def locate(site: Site, seen: LocateRequest) -> LocateAnswer:
        """Which state the caller is in: by exact id, else by evidence, by the nearest structure, by URL."""
        is_small = max(len(seen.structure or ()), len(seen.features or ())) <= SMALL
        kind = _kind("locate", maps, site) if is_small else None
        return await workers.run_maybe_here(kind, maps.locate, site, seen.url, seen.structure, seen.features)

    @router.post("/sites/{site}/path")
    async def path(site: Site, wanted: PathRequest) -> PathAnswer:
        """The cheapest executable action sequence from one state to another."""
        kind = _kind("path", maps, site) if not (wanted.avoid or wanted.alternatives) else None
        return await workers.run_maybe_here(
            kind,
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
        return await workers.run(maps.feedback, site, report.walked)

    return router
