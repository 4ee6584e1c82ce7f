"""Maps of a store, read in this process without a service and with the same answers."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from os import PathLike, fspath
from typing import Any, TypeVar

from waygraph.client import requests
from waygraph.client.map_source import MapSource
from waygraph.client.requests import Endpoint, MapRequest
from waygraph.core.errors import StoreError
from waygraph.core.settings import Settings
from waygraph.serve.query.maps import Maps

T = TypeVar("T")

#: The method of `Maps` that answers each endpoint.
_METHODS: dict[Endpoint[Any], Callable[..., Any]] = {
    requests.SITES: Maps.sites,
    requests.SITE: Maps.site,
    requests.SEARCH: Maps.search,
    requests.SEARCH_ALL_SITES: Maps.search_all_sites,
    requests.SEARCH_BATCH: Maps.search_batch,
    requests.LOCATE: Maps.locate,
    requests.PATH: Maps.path,
    requests.NAVIGATE: Maps.navigate,
    requests.FEEDBACK: Maps.feedback,
    requests.NODE: Maps.node,
    requests.TOOLS: Maps.tools,
    requests.SCREENSHOT: Maps.screenshot,
}


class StoreMap(MapSource):
    """The maps of a store. Each map is opened by its first request, and the encoder is loaded by the first search.

    Parameters
    ----------
    store
        Folder or storage URL of the maps.
    settings
        Encoder, selector and refresh settings; `settings.store` is not used.

    Raises
    ------
    StoreError
        If the folder is not a store, is not readable, or was written by a newer schema.
    """

    def __init__(self, store: str | PathLike[str], settings: Settings | None = None) -> None:
        settings = (settings or Settings()).model_copy(update={"store": fspath(store)})
        self._maps = Maps(settings)
        self._maps.open()
        self._refresh_seconds = settings.serve.refresh_seconds
        self._refreshed_at = time.monotonic()

    def send(self, request: MapRequest[T]) -> T:
        """Answer one request from the newest versions, which are looked up as often as a service does."""
        now = time.monotonic()
        if now - self._refreshed_at >= self._refresh_seconds:
            self._refreshed_at = now
            self._maps.refresh()
        answer: T = _METHODS[request.endpoint](self._maps, *request.arguments)
        return answer

    @property
    def failures(self) -> Mapping[str, StoreError]:
        """Sites whose map could not be read so far, with the reason."""
        return self._maps.catalog.failures if self._maps.is_open else {}

    def close(self) -> None:
        """Close every opened map. Closing twice is allowed."""
        self._maps.close()
