"""HTML page of the changes between two versions of a map, with screenshots: one file that loads nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from html import escape
from typing import TYPE_CHECKING

from waygraph.pipeline.jobs.report.html_page import data_url, render_page, render_table

if TYPE_CHECKING:
    from waygraph.index.graph.diff import EdgeChange, MapDiff, StateChange
    from waygraph.index.store import MapVersion

#: Returns a screenshot (JPEG) by its content hash, or None if the store no longer has it.
ReadScreenshot = Callable[[str], bytes | None]

#: Limit of listed states and edges of each kind; the JSON output has all.
_LISTED = 200
#: Limit of listed texts per state.
_TEXTS = 12
_HEADINGS = {
    "changed": "Changed states",
    "added": "New states",
    "gone": "States that are gone",
    "moved": "States with another id",
}
_STYLE = """
section.state { border-top: 1px solid #ddd; padding: .8rem 0; } .pair { display: flex; gap: 1rem; }
figure { flex: 1; } img { width: 100%; border: 1px solid #ccc; }
ins { background: #d9f2d9; text-decoration: none; } del { background: #f7d9d9; }
"""


def diff_page(diff: MapDiff, old: MapVersion, new: MapVersion, read_screenshot: ReadScreenshot) -> str:
    """Return the page. All text from the site is escaped.

    Parameters
    ----------
    diff
        Changes from `old` to `new`.
    old
        The older version.
    new
        The newer version.
    read_screenshot
        Returns a screenshot by its content hash.

    Returns
    -------
    str
        An HTML document.
    """
    title = f"{old.manifest.site}: version {old.manifest.version} to {new.manifest.version}"
    return render_page(title, "".join(_body(diff, old, new, read_screenshot)), style=_STYLE)


def _body(diff: MapDiff, old: MapVersion, new: MapVersion, read_screenshot: ReadScreenshot) -> Iterator[str]:
    yield f"<p>Published {escape(old.manifest.created)} and {escape(new.manifest.created)}.</p>"
    counts = diff.counts()
    verdicts = sorted({*counts["states"], *counts["edges"]})
    yield render_table(
        ["", "states", "edges"],
        [[verdict, counts["states"].get(verdict, 0), counts["edges"].get(verdict, 0)] for verdict in verdicts],
    )
    for verdict, heading in _HEADINGS.items():
        changes = [change for change in diff.states if change.verdict == verdict]
        if changes:
            yield f"<h2>{heading} ({len(changes)})</h2>"
            yield from (_state(change, old, new, read_screenshot) for change in changes[:_LISTED])
            yield _more(len(changes))
    edges = [change for change in diff.edges if change.verdict not in {"match", "moved"}]
    if edges:
        yield f"<h2>Actions ({len(edges)})</h2>"
        yield render_table(
            ["", "action", "on", "led to", "leads to"], [_edge_row(change, old, new) for change in edges[:_LISTED]]
        )
        yield _more(len(edges))
    if diff.broken:
        yield f"<h2>Paths that no longer lead to their states ({len(diff.broken)})</h2>"
        rows = [[_url(old, node_id), str(edge.action)] for node_id, edge in diff.broken[:_LISTED]]
        yield render_table(["state", "broken at"], rows) + _more(len(diff.broken))


def _edge_row(change: EdgeChange, old: MapVersion, new: MapVersion) -> list[str]:
    before, after = change.before, change.after
    either = before or after
    return [
        change.verdict,
        str(either.action) if either else "",
        _url(old, before.source) if before else _url(new, after.source) if after else "",
        _url(old, before.target) if before else "",
        _url(new, after.target) if after else "",
    ]


def _state(change: StateChange, old: MapVersion, new: MapVersion, read_screenshot: ReadScreenshot) -> str:
    heading = _state_heading(new, change.after) if change.after else _state_heading(old, change.before)
    texts = "".join(f"<li><ins>{escape(text)}</ins></li>" for text in change.added[:_TEXTS])
    texts += "".join(f"<li><del>{escape(text)}</del></li>" for text in change.removed[:_TEXTS])
    figures = "".join(
        _figure(caption, version, node_id, read_screenshot)
        for caption, version, node_id in (("before", old, change.before), ("after", new, change.after))
        if node_id
    )
    pair = f'<div class="pair">{figures}</div>' if change.verdict != "moved" else ""
    return f'<section class="state">{heading}<ul>{texts}</ul>{pair}</section>'


def _state_heading(version: MapVersion, node_id: str) -> str:
    node = version.graph.nodes[node_id]
    return f"<h3>{escape(node.title or '(no title)')}</h3><p>{escape(node.url)} <code>{escape(node_id[:8])}</code></p>"


def _figure(caption: str, version: MapVersion, node_id: str, read_screenshot: ReadScreenshot) -> str:
    observation = version.observations.get(node_id)
    digest = observation.screenshot if observation is not None else None
    content = read_screenshot(digest) if digest else None
    if content is None:
        return f"<figure><figcaption>{caption}: no screenshot</figcaption></figure>"
    image = f'<img src="{data_url(content)}" alt="{caption}" loading="lazy">'
    return f"<figure>{image}<figcaption>{caption}</figcaption></figure>"


def _url(version: MapVersion, node_id: str) -> str:
    node = version.graph.nodes.get(node_id)
    return node.url if node is not None else node_id


def _more(count: int) -> str:
    return f"<p>and {count - _LISTED} more</p>" if count > _LISTED else ""
