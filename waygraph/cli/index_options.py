"""What do the options of `waygraph index` mean? Each is checked here, with one message for each thing that is wrong."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from waygraph.errors import InvalidInput

if TYPE_CHECKING:
    from waygraph.settings import ExploreSettings

_UNITS = {"": 1, "K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40}


class Diff(StrEnum):
    """What counts as a new element."""

    ELEMENT = "element"
    PAPER = "paper"
    OFF = "off"


class Guard(StrEnum):
    """What the network guard stops."""

    STRICT = "strict"
    GUARD = "guard"
    OBSERVE = "observe"


class ScopeKind(StrEnum):
    """What belongs to a site."""

    HOST = "host"
    DOMAIN = "domain"


class Identity(StrEnum):
    """When two looks are one state."""

    EXACT = "exact"
    TOLERANT = "tolerant"


class Mode(StrEnum):
    """Which pages are kept."""

    FULL = "full"
    SKELETON = "skeleton"


class Preset(StrEnum):
    """Whose settings."""

    ONLINE_MIND2WEB = "online-mind2web"
    WEBARENA = "webarena"


PresetOption = Annotated[
    Preset | None,
    typer.Option("--preset", help="Depths of the paper's experiments; --depth and the rules file say otherwise."),
]
PlaceholderOption = Annotated[
    list[str] | None,
    typer.Option("--placeholder", metavar="NAME=URL", help="What __NAME__ in a list stands for; repeatable."),
]
GuardOption = Annotated[
    Guard | None,
    typer.Option(
        "--guard",
        help="strict: stop all but GET, HEAD, OPTIONS; guard: let known reads through; observe: stop nothing.",
        show_default="guard",
    ),
]
ScopeOption = Annotated[
    ScopeKind | None,
    typer.Option("--scope", help="What belongs to the site: its host, or its whole domain.", show_default="host"),
]
ScopeHostOption = Annotated[
    list[str] | None, typer.Option("--scope-host", metavar="HOST", help="A further host of the site; repeatable.")
]
IdentityOption = Annotated[
    Identity | None,
    typer.Option(
        "--identity", help="When two looks are one state: also when only noise differs.", show_default="tolerant"
    ),
]
ModeOption = Annotated[
    Mode | None,
    typer.Option("--mode", help="skeleton keeps one of many pages of a kind, and counts them.", show_default="full"),
]
DelayOption = Annotated[
    float | None,
    typer.Option(
        "--delay", metavar="S", min=0, help="Least time between loads of a host.", show_default="1, on this machine 0"
    ),
]
ContactOption = Annotated[
    str | None,
    typer.Option("--contact", metavar="TEXT", help="Your mail or web address, told to sites in the user agent."),
]
ProxyOption = Annotated[
    str | None, typer.Option("--proxy", metavar="URL", help="http://[user:password@]host:port or socks5://host:port.")
]
HeaderOption = Annotated[
    list[str] | None,
    typer.Option("--header", metavar="TEXT", help='"Name: value", or @FILE with one a line; repeatable.'),
]
BasicAuthOption = Annotated[
    str | None,
    typer.Option(
        "--basic-auth",
        metavar="USER:PASSWORD",
        help="For the site's own hosts. Others can see it while this runs (ps).",
    ),
]
BasicAuthFileOption = Annotated[
    Path | None, typer.Option("--basic-auth-file", metavar="FILE", help="The same, from the first line of a file.")
]
ResumeOption = Annotated[
    bool | None,
    typer.Option("--resume/--fresh", help="Go on with an unfinished run, or begin anew.", show_default="resume"),
]
MaxTotalStatesOption = Annotated[
    int | None,
    typer.Option(
        "--max-total-states", metavar="N", min=1, help="States of all sites together; then this call ends in order."
    ),
]
MaxTotalSecondsOption = Annotated[
    float | None,
    typer.Option("--max-total-seconds", metavar="S", min=0.001, help="Time for this call; the next one goes on."),
]
BannersOption = Annotated[
    bool | None,
    typer.Option("--cookie-banners/--no-cookie-banners", help="Close cookie banners first.", show_default="yes"),
]
SearchOption = Annotated[
    bool | None,
    typer.Option("--submit-search/--no-submit-search", help="Also send search forms (GET).", show_default="no"),
]
MaxBytesOption = Annotated[
    str | None,
    typer.Option("--max-bytes", metavar="SIZE", help="Bytes from a site at most, such as 500M.", show_default="20G"),
]


def parse_placeholders(given: Sequence[str] | None, rules: Path | None) -> dict[str, str]:
    """What stands for `__NAME__`: what the rules file says, and the options, which win."""
    from index.graph import parse_start_url
    from pipeline.jobs.sites.site_settings import placeholders_of

    known = placeholders_of(rules)
    for text in given or ():
        name, equals, url = text.partition("=")
        if not equals or not re.fullmatch("__[A-Z][A-Z0-9_]*__", name):
            raise InvalidInput(
                f"--placeholder: '{text}' is not written as NAME=URL.",
                hint="--placeholder __SHOP__=http://127.0.0.1:7770",
            )
        known[name] = url
    return {name: parse_start_url(url) for name, url in known.items()}


def preset_depths(
    preset: Preset | None, depth: int | None, placeholders: Mapping[str, str]
) -> tuple[int | None, dict[str, int] | None]:
    """The depth of all sites, and depths of single ones by key. A depth that was given counts for all."""
    from index.graph import site_key
    from pipeline.jobs.sites.site_settings import ONLINE_MIND2WEB_DEPTH, WEBARENA_DEPTHS

    if preset is None or depth is not None:
        return depth, None
    if preset is Preset.ONLINE_MIND2WEB:
        return ONLINE_MIND2WEB_DEPTH, None
    known = {site_key(url): WEBARENA_DEPTHS[name] for name, url in placeholders.items() if name in WEBARENA_DEPTHS}
    if not known:
        raise InvalidInput(
            "--preset webarena: no URL of any of its sites is known.",
            hint=f"Say where they run: --placeholder {next(iter(WEBARENA_DEPTHS))}=http://127.0.0.1:3000",
        )
    return None, known


def parse_size(text: str | None, option: str) -> int | None:
    """Bytes.

    >>> parse_size("1.5k", "--max-bytes")
    1536
    """
    if text is None:
        return None
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([KMGT]?)(?:i?B)?", text.strip(), re.IGNORECASE)
    size = int(float(match[1]) * _UNITS[match[2].upper()]) if match else 0
    if size < 1:
        raise InvalidInput(f"{option}: '{text}' is not a size.", hint="Examples: 500M, 20G, 1000000")
    return size


def parse_headers(given: Sequence[str] | None) -> Mapping[str, str] | None:
    """Headers by name from "Name: value" and @FILE; None when there are none. Values are never repeated in messages."""
    headers: dict[str, str] = {}
    for text in given or ():
        lines = _lines_of(Path(text[1:]), "--header") if text.startswith("@") else [text]
        for number, line in enumerate(lines, start=1):
            name, colon, value = line.partition(":")
            if not colon or not name.strip():
                where = f"line {number} of {text[1:]}" if text.startswith("@") else "what was given"
                raise InvalidInput(f'--header: {where} is not written as "Name: value".', hint='--header "X-Key: abc"')
            headers[name.strip()] = value.strip()
    return headers or None


def parse_basic_auth(given: str | None, file: Path | None) -> str | None:
    """`user:password` from the option or the first line of the file."""
    if given is not None and file is not None:
        raise InvalidInput("Both --basic-auth and --basic-auth-file were given.", hint="Choose one.")
    if file is not None:
        given = next(iter(_lines_of(file, "--basic-auth-file")), "")
    if given is not None and not re.match(r"[^:]+:", given):
        option = "--basic-auth" if file is None else f"--basic-auth-file: the first line of '{file}'"
        raise InvalidInput(f"{option} is not written as user:password.", hint="A password may be empty: user:")
    return given


def parse_scope_hosts(given: Sequence[str] | None) -> tuple[str, ...] | None:
    """Keys of the hosts; URLs are taken for their hosts when they have no path."""
    from index.graph import parse_start_url, site_key

    hosts: list[str] = []
    for text in given or ():
        url = parse_start_url(text)
        if url.partition("://")[2].partition("/")[2] or "?" in url or "#" in url:
            raise InvalidInput(
                f"--scope-host: '{text}' is more than a host.", hint="Name a host, such as --scope-host shop.example"
            )
        hosts.append(site_key(url))
    return tuple(dict.fromkeys(hosts)) or None


def check_scope(sites: Iterable[str], explore: ExploreSettings) -> None:
    """Refuse scopes that contradict each other or the start URLs.

    Raises
    ------
    InvalidInput
        When pages would belong to two sites, or a site has no domain that could be its scope.

    """
    from pipeline.explore.scope import Scope

    named = list(sites)
    if explore.scope_hosts and len(named) > 1:
        raise InvalidInput(
            f"--scope-host would make {', '.join(explore.scope_hosts)} a part of each of {len(named)} sites.",
            hint="Use --scope-host with one start URL.",
        )
    domains: dict[str, str] = {}
    for site in named:
        domain = Scope.of(site, explore).domain
        if domain and (other := domains.setdefault(domain, site)) != site:
            raise InvalidInput(
                f"With --scope domain, {other} and {site} are one site.", hint="Name one of them as the start."
            )


def existing(path: Path | None, option: str) -> Path | None:
    """The absolute path of a file that is there."""
    if path is not None and not path.is_file():
        raise InvalidInput(f"{option}: there is no file '{path}'.", hint="Check the path.")
    return path.absolute() if path else None


def _lines_of(file: Path, option: str) -> list[str]:
    try:
        text = file.read_text(encoding="utf-8")
    except OSError as error:
        raise InvalidInput(f"{option}: '{file}' cannot be read: {error.strerror}.", hint="Check the path.") from error
    except UnicodeDecodeError as error:
        raise InvalidInput(f"{option}: '{file}' is not UTF-8 text.", hint="Check the path.") from error
    return [line.strip() for line in text.splitlines() if line.strip()]
