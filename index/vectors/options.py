"""Options of engines: how vectors are stored, and in how many stages they are searched."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

#: Named vectors of a point: all rows of a state, and the few pooled rows that represent them in a first stage.
PAGE, POOLED = "page", "pooled"

#: Maximum number of pooled rows of a state. Measured, see bench/search.md.
POOLED_ROWS = 20
#: Minimum number of states that the first stage of a search within one index (or server collection) passes on to exact
#: scoring.
FIRST_STAGE_CANDIDATES = 256

#: `f16` keeps what the store holds; `int8` and `int4` keep only codes of eight or four bits per value (TurboQuant).
Storage = Literal["f16", "int8", "int4"]
#: Codes kept besides the originals: one byte, one bit, or four bits (TurboQuant) per value.
Quantization = Literal["scalar", "binary", "turbo"]
#: What the first stage compares: pooled rows, or the codes of all rows.
FirstStage = Literal["pooled", "codes"]


@dataclass(frozen=True, slots=True)
class IndexOptions:
    """Storage and search stages of an index. The defaults keep float16 and score every state exactly.

    Attributes
    ----------
    storage
        Storage of the vectors `page` (Qdrant Edge; servers keep f16).
    quantization
        Codes kept besides `page` for a faster first stage; None: none.
    first_stage
        What the first stage compares; None: every state is scored from its originals.
    pooled_rows
        Maximum number of pooled rows of a state; they are kept only if the first stage needs them.
    candidates
        Minimum number of states that the second stage scores from their originals.
    """

    storage: Storage = "f16"
    quantization: Quantization | None = None
    first_stage: FirstStage | None = None
    pooled_rows: int = POOLED_ROWS
    candidates: int = FIRST_STAGE_CANDIDATES

    def __post_init__(self) -> None:
        if self.first_stage == "codes" and self.quantization is None:
            raise ValueError("A first stage on codes needs a quantization.")
        if self.pooled_rows < 2:
            raise ValueError("One mean row finds too little among pages that resemble each other.")
