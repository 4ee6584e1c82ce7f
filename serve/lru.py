"""What was found before and may be asked again? A memory of bounded size that forgets what was used longest ago."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Hashable
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")

#: What an entry takes beside its value: key, links, bookkeeping. An estimate, so that many small entries count too.
ENTRY_BYTES = 400


class Lru(Generic[K, V]):
    """Remembers values up to a number of bytes. Thread-safe.

    Parameters
    ----------
    most_bytes : of all values together, with `ENTRY_BYTES` for each; 0: nothing is remembered.

    """

    def __init__(self, most_bytes: int) -> None:
        self._most = most_bytes
        self._kept: OrderedDict[K, tuple[V, int]] = OrderedDict()
        self._lock = threading.Lock()
        self.bytes = 0
        """What is remembered now."""

    def get(self, key: K) -> V | None:
        """What was put under a key, unless it was forgotten."""
        with self._lock:
            found = self._kept.get(key)
            if found is None:
                return None
            self._kept.move_to_end(key)
            return found[0]

    def put(self, key: K, value: V, size: int) -> None:
        """Remember a value of `size` bytes; one that is larger than everything may be is not remembered."""
        taken = size + ENTRY_BYTES
        with self._lock:
            before = self._kept.pop(key, None)
            if before is not None:
                self.bytes -= before[1]
            if taken > self._most:
                return
            self._kept[key] = (value, taken)
            self.bytes += taken
            while self.bytes > self._most:
                _, (_, forgotten) = self._kept.popitem(last=False)
                self.bytes -= forgotten

    def __len__(self) -> int:
        return len(self._kept)
