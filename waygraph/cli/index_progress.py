"""How does a person follow a run? One live table on a terminal, plain lines elsewhere; many sites are one line."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TextIO

from pipeline.jobs.events import JobEvent, Notice, RunStarted, SiteEncoding, SiteFinished, SitePhase, SiteProgress
from waygraph.cli.output import clean
from waygraph.cli.run_tally import RunTally

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

    from pipeline.explore.capture import ExploreProgress
    from pipeline.jobs.report.outcomes import SiteOutcome

#: Without a terminal, a line about a running site is written at most this often.
_LINE_SECONDS = 5.0
#: The same for the line about a run of many sites.
_DASHBOARD_SECONDS = 10.0
#: Of many sites, so many are named between two of those lines because they failed or are tried again.
_NAMED = 10
#: Finished sites that the live table still shows.
_RECENT_SITES = 5


@contextmanager
def progress_display(stream: TextIO) -> Iterator[Callable[[JobEvent], None]]:
    """Give a function that shows events on `stream`, in the way that suits it."""
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
class _Row:
    """A site that is being worked on, or was until a moment ago."""

    site: str
    phase: str
    started: float = field(default_factory=time.monotonic)
    seconds: float = 0.0
    progress: ExploreProgress | None = None
    shown: float = 0.0

    def update(self, progress: ExploreProgress) -> None:
        """Take in how far exploring is; the rate counts the time of exploring alone."""
        self.progress = progress
        self.seconds = time.monotonic() - self.started

    @property
    def rate(self) -> float:
        """New states per second."""
        return self.progress.states / self.seconds if self.progress and self.seconds > 0 else 0.0


class PlainLines:
    """Writes a line when a site changes its phase, and now and then in between; of many sites, how far all are."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._rows: dict[str, _Row] = {}
        self._tally = RunTally()
        self._shown = time.monotonic()
        self._named = 0

    def __call__(self, event: JobEvent) -> None:
        """Show an event."""
        self._tally.take(event)
        if isinstance(event, RunStarted):
            self._line(_started_text(event))
        elif self._tally.is_bulk:
            self._count(event)
        else:
            self._tell(event)

    def _count(self, event: JobEvent) -> None:
        match event:
            case Notice(text=text, site=site):
                self._name(text) if site else self._line(text)
            case SiteFinished(outcome=outcome) if outcome.error:
                self._name(f"{outcome.site}: {outcome_text(outcome)}")
        if time.monotonic() - self._shown >= _DASHBOARD_SECONDS:
            if self._named > _NAMED:
                self._line(f"and {self._named - _NAMED:,} more such lines (the report names all failures)")
            self._shown, self._named = time.monotonic(), 0
            self._line(self._tally.line())

    def _name(self, text: str) -> None:
        self._named += 1
        if self._named <= _NAMED:
            self._line(text)

    def _tell(self, event: JobEvent) -> None:
        match event:
            case SitePhase(site=site, phase=phase, attempt=attempt):
                if phase == "exploring":
                    self._rows[site] = _Row(site, phase)
                self._line(f"{site}: {phase}{f' (attempt {attempt})' if attempt > 1 else ''}")
            case SiteProgress(site=site, progress=progress):
                row = self._rows.setdefault(site, _Row(site, "exploring"))
                row.update(progress)
                if time.monotonic() - max(row.shown, row.started) >= _LINE_SECONDS:
                    row.shown = time.monotonic()
                    self._line(f"{site}: {_progress_text(row)}")
            case SiteEncoding(site=site, done=done, states=states):
                row = self._rows.setdefault(site, _Row(site, "encoding"))
                if time.monotonic() - row.shown >= _LINE_SECONDS:
                    row.shown = time.monotonic()
                    self._line(f"{site}: encoding: {done} of {states} states")
            case SiteFinished(outcome=outcome):
                self._rows.pop(outcome.site, None)
                self._line(f"{outcome.site}: {outcome_text(outcome)}")
            case Notice(text=text):
                self._line(text)

    def _line(self, text: str) -> None:
        self._stream.write(f"{clean(text, one_line=True)}\n")
        self._stream.flush()


