"""Signs by which pages of a site show that they wait, and which of them never go away."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

#: A sign that stayed in the documents of this many URLs, and never went away, is part of the design: a turning logo.
_MIN_LASTING = 2
_MAX_SIGNS = 200


class WaitMemory:
    """What is known of the signs of waiting of one site, see `js/waiting.js`.

    It only decides how long a page is waited for.
    """

    def __init__(self) -> None:
        self._stayed: defaultdict[str, set[str]] = defaultdict(set)
        self._ended: set[str] = set()

    def note(self, url: str, waiting: Iterable[str], ended: Iterable[str]) -> None:
        """Note the signs that a document of a URL still showed after the longest wait, and those that went away."""
        self._ended.update(ended)
        for name in waiting:
            self._stayed[name].add(url)

    @property
    def lasting(self) -> list[str]:
        """Signs that nothing waits for."""
        stayed = (name for name, urls in self._stayed.items() if len(urls) >= _MIN_LASTING and name not in self._ended)
        return sorted(stayed)[:_MAX_SIGNS]
