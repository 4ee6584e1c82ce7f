"""Which states are nearest to a question? MaxSim over multi-vectors, by Qdrant or exactly."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from index.vectors.exact import ExactIndex, maxsim
from index.vectors.multivector import EncodedPage, MultiVector
from index.vectors.protocol import MAX_VALUES_PER_MULTIVECTOR, MapKey, ScoredNode, VectorIndex

if TYPE_CHECKING:
    from index.vectors.edge import EdgeIndex
    from index.vectors.packed import PackedIndex
    from index.vectors.server import QdrantClientIndex

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

# Importing an engine takes longer than most who import this package for its types want to wait.
_ENGINES = {
    "EdgeIndex": "index.vectors.edge",
    "PackedIndex": "index.vectors.packed",
    "QdrantClientIndex": "index.vectors.server",
}


def __getattr__(name: str) -> object:
    if name in _ENGINES:
        return getattr(import_module(_ENGINES[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
