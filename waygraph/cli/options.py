"""Options of commands, and the settings that options give.

A parameter of a command that overrides a setting has the name of its field: `settings_from_options` copies it there,
and the settings model validates it. Parsers of single options are in `waygraph.cli.option_values`.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from waygraph.cli.option_values import Preset, existing_file, parse_scope_hosts, parse_size
from waygraph.core.errors import InvalidInput
from waygraph.core.settings import (
    DiffMode,
    ExploreMode,
    ExploreOrder,
    ExploreSettings,
    GuardMode,
    HazardMode,
    IdentityMode,
    ScopeKind,
    Settings,
)

# ---- where maps are --------------------------------------------------------------------------------------------------

StoreOption = Annotated[
    str | None,
    typer.Option(
        "--store",
        metavar="STORE",
        help="Store with the maps: a folder, or s3://bucket/prefix.",
        show_default="WAYGRAPH_STORE, else ./maps",
    ),
]
UrlOption = Annotated[
    str | None,
    typer.Option("--url", metavar="SERVICE", help="URL of a running service to use in place of a store."),
]
ApiKeyOption = Annotated[
    str | None,
    typer.Option(
        "--api-key", metavar="KEY", envvar="WAYGRAPH_API_KEY", help="API key of the service.", show_default=False
    ),
]
SiteArgument = Annotated[
    str, typer.Argument(metavar="SITE", help="A mapped site: its key (host, with port) or any of its URLs.")
]
SitesArgument = Annotated[
    list[str] | None,
    typer.Argument(metavar="[SITE]...", help="Mapped sites: their keys (host, with port) or any of their URLs."),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON document instead of text.")]

# ---- agents ----------------------------------------------------------------------------------------------------------

AgentOption = Annotated[
    str,
    typer.Option(
        "--agent", metavar="NAME", help="greedy (a baseline without a model), webnavigator, occam, memory or search."
    ),
]
ModelOption = Annotated[str | None, typer.Option("--model", metavar="NAME", help="Chat model of the agent.")]
BaseUrlOption = Annotated[
    str | None, typer.Option("--base-url", metavar="URL", help="OpenAI-compatible endpoint of the model.")
]
ImagesOption = Annotated[
    str | None,
    typer.Option(
        "--images",
        metavar="WHEN",
        help="Send screenshots to the model: off, auto (in tasks whose required_obs is image) or all.",
        show_default="off",
    ),
]
DialectOption = Annotated[
    str | None,
    typer.Option(
        "--dialect",
        metavar="NAME",
        help="Rules of scoring: webarena, agentoccam or weboperator.",
        show_default="the run's, else that of each task's benchmark",
    ),
]
WhereOption = Annotated[
    list[str] | None,
    typer.Option(
        "--where",
        metavar="KEY=VALUE",
        help="Only tasks with this label, such as level=hard; repeatable: other keys narrow, equal keys widen.",
    ),
]
SelectOption = Annotated[
    str | None,
    typer.Option(
        "--select", metavar="HOW", help="How navigate chooses its page: auto (asks the model in doubt), model, first."
    ),
]
SelectorModelOption = Annotated[
    str | None,
    typer.Option("--selector-model", metavar="NAME", help="Chat model that chooses that page; default: --model."),
]
CandidatesOption = Annotated[
    int | None, typer.Option("--candidates", min=1, metavar="K", help="Most pages that the page is chosen from.")
]
JudgeOption = Annotated[
    bool | None,
    typer.Option(
        "--judge/--no-judge", help="Let the model of occam propose several actions and judge them.", show_default=False
    ),
]
TipsOption = Annotated[
    Path | None,
    typer.Option("--tips", metavar="FILE", callback=existing_file, help="Tips for the agent, by site (YAML)."),
]
NoMapOption = Annotated[bool, typer.Option("--no-map", help="Work without maps, to see what these bring.")]
MaxStepsOption = Annotated[int, typer.Option("--max-steps", min=1, help="Limit of a task's actions.")]

# ---- runs ------------------------------------------------------------------------------------------------------------

EncoderOption = Annotated[
    str | None,
    typer.Option("--encoder", metavar="NAME", help="Encoder that makes states searchable.", show_default="text"),
]
RulesOption = Annotated[
    Path | None,
    typer.Option(
        "--rules",
        metavar="FILE",
        callback=existing_file,
        help="YAML file: elements to block or allow, and limits, by site.",
    ),
]
StorageStateOption = Annotated[
    Path | None,
    typer.Option(
        "--storage-state",
        metavar="FILE",
        callback=existing_file,
        help="Session to start with, saved by `waygraph login`.",
    ),
]
BasicAuthOption = Annotated[
    str | None,
    typer.Option(
        "--basic-auth",
        metavar="USER:PASSWORD",
        help="HTTP basic authentication on the origin of the start page. Visible to other users (ps).",
    ),
]
BasicAuthFileOption = Annotated[
    Path | None,
    typer.Option("--basic-auth-file", metavar="FILE", help="The same, read from the first line of a file."),
]
HeaderOption = Annotated[
    list[str] | None,
    typer.Option(
        "--header", metavar="TEXT", help='Extra header "Name: value", or @FILE with one per line; repeatable.'
    ),
]
ProxyOption = Annotated[
    str | None,
    typer.Option("--proxy", metavar="URL", help="Proxy: http://[user:password@]host:port or socks5://host:port."),
]
RayOption = Annotated[
    bool | None,
    typer.Option(
        "--ray/--no-ray",
        help="Use Ray, or processes of this command only.",
        show_default="ray for more sites than CPUs, or with RAY_ADDRESS",
    ),
]
ResumeOption = Annotated[
    bool | None,
    typer.Option(
        "--resume/--fresh", help="Resume the unfinished run of this command, or start a new one.", show_default="resume"
    ),
]
MaxTotalStatesOption = Annotated[
    int | None,
    typer.Option(
        "--max-total-states", metavar="N", min=1, help="Limit of states of this call over all sites; then it ends."
    ),
]
MaxTotalSecondsOption = Annotated[
    float | None,
    typer.Option(
        "--max-total-seconds", metavar="S", min=0.001, help="Limit of time of this call, in seconds; then it ends."
    ),
]

# ---- exploring (`waygraph index`) -----------------------------------------------------------------------------------

_DEFAULTS = ExploreSettings()

StartUrlsArgument = Annotated[
    list[str] | None, typer.Argument(metavar="[URL]...", help="Start URLs; each host becomes one map.")
]
SitesFileOption = Annotated[
    Path | None,
    typer.Option(
        "--sites",
        metavar="FILE",
        help="File with more start URLs: one per line, or .csv, .jsonl or .json with url, website, site or "
        "start_url; online-mind2web: the sites of that benchmark.",
    ),
]
DepthOption = Annotated[
    int | None,
    typer.Option(
        "--depth", metavar="N", help="Limit of actions from the start page.", show_default=str(_DEFAULTS.depth)
    ),
]
MaxStatesOption = Annotated[
    int | None,
    typer.Option("--max-states", metavar="N", help="Limit of states per site.", show_default=str(_DEFAULTS.max_states)),
]
MaxSecondsOption = Annotated[
    float | None,
    typer.Option(
        "--max-seconds",
        metavar="S",
        help="Limit of time per site, in seconds; the map is then partial.",
        show_default=f"{_DEFAULTS.max_seconds:g}",
    ),
]
WorkersOption = Annotated[
    int | None,
    typer.Option(
        "--workers",
        metavar="N",
        help="Pages that explore one site concurrently.",
        show_default=str(_DEFAULTS.workers),
    ),
]
SitesAtOnceOption = Annotated[
    int | None,
    typer.Option(
        "--sites-at-once",
        metavar="N",
        help="Sites explored concurrently.",
        show_default="one per CPU, at most 4",
    ),
]
PresetOption = Annotated[
    Preset | None,
    typer.Option("--preset", help="Depths of the paper's experiments; --depth and the rules file take precedence."),
]
PlaceholderOption = Annotated[
    list[str] | None,
    typer.Option("--placeholder", metavar="NAME=URL", help="URL of __NAME__ in a site list; repeatable."),
]
RobotsOption = Annotated[
    bool | None, typer.Option("--robots/--no-robots", help="Honour robots.txt.", show_default="yes")
]
SitemapOption = Annotated[
    str | None,
    typer.Option(
        "--sitemap",
        metavar="URL|off",
        help="Sitemap of the site, or none. By default those that robots.txt names, else /sitemap.xml, and feeds.",
        show_default="auto",
    ),
]
HoverOption = Annotated[
    bool | None,
    typer.Option("--hover/--no-hover", help="Also hover elements that seem to open something.", show_default="yes"),
]
DiffOption = Annotated[
    DiffMode | None,
    typer.Option(
        "--diff",
        help="New elements: by hash, role, name and target; by hash only (the paper); or all elements.",
        show_default="element",
    ),
]
GuardOption = Annotated[
    GuardMode | None,
    typer.Option(
        "--guard",
        help="Requests to stop: all but GET, HEAD and OPTIONS (strict); those that are not known to only read "
        "(guard); none (observe).",
        show_default="guard",
    ),
]
ScopeOption = Annotated[
    ScopeKind | None,
    typer.Option("--scope", help="What belongs to the site: its host, or its domain.", show_default="host"),
]
ScopeHostOption = Annotated[
    list[str] | None,
    typer.Option(
        "--scope-host", metavar="HOST", callback=parse_scope_hosts, help="Further host of the site; repeatable."
    ),
]
IdentityOption = Annotated[
    IdentityMode | None,
    typer.Option(
        "--identity",
        help="When two snapshots are one state: equal ids only, or also if only noise differs.",
        show_default="tolerant",
    ),
]
ModeOption = Annotated[
    ExploreMode | None,
    typer.Option("--mode", help="skeleton: keep one page of each kind, and count the others.", show_default="full"),
]
OrderOption = Annotated[
    ExploreOrder | None,
    typer.Option(
        "--order",
        help="What is explored first: what is likely to add most to the map, or level by level.",
        show_default="novelty",
    ),
]
ContactOption = Annotated[
    str | None,
    typer.Option("--contact", metavar="TEXT", help="Your mail or web address, sent to sites in the user agent."),
]
DelayOption = Annotated[
    float | None,
    typer.Option(
        "--delay",
        metavar="S",
        min=0,
        help="Least time between page loads on one host, in seconds.",
        show_default="1, on this machine 0",
    ),
]
CookieBannersOption = Annotated[
    bool | None,
    typer.Option("--cookie-banners/--no-cookie-banners", help="Close cookie banners first.", show_default="yes"),
]
HazardsOption = Annotated[
    HazardMode | None,
    typer.Option(
        "--hazards",
        help="Buttons that save or send: leave them alone, or press them behind the guard, which stops what they send.",
        show_default="press",
    ),
]
SubmitSearchOption = Annotated[
    bool | None,
    typer.Option("--submit-search/--no-submit-search", help="Submit each search form (GET) once.", show_default="yes"),
]
MaxBytesOption = Annotated[
    int | None,
    typer.Option(
        "--max-bytes",
        metavar="SIZE",
        parser=parse_size,
        help="Limit of bytes received from a site, such as 500M.",
        show_default="20G",
    ),
]
UserAgentOption = Annotated[
    str | None,
    typer.Option(
        "--user-agent", metavar="TEXT", help="User agent to send to sites.", show_default="that of the browser"
    ),
]
ViewportOption = Annotated[
    str | None,
    typer.Option("--viewport", metavar="WxH", help="Size of the viewport, in CSS pixels.", show_default="1280x800"),
]
ExplainSkipsOption = Annotated[
    bool,
    typer.Option("--explain-skips", help="Also print each skipped element, the rule that decided, and the remedy."),
]


def settings_from_options(options: Mapping[str, Any], *sections: str) -> Settings:
    """Return the settings, with options in place of the settings of the same name.

    Parameters
    ----------
    options
        Values by parameter name, usually `locals()` of a command; None: the option was not given. Options of the
        command itself, which no setting is named like, are ignored.
    *sections
        Sections of `Settings` that the command overrides, such as "explore". `store` is always included.

    Returns
    -------
    Settings
        The validated settings.

    Raises
    ------
    InvalidInput
        If a value is not valid, see `load_settings`.
    """
    overrides: dict[str, Any] = {"store": options.get("store")}
    for section in sections:
        fields = type(Settings.model_fields[section].default).model_fields
        overrides[section] = {name: value for name, value in options.items() if name in fields}
    return load_settings(overrides)


def load_settings(overrides: Mapping[str, Any] | None = None) -> Settings:
    """Return the settings from the command line, the environment and the settings file.

    Parameters
    ----------
    overrides
        Values of the command line, nested by section. None values are ignored, so that the environment and the file
        still apply.

    Returns
    -------
    Settings
        The validated settings.

    Raises
    ------
    InvalidInput
        If a value of any source is not a valid setting.
    """
    from pydantic import ValidationError
    from pydantic_settings import SettingsError

    try:
        return Settings(**_without_none(overrides or {}))
    except ValidationError as error:
        problems = "; ".join(
            f"{'.'.join(map(str, e['loc']))}: {e['msg'].removeprefix('Value error, ')}" for e in error.errors()
        )
        raise InvalidInput(
            f"Invalid settings: {problems}.", hint="Check the options, the WAYGRAPH_* variables and WAYGRAPH_CONFIG."
        ) from error
    except SettingsError as error:
        raise InvalidInput(f"Invalid settings: {error}.", hint="Check the WAYGRAPH_* environment variables.") from error
    except (OSError, ValueError) as error:
        # The file that WAYGRAPH_CONFIG names is missing, unreadable or not JSON.
        raise InvalidInput(f"The settings cannot be read: {error}.", hint="Check WAYGRAPH_CONFIG.") from error


def _without_none(overrides: Mapping[str, Any]) -> dict[str, Any]:
    result: dict[str, Any] = {}
    for key, value in overrides.items():
        if isinstance(value, Mapping):
            if section := _without_none(value):
                result[key] = section
        elif value is not None:
            result[key] = value
    return result
