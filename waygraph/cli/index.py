"""`waygraph index`: turn websites into maps."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from waygraph.cli.index_options import (
    BannersOption,
    BasicAuthFileOption,
    BasicAuthOption,
    ContactOption,
    DelayOption,
    Diff,
    GuardOption,
    HeaderOption,
    IdentityOption,
    MaxBytesOption,
    MaxTotalSecondsOption,
    MaxTotalStatesOption,
    ModeOption,
    PlaceholderOption,
    Preset,
    PresetOption,
    ProxyOption,
    ResumeOption,
    ScopeHostOption,
    ScopeOption,
    SearchOption,
    check_scope,
    existing,
    parse_basic_auth,
    parse_headers,
    parse_placeholders,
    parse_scope_hosts,
    parse_size,
    preset_depths,
)
from waygraph.cli.options import JsonOption, StoreOption, load_settings
from waygraph.cli.output import warn
from waygraph.cli.skips import explain_sites
from waygraph.errors import InvalidInput

if TYPE_CHECKING:
    from waygraph.settings import Settings


def index_command(
    urls: Annotated[
        list[str] | None, typer.Argument(metavar="[URL]...", help="Where to start; one map for each host.")
    ] = None,
    *,
    sites: Annotated[
        Path | None,
        typer.Option(
            "--sites",
            metavar="FILE",
            help="More start URLs: one a line, or .csv, .jsonl or .json with url, website, site or start_url; "
            "online-mind2web: the benchmark's sites.",
        ),
    ] = None,
    depth: Annotated[
        int | None, typer.Option("--depth", metavar="N", help="Actions from the start page at most.", show_default="3")
    ] = None,
    max_states: Annotated[
        int | None, typer.Option("--max-states", metavar="N", help="States per site at most.", show_default="500")
    ] = None,
    max_seconds: Annotated[
        float | None,
        typer.Option("--max-seconds", metavar="S", help="Time per site at most; then the map is partial."),
    ] = None,
    workers: Annotated[
        int | None,
        typer.Option("--workers", metavar="N", help="Pages that explore one site at once.", show_default="2"),
    ] = None,
    sites_at_once: Annotated[
        int | None,
        typer.Option(
            "--sites-at-once", metavar="N", help="Sites explored at once.", show_default="one per CPU, at most 4"
        ),
    ] = None,
    store: StoreOption = None,
    rules: Annotated[
        Path | None,
        typer.Option("--rules", metavar="FILE", help="YAML: what to leave alone on which site, its depth and limits."),
    ] = None,
    preset: PresetOption = None,
    placeholder: PlaceholderOption = None,
    robots: Annotated[
        bool | None, typer.Option("--robots/--no-robots", help="Honour robots.txt.", show_default="yes")
    ] = None,
    hover: Annotated[
        bool | None,
        typer.Option("--hover/--no-hover", help="Also hover what seems to open something.", show_default="yes"),
    ] = None,
    diff: Annotated[
        Diff | None,
        typer.Option(
            "--diff",
            help="New elements: by hash, role, name and target; by hash alone (the paper); or all of them.",
            show_default="element",
        ),
    ] = None,
    guard: GuardOption = None,
    scope: ScopeOption = None,
    scope_host: ScopeHostOption = None,
    identity: IdentityOption = None,
    mode: ModeOption = None,
    storage_state: Annotated[
        Path | None,
        typer.Option("--storage-state", metavar="FILE", help="Session to start with, saved by `waygraph login`."),
    ] = None,
    basic_auth: BasicAuthOption = None,
    basic_auth_file: BasicAuthFileOption = None,
    header: HeaderOption = None,
    proxy: ProxyOption = None,
    contact: ContactOption = None,
    delay: DelayOption = None,
    cookie_banners: BannersOption = None,
    submit_search: SearchOption = None,
    max_bytes: MaxBytesOption = None,
    max_total_states: MaxTotalStatesOption = None,
    max_total_seconds: MaxTotalSecondsOption = None,
    resume: ResumeOption = None,
    user_agent: Annotated[
        str | None, typer.Option("--user-agent", metavar="TEXT", help="Who to say we are.", show_default="the browser")
    ] = None,
    viewport: Annotated[
        str | None, typer.Option("--viewport", metavar="WxH", help="Size of the window.", show_default="1280x800")
    ] = None,
    encoder: Annotated[
        str | None, typer.Option("--encoder", metavar="NAME", help="What makes states searchable.", show_default="text")
    ] = None,
    explain_skips: Annotated[
        bool,
        typer.Option("--explain-skips", help="Also print every element that was left alone, the rule, and its remedy."),
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Explore websites and publish a map of each as soon as it is finished.

    A site that fails does not stop the others. Ctrl-C ends a run in order: what is published stays.
    The same command goes on with a run that was stopped or killed (docs/runs.md); --fresh begins anew.
    A site that is mapped already gets a new version; readers see the old one until then.

    \b
    Examples:
      waygraph index https://example.org --depth 2
      waygraph index example.org shop.example.org --max-states 200 --store maps
      waygraph index --sites sites.csv --sites-at-once 4 --json > report.json
      waygraph index --sites online-mind2web --preset online-mind2web --store s3://bucket/maps
      waygraph index --sites tasks.json --preset webarena --placeholder __REDDIT__=http://127.0.0.1:9999
      waygraph index https://app.example.org --storage-state app.json --explain-skips
    Passwords: others on this machine can see --basic-auth, --header and --proxy while it runs. Files
    and the environment are better: --basic-auth-file FILE, --header @FILE, and the variables
    WAYGRAPH_EXPLORE__BASIC_AUTH, WAYGRAPH_EXPLORE__HEADERS (JSON), WAYGRAPH_EXPLORE__PROXY.
    Exit codes: 0 all published, 5 some failed, 11 the time or the states for this call are used up,
    130 interrupted; if all failed, what they failed of
    (4 unreachable or forbidden, 6 no browser or weights, 7 store).
    """  # noqa: D301 - \b keeps the lines of an example together
    known = parse_placeholders(placeholder, existing(rules, "--rules"))
    depth, site_depths = preset_depths(preset, depth, known)
    if preset is Preset.WEBARENA and not urls and not sites:
        urls = list(known.values())
    settings = load_settings(
        {
            "store": store,
            "explore": {
                "depth": depth,
                "max_states": max_states,
                "max_seconds": max_seconds,
                "workers": workers,
                "rules": existing(rules, "--rules"),
                "robots": robots,
                "hover": hover,
                "diff": diff.value if diff else None,
                "storage_state": existing(storage_state, "--storage-state"),
                "guard": guard.value if guard else None,
                "scope": scope.value if scope else None,
                "scope_hosts": parse_scope_hosts(scope_host),
                "identity": identity.value if identity else None,
                "mode": mode.value if mode else None,
                "basic_auth": parse_basic_auth(basic_auth, basic_auth_file),
                "headers": parse_headers(header),
                "proxy": proxy,
                "contact": contact,
                "delay_seconds": delay,
                "cookie_banners": cookie_banners,
                "submit_search": submit_search,
                "max_bytes": parse_size(max_bytes, "--max-bytes"),
                "resume": resume,
            },
            "capture": {"user_agent": user_agent, **_viewport(viewport)},
            "encode": {"encoder": encoder},
            "jobs": {
                "sites_at_once": sites_at_once,
                "site_depths": site_depths,
                "max_total_states": max_total_states,
                "max_total_seconds": max_total_seconds,
            },
        }
    )
    wanted = named_sites(urls or [], sites, known)
    raise typer.Exit(index_sites(wanted, settings, as_json=as_json, explain_skips=explain_skips))


