"""Progress of a run: a live table on a terminal, plain lines elsewhere; runs of many sites as one line of counts."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TextIO

from waygraph.cli.display.run_tally import RunTally
from waygraph.cli.output import clean
from waygraph.pipeline.jobs.events import (
    JobEvent,
    Notice,
    RunStarted,
    SiteEncoding,
    SiteFinished,
    SitePhase,
    SiteProgress,
    SiteTurnEnded,
)

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

    from waygraph.pipeline.explore.records.capture import ExploreProgress
    from waygraph.pipeline.jobs.report.outcomes import SiteOutcome

#: Least time between two lines about a running site, in seconds.
_LINE_SECONDS = 5.0
#: Least time between two lines of counts about a run of many sites, in seconds.
_COUNTS_SECONDS = 10.0
#: Limit of lines about single sites (failures, retries) between two lines of counts.
_SITE_LINES = 10
#: Finished sites that the live table still shows.
_RECENT_SITES = 5


@contextmanager
def progress_display(stream: TextIO) -> Iterator[Callable[[JobEvent], None]]:
    """Yield a callback that shows events on `stream`: as a live table on a terminal, else as plain lines."""
    from rich.console import Console

    if not stream.isatty():
        yield PlainLines(stream)
        return
    from rich.live import Live

    console = Console(file=stream, markup=False, emoji=False, highlight=False)
    table = LiveTable(console)
    with Live(get_renderable=table.render, console=console, refresh_per_second=4, transient=True):
        yield table


@dataclass(slots=True)
class _SiteRow:
    """Progress of a site that is running, or has just finished."""

    site: str
    phase: str
    started: float = field(default_factory=time.monotonic)
    seconds: float = 0.0
    progress: ExploreProgress | None = None
    shown: float = 0.0

    def update(self, progress: ExploreProgress) -> None:
        """Record the progress of exploring; the rate counts the time of exploring only."""
        self.progress = progress
        self.seconds = time.monotonic() - self.started

    @property
    def rate(self) -> float:
        """New states per second."""
        return self.progress.states / self.seconds if self.progress and self.seconds > 0 else 0.0


class PlainLines:
    """Callback that writes a line per phase of a site, and progress in between; of many sites, counts only.

    Parameters
    ----------
    stream
        Where the lines are written.
    """

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._rows: dict[str, _SiteRow] = {}
        self._tally = RunTally()
        self._counts_shown = time.monotonic()
        self._site_lines = 0

    def __call__(self, event: JobEvent) -> None:
        """Show an event."""
        self._tally.add(event)
        if isinstance(event, RunStarted):
            self._write(_started_text(event))
        elif self._tally.is_bulk:
            self._show_counts(event)
        else:
            self._show_site(event)

    def _show_counts(self, event: JobEvent) -> None:
        match event:
            case Notice(text=text, site=site):
                self._write_about_site(text) if site else self._write(text)
            case SiteFinished(outcome=outcome) if outcome.error:
                self._write_about_site(f"{outcome.site}: {outcome_text(outcome)}")
        if time.monotonic() - self._counts_shown >= _COUNTS_SECONDS:
            if self._site_lines > _SITE_LINES:
                self._write(f"and {self._site_lines - _SITE_LINES:,} more such lines (the report lists all failures)")
            self._counts_shown, self._site_lines = time.monotonic(), 0
            self._write(self._tally.line())

    def _write_about_site(self, text: str) -> None:
        self._site_lines += 1
        if self._site_lines <= _SITE_LINES:
            self._write(text)

    def _show_site(self, event: JobEvent) -> None:
        match event:
            case SitePhase(site=site, phase=phase, attempt=attempt):
                if phase == "exploring":
                    self._rows[site] = _SiteRow(site, phase)
                self._write(f"{site}: {phase}{f' (attempt {attempt})' if attempt > 1 else ''}")
            case SiteProgress(site=site, progress=progress):
                row = self._rows.setdefault(site, _SiteRow(site, "exploring"))
                row.update(progress)
                if time.monotonic() - max(row.shown, row.started) >= _LINE_SECONDS:
                    row.shown = time.monotonic()
                    self._write(f"{site}: {_progress_text(row)}")
            case SiteEncoding(site=site, done=done, states=states):
                row = self._rows.setdefault(site, _SiteRow(site, "encoding"))
                if time.monotonic() - row.shown >= _LINE_SECONDS:
                    row.shown = time.monotonic()
                    self._write(f"{site}: encoding: {done} of {states} states")
            case SiteTurnEnded(outcome=outcome):
                self._rows.pop(outcome.site, None)
                self._write(f"{outcome.site}: {outcome_text(outcome)}, waits for another turn")
            case SiteFinished(outcome=outcome):
                self._rows.pop(outcome.site, None)
                self._write(f"{outcome.site}: {outcome_text(outcome)}")
            case Notice(text=text):
                self._write(text)

    def _write(self, text: str) -> None:
        self._stream.write(f"{clean(text, one_line=True)}\n")
        self._stream.flush()


class LiveTable:
    """Callback that keeps a table of the running sites; failures and notices are printed above it.

    Parameters
    ----------
    console
        The terminal; a `rich.live.Live` calls `render` to redraw the table.
    """

    def __init__(self, console: Console) -> None:
        self._console = console
        self._rows: dict[str, _SiteRow] = {}
        self._finished: list[_SiteRow] = []
        self._tally = RunTally()
        self._site_lines = 0

    def __call__(self, event: JobEvent) -> None:
        """Record an event; the next redraw shows it."""
        self._tally.add(event)
        match event:
            case RunStarted(duplicates=duplicates):
                if event.resumed or duplicates:  # the summary lists the duplicates
                    self._print(_started_text(event))
            case SitePhase(site=site, phase="exploring"):
                self._rows[site] = _SiteRow(site, "exploring")
            case SitePhase(site=site, phase=phase):
                self._rows.setdefault(site, _SiteRow(site, phase)).phase = phase
            case SiteEncoding(site=site, done=done, states=states):
                self._rows.setdefault(site, _SiteRow(site, "encoding")).phase = f"encoding {done}/{states}"
            case SiteProgress(site=site, progress=progress):
                if row := self._rows.get(site):
                    row.update(progress)
            case SiteTurnEnded(outcome=outcome) | SiteFinished(outcome=outcome):
                self._end(outcome, is_finished=isinstance(event, SiteFinished))
            case Notice(text=text, site=site):
                self._print_about_site(text) if site else self._print(text)

    def _end(self, outcome: SiteOutcome, *, is_finished: bool) -> None:
        row = self._rows.pop(outcome.site, None) or _SiteRow(outcome.site, outcome.status)
        if not is_finished:
            return
        row.phase = outcome.status
        self._finished = [*self._finished, row][-_RECENT_SITES:]
        if outcome.error:
            self._print_about_site(f"{outcome.site}: {outcome_text(outcome)}")

    def _print_about_site(self, text: str) -> None:
        """Print a line about one site; in a bulk run only the first of them."""
        self._site_lines += 1
        if self._site_lines <= _SITE_LINES or not self._tally.is_bulk:
            self._print(text)
        elif self._site_lines == _SITE_LINES + 1:
            self._print("Further failures are counted here and listed in the report.")

    def _print(self, text: str) -> None:
        self._console.print(clean(text, one_line=True))

    def render(self) -> RenderableType:
        """Return the table as of now."""
        from rich.table import Table
        from rich.text import Text

        title = self._tally.line()
        if not self._tally.done and not self._rows:
            title += ", starting"
        table = Table(box=None, pad_edge=False, header_style="bold", title=title, title_justify="left")
        for name in ("site", "phase", "depth", "states", "edges", "states/s", "pending", "skipped", "failed"):
            table.add_column(name, justify="left" if name in {"site", "phase"} else "right", no_wrap=True)
        height = max(1, self._console.height - 4)
        # A copy of the rows: events arrive in another thread than the one that draws.
        for row in [*self._finished, *list(self._rows.values())][-height:]:
            p = row.progress
            numbers = (p.depth, p.states, p.edges, f"{row.rate:.1f}", p.pending, p.skipped, p.failed) if p else ()
            table.add_row(Text(clean(row.site, one_line=True)), row.phase, *map(str, numbers))
        return table


def _started_text(event: RunStarted) -> str:
    duplicates = f", {len(event.duplicates)} duplicate URL(s) ignored" if event.duplicates else ""
    done = sum(event.done.values())
    resumed = f", resumed: {done:,} done, {len(event.sites) - done:,} left" if event.resumed else ""
    return f"run {event.run_id}: {len(event.sites):,} site(s){duplicates}{resumed}"


def _progress_text(row: _SiteRow) -> str:
    p = row.progress
    if p is None:
        return row.phase
    return (
        f"{row.phase}: depth {p.depth}, {p.states} states ({row.rate:.1f}/s), {p.edges} edges, {p.pending} pending, "
        f"{p.skipped} skipped, {p.failed} failed"
    )


def outcome_text(outcome: SiteOutcome) -> str:
    """Return the outcome of a site as one line."""
    if outcome.error:
        return f"failed: {outcome.error.message}"
    if (publication := outcome.publication) is None:
        return "unchanged: it already has these vectors" if outcome.status == "unchanged" else outcome.status
    if outcome.exploration is None:
        encoded = f"{publication.encoded} of {publication.states} states encoded"
        return f"published version {publication.version}: {encoded} in {outcome.seconds:.1f} s"
    exploration = outcome.exploration
    partial = f", partial (stopped by {exploration.stopped_by})" if exploration.partial else ""
    return (
        f"published version {publication.version}: {exploration.states} states, {exploration.edges} edges "
        f"in {outcome.seconds:.1f} s{partial}"
    )
