"""`waygraph store verify|repair|copy`: check, repair and copy stores."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from waygraph.cli.options import JsonOption, StoreOption, load_settings
from waygraph.cli.output import print_json, say
from waygraph.cli.selection import mapped_site
from waygraph.core.errors import StoreError

if TYPE_CHECKING:
    from waygraph.index.store.upkeep.checks import VerifyReport

HELP = """Check, repair and copy stores.

\b
Examples:
  waygraph store verify --store maps
  waygraph store copy maps s3://bucket/maps
  waygraph store repair --store maps --from s3://bucket/maps
"""

#: Limit of printed problems.
_SHOWN = 20
SitesArgument = Annotated[
    list[str] | None,
    typer.Argument(metavar="[SITE]...", help="Mapped sites, by key or URL.", show_default="all sites"),
]


def verify(
    sites: SitesArgument = None,
    *,
    quick: Annotated[
        bool, typer.Option("--quick", help="Only check that screenshots and other blobs exist; do not read them.")
    ] = False,
    store: StoreOption = None,
    as_json: JsonOption = False,
) -> None:
    """Compare everything that is published with its checksums. Nothing is changed.

    Exit codes: 0 everything is as it was published, 7 something is not.
    """
    from waygraph.index.store import Store
    from waygraph.index.store.upkeep.checks import verify as verify_store

    opened = Store.open(load_settings({"store": store}).store)
    report = verify_store(opened, _site_keys(sites, opened.all_sites()), contents=not quick)
    _print(report, as_json=as_json)
    if report.problems:
        message = f"{len(report.problems)} problem(s) in {opened.location}."
        raise _exit_with(StoreError(message, hint="See: waygraph store repair"), as_json=as_json)


def repair(
    sites: SitesArgument = None,
    *,
    source: Annotated[
        str | None, typer.Option("--from", metavar="STORE", help="A copy of the store, to take undamaged files from.")
    ] = None,
    store: StoreOption = None,
    as_json: JsonOption = False,
) -> None:
    """Repair the problems that `waygraph store verify` finds.

    Files that the copy has undamaged are taken from it. Otherwise a damaged version is withdrawn if there is
    another one, a damaged or missing HEAD is rebuilt from the complete versions, and a damaged screenshot is
    deleted; indexing the site again takes it again. If the settings name a Qdrant server, the vectors of
    withdrawn versions are deleted there, too.
    Exit codes: 0 all problems were repaired, 7 some were not.
    """
    from waygraph.index.catalog.server_copies import server_copies
    from waygraph.index.store import Store
    from waygraph.index.store.upkeep.checks import repair as repair_store

    settings = load_settings({"store": store})
    opened = Store.open(settings.store, create=True)
    copy_of_store = Store.open(source) if source else None
    with server_copies(settings.vectors) as drop_copies:
        report = repair_store(opened, copy_of_store, _site_keys(sites, opened.all_sites()), before_drop=drop_copies)
    _print(report, as_json=as_json)
    if remaining := [problem for problem in report.problems if not problem.remedy]:
        hint = "Name a copy with --from, or remove the site (waygraph rm) and index it again."
        raise _exit_with(StoreError(f"{len(remaining)} problem(s) were not repaired.", hint=hint), as_json=as_json)


def copy(
    source: Annotated[str, typer.Argument(metavar="FROM", help="The store: a folder or s3://bucket/prefix.")],
    target: Annotated[str, typer.Argument(metavar="TO", help="Another store, or an empty location.")],
    *,
    sites: Annotated[
        list[str] | None, typer.Option("--site", metavar="SITE", help="Only this site; repeatable.")
    ] = None,
    newest: Annotated[bool, typer.Option("--newest", help="Only the current version of each site.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Copy maps to another store, with their versions and screenshots.

    The checksum of every file is checked. The same command resumes a copy that was stopped, and later
    copies what is new. Run reports and unfinished work are not copied.

    \b
    Examples:
      waygraph store copy maps s3://bucket/maps
      waygraph store copy s3://bucket/maps /backup/maps --site shop.example
    """  # noqa: D301 - \b keeps the lines of an example together
    from waygraph.index.store import Store
    from waygraph.index.store.upkeep.copy import copy_maps

    opened = Store.open(source)
    keys = _site_keys(sites, opened.sites())
    copied = copy_maps(
        opened,
        Store.open(target, create=True),
        keys,
        newest_only=newest,
        on_site=lambda site: None if as_json else say(f"{site} ..."),
    )
    if as_json:
        print_json(asdict(copied))
        return
    versions = sum(map(len, copied.versions.values()))
    say(
        f"Copied {versions} version(s) of {len(copied.versions)} site(s) and {copied.blobs} blobs, "
        f"{copied.bytes:,} bytes. Already there: {copied.versions_there} version(s), {copied.blobs_there} blobs."
    )


def _site_keys(texts: list[str] | None, mapped: Sequence[str]) -> list[str] | None:
    """Return the keys of the given sites; None for all sites."""
    return [mapped_site(text, mapped) for text in texts] if texts else None


def _print(report: VerifyReport, *, as_json: bool) -> None:
    if as_json:
        print_json(asdict(report))
        return
    for problem in report.problems[:_SHOWN]:
        version = "" if problem.version is None else f" version {problem.version}"
        say(f"{problem.site}{version}: {problem.what}")
        if problem.remedy:
            say(f"  {problem.remedy}")
    if len(report.problems) > _SHOWN:
        say(f"and {len(report.problems) - _SHOWN} more (--json prints all)")
    say(
        f"{report.sites} site(s), {report.versions} version(s), {report.blobs} blobs, "
        f"{len(report.problems)} problem(s)."
    )


def _exit_with(error: StoreError, *, as_json: bool) -> StoreError | typer.Exit:
    """Return what to raise for `error`: with `--json` only its exit code, since the document is printed already."""
    return typer.Exit(error.exit_code) if as_json else error


def register(app: typer.Typer) -> None:
    """Add the commands."""
    group = typer.Typer(help=HELP, no_args_is_help=True, rich_markup_mode=None)
    group.command("verify", short_help="Compare everything that is published with its checksums.")(verify)
    group.command("repair", short_help="Repair what is damaged.")(repair)
    group.command("copy", short_help="Copy maps to another store.")(copy)
    app.add_typer(group, name="store", short_help="Check, repair and copy stores.")
