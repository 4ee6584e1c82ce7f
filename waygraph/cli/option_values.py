"""Parsers of option values: sizes, durations, files, headers, passwords, hosts and placeholders.

Parsers that typer calls raise `typer.BadParameter`, to which it adds the name of the option; the others raise
`InvalidInput`. Secrets (headers, passwords) are never repeated in a message.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Literal

import typer

from waygraph.core.errors import InvalidInput

_SIZE_UNITS = {"": 1, "K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40}
_SECONDS = {"s": 1, "m": 60, "h": 3_600, "d": 86_400, "w": 604_800}

#: Settings of the paper's experiments.
Preset = Literal["online-mind2web", "webarena"]


def parse_size(text: str) -> int:
    """Return a size in bytes; K, M, G and T are powers of 1024.

    >>> parse_size("1.5k")
    1536
    """
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([KMGT]?)(?:i?B)?", text.strip(), re.IGNORECASE)
    size = int(float(match[1]) * _SIZE_UNITS[match[2].upper()]) if match else 0
    if size < 1:
        raise typer.BadParameter(f"'{text}' is not a size such as 500M, 20G or 1000000.")
    return size


def parse_duration(text: str) -> timedelta:
    """Return a duration, written as a number with the unit s, m, h, d or w.

    >>> parse_duration("36h")
    datetime.timedelta(days=1, seconds=43200)
    """
    match = re.fullmatch(r"(\d{1,9}(?:\.\d+)?)\s*([smhdw])", text.strip().lower())
    try:
        return timedelta(seconds=float(match[1]) * _SECONDS[match[2]]) if match else _refuse_duration(text)
    except OverflowError:
        return _refuse_duration(text)


def _refuse_duration(text: str) -> timedelta:
    raise typer.BadParameter(f"'{text}' is not a duration such as 90s, 10m, 36h, 7d or 2w.")


def existing_file(value: Path | None) -> Path | None:
    """Return the absolute path of a file that exists; typer passes None if the option was not given."""
    if value is not None and not value.is_file():
        raise typer.BadParameter(f"there is no file '{value}'.")
    return value.absolute() if value else None


def existing_files(values: list[Path] | None) -> list[Path] | None:
    """Return the absolute paths of files that exist; typer passes None if the option was not given."""
    return [path for value in values if (path := existing_file(value))] if values else None


def parse_viewport(text: str | None) -> dict[str, int]:
    """Return the settings of a viewport that is written as WIDTHxHEIGHT in CSS pixels; none without a text.

    >>> parse_viewport("1280x800")
    {'viewport_width': 1280, 'viewport_height': 800}
    """
    if text is None:
        return {}
    match = re.fullmatch(r"(\d{2,5})[xX](\d{2,5})", text.strip())
    if match is None:
        raise InvalidInput(f"--viewport: '{text}' is not a window size.", hint="Example: --viewport 1280x800")
    return {"viewport_width": int(match[1]), "viewport_height": int(match[2])}


def parse_headers(values: Sequence[str] | None) -> Mapping[str, str] | None:
    """Return header values by name.

    Parameters
    ----------
    values
        Each a header "Name: value", or @FILE with one header per line.

    Returns
    -------
    Mapping or None
        None if there is no header.

    Raises
    ------
    InvalidInput
        If a header is malformed, or a file cannot be read.
    """
    headers: dict[str, str] = {}
    for text in values or ():
        lines = read_lines(Path(text[1:]), "--header") if text.startswith("@") else [text]
        for number, line in enumerate(lines, start=1):
            name, colon, value = line.partition(":")
            if not colon or not name.strip():
                subject = f"line {number} of {text[1:]}" if text.startswith("@") else "the value"
                raise InvalidInput(
                    f'--header: {subject} does not have the form "Name: value".', hint='Example: --header "X-Key: abc"'
                )
            headers[name.strip()] = value.strip()
    return headers or None


def parse_basic_auth(value: str | None, file: Path | None) -> str | None:
    """Return `user:password` from the option or from the first line of the file.

    Parameters
    ----------
    value
        Value of `--basic-auth`.
    file
        Value of `--basic-auth-file`.

    Returns
    -------
    str or None
        None if neither was given.

    Raises
    ------
    InvalidInput
        If both were given, the text is malformed, or the file cannot be read.
    """
    if value is not None and file is not None:
        raise InvalidInput("Both --basic-auth and --basic-auth-file were given.", hint="Use one of them.")
    if file is not None:
        value = next(iter(read_lines(file, "--basic-auth-file")), "")
    if value is not None and not re.match(r"[^:]+:", value):
        option = "--basic-auth" if file is None else f"--basic-auth-file: the first line of '{file}'"
        raise InvalidInput(f"{option} does not have the form user:password.", hint="For an empty password write user:")
    return value


def parse_scope_hosts(values: list[str] | None) -> list[str] | None:
    """Return the site keys of hosts, each once. A URL without a path is accepted as its host."""
    from waygraph.core.urls import parse_start_url, site_key

    hosts: list[str] = []
    for text in values or ():
        url = parse_start_url(text)
        if url.partition("://")[2].partition("/")[2] or "?" in url or "#" in url:
            raise typer.BadParameter(f"'{text}' is not just a host such as shop.example.")
        hosts.append(site_key(url))
    return list(dict.fromkeys(hosts)) or None


def parse_placeholders(values: Sequence[str] | None, rules: Path | None) -> dict[str, str]:
    """Return the URL of each placeholder `__NAME__` of a site list.

    Parameters
    ----------
    values
        Values of `--placeholder`, each NAME=URL.
    rules
        Rules file, which may define placeholders too; the options take precedence.

    Returns
    -------
    dict
        URLs by placeholder.

    Raises
    ------
    InvalidInput
        If an option or a URL is malformed, or the file cannot be read.
    """
    from waygraph.core.urls import parse_start_url
    from waygraph.pipeline.jobs.sites.site_settings import read_placeholders

    urls = {name: parse_start_url(url) for name, url in read_placeholders(rules).items()}
    return urls | parse_site_urls(values)


def parse_site_urls(values: Sequence[str] | None) -> dict[str, str]:
    """Return the URLs that the options `--placeholder` give, by placeholder.

    Parameters
    ----------
    values
        Option values of the form `__NAME__=URL`.

    Returns
    -------
    dict
        URLs by placeholder.

    Raises
    ------
    InvalidInput
        If an option or a URL is malformed.
    """
    from waygraph.benchmarks.webarena import PLACEHOLDER
    from waygraph.core.urls import parse_start_url

    urls = {}
    for text in values or ():
        name, equals, url = text.partition("=")
        if not equals or not PLACEHOLDER.fullmatch(name):
            raise InvalidInput(
                f"--placeholder: '{text}' does not have the form __NAME__=URL.",
                hint="Example: --placeholder __SHOP__=http://127.0.0.1:7770",
            )
        urls[name] = parse_start_url(url)
    return urls


def preset_depths(
    preset: Preset | None, depth: int | None, placeholders: Mapping[str, str]
) -> tuple[int | None, dict[str, int] | None]:
    """Return the depths of a preset.

    Parameters
    ----------
    preset
        The preset, if any.
    depth
        Value of `--depth`, which takes precedence over the preset.
    placeholders
        URLs by placeholder; the sites of the preset `webarena`.

    Returns
    -------
    tuple of int or None and dict or None
        The depth of all sites, and the depths of single sites by site key.

    Raises
    ------
    InvalidInput
        If the preset `webarena` is given and none of its sites has a URL.
    """
    from waygraph.benchmarks import online_mind2web, webarena
    from waygraph.core.urls import site_key

    if preset is None or depth is not None:
        return depth, None
    if preset == "online-mind2web":
        return online_mind2web.DEPTH, None
    depths = {site_key(url): webarena.DEPTHS[name] for name, url in placeholders.items() if name in webarena.DEPTHS}
    if not depths:
        raise InvalidInput(
            "--preset webarena: none of its sites has a URL.",
            hint=f"Say where they run: --placeholder {next(iter(webarena.DEPTHS))}=http://127.0.0.1:3000",
        )
    return None, depths


def read_lines(file: Path, option: str) -> list[str]:
    """Return the lines of a file that an option names, without surrounding space and empty ones."""
    try:
        text = file.read_text(encoding="utf-8")
    except OSError as error:
        raise InvalidInput(f"{option}: '{file}' cannot be read: {error.strerror}.", hint="Check the path.") from error
    except UnicodeDecodeError as error:
        raise InvalidInput(f"{option}: '{file}' is not UTF-8 text.", hint="Check the path.") from error
    return [line.strip() for line in text.splitlines() if line.strip()]
