"""`waygraph index`: explore websites and publish their maps."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

import typer

from waygraph.cli.option_values import (
    parse_basic_auth,
    parse_headers,
    parse_placeholders,
    parse_viewport,
    preset_depths,
)
from waygraph.cli.options import (
    BasicAuthFileOption,
    BasicAuthOption,
    ContactOption,
    CookieBannersOption,
    DelayOption,
    DepthOption,
    DiffOption,
    EncoderOption,
    ExplainSkipsOption,
    GuardOption,
    HazardsOption,
    HeaderOption,
    HoverOption,
    IdentityOption,
    JsonOption,
    MaxBytesOption,
    MaxSecondsOption,
    MaxStatesOption,
    MaxTotalSecondsOption,
    MaxTotalStatesOption,
    ModeOption,
    OrderOption,
    PlaceholderOption,
    PresetOption,
    ProxyOption,
    RayOption,
    ResumeOption,
    RobotsOption,
    RulesOption,
    ScopeHostOption,
    ScopeOption,
    SitemapOption,
    SitesAtOnceOption,
    SitesFileOption,
    StartUrlsArgument,
    StorageStateOption,
    StoreOption,
    SubmitSearchOption,
    UserAgentOption,
    ViewportOption,
    WorkersOption,
    settings_from_options,
)
from waygraph.cli.output import warn

if TYPE_CHECKING:
    from waygraph.core.settings import Settings


def index_command(
    urls: StartUrlsArgument = None,
    *,
    sites: SitesFileOption = None,
    depth: DepthOption = None,
    max_states: MaxStatesOption = None,
    max_seconds: MaxSecondsOption = None,
    workers: WorkersOption = None,
    sites_at_once: SitesAtOnceOption = None,
    store: StoreOption = None,
    rules: RulesOption = None,
    preset: PresetOption = None,
    placeholder: PlaceholderOption = None,
    robots: RobotsOption = None,
    sitemap: SitemapOption = None,
    hover: HoverOption = None,
    diff: DiffOption = None,
    guard: GuardOption = None,
    hazards: HazardsOption = None,
    scope: ScopeOption = None,
    scope_hosts: ScopeHostOption = None,
    identity: IdentityOption = None,
    mode: ModeOption = None,
    order: OrderOption = None,
    storage_state: StorageStateOption = None,
    basic_auth: BasicAuthOption = None,
    basic_auth_file: BasicAuthFileOption = None,
    header: HeaderOption = None,
    proxy: ProxyOption = None,
    contact: ContactOption = None,
    delay_seconds: DelayOption = None,
    cookie_banners: CookieBannersOption = None,
    submit_search: SubmitSearchOption = None,
    max_bytes: MaxBytesOption = None,
    max_total_states: MaxTotalStatesOption = None,
    max_total_seconds: MaxTotalSecondsOption = None,
    resume: ResumeOption = None,
    ray: RayOption = None,
    user_agent: UserAgentOption = None,
    viewport: ViewportOption = None,
    encoder: EncoderOption = None,
    explain_skips: ExplainSkipsOption = False,
    as_json: JsonOption = False,
) -> None:
    """Explore websites and publish a map of each as soon as it is complete.

    A site that fails does not stop the others. Ctrl-C ends the run in order: published maps stay. The same
    command resumes a run that was stopped or killed (docs/runs.md); --fresh starts a new one. A site that
    is already mapped gets a new version; readers see the old one until then.

    \b
    Examples:
      waygraph index https://example.org --depth 2
      waygraph index example.org shop.example.org --max-states 200 --store maps
      waygraph index --sites sites.csv --sites-at-once 4 --json > report.json
      waygraph index --sites online-mind2web --preset online-mind2web --store s3://bucket/maps
      waygraph index --sites tasks.json --preset webarena --placeholder __REDDIT__=http://127.0.0.1:9999
      waygraph index https://app.example.org --storage-state app.json --explain-skips
    Passwords: other users of this machine can see --basic-auth, --header and --proxy while the command
    runs. Use --basic-auth-file FILE, --header @FILE, or the environment variables
    WAYGRAPH_EXPLORE__BASIC_AUTH, WAYGRAPH_EXPLORE__HEADERS (JSON) and WAYGRAPH_EXPLORE__PROXY.
    Exit codes: 0 all published, 5 some sites failed, 11 the limit of time or states of this call is
    reached, 130 interrupted; if all sites failed, the code of their error
    (4 unreachable or forbidden, 6 no browser or weights, 7 store).
    """  # noqa: D301 - \b keeps the lines of an example together
    from waygraph.benchmarks.task_lists import read_task_sites

    placeholders = parse_placeholders(placeholder, rules)
    depth, site_depths = preset_depths(preset, depth, placeholders)
    if preset == "webarena" and not urls and not sites:
        urls = list(placeholders.values())
    settings = settings_from_options(
        {
            **locals(),
            "headers": parse_headers(header),
            "basic_auth": parse_basic_auth(basic_auth, basic_auth_file),
            **parse_viewport(viewport),
        },
        "explore",
        "capture",
        "encode",
        "jobs",
    )
    start_urls = [*(urls or []), *(read_task_sites(sites, placeholders) if sites else [])]
    raise typer.Exit(index_sites(start_urls, settings, as_json=as_json, explain_skips=explain_skips))


def index_sites(start_urls: list[str], settings: Settings, *, as_json: bool, explain_skips: bool = False) -> int:
    """Map sites, with progress on stderr and the summary on stdout; return the exit code."""
    from waygraph.pipeline.jobs import run_index
    from waygraph.pipeline.jobs.sites.preflight import check_sites

    check_sites(start_urls, settings)
    if not os.environ.get("RAY_ADDRESS"):  # on a cluster, the browsers are on other machines
        from waygraph.pipeline.browser.process.find import find_browser

        find_browser(settings.browser.executable)
    if settings.explore.guard == "observe":
        warn("--guard observe stops no requests: clicks may change data on the site. Use it only on sites of your own.")

    from waygraph.cli.display.element_outcomes import skipped_elements
    from waygraph.cli.display.run_progress import progress_display
    from waygraph.cli.display.run_summary import print_summary

    with progress_display(sys.stderr) as display:
        report = run_index(start_urls, settings=settings, on_event=display)
    skipped = skipped_elements(report, settings.store) if explain_skips else None
    print_summary(report, as_json=as_json, skipped=skipped)
    return report.exit_code


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("index", short_help="Explore websites and publish their maps.")(index_command)
