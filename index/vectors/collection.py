"""One Qdrant collection shared by many maps, and searches across several of them."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from qdrant_client import QdrantClient, models

from waygraph.core.errors import InvalidInput
from waygraph.index.vectors.options import FIRST_STAGE_CANDIDATES, PAGE, POOLED, POOLED_ROWS
from waygraph.index.vectors.pooling import POOLING, pool_windows
from waygraph.index.vectors.protocol import MapKey
from waygraph.index.vectors.retries import SERVER_FAILURES, ServerRetries
from waygraph.index.vectors.validation import validate_k, validate_page, validate_query

_NAMESPACE = uuid.UUID("6c2f6f1e-8c5b-5a63-9f0a-2f6c1d3b7e55")
#: Maximum number of values per request: 8 MiB by gRPC, which is also the memory that the server needs for it at once.
_VALUES_PER_UPSERT = 2**21
#: Scheme of point ids and of the vectors `pooled`, stored with the collection. Rows pooled by another method must not
#: be compared with these.
COLLECTION_METADATA = {"waygraph": 2, "pooling": POOLING, "pooled_rows": POOLED_ROWS}

#: Site, node id and score of a hit; the score is the mean over query rows.
ServerHit = tuple[str, str, float]


class QdrantCollection:
    """A Qdrant collection with a point for every state of every version of every map.

    Named vectors are `page` (all rows, float16, no HNSW graph) and `pooled` (`waygraph.index.vectors.pooling`). A
    point's id depends on its map's key and its node id alone, so writes are idempotent, and an interrupted writer
    starts again. Keys include a hash of the map's content, so any number of stores may share a collection.

    Parameters
    ----------
    client
        A connected client; the caller closes it.
    dim
        Number of columns of every multi-vector.
    name
        Name of the collection; created if it does not exist, checked if it does.
    retries
        Retry policy of all calls.

    Raises
    ------
    InvalidInput
        If the collection exists with another schema.
    ServiceError
        If the server cannot be reached.
    """

    def __init__(
        self,
        client: QdrantClient,
        dim: int,
        *,
        name: str = "waygraph",
        retries: ServerRetries = ServerRetries(),  # noqa: B008 - frozen
    ) -> None:
        self.dim, self.name = dim, name
        self._client, self._retries = client, retries
        # In-process clients filter by scanning, and warn about payload indexes, which they do not use.
        self._is_server = client.init_options.get("location") != ":memory:" and not client.init_options.get("path")
        self._retries.call(f"Opening Qdrant collection '{name}'", self._open)

    def upsert(self, key: MapKey, pages: Iterable[tuple[str, NDArray[np.floating]]]) -> None:
        """Write states of a map in batches. Each batch is awaited, so the server sets the pace.

        Parameters
        ----------
        key
            Key of the map.
        pages
            Pairs of node id and matrix of shape (n, dim).

        Raises
        ------
        InvalidInput
            If a matrix cannot be stored. Batches before it stay written.
        ServiceError
            If the server does not answer. Batches before stay written; writing all of them again is safe.
        """
        batch: list[models.PointStruct] = []
        values = written = 0
        for node_id, page in pages:
            rows = validate_page(node_id, page, self.dim).astype(np.float32)
            if batch and values + rows.size > _VALUES_PER_UPSERT:
                written = self._write(key, batch, written)
                batch, values = [], 0
            batch.append(_point(key, node_id, rows))
            values += rows.size
        if batch:
            self._write(key, batch, written)

    def search(
        self, query: NDArray[np.floating], k: int, maps: Sequence[MapKey], *, two_stages: bool
    ) -> list[ServerHit]:
        """Find the k best states of some maps.

        Parameters
        ----------
        query
            Shape (m, dim).
        k
            Number of hits.
        maps
            Keys of the maps.
        two_stages
            Whether `pooled` chooses candidates first; otherwise every state is scored from all of its rows.

        Returns
        -------
        list of ServerHit
            Best first; equal scores in any order.
        """
        rows, limit = validate_query(query, self.dim), validate_k(k)
        in_maps = _map_filter(maps)
        # If an administrator added a quantization to the collection, the last stage would score on its codes.
        # In-process clients have no quantization, and warn about parameters that they do not use.
        on_originals = models.SearchParams(quantization=models.QuantizationSearchParams(ignore=True))
        params = on_originals if self._is_server else None
        vectors = rows.tolist()
        prefetch = models.Prefetch(
            query=vectors, using=POOLED, filter=in_maps, limit=max(FIRST_STAGE_CANDIDATES, limit), params=params
        )
        points = self._retries.call(
            f"Searching Qdrant collection '{self.name}'",
            lambda: (
                self._client.query_points(
                    self.name,
                    query=vectors,
                    using=PAGE,
                    prefetch=prefetch if two_stages else None,
                    query_filter=in_maps,
                    search_params=params,
                    limit=limit,
                    with_payload=["site", "node_id"],
                ).points
            ),
        )
        return [_hit(point, len(rows)) for point in points]

    def count(self, key: MapKey) -> int:
        """Return the number of states of a map."""
        return self._retries.call(
            f"Counting in Qdrant collection '{self.name}'",
            lambda: self._client.count(self.name, count_filter=_map_filter([key]), exact=True).count,
        )

    def drop(self, key: MapKey) -> None:
        """Delete the states of a map, for all readers."""
        drop_maps(self._client, self.name, [key], retries=self._retries)

    def _write(self, key: MapKey, points: list[models.PointStruct], written: int) -> int:
        done = written + len(points)
        self._retries.call(
            f"Writing states {written + 1} to {done} of '{key.site}' version {key.version} "
            f"to Qdrant collection '{self.name}'",
            lambda: self._client.upsert(self.name, points, wait=True),
        )
        return done

    def _open(self) -> None:
        if not self._client.collection_exists(self.name):
            try:
                self._client.create_collection(
                    self.name, vectors_config=_vectors(self.dim), metadata=COLLECTION_METADATA
                )
            except (*SERVER_FAILURES, ValueError):
                # Another process may have created it first; otherwise the failure is real.
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
            if (problem := _schema_problem(known.get(name), self.dim)) is not None:
                raise InvalidInput(
                    f"Qdrant collection '{self.name}' does not hold multi-vectors '{name}' of {self.dim} values: "
                    f"{problem}.",
                    hint="Choose another collection name for this encoder.",
                )
        metadata: dict[str, Any] = info.config.metadata or {}
        if self._is_server and any(metadata.get(name) != value for name, value in COLLECTION_METADATA.items()):
            raise InvalidInput(
                f"Qdrant collection '{self.name}' was created with the metadata {metadata or 'of another program'}, "
                f"not with {COLLECTION_METADATA}.",
                hint="Choose another collection name: maps are written to it when they are opened.",
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


def drop_maps(
    client: QdrantClient,
    collection: str,
    keys: Sequence[MapKey],
    *,
    retries: ServerRetries = ServerRetries(),  # noqa: B008 - frozen
) -> None:
    """Delete the states of maps from a collection, for all readers; a collection that does not exist stays so.

    Parameters
    ----------
    client
        A connected client.
    collection
        Name of the collection.
    keys
        Keys of the maps.
    retries
        Retry policy of the call.

    Raises
    ------
    ServiceError
        If the server does not answer.
    """

    def delete() -> None:
        if keys and client.collection_exists(collection):
            client.delete(collection, models.FilterSelector(filter=_map_filter(keys)), wait=True)

    retries.call(f"Deleting from Qdrant collection '{collection}'", delete)


def _vectors(dim: int) -> dict[str, models.VectorParams]:
    params = models.VectorParams(
        size=dim,
        distance=models.Distance.DOT,
        multivector_config=models.MultiVectorConfig(comparator=models.MultiVectorComparator.MAX_SIM),
        datatype=models.Datatype.FLOAT16,
        hnsw_config=models.HnswConfigDiff(m=0),
    )
    return {PAGE: params, POOLED: params}


def _schema_problem(params: models.VectorParams | None, dim: int) -> str | None:
    if params is None:
        return "it has no such vectors"
    if params.size != dim:
        return f"they have {params.size} values"
    if params.multivector_config is None:
        return "they are single vectors"
    return None if params.distance == models.Distance.DOT else f"they are compared by {params.distance.value}"


def _map_filter(maps: Sequence[MapKey]) -> models.Filter:
    chosen = [models.FieldCondition(key="map", match=models.MatchAny(any=[key.name for key in maps]))]
    if len(maps) == 1:  # limits the search to one tenant's part of the collection
        chosen.append(models.FieldCondition(key="site", match=models.MatchValue(value=maps[0].site)))
    return models.Filter(must=list(chosen))


def _point(key: MapKey, node_id: str, rows: NDArray[np.float32]) -> models.PointStruct:
    return models.PointStruct(
        id=str(uuid.uuid5(_NAMESPACE, f"{key.name}\n{node_id}")),
        vector={PAGE: rows.tolist(), POOLED: pool_windows(rows, POOLED_ROWS).tolist()},
        payload={"site": key.site, "version": key.version, "map": key.name, "node_id": node_id},
    )


def _hit(point: models.ScoredPoint, query_rows: int) -> ServerHit:
    payload = point.payload or {}
    # MAX_SIM is a sum over query rows; scores here are means.
    return payload["site"], payload["node_id"], point.score / query_rows
