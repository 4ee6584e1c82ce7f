"""How are states searched on a Qdrant server? Many maps share one collection, told apart by site and version."""

from __future__ import annotations

import itertools
import uuid
from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray
from qdrant_client import QdrantClient, models
from qdrant_client.http.exceptions import UnexpectedResponse

from index.vectors.checks import checked_k, checked_page, checked_query, ranked_from
from index.vectors.protocol import ScoredNode
from waygraph.errors import InvalidInput

VECTOR = "page"
_POINTS_PER_UPSERT = 32
_NAMESPACE = uuid.UUID("6c2f6f1e-8c5b-5a63-9f0a-2f6c1d3b7e55")


class QdrantClientIndex:
    """A `VectorIndex` of one site version in a shared Qdrant collection, through `qdrant-client`.

    Every point carries `site` and `version`, every search filters by both: readers never see a mix. Points of a version
    never change, so that processes may add the same version at the same time. `close` leaves them on the server, since
    other readers may search them; `drop` deletes them. Two stores that share a server need two collections.

    Parameters
    ----------
    client : a connected client; it stays the caller's to close.
    dim : number of columns of every multi-vector.
    site, version : which map the points belong to.
    collection : name of the collection; made when it does not exist.

    """

    def __init__(
        self, client: QdrantClient, dim: int, *, site: str, version: int, collection: str = "waygraph"
    ) -> None:
        self.dim = dim
        self._client = client
        self._collection = collection
        self._site, self._version = site, version
        self._mine = models.Filter(
            must=[
                models.FieldCondition(key="site", match=models.MatchValue(value=site)),
                models.FieldCondition(key="version", match=models.MatchValue(value=version)),
            ]
        )
        self._make_collection()

    def add(self, items: Iterable[tuple[str, NDArray[np.floating]]]) -> None:
        """Add or replace states, see `VectorIndex.add`. Batches before a refused state stay added."""
        remaining = iter(items)
        while batch := list(itertools.islice(remaining, _POINTS_PER_UPSERT)):
            points = [self._point(node_id, checked_page(node_id, page, self.dim)) for node_id, page in batch]
            self._client.upsert(self._collection, points, wait=True)

    def search(self, query: NDArray[np.floating], k: int) -> list[ScoredNode]:
        """The k best states, see `VectorIndex.search`."""
        rows, limit = checked_query(query, self.dim), checked_k(k)

        def fetch(count: int) -> list[tuple[str, float]]:
            hits = self._client.query_points(
                self._collection,
                query=rows.tolist(),
                using=VECTOR,
                query_filter=self._mine,
                limit=count,
                with_payload=["node_id"],
            ).points
            # MAX_SIM is a sum over query rows; scores here are means.
            return [((hit.payload or {})["node_id"], hit.score / len(rows)) for hit in hits]

        return ranked_from(fetch, limit, len(self))

    def __len__(self) -> int:
        return self._client.count(self._collection, count_filter=self._mine, exact=True).count

    def close(self) -> None:
        """Nothing to release: the client is the caller's, and the points may be in use by others."""

    def drop(self) -> None:
        """Delete this version's points from the server, for everyone."""
        self._client.delete(self._collection, models.FilterSelector(filter=self._mine), wait=True)

    def _point(self, node_id: str, page: NDArray[np.floating]) -> models.PointStruct:
        return models.PointStruct(
            id=str(uuid.uuid5(_NAMESPACE, f"{self._site}\n{self._version}\n{node_id}")),
            vector={VECTOR: page.astype(np.float32).tolist()},
            payload={"site": self._site, "version": self._version, "node_id": node_id},
        )

    def _make_collection(self) -> None:
        if not self._client.collection_exists(self._collection):
            try:
                self._create()
            except (UnexpectedResponse, ValueError):
                # Another process was faster, or something is really wrong.
                if not self._client.collection_exists(self._collection):
                    raise
        params = self._client.get_collection(self._collection).config.params.vectors
        page = params.get(VECTOR) if isinstance(params, dict) else None
        if page is None or page.size != self.dim or page.multivector_config is None:
            raise InvalidInput(
                f"Qdrant collection '{self._collection}' does not hold multi-vectors '{VECTOR}' of {self.dim} values.",
                hint="Choose another collection name for this encoder.",
            )

    def _create(self) -> None:
        self._client.create_collection(
            self._collection,
            vectors_config={
                VECTOR: models.VectorParams(
                    size=self.dim,
                    distance=models.Distance.DOT,
                    multivector_config=models.MultiVectorConfig(comparator=models.MultiVectorComparator.MAX_SIM),
                    datatype=models.Datatype.FLOAT16,
                    hnsw_config=models.HnswConfigDiff(m=0),
                )
            },
        )
        # In-process clients filter by scanning, and warn about indexes that they do not use.
        if self._client.init_options.get("location") != ":memory:" and not self._client.init_options.get("path"):
            self._client.create_payload_index(
                self._collection,
                "site",
                models.KeywordIndexParams(type=models.KeywordIndexType.KEYWORD, is_tenant=True),
            )
            self._client.create_payload_index(self._collection, "version", models.PayloadSchemaType.INTEGER)
