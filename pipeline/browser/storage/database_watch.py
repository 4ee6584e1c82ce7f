"""Changes of databases (IndexedDB): the browser reports writes, and only then the records are read and compared."""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from typing import Any

from playwright.async_api import CDPSession
from playwright.async_api import Error as PlaywrightError

from waygraph.core.errors import BrowserFailure
from waygraph.pipeline.browser.page.evaluate import evaluate_apart
from waygraph.pipeline.browser.page.view import PageView
from waygraph.pipeline.browser.storage.contexts import databases_script, origin_of
from waygraph.pipeline.browser.storage.stored_values import DATABASES, StoredValues, record_key

log = logging.getLogger(__name__)

_EVENTS = ("Storage.indexedDBContentUpdated", "Storage.indexedDBListUpdated")


class DatabaseWatch:
    """Hashes of the records that the origins of a page keep.

    Reading costs nothing while no script and no worker of the origin has written since the last time.

    Parameters
    ----------
    devtools
        DevTools session of the page.
    """

    def __init__(self, devtools: CDPSession) -> None:
        self._devtools = devtools
        self._known: dict[str, dict[tuple[str, str], str]] = {}
        self._written: set[str] = set()
        for name in _EVENTS:
            devtools.on(name, self._note)

    def _note(self, event: Mapping[str, Any]) -> None:
        self._written.add(event["origin"])

    async def values(self, view: PageView) -> StoredValues:
        """Return the hashes by area and record, as far as they can be told from the page that is shown.

        Parameters
        ----------
        view
            View of the page.

        Returns
        -------
        StoredValues
            A hash for each record; one value for each origin that has changed and that the page does not show.
        """
        shown = origin_of(view.page.url)
        if shown and shown not in self._known:
            await view.with_timeout(
                self._devtools.send("Storage.trackIndexedDBForStorageKey", {"storageKey": f"{shown}/"})
            )
            self._known[shown] = {}
            self._written.add(shown)
        for origin in self._written & self._known.keys():
            self._known[origin] = (
                await self._read(view, origin) if origin == shown else {(DATABASES, origin): "written"}
            )
        return {key: value for known in self._known.values() for key, value in known.items()}

    async def _read(self, view: PageView, origin: str) -> dict[tuple[str, str], str]:
        self._written.discard(origin)  # what is written from now on counts again
        try:
            hashes = f"() => {databases_script()}.hashes().then(JSON.stringify)"
            text = await view.with_timeout(evaluate_apart(view.page, hashes))
        except (PlaywrightError, BrowserFailure) as error:
            log.info("session/databases_not_read %s: %s", view.page.url, error)
            return {(DATABASES, origin): "unreadable"}
        return {
            (DATABASES, record_key(origin, database, store, record)): value
            for database, store, record, value in json.loads(text)
        }
