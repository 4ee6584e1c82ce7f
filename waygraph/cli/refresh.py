"""`waygraph refresh`: map mapped sites again, recalling what need not be asked again."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from waygraph.cli.index_options import (
    BasicAuthFileOption,
    BasicAuthOption,
    HeaderOption,
    MaxTotalSecondsOption,
    MaxTotalStatesOption,
    ResumeOption,
    parse_basic_auth,
    parse_headers,
)
from waygraph.cli.options import JsonOption, StoreOption, load_settings
from waygraph.cli.output import print_json, print_table, say, warn
from waygraph.cli.source import site_key_of
from waygraph.errors import EncoderMismatch, InvalidInput, NotFound, TermsDiffer

if TYPE_CHECKING:
    from index.store import Manifest
    from pipeline.jobs.report.outcomes import RunReport
    from waygraph.settings import Settings

_SECONDS = {"s": 1, "m": 60, "h": 3_600, "d": 86_400, "w": 604_800}


def refresh_command(
    sites: Annotated[
        list[str] | None,
        typer.Argument(metavar="[SITE]...", help="Mapped sites: their keys (host, with port) or any URL of them."),
    ] = None,
    *,
    every: Annotated[bool, typer.Option("--all", help="All sites of the store, oldest maps first.")] = False,
    older_than: Annotated[
        str | None, typer.Option("--older-than", metavar="TIME", help="Only of sites explored longer ago: 7d, 12h.")
    ] = None,
    full: Annotated[bool, typer.Option("--full", help="Ask the site everything again.")] = False,
    budget: Annotated[
        str | None,
        typer.Option("--budget", metavar="TIME", help="Time for asking again, per site.", show_default="10m"),
    ] = None,
    share: Annotated[
        float | None,
        typer.Option(
            "--share", metavar="PART", help="Of the first exploration's work, what is done again.", show_default="0.11"
        ),
    ] = None,
    workers: Annotated[int | None, typer.Option("--workers", min=1, help="Pages per site at once.")] = None,
    storage_state: Annotated[
        Path | None, typer.Option("--storage-state", metavar="FILE", help="Session to start from (waygraph login).")
    ] = None,
    basic_auth: BasicAuthOption = None,
    basic_auth_file: BasicAuthFileOption = None,
    header: HeaderOption = None,
    rules: Annotated[Path | None, typer.Option("--rules", metavar="FILE", help="Rules of what to leave alone.")] = None,
    encoder: Annotated[
        str | None,
        typer.Option("--encoder", metavar="NAME", help="Of maps that it encoded.", show_default="that of most maps"),
    ] = None,
    max_total_states: MaxTotalStatesOption = None,
    max_total_seconds: MaxTotalSecondsOption = None,
    resume: ResumeOption = None,
    store: StoreOption = None,
    as_json: JsonOption = False,
) -> None:
    """Map mapped sites again and publish what they are now as a new version.

    Each site is explored under the settings that its map was made with, and by the same encoder. A map that
    was made with a session, a password, headers or rules is refreshed when they are given again; for a map
    that was made without, sessions, passwords and headers are not used. Of what the last version knows, a
    part is asked again: pages and actions that probably changed, that agents reported as broken, and some
    at random, from which the share of stale edges is estimated. The rest is recalled without a browser.
    What changed or is new is explored. States that did not change are not encoded again.

    Readers see the old version until the new one is complete. A refresh that is stopped or killed changes
    nothing, and the same command goes on where it was; --fresh begins anew (docs/runs.md).

    \b
    Examples:
      waygraph refresh example.org
      waygraph refresh example.org --full
      waygraph refresh --all --older-than 7d --budget 5m
    What changed: waygraph diff example.org
    Exit codes: 0 all are refreshed, 5 some failed, 11 the time or the states for this call are used up,
    130 interrupted; if all failed, what they failed of
    """  # noqa: D301 - \b keeps the lines of an example together
    settings = load_settings(
        {
            "store": store,
            "explore": {
                "workers": workers,
                "storage_state": storage_state and storage_state.absolute(),
                "basic_auth": parse_basic_auth(basic_auth, basic_auth_file),
                "headers": parse_headers(header),
                "rules": rules and rules.absolute(),
                "resume": resume,
            },
            "encode": {"encoder": encoder},
            "jobs": {"max_total_states": max_total_states, "max_total_seconds": max_total_seconds},
            "refresh": {
                "full": full or None,
                "share": share,
                "budget_seconds": None if budget is None else seconds_of(budget, "--budget"),
            },
        }
    )
    age_s = None if older_than is None else seconds_of(older_than, "--older-than")
    raise typer.Exit(refresh_sites(sites or [], settings, every=every, older_than_s=age_s, as_json=as_json))


def seconds_of(text: str, option: str) -> float:
    """Seconds of a length of time such as 90s, 10m, 12h, 7d, 2w.

    >>> seconds_of("10m", "--budget")
    600.0
    """
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([smhdw])", text.strip().lower())
    if match is None:
        raise InvalidInput(f"'{text}' is no length of time.", hint=f"Examples: {option} 10m, {option} 7d")
    return float(match[1]) * _SECONDS[match[2]]


def refresh_sites(
    sites: list[str], settings: Settings, *, every: bool, older_than_s: float | None, as_json: bool
) -> int:
    """Refresh the named sites, show how it goes on stderr and the result on stdout; returns the exit code."""
    from index.store import Store
    from pipeline.jobs import run_refresh
    from pipeline.jobs.exploring.due import is_younger, oldest_first
    from pipeline.jobs.exploring.made_with import current_manifests
    from pipeline.jobs.report.outcomes import ErrorRecord
    from waygraph.cli.index_progress import progress_display

    if every == bool(sites):
        raise InvalidInput(
            "Both sites and --all were given." if every else "No site was named.",
            hint="Name mapped sites, or say --all. See: waygraph sites",
        )
    opened = Store.open(settings.store)
    keys = opened.sites() if every else mapped_sites(sites, opened.sites())
    if not keys:
        raise NotFound("There are no maps yet.", hint="Make one: waygraph index https://example.org")
    manifests = current_manifests(opened, keys)
    if older_than_s is not None:
        keys = [key for key in keys if key not in manifests or not is_younger(manifests[key], older_than_s)]
        if not keys:
            print_json({"sites": []}) if as_json else say("All maps are younger than that.")
            return 0
    left_out = _left_out(keys, manifests, settings) if every else {}
    for key, error in left_out.items():
        warn(f"{key} is left out: {error}")
    keys = [key for key in keys if key not in left_out]
    if every:
        keys = oldest_first(keys, manifests)
    told = {key: ErrorRecord.of(error).model_dump() for key, error in left_out.items()}
    if not keys:
        print_json({"sites": [], "left_out": told}) if as_json else say("No other map is to be refreshed.")
        return 0
    if not os.environ.get("RAY_ADDRESS"):
        from pipeline.browser.find import find_browser

        find_browser(settings.browser.executable)
    with progress_display(sys.stderr) as display:
        report = run_refresh(keys, settings=settings, on_event=display, manifests=manifests)
    found = {site.site: site.publication.refresh for site in report.sites if site.publication is not None}
    if as_json:
        print_json({**report.model_dump(mode="json"), "refreshes": found, "left_out": told})
    else:
        _print(report, found)
    return report.exit_code


def _left_out(
    keys: Iterable[str], manifests: Mapping[str, Manifest], settings: Settings
) -> dict[str, TermsDiffer | EncoderMismatch]:
    """Maps that are not refreshed with the others, since they were made with what is not given, and why."""
    from pipeline.jobs.exploring.made_with import check, encoding_of_run
    from pipeline.jobs.sites.site_settings import settings_of

    encode = encoding_of_run((manifests[key] for key in keys if key in manifests), settings.encode)
    settings = settings.model_copy(update={"encode": encode})
    left_out = {}
    for key in keys:
        try:
            if key in manifests:
                check(manifests[key], settings_of(settings, key))
        except (TermsDiffer, EncoderMismatch) as error:
            left_out[key] = error
    return left_out


def mapped_sites(texts: list[str], mapped: list[str]) -> list[str]:
    """The keys of mapped sites that these name (NotFound when one is not mapped)."""
    keys = []
    for text in texts:
        key = site_key_of(text, mapped)
        if key not in mapped:
            raise NotFound(f"Site '{key}' is not mapped.", hint=f"Mapped: {', '.join(mapped[:10]) or 'none yet'}.")
        keys.append(key)
    return keys


def _print(report: RunReport, found: dict[str, Any]) -> None:
    rows = [
        (
            outcome.site,
            outcome.status,
            made.version if (made := outcome.publication) else "",
            _counted(found.get(outcome.site, {}).get("states", {})),
            made.encoded if made else "",
            made.reused if made else "",
            f"{outcome.seconds:.1f}",
            outcome.error.message if outcome.error else "",
        )
        for outcome in report.sites
    ]
    headers = ("site", "outcome", "version", "states", "encoded", "reused", "seconds", "")
    print_table(headers, rows, right=("version", "encoded", "reused", "seconds"))
    for site, account in found.items():
        actions = account.get("actions", {})
        say(
            f"{site}: asked again {actions.get('asked', 0)} of {sum(actions.values())} actions and "
            f"{account.get('loads', {}).get('asked', 0)} of {sum(account.get('loads', {}).values())} pages; "
            f"stale edges: {account.get('stale', 0):.1%} expected, at most {account.get('stale_at_most', 0):.1%} "
            f"(95% confidence, {account.get('sampled', 0)} sampled)"
        )
        for note in account.get("notes", ()):
            say(f"{site}: {note}")
    for outcome in report.sites:
        if outcome.error and outcome.error.hint:
            say(f"{outcome.site}: hint: {outcome.error.hint}")
    if report.unfinished:
        say(f"The same command goes on with the {report.unfinished} site(s) that are left.")
    say(f"Report: {report.location}, for people: report.html beside it")


def _counted(counts: dict[str, int]) -> str:
    return ", ".join(f"{count} {verdict}" for verdict, count in sorted(counts.items()))


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("refresh", short_help="Map mapped sites again.")(refresh_command)
