"""Search and navigation on an event loop: through the caches, the query encoder and a thread that searches."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import TypeVar

from waygraph.core.lru_cache import LruCache
from waygraph.core.schemas import NavigateAnswer, NavigateRequest, SearchRequest
from waygraph.serve.query.async_encoder import CachedQueryEncoder
from waygraph.serve.query.maps import Maps
from waygraph.serve.query.worker_threads import WorkerThreads
from waygraph.serve.telemetry.metrics import Metrics

T = TypeVar("T")

#: What a search answer depends on, besides the encoder of the process: site, version, and the request. The request
#: itself, since texts made of requests, such as JSON, may be equal for requests that differ.
_AnswerKey = tuple[str, int, SearchRequest]


class CachedQueries:
    """Answers searches, on one event loop.

    Answers are cached as the bytes that are sent. The version of the map is part of the cache key, so a new version
    needs no invalidation: answers of older versions are evicted in time.

    Parameters
    ----------
    maps
        The maps.
    encoder
        Encodes queries.
    threads
        Threads that search.
    metrics
        Counts cache look-ups.
    max_bytes
        Size of the cached answers.

    Attributes
    ----------
    cache
        The cached answers as JSON.
    """

    def __init__(
        self, maps: Maps, encoder: CachedQueryEncoder, threads: WorkerThreads, metrics: Metrics, *, max_bytes: int
    ) -> None:
        self._maps = maps
        self._encoder = encoder
        self._threads = threads
        self._metrics = metrics
        self.cache: LruCache[_AnswerKey, bytes] = LruCache(max_bytes)

    async def search(self, site: str, request: SearchRequest) -> bytes:
        """Return the JSON of a `SearchAnswer` for one site; errors are those of `Maps.search`, and `Overloaded`."""
        self._maps.check_query(request.query, request.k)
        request = _with_normalised_query(request)
        version = self._maps.open_version(site)
        if version is None:
            # Before the query is encoded, so that a site that does not exist costs nothing. The map itself is opened
            # after that: while the encoder is loading, as in a replica that was just started, loading comes first.
            version = await self._threads.run(self._maps.newest_version, site)
        key = _cache_key(site, version, request)
        if key is not None:
            cached = self.cache.get(key)
            self._metrics.count_lookup("answer", hit=cached is not None)
            if cached is not None:
                return cached
        encoded = await self._encoder.encode(request.query)

        def answer() -> tuple[bytes, int | None]:
            found = self._maps.search(site, request, encoded)
            return found.model_dump_json().encode(), found.version

        body, answered_version = await self._run_search(answer)
        if key is not None and answered_version == version:  # else a new version was published meanwhile
            self.cache.put(key, body, len(body) + 4 * len(request.query))
        return body

    async def search_all_sites(self, request: SearchRequest, *, sites: Collection[str] | None = None) -> bytes:
        """Return the JSON of a `SearchAnswer` for all sites (of `sites`); errors as in `Maps.search_all_sites`."""
        self._maps.check_query(request.query, request.k)
        request = _with_normalised_query(request)
        encoded = await self._encoder.encode(request.query)

        def answer() -> bytes:
            return self._maps.search_all_sites(request, sites=sites, encoded=encoded).model_dump_json().encode()

        return await self._run_search(answer)

    async def _run_search(self, answer: Callable[[], T]) -> T:
        """Run a search in a thread: with a cross-encoder it takes so long that other calls must not wait behind it."""
        run = self._threads.run_long if self._maps.reranker else self._threads.run
        return await run(answer)

    async def navigate(self, request: NavigateRequest) -> NavigateAnswer:
        """Answer as `Maps.navigate` does, or raise `Overloaded`."""
        self._maps.check_selector(request)
        self._maps.check_query(request.query, request.k)
        if self._maps.open_version(request.site) is None:
            await self._threads.run(self._maps.newest_version, request.site)
        encoded = await self._encoder.encode(request.query)
        return await self._threads.run_long(self._maps.navigate, request, encoded)


def _with_normalised_query(request: SearchRequest) -> SearchRequest:
    return request.model_copy(update={"query": " ".join(request.query.split())})


def _cache_key(site: str, version: int, request: SearchRequest) -> _AnswerKey | None:
    """Return the cache key of a search; None if its answer depends on the current time."""
    if request.max_age_days is not None:
        return None
    return (site, version, request)
