"""Vector search by MaxSim over multi-vectors: exact, packed in memory, by Qdrant Edge, or by a Qdrant server."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from waygraph.index.vectors.exact import ExactIndex, maxsim
from waygraph.index.vectors.multivector import EncodedPage, MultiVector
from waygraph.index.vectors.protocol import MAX_VALUES_PER_MULTIVECTOR, MapKey, ScoredNode, VectorIndex

if TYPE_CHECKING:
    from waygraph.index.vectors.edge import EdgeIndex
    from waygraph.index.vectors.packed import PackedIndex
    from waygraph.index.vectors.server import QdrantClientIndex

__all__ = [
    "MAX_VALUES_PER_MULTIVECTOR",
    "EdgeIndex",
    "EncodedPage",
    "ExactIndex",
    "MapKey",
    "MultiVector",
    "PackedIndex",
    "QdrantClientIndex",
    "ScoredNode",
    "VectorIndex",
    "maxsim",
]

# Engines are imported on first use: most importers of this package need its types only, and engines import slowly.
_ENGINES = {
    "EdgeIndex": "waygraph.index.vectors.edge",
    "PackedIndex": "waygraph.index.vectors.packed",
    "QdrantClientIndex": "waygraph.index.vectors.server",
}


def __getattr__(name: str) -> object:
    if name in _ENGINES:
        return getattr(import_module(_ENGINES[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
