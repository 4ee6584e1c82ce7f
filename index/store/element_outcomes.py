"""Table of the outcomes of all elements that an exploration discovered, stored as a blob since it may be very long."""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from waygraph.core.text import replace_surrogates

ELEMENT_OUTCOMES = pa.schema(
    [
        pa.field(name, pa.string(), nullable=False)
        for name in ("state", "element", "status", "reason", "detail", "rule", "target", "xpath")
    ]
)
_ROWS_PER_BATCH = 20_000


def write_element_outcomes(rows: Iterable[Mapping[str, str]]) -> bytes:
    """Write rows with the columns of `ELEMENT_OUTCOMES` to a Parquet file.

    Parameters
    ----------
    rows
        One row per element; `status` is done, pending, skipped or failed.

    Returns
    -------
    bytes
        Content of the file.
    """
    sink = io.BytesIO()
    with pq.ParquetWriter(sink, ELEMENT_OUTCOMES, compression="zstd") as writer:
        left = iter(rows)
        while batch := list(islice(left, _ROWS_PER_BATCH)):
            clean = [{name: replace_surrogates(row.get(name, "")) for name in ELEMENT_OUTCOMES.names} for row in batch]
            writer.write_table(pa.Table.from_pylist(clean, schema=ELEMENT_OUTCOMES))
    return sink.getvalue()


def read_element_outcomes(content: bytes) -> Iterator[dict[str, Any]]:
    """Yield the rows of a Parquet file that `write_element_outcomes` wrote."""
    for batch in pq.ParquetFile(io.BytesIO(content)).iter_batches():
        yield from batch.to_pylist()
