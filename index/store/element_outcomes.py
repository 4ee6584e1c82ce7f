"""Table of the outcomes of all elements that an exploration discovered, stored as a blob since it may be very long."""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import islice
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from waygraph.core.text import replace_surrogates
from waygraph.index.store.manifest import damaged_file
from waygraph.index.store.table_checks import check_columns

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
    """Yield the rows of a Parquet file that `write_element_outcomes` wrote (StoreError if it did not)."""
    with _damage_reported():
        for batch in pq.ParquetFile(io.BytesIO(content)).iter_batches():
            check_columns(pa.Table.from_batches([batch]), ELEMENT_OUTCOMES)
            yield from batch.to_pylist()


def select_element_outcomes(content: bytes, column: str, value: str, columns: Sequence[str] | None = None) -> pa.Table:
    """Return the rows of such a file that have a value in a column (StoreError as in `read_element_outcomes`).

    Parameters
    ----------
    content
        Content of the file.
    column
        Name of the column.
    value
        The value.
    columns
        Columns of the result; None: all.

    Returns
    -------
    pa.Table
        The rows.
    """
    with _damage_reported():
        table = pq.read_table(io.BytesIO(content), columns=columns, filters=[(column, "==", value)])
        check_columns(table, pa.schema([ELEMENT_OUTCOMES.field(name) for name in columns or ELEMENT_OUTCOMES.names]))
        return table


@contextmanager
def _damage_reported() -> Iterator[None]:
    try:
        yield
    except (pa.ArrowException, OSError, LookupError, ValueError) as error:
        raise damaged_file("A table of element outcomes", str(error), reason="table") from error
