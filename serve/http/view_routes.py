"""Routes that show whole maps: cards of sites, graphs in columns, elements of states, small images, runs, captures."""

from __future__ import annotations

import hashlib
from collections.abc import Collection
from http import HTTPStatus
from typing import Annotated

from fastapi import APIRouter, Header, Query, Response

from waygraph.core.run_progress import RunProgress
from waygraph.core.schemas import SiteKey
from waygraph.core.view_schemas import CaptureKind, ElementsAnswer, GraphAnswer, SiteCard
from waygraph.serve.http.keys import Caller
from waygraph.serve.http.routes import CACHE_FOREVER, CurrentCaller, ImageHash, NodeId, Site
from waygraph.serve.query.answers import SHORT_HASH
from waygraph.serve.query.maps import Maps
from waygraph.serve.query.worker_threads import WorkerThreads
from waygraph.serve.views.map_views import MapViews
from waygraph.serve.views.progress import RunsInProgress

IfNoneMatch = Annotated[str | None, Header()]
NOT_MODIFIED = {"description": "The caller has this answer already."}


def view_routes(maps: Maps, threads: WorkerThreads) -> APIRouter:
    """Return the routes that show whole maps."""
    router = APIRouter(prefix="/v1", tags=["views"])
    views = MapViews(maps)
    runs = RunsInProgress(maps)

    @router.get("/cards")
    async def cards(
        caller: CurrentCaller,
        site: Annotated[SiteKey | None, Query(description="Only this site; none if it is not mapped.")] = None,
    ) -> list[SiteCard]:
        """List the mapped sites that the caller may access, with size, start page and outcome of the last run."""
        return await threads.run(views.cards, wanted_sites(caller, site))

    @router.get("/progress")
    async def progress(caller: CurrentCaller) -> list[RunProgress]:
        """List the runs that are going on, with the sites that they work on."""
        return await threads.run(runs.progress, caller.sites)

    @router.get("/sites/{site}/graph", response_model=GraphAnswer, responses={304: NOT_MODIFIED})
    async def graph(site: Site, if_none_match: IfNoneMatch = None) -> Response:
        """Return all states and edges of a map, in columns."""
        return json_unless_known(await threads.run(views.graph, site), if_none_match)

    @router.get("/sites/{site}/nodes/{node_id}/elements")
    async def elements(site: Site, node_id: NodeId) -> ElementsAnswer:
        """Describe the elements of one state: where they are and lead, and which are not in the map, and why."""
        return await threads.run(views.elements, site, node_id)

    @router.get(
        "/sites/{site}/nodes/{node_id}/captures/{kind}",
        response_class=Response,
        responses={200: {"content": {"text/plain": {}}}},
    )
    async def capture(site: Site, node_id: NodeId, kind: CaptureKind) -> Response:
        """Return the HTML (`dom`) or the accessibility snapshot (`aria`) of a state, as a file of plain text."""
        captured = await threads.run(views.capture, site, node_id, kind)
        # As text, and named so: opened as HTML, the file would run the scripts of the mapped site.
        headers = {
            "Content-Disposition": f'attachment; filename="{captured.name}"',
            "Cache-Control": "private, no-cache",
            "X-Content-Type-Options": "nosniff",
        }
        return Response(captured.content, media_type="text/plain; charset=utf-8", headers=headers)

    @router.get(
        "/sites/{site}/nodes/{node_id}/thumbnail",
        response_class=Response,
        responses={200: {"content": {"image/jpeg": {}}}, 304: NOT_MODIFIED},
    )
    async def thumbnail(
        site: Site,
        node_id: NodeId,
        v: ImageHash = "",
        if_none_match: IfNoneMatch = None,
    ) -> Response:
        """Return the top of a state's screenshot as a small JPEG image."""
        content_hash = await threads.run(maps.screenshot_hash, site, node_id)
        is_immutable = len(v) >= SHORT_HASH and content_hash.startswith(v)
        return await _small_image(content_hash, if_none_match, is_immutable=is_immutable)

    @router.get(
        "/sites/{site}/thumbnail",
        response_class=Response,
        responses={200: {"content": {"image/jpeg": {}}}, 304: NOT_MODIFIED},
    )
    async def site_thumbnail(site: Site, if_none_match: IfNoneMatch = None) -> Response:
        """Return a small image of the start page, without opening the map."""
        content_hash = await threads.run(views.start_screenshot, site)
        return await _small_image(content_hash, if_none_match, is_immutable=False)

    async def _small_image(content_hash: str, if_none_match: str | None, *, is_immutable: bool) -> Response:
        etag = f'"small-{content_hash}"'
        headers = {"ETag": etag, "Cache-Control": CACHE_FOREVER if is_immutable else "private, no-cache"}
        if if_none_match is not None and etag in if_none_match:
            return Response(status_code=HTTPStatus.NOT_MODIFIED, headers=headers)
        content = await threads.run(views.thumbnail, content_hash)
        return Response(content, media_type="image/jpeg", headers=headers)

    return router


def wanted_sites(caller: Caller, site: str | None) -> Collection[str] | None:
    """Return the site that a caller names, which it must have access to, or else all that it may access; None: all."""
    if site is None:
        return caller.sites
    caller.require_access(site)
    return (site,)


def json_unless_known(content: bytes, if_none_match: str | None) -> Response:
    """Return a JSON text, or 304 if the caller has it already."""
    etag = f'"{hashlib.sha256(content).hexdigest()[:32]}"'
    headers = {"ETag": etag, "Cache-Control": "private, no-cache"}
    if if_none_match is not None and etag in if_none_match:
        return Response(status_code=HTTPStatus.NOT_MODIFIED, headers=headers)
    return Response(content, media_type="application/json", headers=headers)
