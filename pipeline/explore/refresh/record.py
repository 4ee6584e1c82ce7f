"""What does a version keep of its exploration, so that the next one need not ask everything again?

Looks, what loading each URL showed, and what each action brought about: the journal's own records, in one Parquet file
that is a blob of the store. What holds a secret is left out; it is explored anew.
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

from index.graph import Action
from pipeline.browser.snapshot import Candidate, Snapshot
from pipeline.explore.difference import action_key
from pipeline.explore.journal_codec import Unreadable, pack, pack_look, unpack, unpack_look
from pipeline.explore.journal_records import Blobs, to_bytes, to_text
from pipeline.explore.state import Load
from pipeline.explore.worker import Outcome

T = TypeVar("T")

#: Version of what is in the file. One written by another version is not recalled.
FORMAT = 1
_SCHEMA = pa.schema([("kind", pa.dictionary(pa.int8(), pa.string())), ("key", pa.binary()), ("value", pa.binary())])
_ROWS_AT_ONCE = 1_000


@dataclass(frozen=True, slots=True)
class Track:
    """How often something was looked at over all versions, and with what result.

    Attributes
    ----------
    age : refreshes since it was last asked for.
    checks : times that it was asked for again.
    changes : times that the answer was another one.
    misses : refreshes in a row that got no answer (timeout, 5xx, block page) and kept the old one.
    """

    age: int = 0
    checks: int = 0
    changes: int = 0
    misses: int = 0

    @property
    def change_rate(self) -> float:
        """Expected share of checks that find a change; one in ten before anything is known, worth four checks."""
        return (self.changes + 0.4) / (self.checks + 4)


@dataclass(frozen=True, slots=True)
class KeptLoad:
    """What loading a URL showed."""

    load: Load
    track: Track


@dataclass(frozen=True, slots=True)
class KeptOutcome:
    """What an action on a state brought about.

    Attributes
    ----------
    look : key of the look at the state that was acted on.
    state : its id.
    """

    look: str
    state: str
    action: Action
    handler: str
    outcome: Outcome
    track: Track


class Record:
    """A record, read back. Entries are decoded when they are asked for."""

    def __init__(self, rows: Mapping[str, Mapping[str, bytes]]) -> None:
        self._rows = rows
        self.about: dict[str, Any] = self._entry("about", "", dict[str, Any]) or {}

    @classmethod
    def parse(cls, content: bytes) -> Record:
        """Inverse of `write`.

        Raises
        ------
        Unreadable
            When `content` is no record of this version.
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

    def look(self, key: str) -> Snapshot | None:
        """A look by its key."""
        raw = self._rows.get("look", {}).get(key)
        return None if raw is None else unpack_look(*msgspec.msgpack.decode(raw, type=tuple[bytes, bytes, bytes]))

    def blobs(self, key: str) -> Blobs | None:
        """Content hashes of the screenshot, DOM and accessibility snapshot that belong to a look."""
        return self._entry("blobs", key, tuple[str, str, str])

    @cached_property
    def captures(self) -> Mapping[str, Blobs]:
        """The same of all looks, by key."""
        return {key: unpack(raw, tuple[str, str, str]) for key, raw in self._rows.get("blobs", {}).items()}

    def noise(self, url: str) -> frozenset[str]:
        """Features that came and went by themselves at a URL."""
        return frozenset(self._entry("noise", url, tuple[str, ...]) or ())

    @cached_property
    def loads(self) -> Mapping[str, KeptLoad]:
        """What was loaded, by normalised URL."""
        return {url: unpack(raw, KeptLoad) for url, raw in self._rows.get("load", {}).items()}

    @cached_property
    def outcomes(self) -> tuple[KeptOutcome, ...]:
        """What was acted on, in canonical order."""
        return tuple(unpack(raw, KeptOutcome) for raw in self._rows.get("outcome", {}).values())

    @cached_property
    def states(self) -> Mapping[str, str]:
        """Keys of the looks of all states, by id."""
        return {node_id: unpack(raw, str) for node_id, raw in self._rows.get("state", {}).items()}

    def _entry(self, kind: str, key: str, form: type[T]) -> T | None:
        raw = self._rows.get(kind, {}).get(key)
        return None if raw is None else unpack(raw, form)


@dataclass(frozen=True, slots=True)
class Contents:
    """What a record is made of.

    Attributes
    ----------
    about : what the whole was made with, as JSON.
    states : keys of the looks of all states, by id.
    loads : by normalised URL.
    outcomes : in canonical order.
    look, blobs : give a look and its captures by key; wanted of what states, loads and outcomes name.
    noise : features that come and go by themselves, by URL.
    """

    about: Mapping[str, Any]
    states: Mapping[str, str]
    loads: Mapping[str, KeptLoad]
    outcomes: Iterable[KeptOutcome]
    look: Callable[[str], Snapshot]
    blobs: Callable[[str], Blobs | None]
    noise: Mapping[str, Iterable[str]]


def write(contents: Contents, is_public: Callable[[str], bool]) -> bytes:
    """The record as a file; an entry that holds a secret by what `is_public` says of its JSON is left out."""
    sink = io.BytesIO()
    rows = _rows(contents, is_public)
    with pq.ParquetWriter(sink, _SCHEMA, compression="zstd") as writer:
        while batch := list(islice(rows, _ROWS_AT_ONCE)):
            writer.write_table(_table(batch))
    return sink.getvalue()


def _rows(contents: Contents, is_public: Callable[[str], bool]) -> Iterator[tuple[str, bytes, bytes]]:
    def public(value: object) -> bool:
        return is_public(json.dumps(msgspec.to_builtins(value), ensure_ascii=False))

    yield "about", b"", pack({**contents.about, "format": FORMAT})
    loads = {url: kept for url, kept in contents.loads.items() if public((url, kept))}
    outcomes = (kept for kept in contents.outcomes if public(kept))
    yield from (("load", to_bytes(url), pack(kept)) for url, kept in loads.items())
    named = dict.fromkeys((*contents.states.values(), *(kept.load.look for kept in loads.values())))
    for number, kept in enumerate(outcomes):
        named.setdefault(kept.outcome.look)
        yield "outcome", str(number).encode(), pack(kept)
    yield from (("noise", to_bytes(url), pack(tuple(sorted(found)))) for url, found in contents.noise.items())
    yield from (("state", to_bytes(node_id), pack(key)) for node_id, key in contents.states.items())
    for key in named:
        if key and public(seen := contents.look(key)):
            yield "look", to_bytes(key), msgspec.msgpack.encode(pack_look(seen))
            if (captured := contents.blobs(key)) is not None:
                yield "blobs", to_bytes(key), pack(captured)


def _table(rows: list[tuple[str, bytes, bytes]]) -> pa.Table:
    columns = list(zip(*rows, strict=True)) or [(), (), ()]
    return pa.table([pa.array(column, field.type) for column, field in zip(columns, _SCHEMA, strict=True)], _SCHEMA)


def place_of(action: Action, handler: str) -> tuple[Any, str]:
    """What makes an element the one that it was: place, kind, role, name, target and the handler written into it."""
    return action_key(action, "element"), handler


def element(candidate: Candidate) -> tuple[Any, str]:
    """The same of an element that is seen."""
    return place_of(candidate.action, candidate.handler)
