"""The differences between two versions of a map as a file, with screenshots before and after."""

from __future__ import annotations

from waygraph.core.errors import NotFound, StoreError
from waygraph.core.report_file import ReportFile
from waygraph.core.view_schemas import StateChangeModel
from waygraph.index.graph.diff import MapDiff
from waygraph.index.store import MapVersion, Store
from waygraph.serve.views.changes import changes_answer

#: Largest size of all screenshots of a file; those that come after it are left out.
MAX_IMAGES_BYTES = 24 * 2**20
_KEY_DIGITS = 32


def changes_report(
    store: Store, diff: MapDiff, old: MapVersion, new: MapVersion, *, images_bytes: int = MAX_IMAGES_BYTES
) -> ReportFile:
    """Return the report of the differences between two versions.

    Parameters
    ----------
    store
        Where the screenshots are.
    diff
        Changes from `old` to `new`.
    old
        The older version.
    new
        The newer version.
    images_bytes
        Largest size of all screenshots.

    Returns
    -------
    ReportFile
        The report. Screenshots that the store no longer has are left out.
    """
    site = new.manifest.site
    images = _Images(store, images_bytes)
    answer = changes_answer(diff, old, new, store.versions(site))
    answer.states = [_with_keys(change, old, new, images) for change in answer.states]
    title = f"{site}: version {old.manifest.version} to {new.manifest.version}"
    content = {"changes": answer.model_dump(mode="json"), "left_out": len(images.left_out)}
    return ReportFile("changes", title, content, images.kept)


def _with_keys(change: StateChangeModel, old: MapVersion, new: MapVersion, images: _Images) -> StateChangeModel:
    """Return a change whose screenshots are named by their keys in the file."""
    before, after = (
        images.key(seen.screenshot) if (seen := version.observations.get(node_id)) and seen.screenshot else None
        for version, node_id in ((old, change.before), (new, change.after))
    )
    return change.model_copy(update={"screenshot_before": before, "screenshot_after": after})


class _Images:
    """Screenshots for one file, each once, up to a size.

    Parameters
    ----------
    store
        Where they are.
    room
        Largest size of all together.
    """

    def __init__(self, store: Store, room: int) -> None:
        self.kept: dict[str, bytes] = {}
        self.left_out: set[str] = set()
        self._store = store
        self._room = room

    def key(self, digest: str) -> str | None:
        """Return the key of a screenshot in the file; None if it is not there."""
        key = digest[:_KEY_DIGITS]
        if key in self.kept:
            return key
        try:
            content = self._store.blobs.get(digest)
        except (NotFound, StoreError):  # the report shows that there is none
            return None
        if len(content) > self._room:
            self.left_out.add(key)
            return None
        self._room -= len(content)
        self.kept[key] = content
        return key
