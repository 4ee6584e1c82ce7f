"""The built files of the page, read once, and the routes that serve them."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from http import HTTPStatus
from importlib import resources
from pathlib import PurePath
from typing import Annotated

from fastapi import APIRouter, Header, Response

from waygraph.core.errors import NotFound
from waygraph.core.schemas import MaxBytes

#: What the page may do: load scripts, styles, images and answers of this service, and show images that it fetched with
#: an API key (`blob:`). Nothing is evaluated, and no HTML is made from texts, which the last two directives enforce.
CONTENT_SECURITY_POLICY = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self' blob:",
        "connect-src 'self'",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
        "require-trusted-types-for 'script'",
        "trusted-types 'none'",
    )
)

#: Not those of the system, which differ from one to the next.
_MEDIA_TYPES = {
    ".css": "text/css; charset=utf-8",
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".json": "application/json",
    ".svg": "image/svg+xml",
}
_CACHE_FOREVER = "public, max-age=31536000, immutable"


@dataclass(frozen=True, slots=True)
class PageFile:
    """One built file."""

    content: bytes
    media_type: str
    etag: str


def read_built(folder: str = "") -> dict[str, PageFile]:
    """Return the built files by name.

    Parameters
    ----------
    folder
        Folder within the build: empty for `index.html`, `ui` for what it loads, whose names contain content hashes.

    Returns
    -------
    dict of str to PageFile
        The files.
    """
    found = {}
    for entry in resources.files("waygraph.serve.ui").joinpath("built", folder).iterdir():
        if entry.is_file():
            content = entry.read_bytes()
            media_type = _MEDIA_TYPES[PurePath(entry.name).suffix]
            found[entry.name] = PageFile(content, media_type, f'"{hashlib.sha256(content).hexdigest()[:32]}"')
    return found


def page_routes() -> APIRouter:
    """Return the routes of the page: `/`, and the files that it loads under `/ui/`. They need no API key."""
    router = APIRouter(include_in_schema=False)
    index, files = read_built()["index.html"], read_built("ui")

    @router.get("/")
    async def page(if_none_match: Annotated[str | None, Header()] = None) -> Response:
        headers = {
            "ETag": index.etag,
            "Cache-Control": "no-cache",
            "Content-Security-Policy": CONTENT_SECURITY_POLICY,
        }
        if if_none_match is not None and index.etag in if_none_match:
            return Response(status_code=HTTPStatus.NOT_MODIFIED, headers=headers)
        return Response(index.content, media_type=index.media_type, headers=headers)

    @router.get("/ui/{name}")
    async def page_file(name: Annotated[str, MaxBytes(200)]) -> Response:
        if (file := files.get(name)) is None:
            raise NotFound(f"The page has no file '{name}'.", hint="Reload the page: its files may be newer.")
        return Response(file.content, media_type=file.media_type, headers={"Cache-Control": _CACHE_FOREVER})

    return router
