"""What is remembered has a bound, and what was used last stays."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from serve.lru import ENTRY_BYTES, Lru


def room(entries: int, size: int) -> int:
    return entries * (ENTRY_BYTES + size)


def test_what_was_used_longest_ago_is_forgotten_first():
    known: Lru[str, int] = Lru(room(2, 10))
    known.put("a", 1, 10)
    known.put("b", 2, 10)
    assert known.get("a") == 1
    known.put("c", 3, 10)
    assert (known.get("a"), known.get("b"), known.get("c")) == (1, None, 3)


def test_what_is_larger_than_everything_may_be_is_not_remembered_and_pushes_nothing_out():
    known: Lru[str, int] = Lru(room(1, 10))
    known.put("a", 1, 10)
    known.put("b", 2, 11)
    assert (known.get("a"), known.get("b")) == (1, None)
    known.put("a", 3, 11)  # and the old value of the same key is not left behind
    assert known.get("a") is None
    assert known.bytes == 0


def test_without_room_nothing_is_remembered():
    known: Lru[str, int] = Lru(0)
    known.put("a", 1, 0)
    assert known.get("a") is None


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 300))), st.integers(0, 3_000))
def test_bytes_are_those_of_what_is_kept_and_never_more_than_allowed(puts, most):
    known: Lru[int, int] = Lru(most)
    for key, size in puts:
        known.put(key, size, size)
        kept = [value for each in range(6) if (value := known.get(each)) is not None]
        assert known.bytes == sum(kept) + len(kept) * ENTRY_BYTES <= most
        assert len(known) == len(kept)
