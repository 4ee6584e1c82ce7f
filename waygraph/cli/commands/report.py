"""`waygraph report`: write the report of a site or of a run as one HTML file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from waygraph.cli.options import StoreOption, load_settings
from waygraph.cli.output import say, write_file
from waygraph.cli.selection import mapped_site
from waygraph.core.errors import InvalidInput

if TYPE_CHECKING:
    from waygraph.index.store import Store


def report(
    subject: Annotated[
        str,
        typer.Argument(metavar="SITE|RUN", help="A mapped site, by its key or any of its URLs, or the id of a run."),
    ],
    *,
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="FILE", help="The HTML file; it is replaced if it exists.")
    ] = Path("report.html"),
    version: Annotated[
        int | None,
        typer.Option("--version", metavar="N", min=1, help="Version of the site.", show_default="the current one"),
    ] = None,
    store: StoreOption = None,
) -> None:
    """Write the report of a site or of a run as one HTML file, which opens from disk and loads nothing.

    Of a site: its map, discovery velocity by depth, coverage, elements that were skipped or failed by
    reason, and images of its states. Of a run: the same over all its sites, errors, times and start
    pages.

    \b
    Examples:
      waygraph report example.org -o example.html
      waygraph report example.org --version 3 -o before.html
      waygraph report 20261122-062321-0a1b2c -o run.html
    """  # noqa: D301 - \b keeps the lines of an example together
    from waygraph.index.store import Store
    from waygraph.index.store.upkeep.retention import RUN_ID

    opened = Store.open(load_settings({"store": store}).store)
    if RUN_ID.fullmatch(subject):
        if version is not None:
            raise InvalidInput("A run has no versions.", hint="Use --version with a site.")
        page = _run_page(opened, subject)
    else:
        from waygraph.serve.views.site_report import site_report

        page = site_report(opened, mapped_site(subject, opened.sites()), version).html()
    write_file(output, page, option="--output")
    say(f"Report: {output} ({len(page.encode('utf-8', 'replace')) / 2**20:.1f} MiB)")


def _run_page(store: Store, run: str) -> str:
    from waygraph.pipeline.jobs.report.report_file import read_report
    from waygraph.pipeline.jobs.report.report_page import report_page

    return report_page(store, read_report(store, run))


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("report", short_help="Write a report of a site or run as one HTML file.")(report)
