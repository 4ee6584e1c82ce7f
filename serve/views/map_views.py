"""Answers about whole maps, with caches: published versions never change, so an answer is computed once per version."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from waygraph.core.errors import NotFound, StoreError
from waygraph.core.lru_cache import LruCache
from waygraph.core.view_schemas import CaptureKind, ElementsAnswer, SiteCard
from waygraph.index.catalog.catalog import OpenMap
from waygraph.index.store import Manifest, validate_site_key
from waygraph.index.store.element_outcomes import select_element_outcomes
from waygraph.serve.query.answers import site_summary
from waygraph.serve.query.maps import Maps
from waygraph.serve.query.node_ids import resolve_node_id
from waygraph.serve.views.graphs import elements_answer, graph_answer
from waygraph.serve.views.outcome_rows import rows_of_report, table_name
from waygraph.serve.views.thumbnails import make_thumbnail

log = logging.getLogger("ray.serve.waygraph")

#: Size of the cached graphs, in bytes: about 20 maps of 5,000 states and 40,000 edges.
GRAPH_CACHE_BYTES = 32 * 2**20
#: Size of the cached small images, in bytes: about 2,000 of them.
THUMBNAIL_CACHE_BYTES = 32 * 2**20
#: Size of the cached cards, in bytes: about 10,000 sites.
CARD_CACHE_BYTES = 8 * 2**20
_CARD_BYTES = 800


@dataclass(frozen=True, slots=True)
class CapturedFile:
    """A file that was captured of a state, with a name to save it under."""

    name: str
    content: bytes


class MapViews:
    """Answers that show whole maps. Thread-safe.

    Parameters
    ----------
    maps
        The maps.
    """

    def __init__(self, maps: Maps) -> None:
        self._maps = maps
        self._graphs: LruCache[tuple[str, int, str], bytes] = LruCache(GRAPH_CACHE_BYTES)
        self._thumbnails: LruCache[str, bytes] = LruCache(THUMBNAIL_CACHE_BYTES)
        self._start_screenshots: LruCache[tuple[str, int, str], str] = LruCache(CARD_CACHE_BYTES)
        self._cards: LruCache[tuple[str, int], SiteCard] = LruCache(CARD_CACHE_BYTES)

    def cards(self, sites: Iterable[str] | None = None) -> list[SiteCard]:
        """Return the mapped sites, sorted by key, each with the outcome of its last run.

        A site whose manifest is damaged is left out, and logged.

        Parameters
        ----------
        sites
            Keys of the sites of interest; None: all.

        Returns
        -------
        list of SiteCard
            The sites.

        Raises
        ------
        InvalidInput
            If one of `sites` is not a site key.
        """
        if not self._maps.is_open:
            return []
        wanted = None if sites is None else frozenset(map(validate_site_key, sites))
        found = []
        for site, version in sorted(self._maps.catalog.store.heads(wanted).items()):
            if version is None or (wanted is not None and site not in wanted):
                continue
            try:
                found.append(self._card(site, version))
            except NotFound:
                log.info("'%s' was removed while the sites were listed", site)
            except StoreError as error:
                self._maps.catalog.failures.record(site, version, error)
        return found

    def _card(self, site: str, version: int) -> SiteCard:
        def make() -> SiteCard:
            return site_card(self._maps.catalog.store.manifest(site, version))

        return self._cards.get_or_make((site, version), make, lambda _: _CARD_BYTES)

    def graph(self, site: str) -> bytes:
        """Return the JSON of a `GraphAnswer`.

        Parameters
        ----------
        site
            Key of the site.

        Returns
        -------
        bytes
            The JSON text.

        Raises
        ------
        NotFound
            If the site is not mapped.
        """
        with self._maps.map_of(site) as opened:
            key = (site, opened.version, opened.manifest.created)
            return self._graphs.get_or_make(key, lambda: self._make_graph(opened), len)

    def _make_graph(self, opened: OpenMap) -> bytes:
        with self._maps.stage("graph"):
            return graph_answer(opened, self._skipped_counts(opened)).model_dump_json().encode()

    def elements(self, site: str, node_id: str) -> ElementsAnswer:
        """Return the elements of a state; errors are those of `resolve_node_id`."""
        with self._maps.map_of(site) as opened:
            full_id = resolve_node_id(opened, node_id)
            return elements_answer(opened, full_id, self._outcomes_of(opened, full_id))

    def capture(self, site: str, node_id: str, kind: CaptureKind) -> CapturedFile:
        """Return the HTML or the accessibility snapshot of a state.

        Parameters
        ----------
        site
            Key of the site.
        node_id
            Id of the state, see `resolve_node_id`.
        kind
            Which of them.

        Returns
        -------
        CapturedFile
            The file. Secrets are not in it: the explorer removed them.

        Raises
        ------
        NotFound
            If the state is unknown, or the store does not keep this of it.
        """
        with self._maps.map_of(site) as opened:
            full_id = resolve_node_id(opened, node_id)
            seen = opened.observations.get(full_id)
            name = getattr(seen, kind) if seen is not None else ""
        if not name:
            words = {"dom": "HTML", "aria": "accessibility snapshot"}
            raise NotFound(f"The store keeps no {words[kind]} of state {node_id}.", hint="It was recorded without one.")
        ending = "html.txt" if kind == "dom" else "aria.txt"
        return CapturedFile(f"{full_id[:8]}.{ending}", self._maps.blob(name))

    def thumbnail(self, content_hash: str) -> bytes:
        """Return a small image of a screenshot.

        Parameters
        ----------
        content_hash
            Content hash of the screenshot.

        Returns
        -------
        bytes
            A JPEG image.

        Raises
        ------
        NotFound
            If the screenshot cannot be decoded.
        """
        return self._thumbnails.get_or_make(content_hash, lambda: make_thumbnail(self._maps.blob(content_hash)), len)

    def start_screenshot(self, site: str) -> str:
        """Return the content hash of the screenshot of a site's start page. It does not open the map.

        Parameters
        ----------
        site
            Key of the site.

        Returns
        -------
        str
            The hash.

        Raises
        ------
        NotFound
            If the site is not mapped, or the start page was recorded without a screenshot.
        """
        store = self._maps.catalog.store
        version = store.head(site)
        manifest = store.manifest(site, version)

        def read() -> str:
            seen = store.observations(site, version).get(manifest.start_node_id)
            return seen.screenshot if seen is not None else ""

        if not (found := self._start_screenshots.get_or_make((site, version, manifest.created), read, len)):
            raise NotFound(f"The start page of '{site}' has no screenshot.", hint="It was recorded without one.")
        return found

    def _skipped_counts(self, opened: OpenMap) -> Mapping[str, int]:
        """Return the number of skipped elements by state."""
        if (table := self._outcomes_table(opened)) is None:
            rows = rows_of_report(opened.manifest.report)
            return Counter(row["state"] for row in rows if row["status"] == "skipped")
        skipped = select_element_outcomes(table, "status", "skipped", ["state"])
        return {row["values"]: row["counts"] for row in skipped.column("state").value_counts().to_pylist()}

    def _outcomes_of(self, opened: OpenMap, node_id: str) -> Sequence[Mapping[str, Any]]:
        if (table := self._outcomes_table(opened)) is None:
            return [row for row in rows_of_report(opened.manifest.report) if row["state"] == node_id]
        rows: list[dict[str, Any]] = select_element_outcomes(table, "state", node_id).to_pylist()
        return rows

    def _outcomes_table(self, opened: OpenMap) -> bytes | None:
        """Return the table of element outcomes of a version; None if it was published without one."""
        name = table_name(opened.manifest)
        return self._maps.blob(name) if name else None


def site_card(manifest: Manifest) -> SiteCard:
    """Return one mapped site with the outcome of its last run.

    Parameters
    ----------
    manifest
        Manifest of a version. Reports of other tools may lack what a run records, or hold counts in place of lists.

    Returns
    -------
    SiteCard
        The site.
    """
    report = manifest.report
    seconds = report.get("seconds")
    names = (("skipped", "skips"), ("failed", "failures"), ("pending", "pending"))
    return SiteCard(
        **site_summary(manifest).model_dump(),
        start_node_id=manifest.start_node_id,
        depth=manifest.counts.depth,
        leads=manifest.counts.leads,
        stood_for=manifest.counts.stood_for,
        thumbnail=f"/v1/sites/{manifest.site}/thumbnail",
        stopped_by=str(report.get("stopped_by") or ""),
        seconds=float(seconds) if isinstance(seconds, int | float) else None,
        outcomes={name: count for name, field in names if (count := _count(report.get(field))) is not None},
    )


def _count(value: object) -> int | None:
    if isinstance(value, int):
        return value
    return len(value) if isinstance(value, list | tuple) else None
