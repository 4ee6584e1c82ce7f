"""`waygraph diff`: show what changed between two versions of a map."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from waygraph.cli.options import JsonOption, SiteArgument, StoreOption
from waygraph.cli.output import print_json, print_table, say, write_file
from waygraph.cli.selection import open_mapped_site
from waygraph.core.errors import NotFound

if TYPE_CHECKING:
    from waygraph.index.graph.diff import EdgeChange, MapDiff, StateChange
    from waygraph.index.graph.tool_diff import ToolChange
    from waygraph.index.store import MapVersion, Store

VersionArgument = Annotated[int | None, typer.Argument(metavar="VERSION", help="Number of a version.", min=1)]
#: Limit of printed changes; JSON and HTML have more.
_SHOWN = 20
#: Length of the changed texts that are printed per state, in characters.
_TEXT_LENGTH = 100


def diff(
    site: SiteArgument,
    a: VersionArgument = None,
    b: VersionArgument = None,
    *,
    html: Annotated[
        Path | None, typer.Option("--html", metavar="FILE", help="Write a page with screenshots before and after.")
    ] = None,
    store: StoreOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show what changed between two versions of a site's map: by default the current and the previous one.

    States: match, moved (the same under another id), changed, gone, added. Actions: the same, and
    session_dependent or non_deterministic if a refresh found that they lead to different states.
    Tools: match, moved, changed (other inputs, texts or address), gone, added. Of inputs, + is new, - gone, ~ changed.
    Differences in noise, or in numbers of texts only, are no changes.

    \b
    Examples:
      waygraph diff example.org
      waygraph diff example.org 3 7 --json
      waygraph diff example.org --html changes.html
    """  # noqa: D301 - \b keeps the lines of an example together
    from waygraph.pipeline.comparison import compare_versions

    opened, key = open_mapped_site(store, site)
    first, second = _versions_to_compare(opened, key, a, b)
    old, new = opened.read(key, first), opened.read(key, second)
    changes = compare_versions(opened, old, new)
    if html is not None:
        from waygraph.serve.views.changes_report import changes_report

        write_file(html, changes_report(opened, changes, old, new).html(), option="--html")
    if as_json:
        print_json(_document(key, changes, old, new))
        return
    _print(key, changes, old, new)
    if html is not None:
        say(f"Page: {html}")


def _versions_to_compare(store: Store, site: str, a: int | None, b: int | None) -> tuple[int, int]:
    """Return the two given versions, the given and the current one, or the last two."""
    second = b or store.head(site)
    if a is not None:
        return a, second
    earlier = [number for number in store.versions(site) if number < second]
    if not earlier:
        raise NotFound(f"'{site}' has no version before {second}.", hint=f"To make one, run: waygraph refresh {site}")
    # Version numbers only grow, so the current version replaced the one before it, however each of them was made.
    return earlier[-1], second


def _document(site: str, changes: MapDiff, old: MapVersion, new: MapVersion) -> dict[str, Any]:
    return {
        "site": site,
        "from": old.manifest.version,
        "to": new.manifest.version,
        "counts": changes.counts(),
        "states": [_state_document(change, old, new) for change in changes.states if change.verdict != "match"],
        "edges": [_edge_document(change) for change in changes.edges if change.verdict != "match"],
        "tools": [_tool_document(change) for change in changes.tools if change.verdict != "match"],
        "broken_paths": [
            {
                "state": node_id,
                "url": old.graph.nodes[node_id].url,
                "at": {"source": edge.source, "action": str(edge.action)},
            }
            for node_id, edge in changes.broken
        ],
    }


def _state_document(change: StateChange, old: MapVersion, new: MapVersion) -> dict[str, Any]:
    before, after = old.observations.get(change.before), new.observations.get(change.after)
    return {
        "verdict": change.verdict,
        "id": change.after or None,
        "previous_id": change.before or None,
        "url": after.url if after else before.url if before else "",
        "previous_url": before.url if before else None,
        "added": list(change.added),
        "removed": list(change.removed),
        "screenshots": {"before": before.screenshot if before else "", "after": after.screenshot if after else ""},
    }


def _edge_document(change: EdgeChange) -> dict[str, Any]:
    return {
        "verdict": change.verdict,
        **{
            name: {"source": edge.source, "target": edge.target, "action": edge.action.to_json()} if edge else None
            for name, edge in (("before", change.before), ("after", change.after))
        },
    }


def _tool_document(change: ToolChange) -> dict[str, Any]:
    from waygraph.index.graph.export import tool_document

    return {
        "verdict": change.verdict,
        "name": change.tool.name,
        "attributes": list(change.attributes),
        **{
            name: tool_document(tool) if tool else None
            for name, tool in (("before", change.before), ("after", change.after))
        },
    }


def _print(site: str, changes: MapDiff, old: MapVersion, new: MapVersion) -> None:
    say(f"{site}: version {old.manifest.version} to {new.manifest.version}")
    for kind, verdicts in changes.counts().items():
        if verdicts:
            say(f"  {kind}: " + ", ".join(f"{count} {verdict}" for verdict, count in verdicts.items()))
    rows = [
        (
            change.verdict,
            change.after[:8] or change.before[:8],
            _state_document(change, old, new)["url"],
            _changed_texts(change),
        )
        for change in changes.states
        if change.verdict not in {"match", "moved"}
    ]
    _print_rows(("state", "id", "url", ""), rows)
    tools = [change for change in changes.tools if change.verdict not in {"match", "moved"}]
    _print_rows(
        ("tool", "id", "name", ""),
        [(change.verdict, change.tool.id[:8], change.tool.name, _changed_inputs(change)) for change in tools],
    )
    if changes.broken:
        say(f"{len(changes.broken)} states are no longer reached by the path of the older version.")


def _print_rows(headers: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    if rows:
        print_table(headers, rows[:_SHOWN])
        if len(rows) > _SHOWN:
            say(f"and {len(rows) - _SHOWN} more (--json or --html)")


def _changed_inputs(change: ToolChange) -> str:
    from waygraph.index.graph.tool_diff import input_changes

    changed = [*input_changes(change), *change.attributes]
    return " ".join(changed)[:_TEXT_LENGTH]


def _changed_texts(change: StateChange) -> str:
    added = [f'+"{text}"' for text in change.added[:2]]
    removed = [f'-"{text}"' for text in change.removed[:2]]
    return " ".join([*added, *removed])[:_TEXT_LENGTH]


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("diff", short_help="Show what changed between two versions.")(diff)
