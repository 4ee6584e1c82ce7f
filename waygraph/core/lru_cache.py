"""Cache of bounded size in bytes that evicts the least recently used entries."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")

#: Memory of an entry besides its value, in bytes: key, links, dictionary slot. An estimate, so that many small entries
#: count too.
ENTRY_BYTES = 400


class LruCache(Generic[K, V]):
    """Cache of values up to a number of bytes. Thread-safe.

    Parameters
    ----------
    max_bytes
        Size of all values together, with `ENTRY_BYTES` for each; 0 caches nothing.

    Attributes
    ----------
    size_bytes
        Size of the cached values, with `ENTRY_BYTES` for each.
    """

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._entries: OrderedDict[K, tuple[V, int]] = OrderedDict()
        self._lock = threading.Lock()
        self.size_bytes = 0

    def get(self, key: K) -> V | None:
        """Return the value of a key, or None if it is not cached."""
        with self._lock:
            entry = self._entries.get(key)
            if entry is None:
                return None
            self._entries.move_to_end(key)
            return entry[0]

    def put(self, key: K, value: V, size: int) -> None:
        """Cache a value of `size` bytes. A value that is larger than the cache is not cached."""
        size += ENTRY_BYTES
        with self._lock:
            replaced = self._entries.pop(key, None)
            if replaced is not None:
                self.size_bytes -= replaced[1]
            if size > self._max_bytes:
                return
            self._entries[key] = (value, size)
            self.size_bytes += size
            while self.size_bytes > self._max_bytes:
                _, (_, evicted) = self._entries.popitem(last=False)
                self.size_bytes -= evicted

    def get_or_make(self, key: K, make: Callable[[], V], size_of: Callable[[V], int]) -> V:
        """Return the value of a key, and make and cache it if it is not cached.

        Parameters
        ----------
        key
            The key.
        make
            Makes the value, without a lock: two threads may make the same value, and one of both is kept.
        size_of
            Size of a value in bytes.

        Returns
        -------
        V
            The value, never None.
        """
        if (value := self.get(key)) is None:
            value = make()
            self.put(key, value, size_of(value))
        return value

    def __len__(self) -> int:
        return len(self._entries)
