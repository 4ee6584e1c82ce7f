"""The report of one site as a file: its map, how it was discovered, and what was left out."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from typing import Any

from waygraph.core.errors import WaygraphError
from waygraph.core.evenly_spaced import evenly_spaced
from waygraph.core.report_file import ReportFile
from waygraph.core.text import shortened
from waygraph.core.view_schemas import GraphAnswer
from waygraph.index.store import MapVersion, Store
from waygraph.serve.query.answers import SHORT_HASH
from waygraph.serve.views.graphs import graph_answer
from waygraph.serve.views.map_views import site_card
from waygraph.serve.views.outcome_rows import outcome_rows, table_name
from waygraph.serve.views.thumbnails import make_thumbnail

#: Largest number of states with an image; one takes about 15 KB of the file.
MAX_IMAGES = 160
#: Largest number of listed elements that are not in the map, and of failed ones among them.
MAX_OUTCOMES, MAX_FAILED = 150, 60
#: Listed elements of each reason, beside failed ones.
_OF_EACH_REASON = 5
#: Longest text of a page in the lists, in characters.
_MAX_TEXT = 500
_STATUSES = ("done", "skipped", "failed", "pending")


def site_report(store: Store, site: str, version: int | None = None) -> ReportFile:
    """Return the report of a site.

    Parameters
    ----------
    store
        The store.
    site
        Key of the site.
    version
        Number of a version; None: the current one.

    Returns
    -------
    ReportFile
        The report. Images that the store no longer has, or that cannot be decoded, are left out.

    Raises
    ------
    NotFound
        If the site is not mapped, or has no such version.
    StoreError
        If the version is damaged.
    """
    mapped = store.read(site, version)
    manifest = mapped.manifest
    outcomes = _Outcomes(outcome_rows(store, manifest))
    graph = graph_answer(mapped, outcomes.skipped_by_state)
    sheet = _sheet(graph)
    images = _images(store, mapped, [graph.states.id[state] for state in sheet])
    report = manifest.report
    index = {node_id: number for number, node_id in enumerate(graph.states.id)}
    content = {
        "card": site_card(manifest).model_dump(mode="json"),
        "graph": graph.model_dump(mode="json"),
        "versions": list(store.versions(site)),
        "depths": [_depth(row) for row in _rows(report.get("depths"))],
        "elements": {name: outcomes.statuses[name] for name in _STATUSES} if table_name(manifest) else None,
        "skipped": outcomes.reasons("skipped"),
        "failed": outcomes.reasons("failed"),
        "outcomes": [{**row, "state": index.get(row["state"], -1)} for row in outcomes.listed()],
        "outcomes_total": outcomes.statuses.total() - outcomes.statuses["done"],
        "sheet": sheet,
        "advice": [shortened(str(each), _MAX_TEXT) for each in report.get("advice") or ()],
    }
    return ReportFile("site", f"{site}, version {manifest.version}", content, images)


def _rows(value: object) -> Iterable[Mapping[str, Any]]:
    """Return the rows of a report's list; reports of other tools may hold something else."""
    return [row for row in value if isinstance(row, Mapping)] if isinstance(value, list | tuple) else []


def _depth(row: Mapping[str, Any]) -> dict[str, float]:
    return {name: row.get(name) or 0 for name in ("depth", "states", "activations", "seconds")}


def _sheet(graph: GraphAnswer) -> list[int]:
    """Return the indexes of the states with an image, by depth, evenly from all that have a screenshot."""
    states = graph.states
    with_image = sorted(
        (number for number, name in enumerate(states.screenshot) if name), key=lambda number: states.depth[number]
    )
    return [with_image[place] for place in evenly_spaced(range(len(with_image)), MAX_IMAGES)]


def _images(store: Store, mapped: MapVersion, node_ids: Iterable[str]) -> dict[str, bytes]:
    """Return small images by the start of the content hash of their screenshot."""
    images: dict[str, bytes] = {}
    for node_id in node_ids:
        name = mapped.observations[node_id].screenshot
        if name[:SHORT_HASH] in images:
            continue
        try:
            images[name[:SHORT_HASH]] = make_thumbnail(store.blobs.get(name))
        except WaygraphError:
            continue  # the report says that there is no screenshot
    return images


class _Outcomes:
    """Counts of element outcomes, with examples.

    Parameters
    ----------
    rows
        Rows of the table of element outcomes.
    """

    def __init__(self, rows: Iterable[Mapping[str, Any]]) -> None:
        self.statuses: Counter[str] = Counter()
        self.skipped_by_state: Counter[str] = Counter()
        self._reasons: defaultdict[str, Counter[str]] = defaultdict(Counter)
        self._examples: defaultdict[tuple[str, str], list[dict[str, str]]] = defaultdict(list)
        for row in rows:
            self._add(row)

    def _add(self, row: Mapping[str, Any]) -> None:
        status, reason = str(row.get("status", "")), str(row.get("reason", ""))
        self.statuses[status] += 1
        if status == "done":
            return
        if status == "skipped":
            self.skipped_by_state[str(row.get("state", ""))] += 1
        self._reasons[status][reason] += 1
        examples = self._examples[status, reason]
        if len(examples) < (MAX_FAILED if status == "failed" else _OF_EACH_REASON):
            names = ("state", "element", "status", "reason", "detail", "rule", "target")
            examples.append({name: shortened(str(row.get(name, "")), _MAX_TEXT) for name in names})

    def reasons(self, status: str) -> list[dict[str, Any]]:
        """Return the reasons of a status with counts and an example, the most frequent first."""
        return [
            {"reason": shortened(reason, _MAX_TEXT), "count": count, "example": self._example(status, reason)}
            for reason, count in self._reasons[status].most_common(30)
        ]

    def _example(self, status: str, reason: str) -> str:
        return self._examples[status, reason][0]["element"]

    def listed(self) -> list[dict[str, str]]:
        """Return examples: failed elements first, then some of each reason."""
        failed = [row for (status, _), rows in self._examples.items() if status == "failed" for row in rows]
        others = [row for (status, _), rows in self._examples.items() if status != "failed" for row in rows]
        return [*failed[:MAX_FAILED], *others][:MAX_OUTCOMES]
