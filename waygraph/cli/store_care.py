"""`waygraph store verify|repair|copy`: is a store whole, how is it mended, how does it get to another place?"""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from waygraph.cli.options import JsonOption, StoreOption, load_settings
from waygraph.cli.output import print_json, say
from waygraph.cli.source import site_key_of
from waygraph.errors import NotFound, StoreError

if TYPE_CHECKING:
    from index.store import Store
    from index.store.checks import Checked

HELP = """Check, mend and copy stores.

\b
Examples:
  waygraph store verify --store maps
  waygraph store copy maps s3://bucket/maps
  waygraph store repair --store maps --from s3://bucket/maps
"""

_SHOWN = 20
SitesArgument = Annotated[
    list[str] | None, typer.Argument(metavar="[SITE]...", help="Mapped sites; all, when none is named.")
]


def verify(
    sites: SitesArgument = None,
    *,
    quick: Annotated[
        bool, typer.Option("--quick", help="Only look whether screenshots and the like are there; do not read them.")
    ] = False,
    store: StoreOption = None,
    as_json: JsonOption = False,
) -> None:
    """Read all that is published and compare it with its checksums. Nothing is changed.

    Exit codes: 0 all is as it was published, 7 something is not.
    """
    from index.store import Store
    from index.store.checks import verify as check

    opened = Store.open(load_settings({"store": store}).store)
    checked = check(opened, _keys(sites, opened.all_sites(), opened), contents=not quick)
    _print(checked, as_json=as_json)
    if checked.problems:
        raise _unless(
            as_json,
            StoreError(f"{len(checked.problems)} problem(s) in {opened.location}.", hint="See: waygraph store repair"),
        )


def repair(
    sites: SitesArgument = None,
    *,
    source: Annotated[
        str | None, typer.Option("--from", metavar="STORE", help="A copy to take undamaged files from.")
    ] = None,
    store: StoreOption = None,
    as_json: JsonOption = False,
) -> None:
    """Mend what `waygraph store verify` finds.

    What the copy holds undamaged is taken from there. Otherwise a damaged version is withdrawn when
    there is another one, a damaged or missing HEAD is written anew from the versions that are whole, and a
    damaged screenshot is deleted: indexing the site again takes it anew.
    Exit codes: 0 all problems were mended, 7 some were not.
    """
    from index.store import Store
    from index.store.checks import repair as mend

    opened = Store.open(load_settings({"store": store}).store, create=True)
    checked = mend(opened, Store.open(source) if source else None, _keys(sites, opened.all_sites(), opened))
    _print(checked, as_json=as_json)
    if left := [problem for problem in checked.problems if not problem.remedy]:
        hint = "Name a copy with --from, or remove the site (waygraph rm) and index it again."
        raise _unless(as_json, StoreError(f"{len(left)} problem(s) were not mended.", hint=hint))


def copy(
    source: Annotated[str, typer.Argument(metavar="FROM", help="A folder or s3://bucket/prefix.")],
    target: Annotated[str, typer.Argument(metavar="TO", help="Another one; it becomes a store when it is empty.")],
    *,
    sites: Annotated[
        list[str] | None, typer.Option("--site", metavar="SITE", help="Only this site; repeatable.")
    ] = None,
    newest: Annotated[bool, typer.Option("--newest", help="Only the current version of each site.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Copy maps to another place, with their versions and screenshots.

    Every file is checked on the way. A copy that was stopped is gone on with by the same command, and a
    later one copies what is new. Reports of runs and unfinished work are not copied.

    \b
    Examples:
      waygraph store copy maps s3://bucket/maps
      waygraph store copy s3://bucket/maps /backup/maps --site shop.example
    """  # noqa: D301 - \b keeps the lines of an example together
    from index.store import Store
    from index.store.copying import copy as copy_maps

    opened = Store.open(source)
    keys = _keys(sites, opened.sites(), opened)
    done = copy_maps(
        opened,
        Store.open(target, create=True),
        keys,
        newest_only=newest,
        on_site=lambda site: None if as_json else say(f"{site} ..."),
    )
    if as_json:
        print_json(asdict(done))
        return
    versions = sum(map(len, done.versions.values()))
    say(
        f"Copied {versions} version(s) of {len(done.versions)} site(s) and {done.blobs} blobs, {done.bytes:,} bytes. "
        f"Already there: {done.versions_there} version(s), {done.blobs_there} blobs."
    )


def _keys(texts: list[str] | None, among: list[str], store: Store) -> list[str] | None:
    """Keys of the named sites; None when none is named."""
    if not texts:
        return None
    keys = [site_key_of(text, among) for text in texts]
    if unknown := [key for key in keys if key not in among]:
        mapped = ", ".join(store.sites()[:10])
        raise NotFound(
            f"Site '{unknown[0]}' is not mapped in {store.location}.", hint=f"Mapped: {mapped or 'none yet'}."
        )
    return keys


def _print(checked: Checked, *, as_json: bool) -> None:
    if as_json:
        print_json(asdict(checked))
        return
    for problem in checked.problems[:_SHOWN]:
        version = "" if problem.version is None else f" version {problem.version}"
        say(f"{problem.site}{version}: {problem.what}")
        if problem.remedy:
            say(f"  {problem.remedy}")
    if len(checked.problems) > _SHOWN:
        say(f"and {len(checked.problems) - _SHOWN} more (--json prints all)")
    say(
        f"{checked.sites} site(s), {checked.versions} version(s), {checked.blobs} blobs, "
        f"{len(checked.problems)} problem(s)."
    )


def _unless(as_json: bool, error: StoreError) -> StoreError | typer.Exit:
    """With --json one document is printed, and it is out already."""
    return typer.Exit(error.exit_code) if as_json else error


def register(app: typer.Typer) -> None:
    """Add the commands."""
    group = typer.Typer(help=HELP, no_args_is_help=True, rich_markup_mode=None)
    group.command("verify", short_help="Compare all that is published with its checksums.")(verify)
    group.command("repair", short_help="Mend what is damaged.")(repair)
    group.command("copy", short_help="Copy maps to another place.")(copy)
    app.add_typer(group, name="store", short_help="Check, mend and copy stores.")
