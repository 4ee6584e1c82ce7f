"""The cache is bounded and evicts the least recently used entries."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from waygraph.core.lru_cache import ENTRY_BYTES, LruCache


def room(entries: int, size: int) -> int:
    return entries * (ENTRY_BYTES + size)


def test_the_least_recently_used_entry_is_evicted_first():
    known: LruCache[str, int] = LruCache(room(2, 10))
    known.put("a", 1, 10)
    known.put("b", 2, 10)
    assert known.get("a") == 1
    known.put("c", 3, 10)
    assert (known.get("a"), known.get("b"), known.get("c")) == (1, None, 3)


def test_a_value_larger_than_the_cache_is_not_cached_and_evicts_nothing():
    known: LruCache[str, int] = LruCache(room(1, 10))
    known.put("a", 1, 10)
    known.put("b", 2, 11)
    assert (known.get("a"), known.get("b")) == (1, None)
    known.put("a", 3, 11)  # and the old value of the same key is not left behind
    assert known.get("a") is None
    assert known.size_bytes == 0


def test_a_cache_of_size_zero_caches_nothing():
    known: LruCache[str, int] = LruCache(0)
    known.put("a", 1, 0)
    assert known.get("a") is None


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 300))), st.integers(0, 3_000))
def test_the_size_is_that_of_the_entries_and_within_the_limit(puts, most):
    known: LruCache[int, int] = LruCache(most)
    for key, size in puts:
        known.put(key, size, size)
        kept = [value for each in range(6) if (value := known.get(each)) is not None]
        assert known.size_bytes == sum(kept) + len(kept) * ENTRY_BYTES <= most
        assert len(known) == len(kept)


def test_a_value_is_made_once_and_again_when_it_was_evicted() -> None:
    known: LruCache[str, str] = LruCache(room(1, 10))
    made = []

    def make(value: str) -> str:
        made.append(value)
        return value

    for key in ("a", "a", "b", "a"):
        assert known.get_or_make(key, lambda key=key: make(key), len) == key  # type: ignore[misc]
    assert made == ["a", "b", "a"]
