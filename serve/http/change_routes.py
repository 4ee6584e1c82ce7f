"""Routes that show differences between the versions of a map."""

from __future__ import annotations

from http import HTTPStatus
from typing import Annotated

from fastapi import APIRouter, Path, Query, Response

from waygraph.core.schemas import VersionNumber
from waygraph.core.view_schemas import ChangesAnswer
from waygraph.serve.http.routes import NodeId, Site
from waygraph.serve.http.view_routes import NOT_MODIFIED, IfNoneMatch, json_unless_known
from waygraph.serve.query.maps import Maps
from waygraph.serve.query.worker_threads import WorkerThreads
from waygraph.serve.views.change_views import ChangeViews

_OlderVersion = Annotated[VersionNumber | None, Query(alias="from", description="Default: the one before `to`.")]
_NewerVersion = Annotated[VersionNumber | None, Query(alias="to", description="Default: the current version.")]


def change_routes(maps: Maps, threads: WorkerThreads) -> APIRouter:
    """Return the routes that show differences between versions."""
    router = APIRouter(prefix="/v1", tags=["views"])
    views = ChangeViews(maps)

    @router.get("/sites/{site}/changes", response_model=ChangesAnswer, responses={304: NOT_MODIFIED})
    async def changed(
        site: Site, older: _OlderVersion = None, newer: _NewerVersion = None, if_none_match: IfNoneMatch = None
    ) -> Response:
        """Return what changed between two versions of a map, without differences in noise."""
        return json_unless_known(await threads.run(views.changes, site, older, newer), if_none_match)

    @router.get(
        "/sites/{site}/versions/{version}/nodes/{node_id}/screenshot",
        response_class=Response,
        responses={200: {"content": {"image/jpeg": {}}}, 304: NOT_MODIFIED},
    )
    async def screenshot_of_version(
        site: Site,
        version: Annotated[VersionNumber, Path(description="Number of a published version.")],
        node_id: NodeId,
        if_none_match: IfNoneMatch = None,
    ) -> Response:
        """Return the screenshot of a state in a version; the id is a full one."""
        content_hash = await threads.run(views.screenshot_hash, site, version, node_id)
        etag = f'"{content_hash}"'
        # Not for ever: a removed site that is mapped again starts with version 1 again.
        headers = {"ETag": etag, "Cache-Control": "private, no-cache"}
        if if_none_match is not None and etag in if_none_match:
            return Response(status_code=HTTPStatus.NOT_MODIFIED, headers=headers)
        return Response(await threads.run(maps.blob, content_hash), media_type="image/jpeg", headers=headers)

    return router
