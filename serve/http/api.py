"""The HTTP application: its parts, its middleware, and its OpenAPI document."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from importlib import metadata

import anyio.to_thread
from fastapi import FastAPI, Response
from fastapi.openapi.utils import get_openapi
from starlette.responses import JSONResponse

from waygraph.core.settings import Settings
from waygraph.serve.http import problems
from waygraph.serve.http.change_routes import change_routes
from waygraph.serve.http.keys import ApiKeys
from waygraph.serve.http.middleware import RequestMiddleware
from waygraph.serve.http.routes import health_routes, path_routes, search_routes, site_routes
from waygraph.serve.http.view_routes import view_routes
from waygraph.serve.mcp.endpoint import McpEndpoint
from waygraph.serve.query.async_encoder import AsyncQueryEncoder, CachedQueryEncoder
from waygraph.serve.query.batching_encoder import BatchingQueryEncoder
from waygraph.serve.query.cached_queries import CachedQueries
from waygraph.serve.query.maps import Maps
from waygraph.serve.query.worker_threads import WorkerThreads
from waygraph.serve.telemetry.metrics import CONTENT_TYPE, Metrics
from waygraph.serve.telemetry.tracing import Tracing
from waygraph.serve.ui.page import page_routes


@dataclass(frozen=True, slots=True)
class _Parts:
    """Everything that the routes call."""

    maps: Maps
    threads: WorkerThreads
    encoder: AsyncQueryEncoder
    cached_encoder: CachedQueryEncoder
    queries: CachedQueries


def create_api(
    settings: Settings, maps: Maps, make_remote_encoder: Callable[[Metrics], AsyncQueryEncoder] | None = None
) -> FastAPI:
    """Build the HTTP application.

    Parameters
    ----------
    settings
        Limits, caches and API keys.
    maps
        The maps, which the application starts and closes with itself.
    make_remote_encoder
        Makes the client of another deployment that encodes queries; None encodes in this process.

    Returns
    -------
    FastAPI
        The application, to be run by an ASGI server.
    """
    tracing = Tracing.from_environment()
    metrics = Metrics(tracing)
    maps.stage = metrics.stage
    parts = _create_parts(settings, maps, metrics, make_remote_encoder)
    _add_metrics(metrics, parts)

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        maps.start()
        parts.encoder.start()
        try:
            async with mcp.run():
                yield
        finally:
            parts.encoder.close()
            parts.threads.close()
            await anyio.to_thread.run_sync(maps.close)
            tracing.close()

    app = FastAPI(
        title="waygraph",
        version=metadata.version("waygraph"),
        summary="Where is the page that ...? How do I get there from here?",
        lifespan=lifespan,
        openapi_url=None,  # replaced by the route below
        docs_url=None,  # the interactive pages load scripts from other hosts
        redoc_url=None,
    )
    problems.install(app)
    keys = ApiKeys(settings.serve)
    app.add_middleware(RequestMiddleware, settings=settings.serve, keys=keys, metrics=metrics)
    app.include_router(health_routes(settings.encode.encoder, maps, parts.encoder, parts.threads))
    # The same routes without the middleware, for MCP tools: the middleware has checked their callers already.
    internal = FastAPI(openapi_url=None)
    problems.install(internal)
    for router in (site_routes(maps, parts.threads), search_routes(parts.queries), path_routes(maps, parts.threads)):
        app.include_router(router)
        internal.include_router(router)
    app.include_router(view_routes(maps, parts.threads))
    app.include_router(change_routes(maps, parts.threads))
    app.include_router(page_routes())
    mcp = McpEndpoint(internal)
    app.router.routes.append(mcp.route)
    document = problems.describe(
        get_openapi(title=app.title, version=app.version, summary=app.summary, routes=app.routes),
        with_keys=bool(keys),
    )

    @app.get("/metrics", include_in_schema=False)
    async def prometheus_metrics() -> Response:
        return Response(metrics.render(), media_type=CONTENT_TYPE)

    @app.get("/openapi.json", include_in_schema=False)
    async def openapi() -> JSONResponse:
        return JSONResponse(document)

    return app


def _create_parts(
    settings: Settings,
    maps: Maps,
    metrics: Metrics,
    make_remote_encoder: Callable[[Metrics], AsyncQueryEncoder] | None,
) -> _Parts:
    serve = settings.serve
    threads = WorkerThreads(serve.max_waiting, metrics)
    encoder: AsyncQueryEncoder = (
        make_remote_encoder(metrics)
        if make_remote_encoder is not None
        else BatchingQueryEncoder(maps.encoder, max_waiting=serve.max_waiting, metrics=metrics)
    )
    cached_encoder = CachedQueryEncoder(encoder, serve.question_cache_bytes, metrics)
    queries = CachedQueries(maps, cached_encoder, threads, metrics, max_bytes=serve.answer_cache_bytes)
    return _Parts(maps, threads, encoder, cached_encoder, queries)


def _add_metrics(metrics: Metrics, parts: _Parts) -> None:
    """Add the metrics whose values the parts keep."""
    maps, threads = parts.maps, parts.threads
    metrics.add_gauge("waygraph_open_sites", "Open maps.", lambda: maps.usage.maps)
    metrics.add_gauge("waygraph_open_bytes", "Estimated memory of open maps.", lambda: maps.usage.bytes)
    metrics.add_counter(
        "waygraph_closed_for_room", "Maps closed because open maps exceeded their budget.", lambda: maps.usage.evicted
    )
    metrics.add_labelled_gauge(
        "waygraph_unopened_sites", "Sites whose newest version cannot be opened.", "reason", lambda: maps.unopened
    )
    metrics.add_labelled_counter(
        "waygraph_unopened", "Versions found that cannot be opened.", "reason", lambda: maps.unopened_found
    )
    metrics.add_gauge(
        "waygraph_waiting_for_encoder", "Queries waiting or being encoded.", lambda: parts.encoder.waiting
    )
    metrics.add_gauge("waygraph_waiting_for_thread", "Calls waiting for a thread.", lambda: threads.waiting)
    metrics.add_gauge(
        "waygraph_question_cache_bytes", "Size of cached queries.", lambda: parts.cached_encoder.cache.size_bytes
    )
    metrics.add_gauge("waygraph_answer_cache_bytes", "Size of cached answers.", lambda: parts.queries.cache.size_bytes)
