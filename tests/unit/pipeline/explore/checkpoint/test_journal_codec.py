"""Journal records are decoded as they were encoded, for any content and across versions."""

import dataclasses
import types
from collections.abc import Mapping
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import Struct

from waygraph.index.graph import Edge
from waygraph.pipeline.browser.page.snapshot import Candidate, Snapshot
from waygraph.pipeline.explore.checkpoint.journal_codec import (
    Unreadable,
    pack,
    pack_hashes,
    pack_snapshot,
    unpack,
    unpack_hashes,
    unpack_snapshot,
)
from waygraph.pipeline.explore.records.element_outcome import ElementOutcome
from waygraph.pipeline.explore.records.outcome import ActionOutcome, SkipReason
from waygraph.pipeline.explore.records.state import Load, State

#: With lone surrogates: JavaScript has them.
TEXTS = st.text(st.characters(exclude_categories=()), max_size=8)
HASHES = st.binary(min_size=16, max_size=16).map(bytes.hex)


def values_of(kind: Any) -> st.SearchStrategy[Any]:
    """Values of a declared type."""
    origin, inner = get_origin(kind), get_args(kind)
    if kind is str:
        return TEXTS
    if isinstance(kind, type) and issubclass(kind, Struct):
        hints = get_type_hints(kind)
        return st.builds(kind, **{name: values_of(hints[name]) for name in kind.__struct_fields__})
    if dataclasses.is_dataclass(kind):
        hints = get_type_hints(kind)
        return st.builds(kind, **{field.name: values_of(hints[field.name]) for field in dataclasses.fields(kind)})
    if origin is tuple and inner[-1] is Ellipsis:
        return st.lists(values_of(inner[0]), max_size=3).map(tuple)
    if origin is tuple:
        return st.tuples(*map(values_of, inner))
    if origin is Mapping:
        return st.dictionaries(*map(values_of, inner), max_size=3)
    if origin is Literal:
        return st.sampled_from(inner)
    if origin in (Union, types.UnionType):
        return st.one_of(*map(values_of, inner))
    return st.from_type(kind)


RECORDS = (Candidate, ActionOutcome, Load, Edge, State, ElementOutcome)


@pytest.mark.parametrize("kind", RECORDS)
def test_every_record_round_trips(kind):
    @settings(max_examples=60)
    @given(values_of(kind))
    def round_trip(record):
        # By text: a NaN is no other NaN's equal.
        assert repr(unpack(pack(record), kind)) == repr(record)

    round_trip()


@settings(max_examples=60)
@given(values_of(Snapshot), st.one_of(st.lists(HASHES).map(tuple), st.lists(TEXTS, max_size=3).map(tuple)))
def test_every_snapshot_round_trips(snapshot, structure):
    snapshot = dataclasses.replace(snapshot, structure=structure)
    assert repr(unpack_snapshot(*pack_snapshot(snapshot))) == repr(snapshot)


@given(st.lists(st.one_of(HASHES, HASHES.map(str.upper), TEXTS, st.just("0" * 31 + " ")), max_size=4).map(tuple))
def test_hashes_round_trip_including_malformed_ones(hashes):
    assert unpack_hashes(pack_hashes(hashes)) == hashes


def test_a_hash_takes_16_bytes():
    assert len(pack_hashes(("00112233445566778899aabbccddeeff",) * 100)) == 1 + 1600


@dataclasses.dataclass(frozen=True, slots=True)
class Older:
    name: str
    dropped: int


@dataclasses.dataclass(frozen=True, slots=True)
class Newer:
    name: str
    added: tuple[str, ...] = ("default",)


def test_a_field_that_an_older_version_lacked_takes_its_default_and_a_dropped_one_is_ignored():
    for name in ("x", "\ud800"):
        assert unpack(pack(Older(name, 1)), Newer) == Newer(name)


def test_renamed_fields_keep_their_stored_names():
    assert b"\xa4look\xa3key" in pack(Load(snapshot_key="key"))
    assert b"\xa8left_out\x92\xa6robots\xa1d" in pack(ActionOutcome(skipped=SkipReason("robots", "d")))


@given(st.binary(max_size=60))
def test_invalid_bytes_raise_the_unreadable_error_only(raw):
    for read in (lambda: unpack(raw, Newer), lambda: unpack_hashes(raw), lambda: unpack_snapshot(raw, raw, raw)):
        try:
            read()
        except Unreadable:
            continue
