"""`waygraph index`: turn websites into maps."""

from __future__ import annotations

import os
import re
import sys
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from waygraph.cli.options import JsonOption, StoreOption, load_settings
from waygraph.errors import InvalidInput

if TYPE_CHECKING:
    from waygraph.settings import Settings


class Diff(StrEnum):
    """What counts as a new element."""

    ELEMENT = "element"
    PAPER = "paper"
    OFF = "off"


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
            help="More start URLs: one a line, or .csv or .jsonl with url, website, site or start_url.",
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
        Path | None, typer.Option("--rules", metavar="FILE", help="YAML with elements of sites never to be activated.")
    ] = None,
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
    storage_state: Annotated[
        Path | None,
        typer.Option("--storage-state", metavar="FILE", help="Cookies and storage to start with, saved by Playwright."),
    ] = None,
    user_agent: Annotated[
        str | None, typer.Option("--user-agent", metavar="TEXT", help="Who to say we are.", show_default="the browser")
    ] = None,
    viewport: Annotated[
        str | None, typer.Option("--viewport", metavar="WxH", help="Size of the window.", show_default="1280x800")
    ] = None,
    encoder: Annotated[
        str | None, typer.Option("--encoder", metavar="NAME", help="What makes states searchable.", show_default="text")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Explore websites and publish a map of each as soon as it is finished.

    A site that fails does not stop the others. Ctrl-C ends a run in order: what is published stays.
    A site that is mapped already gets a new version; readers see the old one until then.

    \b
    Examples:
      waygraph index https://example.org --depth 2
      waygraph index example.org shop.example.org --max-states 200 --store maps
      waygraph index --sites sites.csv --sites-at-once 4 --json > report.json
    Exit codes: 0 all published, 5 some failed, 130 interrupted; if all failed, what they failed of
    (4 unreachable or forbidden, 6 no browser or weights, 7 store).
    """  # noqa: D301 - \b keeps the lines of an example together
    settings = load_settings(
        {
            "store": store,
            "explore": {
                "depth": depth,
                "max_states": max_states,
                "max_seconds": max_seconds,
                "workers": workers,
                "rules": _existing(rules, "--rules"),
                "robots": robots,
                "hover": hover,
                "diff": diff.value if diff else None,
                "storage_state": _existing(storage_state, "--storage-state"),
            },
            "capture": {"user_agent": user_agent, **_viewport(viewport)},
            "encode": {"encoder": encoder},
            "jobs": {"sites_at_once": sites_at_once},
        }
    )
    raise typer.Exit(index_sites(urls or [], sites, settings, as_json=as_json))


def index_sites(urls: list[str], sites: Path | None, settings: Settings, *, as_json: bool) -> int:
    """Map the named sites, show how it goes on stderr and the result on stdout; returns the exit code."""
    from pipeline.jobs import run_index
    from pipeline.jobs.sites import plan_sites, read_sites

    wanted = [*urls, *(read_sites(sites) if sites else [])]
    plan_sites(wanted)  # says what is wrong with the URLs before anything slow starts
    if not os.environ.get("RAY_ADDRESS"):
        from pipeline.browser.find import find_browser

        find_browser(settings.browser.executable)

    from waygraph.cli.index_progress import progress_display
    from waygraph.cli.index_summary import print_summary

    with progress_display(sys.stderr) as display:
        report = run_index(wanted, settings=settings, on_event=display)
    print_summary(report, as_json=as_json)
    return report.exit_code


def _viewport(text: str | None) -> dict[str, Any]:
    if text is None:
        return {}
    match = re.fullmatch(r"(\d{2,5})[xX](\d{2,5})", text.strip())
    if match is None:
        raise InvalidInput(f"'{text}' is not a window size.", hint="Example: --viewport 1280x800")
    return {"viewport_width": int(match[1]), "viewport_height": int(match[2])}


def _existing(path: Path | None, option: str) -> Path | None:
    if path is not None and not path.is_file():
        raise InvalidInput(f"{option}: there is no file '{path}'.", hint="Check the path.")
    return path.absolute() if path else None


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("index", short_help="Explore websites and publish their maps.")(index_command)
