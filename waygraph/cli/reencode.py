"""`waygraph reencode`: give mapped sites the vectors of another encoder."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from waygraph.cli.index_options import MaxTotalSecondsOption, MaxTotalStatesOption, ResumeOption
from waygraph.cli.options import JsonOption, StoreOption, load_settings
from waygraph.cli.output import print_json, print_table, say
from waygraph.cli.source import site_key_of
from waygraph.errors import InvalidInput, NotFound

if TYPE_CHECKING:
    from pipeline.jobs.report.outcomes import RunReport
    from waygraph.settings import Settings


def reencode_command(
    sites: Annotated[
        list[str] | None,
        typer.Argument(metavar="[SITE]...", help="Mapped sites: their keys (host, with port) or any URL of them."),
    ] = None,
    *,
    every: Annotated[bool, typer.Option("--all", help="All sites of the store.")] = False,
    encoder: Annotated[
        str | None, typer.Option("--encoder", metavar="NAME", help="What makes states searchable.", show_default="text")
    ] = None,
    weights: Annotated[
        Path | None, typer.Option("--weights", metavar="FOLDER", help="The encoder's weights.", show_default="found")
    ] = None,
    max_total_states: MaxTotalStatesOption = None,
    max_total_seconds: MaxTotalSecondsOption = None,
    resume: ResumeOption = None,
    store: StoreOption = None,
    as_json: JsonOption = False,
) -> None:
    """Give mapped sites the vectors of another encoder, from the stored texts and screenshots.

    No browser is started and no site is visited. Each site gets a new version with the same graph;
    readers see the old one until it is complete. A run that is stopped or killed is gone on with by the
    same command: what was encoded is kept. A site that has this encoder's vectors is left as it is.
    A state that cannot be encoded (a damaged screenshot) stays in the map, without vectors: paths lead
    to it, searches do not find it.

    \b
    Examples:
      waygraph reencode example.org --encoder text
      waygraph reencode --all --encoder jina-v4 --weights models/jina-v4
      waygraph reencode --all --encoder jina-v4 --json > report.json
    A service answers questions with one encoder: start it with the same one.
    Exit codes: 0 all have the vectors, 5 some failed, 11 the time or the states for this call are used up,
    130 interrupted; if all failed, what they failed of (3 not mapped, 6 no weights, 7 store).
    """  # noqa: D301 - \b keeps the lines of an example together
    settings = load_settings(
        {
            "store": store,
            "explore": {"resume": resume},
            "encode": {"encoder": encoder, "weights": weights and weights.absolute()},
            "jobs": {"max_total_states": max_total_states, "max_total_seconds": max_total_seconds},
        }
    )
    raise typer.Exit(reencode_sites(sites or [], settings, every=every, as_json=as_json))


def reencode_sites(sites: list[str], settings: Settings, *, every: bool, as_json: bool) -> int:
    """Encode the named sites anew, show how it goes on stderr and the result on stdout; returns the exit code."""
    from index.store import Store
    from pipeline.jobs import run_reencode
    from waygraph.cli.index_progress import progress_display

    if every == bool(sites):
        raise InvalidInput(
            "Both sites and --all were given." if every else "No site was named.",
            hint="Name mapped sites, or say --all. See: waygraph sites",
        )
    mapped = Store.open(settings.store).sites()
    keys = mapped if every else [_mapped(site, mapped) for site in sites]
    if not keys:
        raise NotFound("There are no maps yet.", hint="Make one: waygraph index https://example.org")
    with progress_display(sys.stderr) as display:
        report = run_reencode(keys, settings=settings, on_event=display)
    if as_json:
        print_json(report)
    else:
        _print(report)
    return report.exit_code


def _mapped(text: str, mapped: list[str]) -> str:
    key = site_key_of(text, mapped)
    if key not in mapped:
        raise NotFound(f"Site '{key}' is not mapped.", hint=f"Mapped: {', '.join(mapped[:10]) or 'none yet'}.")
    return key


def _print(report: RunReport) -> None:
    rows = [
        (
            outcome.site,
            outcome.status,
            made.version if (made := outcome.publication) else "",
            made.encoded if made else "",
            made.reused if made else "",
            made.without_vectors if made else "",
            f"{outcome.seconds:.1f}",
            outcome.error.message if outcome.error else "",
        )
        for outcome in report.sites
    ]
    numbers = ("version", "encoded", "reused", "without", "seconds")
    print_table(("site", "outcome", *numbers, ""), rows, right=numbers)
    for outcome in report.sites:
        for failure in outcome.publication.failures if outcome.publication else ():
            say(f"{outcome.site}: without vectors: {failure.url}: {failure.reason}")
        if outcome.error and outcome.error.hint:
            say(f"{outcome.site}: hint: {outcome.error.hint}")
    if (encoding := report.encoding) is not None:
        say(
            f"{encoding.states} states in {encoding.batches} batches by {encoding.encoder or 'no encoder'}, "
            f"{encoding.busy_seconds:.1f} s of computing, {encoding.idle_share:.0%} idle with work at hand."
        )
    if report.unfinished:
        say(f"The same command goes on with the {report.unfinished} site(s) that are left.")
    say(f"Report: {report.location}")


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("reencode", short_help="Give mapped sites another encoder's vectors.")(reencode_command)
