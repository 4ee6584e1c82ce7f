"""How do many maps share one Qdrant collection, and how is it searched across all of them?"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from qdrant_client import QdrantClient, models

from index.vectors.checks import checked_k, checked_page, checked_query
from index.vectors.options import CANDIDATES, PAGE, POOLED, POOLED_ROWS
from index.vectors.pooling import POOLING, pooled
from index.vectors.protocol import MapKey
from index.vectors.retries import SERVER_FAILURES, Retries
from waygraph.errors import InvalidInput

_NAMESPACE = uuid.UUID("6c2f6f1e-8c5b-5a63-9f0a-2f6c1d3b7e55")
#: A request holds so many values at most: 8 MiB by gRPC, of which the server then asks for no more at once.
_VALUES_PER_UPSERT = 2**21
#: How points are named and what `pooled` holds, kept with the collection. Rows pooled in another way would be compared
#: as if they were these.
METADATA = {"waygraph": 2, "pooling": POOLING, "pooled_rows": POOLED_ROWS}

#: Site, node id and score of a hit; the score is a mean over query rows.
ServerHit = tuple[str, str, float]


class Collection:
    """A Qdrant collection with a point for every state of every version of every map.

    Named vectors are `page` (all rows, float16, no HNSW graph) and `pooled` (`index.vectors.pooling`). A point's id
    follows from its map's key and its node id alone, so writing it twice changes nothing, and a writer that was
    interrupted simply starts again. Keys say what a map holds, so any number of stores may share a collection.

    Parameters
    ----------
    client : a connected client; it stays the caller's to close.
    dim : number of columns of every multi-vector.
    name : made when it does not exist, and checked when it does.

    Raises
    ------
    InvalidInput
        When the collection exists and holds something else.
    ServiceError
        When the server cannot be reached.

    """

    def __init__(
        self,
        client: QdrantClient,
        dim: int,
        *,
        name: str = "waygraph",
        retries: Retries = Retries(),  # noqa: B008 - frozen
    ) -> None:
        self.dim, self.name = dim, name
        self._client, self._retries = client, retries
        # In-process clients filter by scanning, and warn about indexes that they do not use.
        self._is_server = client.init_options.get("location") != ":memory:" and not client.init_options.get("path")
        self._retries.call(f"Opening Qdrant collection '{name}'", self._make)

    def upsert(self, key: MapKey, pages: Iterable[tuple[str, NDArray[np.floating]]]) -> None:
        """Write states of a map, batch by batch; each batch is waited for, so the server sets the pace.

        Raises
        ------
        InvalidInput
            When a matrix cannot be stored. Batches before it stay written.
        ServiceError
            When the server stops answering. What was written stays; writing all of it again is safe.

        """
        waiting: list[models.PointStruct] = []
        values = written = 0
        for node_id, page in pages:
            rows = checked_page(node_id, page, self.dim).astype(np.float32)
            if waiting and values + rows.size > _VALUES_PER_UPSERT:
                written = self._write(key, waiting, written)
                waiting, values = [], 0
            waiting.append(_point(key, node_id, rows))
            values += rows.size
        if waiting:
            self._write(key, waiting, written)

    def search(
        self, query: NDArray[np.floating], k: int, maps: Sequence[MapKey], *, two_stages: bool
    ) -> list[ServerHit]:
        """The k best states of some maps, best first; equal scores in any order.

        Parameters
        ----------
        query : shape (m, dim).
        maps : what is searched.
        two_stages : let `pooled` choose candidates first; otherwise every state is scored from all of its rows.

        """
        rows, limit = checked_query(query, self.dim), checked_k(k)
        wanted = _of(maps)
        # The last stage would score on codes, should the collection have been given a quantization. In-process clients
        # have none, and warn about parameters that they do not use.
        ignoring = models.SearchParams(quantization=models.QuantizationSearchParams(ignore=True))
        originals = ignoring if self._is_server else None
        vectors = rows.tolist()
        prefetch = models.Prefetch(
            query=vectors, using=POOLED, filter=wanted, limit=max(CANDIDATES, limit), params=originals
        )
        found = self._retries.call(
            f"Searching Qdrant collection '{self.name}'",
            lambda: (
                self._client.query_points(
                    self.name,
                    query=vectors,
                    using=PAGE,
                    prefetch=prefetch if two_stages else None,
                    query_filter=wanted,
                    search_params=originals,
                    limit=limit,
                    with_payload=["site", "node_id"],
                ).points
            ),
        )
        return [_hit(point, len(rows)) for point in found]

    def count(self, key: MapKey) -> int:
        """Number of states of a map."""
        return self._retries.call(
            f"Counting in Qdrant collection '{self.name}'",
            lambda: self._client.count(self.name, count_filter=_of([key]), exact=True).count,
        )

    def drop(self, key: MapKey) -> None:
        """Delete the states of a map, for everyone."""
        self._retries.call(
            f"Deleting from Qdrant collection '{self.name}'",
            lambda: self._client.delete(self.name, models.FilterSelector(filter=_of([key])), wait=True),
        )

    def _write(self, key: MapKey, points: list[models.PointStruct], written: int) -> int:
        done = written + len(points)
        self._retries.call(
            f"Writing states {written + 1} to {done} of '{key.site}' version {key.version} "
            f"to Qdrant collection '{self.name}'",
            lambda: self._client.upsert(self.name, points, wait=True),
        )
        return done

    def _make(self) -> None:
        if not self._client.collection_exists(self.name):
            try:
                self._client.create_collection(self.name, vectors_config=_vectors(self.dim), metadata=METADATA)
            except (*SERVER_FAILURES, ValueError):
                # Another process was faster, or something is really wrong.
                if not self._client.collection_exists(self.name):
                    raise
        info = self._client.get_collection(self.name)
        self._check(info)
        if self._is_server:
            self._index_payload(info.payload_schema or {})

    def _check(self, info: models.CollectionInfo) -> None:
        vectors = info.config.params.vectors
        known = vectors if isinstance(vectors, dict) else {}
        for name in (PAGE, POOLED):
            if (problem := _difference(known.get(name), self.dim)) is not None:
                raise InvalidInput(
                    f"Qdrant collection '{self.name}' does not hold multi-vectors '{name}' of {self.dim} values: "
                    f"{problem}.",
                    hint="Choose another collection name for this encoder.",
                )
        kept: dict[str, Any] = info.config.metadata or {}
        if self._is_server and any(kept.get(name) != value for name, value in METADATA.items()):
            raise InvalidInput(
                f"Qdrant collection '{self.name}' was made with {kept or 'no mark of waygraph'}, not with {METADATA}.",
                hint="Choose another collection name: maps are filled into it when they are opened.",
            )

    def _index_payload(self, present: dict[str, Any]) -> None:
        wanted: dict[str, models.KeywordIndexParams | models.PayloadSchemaType] = {
            "site": models.KeywordIndexParams(type=models.KeywordIndexType.KEYWORD, is_tenant=True),
            "map": models.PayloadSchemaType.KEYWORD,
            "version": models.PayloadSchemaType.INTEGER,
        }
        for field, kind in wanted.items():
            if field not in present:
                self._client.create_payload_index(self.name, field, kind)


def _vectors(dim: int) -> dict[str, models.VectorParams]:
    params = models.VectorParams(
        size=dim,
        distance=models.Distance.DOT,
        multivector_config=models.MultiVectorConfig(comparator=models.MultiVectorComparator.MAX_SIM),
        datatype=models.Datatype.FLOAT16,
        hnsw_config=models.HnswConfigDiff(m=0),
    )
    return {PAGE: params, POOLED: params}


def _difference(params: models.VectorParams | None, dim: int) -> str | None:
    if params is None:
        return "it has no such vectors"
    if params.size != dim:
        return f"they have {params.size} values"
    if params.multivector_config is None:
        return "they are single vectors"
    return None if params.distance == models.Distance.DOT else f"they are compared by {params.distance.value}"


def _of(maps: Sequence[MapKey]) -> models.Filter:
    chosen = [models.FieldCondition(key="map", match=models.MatchAny(any=[key.name for key in maps]))]
    if len(maps) == 1:  # the tenant's part of the collection is enough
        chosen.append(models.FieldCondition(key="site", match=models.MatchValue(value=maps[0].site)))
    return models.Filter(must=list(chosen))


def _point(key: MapKey, node_id: str, rows: NDArray[np.float32]) -> models.PointStruct:
    return models.PointStruct(
        id=str(uuid.uuid5(_NAMESPACE, f"{key.name}\n{node_id}")),
        vector={PAGE: rows.tolist(), POOLED: pooled(rows, POOLED_ROWS).tolist()},
        payload={"site": key.site, "version": key.version, "map": key.name, "node_id": node_id},
    )


def _hit(point: models.ScoredPoint, query_rows: int) -> ServerHit:
    payload = point.payload or {}
    # MAX_SIM is a sum over query rows; scores here are means.
    return payload["site"], payload["node_id"], point.score / query_rows
