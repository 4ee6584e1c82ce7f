"""What has happened so far in a run? Outcomes as they come, the report from them at any time."""

from __future__ import annotations

import asyncio
import secrets
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime

from index.store import Store
from pipeline.jobs.events import JobEvent, Notice, RunStarted, SiteFinished, SitePhase
from pipeline.jobs.report import (
    EncodingReport,
    ErrorRecord,
    Exploration,
    Publication,
    RunReport,
    SiteOutcome,
    SiteStatus,
)
from pipeline.jobs.sites import SitePlan, SiteTask
from waygraph.errors import WaygraphError

REPORT_NAME = "report.json"


@dataclass(slots=True)
class SiteRun:
    """A site of a run, and what is known of it so far."""

    task: SiteTask
    started: float | None = None
    """When an explorer first took it up (monotonic clock)."""
    attempts: int = 0
    exploration: Exploration | None = None
    outcome: SiteOutcome | None = field(default=None, repr=False)

    @property
    def key(self) -> str:
        """The site's key."""
        return self.task.site


class Account:
    """Keeps the books of one run. Every site gets exactly one outcome; `completed` is set with the last one."""

    def __init__(self, plan: SitePlan, store: Store, location: str, on_event: Callable[[JobEvent], None]) -> None:
        self.run_id = f"{datetime.now(UTC):%Y%m%d-%H%M%S}-{secrets.token_hex(3)}"
        self.sites = tuple(SiteRun(task) for task in plan.tasks)
        self.interrupted = False
        self.encoding: EncodingReport | None = None
        self.emit = on_event
        self._duplicates = plan.duplicates
        self._store = store
        self._location = location
        self._started = datetime.now(UTC)
        self._clock = time.monotonic()
        self._phases: dict[str, float] = {}
        self._unfinished = len(self.sites)
        self.completed = asyncio.Event()
        on_event(RunStarted(self.run_id, tuple(site.key for site in self.sites), plan.duplicates))

    def begin(self, site: SiteRun) -> None:
        """An explorer takes a site up, or takes it up again."""
        site.attempts += 1
        site.started = site.started or time.monotonic()
        self.emit(SitePhase(site.key, "exploring", site.attempts))

    def begin_encoding(self, site: SiteRun) -> None:
        """A published site is taken up, to be encoded anew."""
        site.attempts += 1
        site.started = site.started or time.monotonic()
        self.emit(SitePhase(site.key, "encoding", site.attempts))

    def notice(self, text: str) -> None:
        """Tell people something."""
        self.emit(Notice(text))

    def mark(self, phase: str, *, since: float | None = None) -> None:
        """Note how long a phase took, from `since` (monotonic clock) or from the start of the run until now."""
        self._phases[phase] = round(time.monotonic() - (self._clock if since is None else since), 3)

    def finish(
        self,
        site: SiteRun,
        status: SiteStatus,
        *,
        publication: Publication | None = None,
        error: WaygraphError | None = None,
    ) -> None:
        """Give a site its outcome; the first one counts."""
        if site.outcome is not None:
            return
        self._unfinished -= 1
        if not self._unfinished:
            self.completed.set()
        if error is not None and error.__cause__ is not None:
            text = "".join(traceback.format_exception(error))
            self._store.write_run(self.run_id, f"error-{site.key.replace(':', '_')}.txt", text.encode())
        site.outcome = SiteOutcome(
            site=site.key,
            start_url=site.task.start_url,
            status=status,
            attempts=site.attempts,
            seconds=round(time.monotonic() - site.started, 3) if site.started else 0.0,
            exploration=site.exploration,
            publication=publication,
            error=None if error is None else ErrorRecord.of(error),
        )
        self.emit(SiteFinished(site.outcome))

    def give_up(self, error: WaygraphError) -> None:
        """Fail every site that is not finished, for a reason that concerns all of them."""
        for site in self.sites:
            self.finish(site, "failed", error=error)

    def close(self) -> RunReport:
        """Write the report and return it; sites without an outcome were interrupted."""
        for site in self.sites:
            self.finish(site, "interrupted")
        report = RunReport(
            run_id=self.run_id,
            store=self._location,
            started=self._started.isoformat(timespec="milliseconds"),
            finished=datetime.now(UTC).isoformat(timespec="milliseconds"),
            seconds=round(time.monotonic() - self._clock, 3),
            interrupted=self.interrupted,
            phases=self._phases,
            duplicates=self._duplicates,
            sites=tuple(site.outcome for site in self.sites if site.outcome),
            encoding=self.encoding,
        )
        self._store.write_run(self.run_id, REPORT_NAME, report.model_dump_json(indent=2).encode())
        return report

    def keep(self, name: str, content: bytes) -> None:
        """Put a file beside the report."""
        self._store.write_run(self.run_id, name, content)
