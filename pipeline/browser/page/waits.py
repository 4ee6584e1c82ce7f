"""Signs by which pages of a site show that they wait, and which of them never go away."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

#: A sign that stayed in this many documents, and never went away, is part of the design: a turning logo, a sentinel.
_MIN_LASTING = 2
_MAX_SIGNS = 200


class WaitMemory:
    """What is known of the signs of waiting of one site, see `js/waiting.js`.

    It only decides how long a page is waited for.
    """

    def __init__(self) -> None:
        self._stayed: Counter[str] = Counter()
        self._ended: set[str] = set()

    def note(self, waiting: Iterable[str], ended: Iterable[str]) -> None:
        """Note the signs that a document still showed after the longest wait, and those that went away."""
        self._ended.update(ended)
        self._stayed.update(waiting)

    @property
    def lasting(self) -> list[str]:
        """Signs that nothing waits for."""
        stayed = (name for name, count in self._stayed.items() if count >= _MIN_LASTING and name not in self._ended)
        return sorted(stayed)[:_MAX_SIGNS]
