"""The store behind the answers: opened when it appears, refreshed in the background, with its maps opened on demand."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext, suppress
from pathlib import Path
from typing import Self

from waygraph.core.errors import NoStore, NotFound, StoreError, WaygraphError
from waygraph.core.settings import Settings
from waygraph.index.catalog.catalog import Catalog, CatalogUsage, OpenMap, map_key
from waygraph.index.store import Manifest, Store
from waygraph.index.vectors.engines import VectorIndexFactory
from waygraph.index.vectors.protocol import VectorIndex
from waygraph.serve.query.nonblocking import raise_if_nonblocking

log = logging.getLogger("ray.serve.waygraph")

#: Maps that are opened at the same time. Opening is CPU-bound: of eight at once, the first would be ready when all are.
CONCURRENT_OPENS = 2
#: Seconds after which a refresh that has not ended means that the store does not answer. It waits less for one site.
STALLED_SECONDS = 60.0


class LiveStore:
    """The newest versions of one store's maps. Thread-safe.

    `refresh` picks up what was published since the last refresh. A request in progress keeps the version it started
    with.

    Parameters
    ----------
    settings
        Location of the store, vector engine, memory budget and refresh interval.

    Attributes
    ----------
    stage
        Times a stage of an answer: called with its name, it returns the context manager of the stage.
    """

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self.stage: Callable[[str], AbstractContextManager[None]] = lambda _: nullcontext()
        self._index_factory = VectorIndexFactory(settings.vectors)
        self._lock = threading.Lock()
        self._catalog: Catalog | None = None
        self._store_error: WaygraphError | None = None
        self._refreshing_since: float | None = None
        self._closing = threading.Event()
        self._refresher: threading.Thread | None = None

    def open(self) -> None:
        """Open the store. A store that does not exist yet counts as empty, and `refresh` looks for it again.

        Raises
        ------
        StoreError
            If the folder is not a store, is not readable, or was written by a newer schema.
        """
        with self._lock:
            if self._catalog is None and _may_hold_store(self._settings.store):
                with suppress(NoStore):  # a bucket without any index yet
                    store = Store.open(self._settings.store)
                    self._catalog = Catalog(
                        store,
                        self._make_index,
                        budget_bytes=self._settings.serve.open_bytes,
                        concurrent_opens=CONCURRENT_OPENS,
                    )

    def refresh(self) -> list[str]:
        """Pick up new versions, new sites and removed sites.

        Returns
        -------
        list of str
            Keys of the sites that changed.

        Raises
        ------
        StoreError
            If the store cannot be read, or has vanished since it was opened. Maps that are open stay open.
        """
        self.open()
        if self._catalog is None:
            return []
        self._catalog.store.check_present()
        return self._catalog.refresh()

    def start(self) -> None:
        """Refresh the maps in the background until `close`."""
        self._refresher = threading.Thread(target=self._refresh_until_closed, name="refresh", daemon=True)
        self._refresher.start()

    def close(self) -> None:
        """Stop the background refresh and close every map. Closing twice is allowed."""
        self._closing.set()
        if self._refresher is not None:
            self._refresher.join(STALLED_SECONDS)
            self._refresher = None
        with self._lock:
            catalog, self._catalog = self._catalog, None
        if catalog is not None:
            catalog.close()
        self._index_factory.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def is_alive(self) -> bool:
        """Whether the background refresh runs, if it was started."""
        return self._refresher is None or self._refresher.is_alive()

    @property
    def unavailable(self) -> WaygraphError | None:
        """Why the store cannot be read; None if it can."""
        since = self._refreshing_since
        if since is not None and time.monotonic() - since > STALLED_SECONDS:
            return StoreError("The store does not answer.", hint="Is its disk or its server available?")
        return self._store_error

    @property
    def unopened(self) -> Mapping[str, int]:
        """Number of sites whose newest version cannot be opened, by the kind of problem (`StoreError.reason`)."""
        return self._catalog.failures.by_reason() if self._catalog is not None else {}

    @property
    def unopened_found(self) -> Mapping[str, int]:
        """Number of such problems that were found so far, by kind."""
        return self._catalog.failures.found.copy() if self._catalog is not None else {}

    @property
    def usage(self) -> CatalogUsage:
        """Number and size of the open maps."""
        return self._catalog.usage if self._catalog is not None else CatalogUsage(0, 0, 0)

    @property
    def catalog(self) -> Catalog:
        """The opened maps.

        Raises
        ------
        NotFound
            If the store does not exist yet.
        """
        if self._catalog is None:
            raise NotFound(f"There are no maps in '{self._settings.store}' yet.", hint="Make one: waygraph index <url>")
        return self._catalog

    @property
    def is_open(self) -> bool:
        """Whether the store exists and is open."""
        return self._catalog is not None

    def site_count(self) -> int:
        """Return the number of mapped sites."""
        return len(self._catalog.sites()) if self._catalog is not None else 0

    def open_version(self, site: str) -> int | None:
        """Return the version of a site's open map, None if it is not open. Does not access the disk."""
        opened = self._catalog.get_open(site) if self._catalog is not None else None
        if opened is None:
            return None
        with opened:
            return opened.version

    def newest_version(self, site: str) -> int:
        """Return the version that a site will be answered from once its map is open.

        Parameters
        ----------
        site
            Key of the site.

        Returns
        -------
        int
            The version.

        Raises
        ------
        NotFound
            If the site is not mapped.
        StoreError
            If the store cannot be read.
        """
        return self.catalog.store.head(site)

    def map_of(self, site: str) -> OpenMap:
        """Return the map of a site, and open it unless it is open; the caller closes it.

        Parameters
        ----------
        site
            Key of the site.

        Returns
        -------
        OpenMap
            The map. Requests in progress keep it open when a newer version is published.

        Raises
        ------
        NotFound
            If the site is not mapped.
        StoreError
            If its map is damaged.
        """
        catalog = self.catalog
        if (opened := catalog.get_open(site)) is not None:
            return opened
        raise_if_nonblocking()
        with self.stage("open"):
            return catalog.open(site)

    def _make_index(self, manifest: Manifest) -> VectorIndex:
        return self._index_factory.create(manifest.encoder.dim, map_key(manifest))

    def _refresh_until_closed(self) -> None:
        while True:
            self._refreshing_since = time.monotonic()
            try:
                changed = self.refresh()
                self._store_error = None
            except WaygraphError as error:
                if str(error) != str(self._store_error):
                    log.warning("the store cannot be refreshed: %s", error)
                self._store_error = error
            except Exception as error:  # this thread is the only one that notices new versions, so nothing ends it
                if self._store_error is None:
                    log.exception("the store cannot be refreshed")
                self._store_error = StoreError(
                    f"The store cannot be refreshed: {type(error).__name__}.", hint="The log has the details."
                )
            else:
                if changed:
                    log.info("new versions of: %s", ", ".join(changed))
            self._refreshing_since = None
            if self._closing.wait(self._settings.serve.refresh_seconds):
                return


def _may_hold_store(location: str) -> bool:
    """Whether to open a location. A folder that is missing or still empty may become a store later."""
    folder = Path(location)
    if "://" in location or not folder.is_dir():
        return "://" in location or folder.exists()
    try:
        return any(folder.iterdir())
    except OSError:
        return True  # opening it reports why it is not readable
