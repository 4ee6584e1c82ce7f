"""`waygraph refresh`: explore mapped sites again, reusing answers of the last exploration."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Mapping
from datetime import timedelta
from typing import TYPE_CHECKING, Annotated, Any

import typer

from waygraph.cli.option_values import parse_basic_auth, parse_duration, parse_headers
from waygraph.cli.options import (
    BasicAuthFileOption,
    BasicAuthOption,
    HeaderOption,
    JsonOption,
    MaxTotalSecondsOption,
    MaxTotalStatesOption,
    RayOption,
    ResumeOption,
    RulesOption,
    SitesArgument,
    StorageStateOption,
    StoreOption,
    settings_from_options,
)
from waygraph.cli.output import print_json, print_table, say, warn
from waygraph.cli.selection import open_selected_sites
from waygraph.core.errors import EncoderMismatch, ProvenanceMismatch
from waygraph.core.settings import RefreshSettings

if TYPE_CHECKING:
    from waygraph.core.settings import Settings
    from waygraph.index.store import Manifest
    from waygraph.pipeline.jobs.report.run_report import RunReport

_DEFAULTS = RefreshSettings()


def refresh_command(
    sites: SitesArgument = None,
    *,
    every: Annotated[bool, typer.Option("--all", help="All sites of the store, oldest maps first.")] = False,
    older_than: Annotated[
        timedelta | None,
        typer.Option(
            "--older-than",
            metavar="TIME",
            parser=parse_duration,
            help="Only sites that were explored longer ago, such as 12h or 7d.",
        ),
    ] = None,
    full: Annotated[bool | None, typer.Option("--full", help="Check everything again, and reuse nothing.")] = None,
    budget: Annotated[
        timedelta | None,
        typer.Option(
            "--budget",
            metavar="TIME",
            parser=parse_duration,
            help="Time per site for checking known pages and actions.",
            show_default="10m",
        ),
    ] = None,
    share: Annotated[
        float | None,
        typer.Option(
            "--share",
            metavar="PART",
            help="Share of the work of the first exploration that is repeated.",
            show_default=f"{_DEFAULTS.share:g}",
        ),
    ] = None,
    workers: Annotated[
        int | None, typer.Option("--workers", min=1, help="Pages that explore one site concurrently.")
    ] = None,
    storage_state: StorageStateOption = None,
    basic_auth: BasicAuthOption = None,
    basic_auth_file: BasicAuthFileOption = None,
    header: HeaderOption = None,
    rules: RulesOption = None,
    encoder: Annotated[
        str | None,
        typer.Option(
            "--encoder",
            metavar="NAME",
            help="Refresh the maps of this encoder.",
            show_default="that of most of the maps",
        ),
    ] = None,
    max_total_states: MaxTotalStatesOption = None,
    max_total_seconds: MaxTotalSecondsOption = None,
    resume: ResumeOption = None,
    ray: RayOption = None,
    store: StoreOption = None,
    as_json: JsonOption = False,
) -> None:
    """Explore mapped sites again, and publish the result as a new version.

    Each site is explored with the settings that its map was made with, and encoded by the same encoder. A
    map that was made with a session, a password, headers or rules needs them again; for a map that was made
    without, sessions, passwords and headers are not used. A part of the last version is checked again: pages
    and actions that probably changed, those that agents reported as broken, and a random sample, from which
    the share of stale edges is estimated. The rest is reused without a browser. New and changed pages are
    explored. States that did not change are not encoded again.

    Readers see the old version until the new one is complete. A refresh that is stopped or killed changes
    nothing; the same command resumes it, --fresh starts a new one (docs/runs.md).

    \b
    Examples:
      waygraph refresh example.org
      waygraph refresh example.org --full
      waygraph refresh --all --older-than 7d --budget 5m
    To see what changed: waygraph diff example.org
    Exit codes: 0 all sites are refreshed, 5 some sites failed, 11 the limit of time or states of this
    call is reached, 130 interrupted; if all sites failed, the code of their error
    """  # noqa: D301 - \b keeps the lines of an example together
    settings = settings_from_options(
        {
            **locals(),
            "basic_auth": parse_basic_auth(basic_auth, basic_auth_file),
            "headers": parse_headers(header),
            "budget_seconds": budget and budget.total_seconds(),
        },
        "explore",
        "encode",
        "jobs",
        "refresh",
    )
    raise typer.Exit(refresh_sites(sites or [], settings, every=every, older_than=older_than, as_json=as_json))


def refresh_sites(
    sites: list[str], settings: Settings, *, every: bool, older_than: timedelta | None, as_json: bool
) -> int:
    """Refresh sites, with progress on stderr and the result on stdout; return the exit code."""
    from waygraph.cli.display.run_progress import progress_display
    from waygraph.pipeline.jobs import run_refresh
    from waygraph.pipeline.jobs.exploring.due import is_younger, oldest_first
    from waygraph.pipeline.jobs.exploring.provenance import load_current_manifests
    from waygraph.pipeline.jobs.report.outcomes import ErrorRecord

    opened, keys = open_selected_sites(settings.store, sites, every=every)
    manifests = load_current_manifests(opened, keys)
    if older_than is not None:
        age = older_than.total_seconds()
        keys = [key for key in keys if key not in manifests or not is_younger(manifests[key], age)]
        if not keys:
            print_json({"sites": []}) if as_json else say("All maps are younger than --older-than.")
            return 0
    mismatches = _provenance_mismatches(keys, manifests, settings) if every else {}
    for key, error in mismatches.items():
        warn(f"{key} is not refreshed: {error}")
    keys = [key for key in keys if key not in mismatches]
    if every:
        keys = oldest_first(keys, manifests)
    left_out = {key: ErrorRecord.of(error).model_dump() for key, error in mismatches.items()}
    if not keys:
        print_json({"sites": [], "left_out": left_out}) if as_json else say("There is no other map to refresh.")
        return 0
    if not os.environ.get("RAY_ADDRESS"):  # on a cluster, the browsers are on other machines
        from waygraph.pipeline.browser.process.find import find_browser

        find_browser(settings.browser.executable)
    with progress_display(sys.stderr) as display:
        report = run_refresh(keys, settings=settings, on_event=display, manifests=manifests)
    refreshes = {site.site: site.publication.refresh for site in report.sites if site.publication is not None}
    if as_json:
        print_json({**report.model_dump(mode="json"), "refreshes": refreshes, "left_out": left_out})
    else:
        _print(report, refreshes)
    return report.exit_code


def _provenance_mismatches(
    keys: Iterable[str], manifests: Mapping[str, Manifest], settings: Settings
) -> dict[str, ProvenanceMismatch | EncoderMismatch]:
    """Return the error by site for maps that need a session, rules or an encoder that the options do not give."""
    from waygraph.pipeline.jobs.exploring.provenance import check_provenance, encode_settings_for_run
    from waygraph.pipeline.jobs.sites.site_settings import settings_for_site

    encode = encode_settings_for_run((manifests[key] for key in keys if key in manifests), settings.encode)
    settings = settings.model_copy(update={"encode": encode})
    mismatches = {}
    for key in keys:
        try:
            if key in manifests:
                check_provenance(manifests[key], settings_for_site(settings, key))
        except (ProvenanceMismatch, EncoderMismatch) as error:
            mismatches[key] = error
    return mismatches


def _print(report: RunReport, refreshes: dict[str, Any]) -> None:
    from waygraph.cli.display.run_summary import print_how_to_resume, print_report_location

    rows = [
        (
            outcome.site,
            outcome.status,
            publication.version if (publication := outcome.publication) else "",
            _counts_text(refreshes.get(outcome.site, {}).get("states", {})),
            publication.encoded if publication else "",
            publication.reused if publication else "",
            f"{outcome.seconds:.1f}",
            outcome.error.message if outcome.error else "",
        )
        for outcome in report.sites
    ]
    headers = ("site", "outcome", "version", "states", "encoded", "reused", "seconds", "")
    print_table(headers, rows, right=("version", "encoded", "reused", "seconds"))
    for site, refresh in refreshes.items():
        actions, loads = refresh.get("actions", {}), refresh.get("loads", {})
        say(
            f"{site}: checked {actions.get('asked', 0)} of {sum(actions.values())} actions and "
            f"{loads.get('asked', 0)} of {sum(loads.values())} pages; "
            f"stale edges: {refresh.get('stale', 0):.1%} expected, at most {refresh.get('stale_at_most', 0):.1%} "
            f"(95% confidence, {refresh.get('sampled', 0)} sampled)"
        )
        tools = refresh.get("tools", {})
        if changed := {verdict: tools[verdict] for verdict in ("added", "changed", "gone") if tools.get(verdict)}:
            say(f"{site}: tools: {_counts_text(changed)} (waygraph diff {site})")
        for note in refresh.get("notes", ()):
            say(f"{site}: {note}")
    for outcome in report.sites:
        if outcome.error and outcome.error.hint:
            say(f"{outcome.site}: hint: {outcome.error.hint}")
    print_how_to_resume(report)
    print_report_location(report)


def _counts_text(counts: dict[str, int]) -> str:
    return ", ".join(f"{count} {verdict}" for verdict, count in sorted(counts.items()))


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("refresh", short_help="Explore mapped sites again.")(refresh_command)
