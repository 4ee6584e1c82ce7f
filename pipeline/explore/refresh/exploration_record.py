"""Exploration record: the answers of an exploration that a later refresh can reuse.

It holds snapshots, the result of loading each URL, and the outcome of each action, in the encoding of the journal. One
Parquet file, which is a blob of the store. Entries that contain a secret are left out; a refresh explores them again.
"""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from typing import Any, TypeVar

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from waygraph.index.graph import Action
from waygraph.pipeline.browser.page.snapshot import Candidate, Snapshot
from waygraph.pipeline.explore.checkpoint.journal_codec import Unreadable, pack, pack_snapshot, unpack, unpack_snapshot
from waygraph.pipeline.explore.checkpoint.journal_records import Blobs, to_bytes, to_text
from waygraph.pipeline.explore.identity.difference import action_key
from waygraph.pipeline.explore.identity.thresholds import PRIOR_CHANGES, PRIOR_CHECKS
from waygraph.pipeline.explore.records.outcome import ActionOutcome
from waygraph.pipeline.explore.records.state import Load

T = TypeVar("T")

#: Version of the content. A file of another version is not reused.
FORMAT = 2
_SCHEMA = pa.schema([("kind", pa.dictionary(pa.int8(), pa.string())), ("key", pa.binary()), ("value", pa.binary())])
_ROWS_PER_BATCH = 1_000


@dataclass(frozen=True, slots=True)
class AnswerHistory:
    """How often an answer was checked over all versions, and how often it had changed.

    Attributes
    ----------
    age
        Refreshes since the site last gave the answer.
    checks
        Refreshes that asked for it again.
    changes
        Checks that got another answer.
    misses
        Consecutive refreshes that got no answer (timeout, 5xx, block page) and kept the old one.
    """

    age: int = 0
    checks: int = 0
    changes: int = 0
    misses: int = 0

    @property
    def change_rate(self) -> float:
        """Expected share of checks that find a change, with a prior of one in ten that is worth four checks."""
        return (self.changes + PRIOR_CHANGES) / (self.checks + PRIOR_CHECKS)


@dataclass(frozen=True, slots=True)
class RecordedLoad:
    """Result of loading a URL. The field names are stored.

    Attributes
    ----------
    load
        The result.
    track
        History of the answer.
    asked
        When the exploration began that asked for it last, in the form of `ListedPage.lastmod`.
    """

    load: Load
    track: AnswerHistory
    asked: str = ""


class RecordedOutcome(msgspec.Struct, frozen=True):
    """Outcome of an action on a state. The field names are stored, `snapshot_key` as `look`.

    Attributes
    ----------
    snapshot_key
        Key of the snapshot of the state that was acted on.
    state
        Id of that state.
    action
        The action.
    handler
        Source of the event handler attribute of its element; empty without one.
    outcome
        The outcome.
    track
        History of the answer.
    """

    snapshot_key: str = msgspec.field(name="look")
    state: str
    action: Action
    handler: str
    outcome: ActionOutcome
    track: AnswerHistory


class ExplorationRecord:
    """A record that was read. Entries are decoded on access.

    Parameters
    ----------
    rows
        By kind and key, the encoded entries.
    """

    def __init__(self, rows: Mapping[str, Mapping[str, bytes]]) -> None:
        self._rows = rows
        self.about: dict[str, Any] = self._entry("about", "", dict[str, Any]) or {}

    @classmethod
    def parse(cls, content: bytes) -> ExplorationRecord:
        """Read what `write_record` wrote.

        Parameters
        ----------
        content
            The file.

        Returns
        -------
        ExplorationRecord
            The record.

        Raises
        ------
        Unreadable
            If `content` is no record of this version.
        """
        rows: dict[str, dict[str, bytes]] = {}
        try:
            for batch in pq.ParquetFile(io.BytesIO(content)).iter_batches():
                for kind, key, value in zip(*(column.to_pylist() for column in batch.columns), strict=True):
                    rows.setdefault(kind, {})[to_text(key)] = value
        except (pa.ArrowException, ValueError, TypeError) as error:
            raise Unreadable(f"record of an exploration: {error}") from error
        record = cls(rows)
        if record.about.get("format") != FORMAT:
            raise Unreadable(f"record of format {record.about.get('format')}")
        return record

    def snapshot(self, key: str) -> Snapshot | None:
        """Return a snapshot by its key."""
        raw = self._rows.get("look", {}).get(key)
        return None if raw is None else unpack_snapshot(*msgspec.msgpack.decode(raw, type=tuple[bytes, bytes, bytes]))

    def blobs(self, key: str) -> Blobs | None:
        """Return the content hashes of the screenshot, DOM and accessibility snapshot of a snapshot, by its key."""
        return self._entry("blobs", key, tuple[str, str, str])

    @cached_property
    def captures(self) -> Mapping[str, Blobs]:
        """`blobs` of all snapshots, by key."""
        return {key: unpack(raw, tuple[str, str, str]) for key, raw in self._rows.get("blobs", {}).items()}

    def noise(self, url: str) -> frozenset[str]:
        """Return the features that are known as noise of a URL."""
        return frozenset(self._entry("noise", url, tuple[str, ...]) or ())

    @cached_property
    def loads(self) -> Mapping[str, RecordedLoad]:
        """Results of loads, by normalised URL."""
        return {url: unpack(raw, RecordedLoad) for url, raw in self._rows.get("load", {}).items()}

    @cached_property
    def outcomes(self) -> tuple[RecordedOutcome, ...]:
        """Outcomes of actions, in canonical order."""
        return tuple(unpack(raw, RecordedOutcome) for raw in self._rows.get("outcome", {}).values())

    @cached_property
    def states(self) -> Mapping[str, str]:
        """Keys of the snapshots of all states, by id."""
        return {node_id: unpack(raw, str) for node_id, raw in self._rows.get("state", {}).items()}

    def _entry(self, kind: str, key: str, form: type[T]) -> T | None:
        raw = self._rows.get(kind, {}).get(key)
        return None if raw is None else unpack(raw, form)


