"""`waygraph reencode`: encode mapped sites with another encoder."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from waygraph.cli.options import (
    EncoderOption,
    JsonOption,
    MaxTotalSecondsOption,
    MaxTotalStatesOption,
    RayOption,
    ResumeOption,
    SitesArgument,
    StoreOption,
    settings_from_options,
)
from waygraph.cli.output import print_json, print_table, say
from waygraph.cli.selection import open_selected_sites

if TYPE_CHECKING:
    from waygraph.core.settings import Settings
    from waygraph.pipeline.jobs.report.run_report import RunReport


def reencode_command(
    sites: SitesArgument = None,
    *,
    every: Annotated[bool, typer.Option("--all", help="All sites of the store.")] = False,
    encoder: EncoderOption = None,
    weights: Annotated[
        Path | None,
        typer.Option(
            "--weights",
            metavar="FOLDER",
            help="Folder with the encoder's weights.",
            show_default="searched, see docs/encoders.md",
        ),
    ] = None,
    max_total_states: MaxTotalStatesOption = None,
    max_total_seconds: MaxTotalSecondsOption = None,
    resume: ResumeOption = None,
    ray: RayOption = None,
    store: StoreOption = None,
    as_json: JsonOption = False,
) -> None:
    """Encode mapped sites with another encoder, from the stored texts and screenshots.

    No browser is started and no site is visited. Each site gets a new version with the same graph; readers
    see the old one until it is complete. The same command resumes a run that was stopped or killed, and
    keeps what was encoded. Sites that have this encoder's vectors are left unchanged. A state that cannot
    be encoded (a damaged screenshot) stays in the map without vectors: paths lead to it, searches do not
    find it.

    \b
    Examples:
      waygraph reencode example.org --encoder text
      waygraph reencode --all --encoder jina-v4 --weights models/jina-v4
      waygraph reencode --all --encoder jina-v4 --json > report.json
    A service encodes queries with one encoder: start it with the same one.
    Exit codes: 0 all sites have the vectors, 5 some sites failed, 11 the limit of time or states of this
    call is reached, 130 interrupted; if all sites failed, the code of their error
    (3 not mapped, 6 no weights, 7 store).
    """  # noqa: D301 - \b keeps the lines of an example together
    options = {**locals(), "weights": weights and weights.absolute()}
    settings = settings_from_options(options, "explore", "encode", "jobs")
    raise typer.Exit(reencode_sites(sites or [], settings, every=every, as_json=as_json))


def reencode_sites(sites: list[str], settings: Settings, *, every: bool, as_json: bool) -> int:
    """Encode sites, with progress on stderr and the result on stdout; return the exit code."""
    from waygraph.cli.display.run_progress import progress_display
    from waygraph.pipeline.jobs import run_reencode

    _, keys = open_selected_sites(settings.store, sites, every=every)
    with progress_display(sys.stderr) as display:
        report = run_reencode(keys, settings=settings, on_event=display)
    if as_json:
        print_json(report)
    else:
        print_report(report)
    return report.exit_code


def print_report(report: RunReport) -> None:
    """Print the sites of a run, the states without vectors, and how busy the encoders were."""
    from waygraph.cli.display.run_summary import print_how_to_resume, print_report_location

    rows = [
        (
            outcome.site,
            outcome.status,
            publication.version if (publication := outcome.publication) else "",
            publication.encoded if publication else "",
            publication.reused if publication else "",
            publication.without_vectors if publication else "",
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
            f"{encoding.busy_seconds:.1f} s of computing, {encoding.idle_share:.0%} idle with batches waiting."
        )
    print_how_to_resume(report)
    print_report_location(report)


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("reencode", short_help="Encode mapped sites with another encoder.")(reencode_command)