def named_sites(urls: list[str], sites: Path | None, placeholders: Mapping[str, str]) -> list[str]:
    """All start URLs, those of a list after those of the command line."""
    from pipeline.jobs.sites.site_list import read_sites

    return [*urls, *(read_sites(sites, placeholders) if sites else [])]


def index_sites(wanted: list[str], settings: Settings, *, as_json: bool, explain_skips: bool = False) -> int:
    """Map the named sites, show how it goes on stderr and the result on stdout; returns the exit code."""
    from pipeline.jobs import run_index
    from pipeline.jobs.sites.site_list import plan_sites

    # Says what is wrong with URLs, scope, rules and session before anything slow starts.
    _check([task.site for task in plan_sites(wanted).tasks], settings)
    if not os.environ.get("RAY_ADDRESS"):
        from pipeline.browser.find import find_browser

        find_browser(settings.browser.executable)
    if settings.explore.guard == "observe":
        warn("--guard observe: nothing is stopped. What a click sends is sent; use it on sites of your own alone.")

    from waygraph.cli.index_progress import progress_display
    from waygraph.cli.index_summary import print_summary

    with progress_display(sys.stderr) as display:
        report = run_index(wanted, settings=settings, on_event=display)
    explained = explain_sites(report, settings.store) if explain_skips else None
    print_summary(report, as_json=as_json, explained=explained)
    return report.exit_code


def _check(sites: list[str], settings: Settings) -> None:
    from pipeline.explore.blocklist import BlockList
    from pipeline.explore.storage import read_storage_state
    from pipeline.jobs.sites.site_settings import settings_of

    check_scope(sites, settings.explore)
    for site in sites[:1]:
        BlockList.read(settings.explore.rules, site)
    for site in sites:
        explore = settings_of(settings, site).explore
        # Of several sites, one that a shared session does not belong to fails alone.
        if len(sites) == 1 or explore.storage_state != settings.explore.storage_state:
            read_storage_state(explore.storage_state, site)


def _viewport(text: str | None) -> dict[str, Any]:
    if text is None:
        return {}
    match = re.fullmatch(r"(\d{2,5})[xX](\d{2,5})", text.strip())
    if match is None:
        raise InvalidInput(f"'{text}' is not a window size.", hint="Example: --viewport 1280x800")
    return {"viewport_width": int(match[1]), "viewport_height": int(match[2])}


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("index", short_help="Explore websites and publish their maps.")(index_command)
