"""How are the changes of a map shown to a person? One HTML file with pictures in it, that loads nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from html import escape
from typing import TYPE_CHECKING

from pipeline.jobs.report.html_page import inlined, page, table

if TYPE_CHECKING:
    from index.graph.diff import MapDiff, StateChange
    from index.store import MapVersion

#: States and edges of a kind that are listed; the JSON has all.
_LISTED = 200
#: Texts shown of a state.
_TEXTS = 12
_TITLES = {
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


def diff_page(diff: MapDiff, old: MapVersion, new: MapVersion, picture: Callable[[str], bytes | None]) -> str:
    """The page. Everything that the site's pages said is escaped.

    Parameters
    ----------
    picture : gives a screenshot (JPEG) by content hash, or nothing when it is lost.
    """
    title = f"{old.manifest.site}: version {old.manifest.version} to {new.manifest.version}"
    return page(title, "".join(_body(diff, old, new, picture)), style=_STYLE)


def _body(diff: MapDiff, old: MapVersion, new: MapVersion, picture: Callable[[str], bytes | None]) -> Iterator[str]:
    yield f"<p>Published {escape(old.manifest.created)} and {escape(new.manifest.created)}.</p>"
    counts = diff.counts()
    verdicts = sorted({*counts["states"], *counts["edges"]})
    yield table(
        ["", "states", "edges"],
        [[verdict, counts["states"].get(verdict, 0), counts["edges"].get(verdict, 0)] for verdict in verdicts],
    )
    for verdict, heading in _TITLES.items():
        found = [change for change in diff.states if change.verdict == verdict]
        if found:
            yield f"<h2>{heading} ({len(found)})</h2>"
            yield from (_state(change, old, new, picture) for change in found[:_LISTED])
            yield _more(len(found))
    edges = [change for change in diff.edges if change.verdict not in {"match", "moved"}]
    if edges:
        yield f"<h2>Actions ({len(edges)})</h2>"
        rows = []
        for change in edges[:_LISTED]:
            was, now = change.before, change.after
            first = was or now
            rows.append([
                change.verdict,
                str(first.action) if first else "",
                _url(old, was.source) if was else _url(new, now.source) if now else "",
                _url(old, was.target) if was else "",
                _url(new, now.target) if now else "",
            ])  # fmt: skip
        yield table(["", "action", "on", "led to", "leads to"], rows)
        yield _more(len(edges))
    if diff.broken:
        yield f"<h2>Paths that do not lead to their states any more ({len(diff.broken)})</h2>"
        rows = [[_url(old, node_id), str(edge.action)] for node_id, edge in diff.broken[:_LISTED]]
        yield table(["state", "broken at"], rows) + _more(len(diff.broken))


def _state(change: StateChange, old: MapVersion, new: MapVersion, picture: Callable[[str], bytes | None]) -> str:
    named = _named(new, change.after) if change.after else _named(old, change.before)
    texts = "".join(f"<li><ins>{escape(text)}</ins></li>" for text in change.added[:_TEXTS])
    texts += "".join(f"<li><del>{escape(text)}</del></li>" for text in change.removed[:_TEXTS])
    figures = "".join(
        _figure(caption, version, node_id, picture)
        for caption, version, node_id in (("before", old, change.before), ("after", new, change.after))
        if node_id
    )
    pair = f'<div class="pair">{figures}</div>' if change.verdict != "moved" else ""
    return f'<section class="state">{named}<ul>{texts}</ul>{pair}</section>'


def _named(version: MapVersion, node_id: str) -> str:
    node = version.graph.nodes[node_id]
    return f"<h3>{escape(node.title or '(no title)')}</h3><p>{escape(node.url)} <code>{escape(node_id[:8])}</code></p>"


def _figure(caption: str, version: MapVersion, node_id: str, picture: Callable[[str], bytes | None]) -> str:
    seen = version.observations.get(node_id)
    content = picture(seen.screenshot) if seen is not None and seen.screenshot else None
    if content is None:
        return f"<figure><figcaption>{caption}: no picture</figcaption></figure>"
    image = f'<img src="{inlined(content)}" alt="{caption}" loading="lazy">'
    return f"<figure>{image}<figcaption>{caption}</figcaption></figure>"


def _url(version: MapVersion, node_id: str) -> str:
    node = version.graph.nodes.get(node_id)
    return node.url if node is not None else node_id


def _more(count: int) -> str:
    return f"<p>and {count - _LISTED} more</p>" if count > _LISTED else ""
