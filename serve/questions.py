"""What does a question pass on its way to an answer? Caches, the encoder's queue, a thread that searches."""

from __future__ import annotations

from collections.abc import Collection

from serve.encoding import Remembered
from serve.lru import Lru
from serve.maps import ANYWHERE, Maps
from serve.metrics import Metrics
from serve.workers import Workers
from waygraph.schemas import Filter, NavigateAnswer, NavigateRequest

#: What an answer depends on besides the encoder, which never changes in a process: site, version, question, k, filter.
_Asked = tuple[str, int, str, int, str]


class Questions:
    """Answers searches, on one event loop.

    An answer is kept as the bytes that are sent. It is found again only under the version that it was made from, so
    that a new version needs no invalidation: what belongs to older ones is forgotten in time.

    Parameters
    ----------
    most_bytes : of answers that are kept.

    """

    def __init__(
        self, maps: Maps, encoding: Remembered, workers: Workers, metrics: Metrics, *, most_bytes: int
    ) -> None:
        self._maps = maps
        self._encoding = encoding
        self._workers = workers
        self._metrics = metrics
        self.known: Lru[_Asked, bytes] = Lru(most_bytes)

    async def search(
        self, site: str | None, query: str, k: int, where: Filter = ANYWHERE, *, sites: Collection[str] | None = None
    ) -> bytes:
        """A `SearchAnswer` as JSON (for errors see `Maps.search`, and Overloaded)."""
        self._maps.check_question(query, k)
        question = " ".join(query.split())
        # What is too old depends on when it is asked.
        key = None
        if site is not None:
            version = self._maps.version_now(site)
            if version is None:
                # Before the question is encoded: a site that is not there costs nothing. Its map is opened after that:
                # where the encoder is still being loaded, as in a replica that was just started, that comes first.
                version = await self._workers.run(self._maps.version_in_store, site)
            if where.max_age_days is None:
                key = (site, version, question, k, where.model_dump_json())
                found = self.known.get(key)
                self._metrics.looked_up("answer", hit=found is not None)
                if found is not None:
                    return found
        encoded = await self._encoding.encode(question)

        def answer() -> tuple[bytes, int | None]:
            made = self._maps.search(site, question, k, where, sites=sites, encoded=encoded)
            return made.model_dump_json().encode(), made.version

        body, answered = await self._workers.run(answer)
        if key is not None and answered == key[1]:  # else a new version came in between
            self.known.put(key, body, len(body) + 4 * len(question))
        return body

    async def navigate(self, wanted: NavigateRequest) -> NavigateAnswer:
        """See `Maps.navigate` (and Overloaded)."""
        self._maps.check_selector(wanted)
        self._maps.check_question(wanted.query, wanted.k)
        if self._maps.version_now(wanted.site) is None:
            await self._workers.run(self._maps.version_in_store, wanted.site)
        encoded = await self._encoding.encode(wanted.query)
        return await self._workers.run_long(self._maps.navigate, wanted, encoded)
