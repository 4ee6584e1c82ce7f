"""`waygraph history`, `diff` and `rollback`: which versions does a map have, and what changed between them?"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from waygraph.cli.options import JsonOption, SiteArgument, StoreOption, load_settings
from waygraph.cli.output import print_json, print_table, say
from waygraph.cli.refresh import mapped_sites
from waygraph.errors import InvalidInput, NotFound, StoreError

if TYPE_CHECKING:
    from index.graph.diff import EdgeChange, MapDiff, StateChange
    from index.store import MapVersion, Store

VersionArgument = Annotated[int | None, typer.Argument(metavar="VERSION", help="Number of a version.", min=1)]
#: Changes that are printed for people; JSON and HTML have more.
_SHOWN = 20


def history(site: SiteArgument, *, store: StoreOption = None, as_json: JsonOption = False) -> None:
    """List the versions of a site's map: when each was published, from what, and what changed.

    \b
    Examples:
      waygraph history example.org
      waygraph history example.org --json
    """  # noqa: D301 - \b keeps the lines of an example together
    opened, key = _opened(store, site)
    current = opened.head(key)
    versions = []
    for number in opened.versions(key):
        manifest = opened.manifest(key, number)
        refresh = manifest.report.get("refresh") or {}
        versions.append(
            {
                "version": number,
                "created": manifest.created,
                "current": number == current,
                "states": manifest.counts.states,
                "edges": manifest.counts.edges,
                "encoder": manifest.encoder.name,
                "partial": manifest.partial,
                "refresh_of": refresh.get("of"),
                "rollback_to": manifest.report.get("rollback_to"),
                "reencoded_from": manifest.report.get("reencoded_from"),
                "changes": refresh.get("states", {}),
            }
        )
    if as_json:
        print_json({"site": key, "versions": versions})
        return
    shown = ("version", "created", "states", "edges")
    rows = [(*(each[name] for name in shown), _made(each), "current" * each["current"]) for each in versions]
    print_table(("version", "published", "states", "edges", "", ""), rows, right=("version", "states", "edges"))


def _made(version: dict[str, Any]) -> str:
    if version["rollback_to"]:
        return f"rollback to {version['rollback_to']}"
    if version["refresh_of"]:
        changes = ", ".join(f"{count} {verdict}" for verdict, count in sorted(version["changes"].items()))
        return f"refresh of {version['refresh_of']}: {changes}"
    return f"reencoded from {version['reencoded_from']}" if version["reencoded_from"] else "explored"


def diff(
    site: SiteArgument,
    a: VersionArgument = None,
    b: VersionArgument = None,
    *,
    html: Annotated[
        Path | None, typer.Option("--html", metavar="FILE", help="Write a page with pictures of before and after.")
    ] = None,
    store: StoreOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show what changed between two versions of a site's map; without numbers, the current one and the one before.

    States: match, moved (the same under another id), changed, gone, added. Actions: the same, and
    session_dependent or non_deterministic when a refresh found that they lead to different states.
    What differs in noise, or in numbers alone, is no change.

    \b
    Examples:
      waygraph diff example.org
      waygraph diff example.org 3 7 --json
      waygraph diff example.org --html changes.html
    """  # noqa: D301
    from pipeline.jobs.publishing.changes import changes

    opened, key = _opened(store, site)
    first, second = _chosen(opened, key, a, b)
    old, new = opened.read(key, first), opened.read(key, second)
    found = changes(opened, old, new)
    if html is not None:
        from waygraph.cli.diff_page import diff_page

        page = diff_page(found, old, new, lambda digest: _picture(opened, digest))
        try:
            html.write_text(page, encoding="utf-8", errors="replace")
        except OSError as error:
            raise InvalidInput(f"Cannot write {html}: {error.strerror}.", hint="Choose another --html.") from error
    if as_json:
        print_json(_document(key, found, old, new))
        return
    _print(key, found, old, new)
    if html is not None:
        say(f"Pictures: {html}")