@dataclass(frozen=True, slots=True)
class RecordContents:
    """Content of a record that is to be written.

    Attributes
    ----------
    about
        Provenance of the record, as plain JSON.
    states
        Keys of the snapshots of all states, by id.
    loads
        Results of loads, by normalised URL.
    outcomes
        Outcomes of actions, in canonical order.
    snapshot
        Returns a snapshot by key, for all keys in states, loads and outcomes.
    blobs
        Returns the content hashes of a snapshot's captures by key.
    noise
        Features that come and go although nothing is done, by URL.
    """

    about: Mapping[str, Any]
    states: Mapping[str, str]
    loads: Mapping[str, RecordedLoad]
    outcomes: Iterable[RecordedOutcome]
    snapshot: Callable[[str], Snapshot]
    blobs: Callable[[str], Blobs | None]
    noise: Mapping[str, Iterable[str]]


def write_record(contents: RecordContents, is_public: Callable[[str], bool]) -> bytes:
    """Return the record as a file.

    Parameters
    ----------
    contents
        Content of the record.
    is_public
        Whether the JSON of an entry contains no secret. Other entries are left out.

    Returns
    -------
    bytes
        A Parquet file.
    """
    sink = io.BytesIO()
    rows = _rows(contents, is_public)
    with pq.ParquetWriter(sink, _SCHEMA, compression="zstd") as writer:
        while batch := list(islice(rows, _ROWS_PER_BATCH)):
            writer.write_table(_table(batch))
    return sink.getvalue()


def _rows(contents: RecordContents, is_public: Callable[[str], bool]) -> Iterator[tuple[str, bytes, bytes]]:
    def public(value: object) -> bool:
        return is_public(json.dumps(msgspec.to_builtins(value), ensure_ascii=False))

    yield "about", b"", pack({**contents.about, "format": FORMAT})
    loads = {url: recorded for url, recorded in contents.loads.items() if public((url, recorded))}
    outcomes = (recorded for recorded in contents.outcomes if public(recorded))
    yield from (("load", to_bytes(url), pack(recorded)) for url, recorded in loads.items())
    keys = dict.fromkeys((*contents.states.values(), *(recorded.load.snapshot_key for recorded in loads.values())))
    for number, recorded in enumerate(outcomes):
        keys.setdefault(recorded.outcome.snapshot_key)
        yield "outcome", str(number).encode(), pack(recorded)
    yield from (("noise", to_bytes(url), pack(tuple(sorted(noise)))) for url, noise in contents.noise.items())
    yield from (("state", to_bytes(node_id), pack(key)) for node_id, key in contents.states.items())
    for key in keys:
        if key and public(snapshot := contents.snapshot(key)):
            yield "look", to_bytes(key), msgspec.msgpack.encode(pack_snapshot(snapshot))
            if (blobs := contents.blobs(key)) is not None:
                yield "blobs", to_bytes(key), pack(blobs)


def _table(rows: list[tuple[str, bytes, bytes]]) -> pa.Table:
    columns = list(zip(*rows, strict=True)) or [(), (), ()]
    return pa.table([pa.array(column, field.type) for column, field in zip(columns, _SCHEMA, strict=True)], _SCHEMA)


def element_key(action: Action, handler: str) -> tuple[Any, str]:
    """Return the key by which elements of two explorations are equal: `action_key` and the event handler attribute."""
    return action_key(action, "element"), handler


def candidate_key(candidate: Candidate) -> tuple[Any, str]:
    """Return the `element_key` of an element of a snapshot."""
    return element_key(candidate.action, candidate.handler)