class LiveTable:
    """Shows the sites in work as a table that rewrites itself; finished and troubled ones scroll by above it."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._rows: dict[str, _Row] = {}
        self._finished: list[_Row] = []
        self._tally = RunTally()
        self._named = 0

    def __call__(self, event: JobEvent) -> None:
        """Take in an event; the table is redrawn in its own time."""
        self._tally.take(event)
        match event:
            case RunStarted(duplicates=duplicates):
                if event.resumed or duplicates:  # which they are is said at the end
                    self._say(_started_text(event))
            case SitePhase(site=site, phase="exploring"):
                self._rows[site] = _Row(site, "exploring")
            case SitePhase(site=site, phase=phase):
                self._rows.setdefault(site, _Row(site, phase)).phase = phase
            case SiteEncoding(site=site, done=done, states=states):
                self._rows.setdefault(site, _Row(site, "encoding")).phase = f"encoding {done}/{states}"
            case SiteProgress(site=site, progress=progress):
                if row := self._rows.get(site):
                    row.update(progress)
            case SiteFinished(outcome=outcome):
                self._close(outcome)
            case Notice(text=text, site=site):
                self._name(text) if site else self._say(text)

    def _close(self, outcome: SiteOutcome) -> None:
        row = self._rows.pop(outcome.site, None) or _Row(outcome.site, outcome.status)
        row.phase = outcome.status
        self._finished = [*self._finished, row][-_RECENT_SITES:]
        if outcome.error:
            self._name(f"{outcome.site}: {outcome_text(outcome)}")

    def _name(self, text: str) -> None:
        """Say something about one site; of many sites, of the first ones only."""
        self._named += 1
        if self._named <= _NAMED or not self._tally.is_bulk:
            self._say(text)
        elif self._named == _NAMED + 1:
            self._say("What goes wrong with further sites is counted, and told in the report.")

    def _say(self, text: str) -> None:
        self._console.print(clean(text, one_line=True))

    def render(self) -> RenderableType:
        """Draw the current state."""
        from rich.table import Table
        from rich.text import Text

        title = self._tally.line()
        if not self._tally.done and not self._rows:
            title += ", starting"
        table = Table(box=None, pad_edge=False, header_style="bold", title=title, title_justify="left")
        for name in ("site", "phase", "depth", "states", "edges", "states/s", "pending", "skipped", "failed"):
            table.add_column(name, justify="left" if name in {"site", "phase"} else "right", no_wrap=True)
        # A copy: events arrive while the drawing thread is at work.
        room = max(1, self._console.height - 4)
        for row in [*self._finished, *list(self._rows.values())][-room:]:
            p = row.progress
            numbers = (p.depth, p.states, p.edges, f"{row.rate:.1f}", p.pending, p.skipped, p.failed) if p else ()
            table.add_row(Text(clean(row.site, one_line=True)), row.phase, *map(str, numbers))
        return table


def _started_text(event: RunStarted) -> str:
    left_out = f", {len(event.duplicates)} URL(s) left out as duplicates" if event.duplicates else ""
    done = sum(event.done.values())
    goes_on = f", goes on: {done:,} done, {len(event.sites) - done:,} left" if event.resumed else ""
    return f"run {event.run_id}: {len(event.sites):,} site(s){left_out}{goes_on}"


def _progress_text(row: _Row) -> str:
    p = row.progress
    if p is None:
        return row.phase
    return (
        f"{row.phase}: depth {p.depth}, {p.states} states ({row.rate:.1f}/s), {p.edges} edges, {p.pending} pending, "
        f"{p.skipped} skipped, {p.failed} failed"
    )


def outcome_text(outcome: SiteOutcome) -> str:
    """What happened to a site, in one line."""
    if outcome.error:
        return f"failed: {outcome.error.message}"
    if (made := outcome.publication) is None:
        return "unchanged: it has these vectors already" if outcome.status == "unchanged" else outcome.status
    if outcome.exploration is None:
        encoded = f"{made.encoded} of {made.states} states encoded"
        return f"published version {made.version}: {encoded} in {outcome.seconds:.1f} s"
    found = outcome.exploration
    partial = f", partial (stopped by {found.stopped_by})" if found.partial else ""
    return (
        f"published version {made.version}: {found.states} states, {found.edges} edges "
        f"in {outcome.seconds:.1f} s{partial}"
    )
