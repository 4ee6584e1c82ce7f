"""Answers about differences between two versions of a map, with caches: published versions never change."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from waygraph.core.errors import InvalidInput, NotFound
from waygraph.core.lru_cache import LruCache
from waygraph.serve.query.maps import Maps
from waygraph.serve.views.changes import changes_answer

if TYPE_CHECKING:
    from collections.abc import Mapping

    from waygraph.index.store import Store

#: Size of the cached answers, in bytes.
CHANGES_CACHE_BYTES = 16 * 2**20
#: Size of the cached names of screenshots, in bytes: those of about 100,000 states.
SCREENSHOTS_CACHE_BYTES = 16 * 2**20
#: Memory of the name of a screenshot with the id of its state, in bytes. An estimate.
_SCREENSHOT_BYTES = 160


class ChangeViews:
    """Answers about differences between versions. Thread-safe.

    Parameters
    ----------
    maps
        The maps.
    """

    def __init__(self, maps: Maps) -> None:
        self._maps = maps
        self._answers: LruCache[tuple[str, int, int, str, str], bytes] = LruCache(CHANGES_CACHE_BYTES)
        self._screenshots: LruCache[tuple[str, int, str], Mapping[str, str]] = LruCache(SCREENSHOTS_CACHE_BYTES)
        # A comparison needs a CPU for seconds and the memory of two maps, so there is one at a time.
        self._comparing = threading.Lock()

    def changes(self, site: str, older: int | None = None, newer: int | None = None) -> bytes:
        """Return the JSON of a `ChangesAnswer`.

        Parameters
        ----------
        site
            Key of the site.
        older
            Number of a version; None: the version before `newer`.
        newer
            Number of a version; None: the current one.

        Returns
        -------
        bytes
            The JSON text.

        Raises
        ------
        NotFound
            If the site is not mapped, has no such version, or has one version only.
        InvalidInput
            If the versions are the same.
        """
        store = self._maps.catalog.store
        first, second = _versions(store, site, older, newer)
        created = (store.manifest(site, first).created, store.manifest(site, second).created)
        key = (site, first, second, *created)
        if (content := self._answers.get(key)) is not None:
            return content
        with self._comparing:
            return self._answers.get_or_make(key, lambda: self._compare(site, first, second), len)

    def _compare(self, site: str, first: int, second: int) -> bytes:
        # Imports the explorer's records, which nothing else in a service needs.
        from waygraph.pipeline.comparison import compare_versions  # noqa: PLC0415

        store = self._maps.catalog.store
        with self._maps.stage("changes"):
            old, new = store.read(site, first), store.read(site, second)
            answer = changes_answer(compare_versions(store, old, new), old, new, store.versions(site))
            return answer.model_dump_json().encode()

    def screenshot_hash(self, site: str, version: int, node_id: str) -> str:
        """Return the content hash of a state's screenshot in a version.

        Parameters
        ----------
        site
            Key of the site.
        version
            Number of the version.
        node_id
            Full id of the state.

        Returns
        -------
        str
            Name of the blob with the image.

        Raises
        ------
        NotFound
            If there is no such version or state, or it was recorded without a screenshot.
        """
        store = self._maps.catalog.store

        def read() -> Mapping[str, str]:
            return {node: seen.screenshot for node, seen in store.observations(site, version).items()}

        key = (site, version, store.manifest(site, version).created)
        names = self._screenshots.get_or_make(key, read, lambda names: _SCREENSHOT_BYTES * len(names))
        if not (found := names.get(node_id)):
            raise NotFound(
                f"Version {version} of '{site}' has no screenshot of state {node_id}.",
                hint="It has no such state, or the state was recorded without a screenshot.",
            )
        return found


def _versions(store: Store, site: str, older: int | None, newer: int | None) -> tuple[int, int]:
    second = newer or store.head(site)
    if older is None:
        earlier = [number for number in store.versions(site) if number < second]
        if not earlier:
            raise NotFound(
                f"'{site}' has no version before {second}.", hint=f"To make one, run: waygraph refresh {site}"
            )
        older = earlier[-1]
    if older == second:
        raise InvalidInput(f"Both versions are {second}.", hint="Name two versions.")
    return older, second
