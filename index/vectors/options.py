"""What does an engine keep of every state, and in how many stages does it search?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

#: Named vectors of a point: all rows of a state, and the few that stand for them in a first stage.
PAGE, POOLED = "page", "pooled"

#: Rows of the first stage, of which a state has this many at most. Measured, see docs/search.md.
POOLED_ROWS = 20
#: States that a first stage hands to the second one, at least.
CANDIDATES = 256

#: `f16` keeps what the store holds; `int8` and `int4` keep codes of eight or four bits per value alone (TurboQuant).
Storage = Literal["f16", "int8", "int4"]
#: Codes beside the originals: one byte, one bit, or four bits (TurboQuant) for each value.
Quantization = Literal["scalar", "binary", "turbo"]
#: What the first stage compares: pooled rows, or the codes of all rows.
FirstStage = Literal["pooled", "codes"]


@dataclass(frozen=True, slots=True)
class IndexOptions:
    """How states are kept and searched. The defaults keep float16 and score every state exactly.

    Attributes
    ----------
    storage : how `page` is kept (Qdrant Edge; servers keep f16).
    quantization : codes kept beside `page` for a faster first stage; None: none.
    first_stage : None: every state is scored from its originals.
    pooled_rows : rows of `pooled` at most; only kept when the first stage needs them.
    candidates : states that the second stage scores from their originals, at least.

    """

    storage: Storage = "f16"
    quantization: Quantization | None = None
    first_stage: FirstStage | None = None
    pooled_rows: int = POOLED_ROWS
    candidates: int = CANDIDATES

    def __post_init__(self) -> None:
        if self.first_stage == "codes" and self.quantization is None:
            raise ValueError("A first stage on codes needs a quantization.")
        if self.pooled_rows < 2:
            raise ValueError("One mean row finds too little among pages that resemble each other.")