def _chosen(store: Store, site: str, a: int | None, b: int | None) -> tuple[int, int]:
    """The two versions to compare: the named ones, the named and the current one, or the last two."""
    second = b or store.head(site)
    if a is not None:
        return a, second
    before = [number for number in store.versions(site) if number < second]
    if not before:
        raise NotFound(f"'{site}' has no version before {second}.", hint=f"Make one: waygraph refresh {site}")
    # Numbers only grow: what the current version replaced is the one before it, however each of them came about.
    return before[-1], second


def _picture(store: Store, digest: str) -> bytes | None:
    try:
        return store.blobs.get(digest)
    except (NotFound, StoreError):  # the page says that there is none
        return None


def _document(site: str, found: MapDiff, old: MapVersion, new: MapVersion) -> dict[str, Any]:
    return {
        "site": site,
        "from": old.manifest.version,
        "to": new.manifest.version,
        "counts": found.counts(),
        "states": [_state(change, old, new) for change in found.states if change.verdict != "match"],
        "edges": [_edge(change) for change in found.edges if change.verdict != "match"],
        "broken_paths": [
            {"state": node_id, "url": old.graph.nodes[node_id].url, "at": {"source": e.source, "action": str(e.action)}}
            for node_id, e in found.broken
        ],
    }


def _state(change: StateChange, old: MapVersion, new: MapVersion) -> dict[str, Any]:
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


def _edge(change: EdgeChange) -> dict[str, Any]:
    return {
        "verdict": change.verdict,
        **{
            name: {"source": edge.source, "target": edge.target, "action": edge.action.to_json()} if edge else None
            for name, edge in (("before", change.before), ("after", change.after))
        },
    }


def _print(site: str, found: MapDiff, old: MapVersion, new: MapVersion) -> None:
    counts = found.counts()
    say(f"{site}: version {old.manifest.version} to {new.manifest.version}")
    for kind, verdicts in counts.items():
        say(f"  {kind}: " + ", ".join(f"{count} {verdict}" for verdict, count in verdicts.items()))
    rows = [
        (change.verdict, change.after[:8] or change.before[:8], _state(change, old, new)["url"], _said(change))
        for change in found.states
        if change.verdict not in {"match", "moved"}
    ]
    if rows:
        print_table(("state", "id", "url", ""), rows[:_SHOWN])
        if len(rows) > _SHOWN:
            say(f"and {len(rows) - _SHOWN} more (--json or --html)")
    if found.broken:
        say(f"{len(found.broken)} states are not reached any more by the way that they were found by.")


def _said(change: StateChange) -> str:
    return " ".join([*(f'+"{text}"' for text in change.added[:2]), *(f'-"{text}"' for text in change.removed[:2])])[
        :100
    ]


def rollback(
    site: SiteArgument,
    version: Annotated[int, typer.Argument(metavar="VERSION", help="The version to publish again.", min=1)],
    *,
    store: StoreOption = None,
    as_json: JsonOption = False,
) -> None:
    """Publish an older version of a site's map again, as a new version. Nothing is deleted.

    \b
    Examples:
      waygraph history example.org
      waygraph rollback example.org 3
    """  # noqa: D301
    from pipeline.jobs.publishing.changes import changes, rolled_back

    opened, key = _opened(store, site)
    current = opened.head(key)
    if version == current:
        raise InvalidInput(f"Version {version} of '{key}' is the current one.", hint=f"See: waygraph history {key}")
    old, new = opened.read(key, version), opened.read(key, current)
    draft = rolled_back(old, new, changes(opened, new, old))
    number = opened.publish(draft, replaces=current)
    if as_json:
        print_json({"site": key, "rollback_to": version, "replaces": current, "version": number})
    else:
        say(f"{key}: version {number} is version {version} again.")


def _opened(store: str | None, site: str) -> tuple[Store, str]:
    from index.store import Store

    opened = Store.open(load_settings({"store": store}).store)
    return opened, mapped_sites([site], opened.sites())[0]


def register(app: typer.Typer) -> None:
    """Add the commands."""
    app.command("history", short_help="List the versions of a site's map.")(history)
    app.command("diff", short_help="Show what changed between two versions.")(diff)
    app.command("rollback", short_help="Publish an older version again.")(rollback)
