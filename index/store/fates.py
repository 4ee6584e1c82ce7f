"""What became of every element that an exploration discovered? A table of its own, since there may be very many."""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from waygraph.spelling import spellable

FATES = pa.schema(
    [
        pa.field(name, pa.string(), nullable=False)
        for name in ("state", "element", "status", "reason", "detail", "rule", "target", "xpath")
    ]
)
_ROWS_AT_ONCE = 20_000


def fates_table(rows: Iterable[Mapping[str, str]]) -> bytes:
    """Rows with the columns of `FATES` as a Parquet file; `status` is done, pending, skipped or failed."""
    sink = io.BytesIO()
    with pq.ParquetWriter(sink, FATES, compression="zstd") as writer:
        left = iter(rows)
        while batch := list(islice(left, _ROWS_AT_ONCE)):
            clean = [{name: spellable(row.get(name, "")) for name in FATES.names} for row in batch]
            writer.write_table(pa.Table.from_pylist(clean, schema=FATES))
    return sink.getvalue()


def read_fates(content: bytes) -> Iterator[dict[str, Any]]:
    """Inverse of `fates_table`."""
    for batch in pq.ParquetFile(io.BytesIO(content)).iter_batches():
        yield from batch.to_pylist()
