"""What has happened so far in a run? Outcomes as they come, written down at once, and the report from them."""

from __future__ import annotations

import asyncio
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from dataclasses import dataclass, field
from datetime import UTC, datetime

from index.store import Store
from pipeline.explore.capture import ExploreProgress
from pipeline.jobs.events import (
    JobEvent,
    Notice,
    RunStarted,
    SiteEncoding,
    SiteFinished,
    SitePhase,
    SiteProgress,
    SiteWaits,
)
from pipeline.jobs.publishing.changes import refresh_account
from pipeline.jobs.report.findings import findings_of
from pipeline.jobs.report.outcomes import (
    EncodingReport,
    ErrorRecord,
    Exploration,
    Publication,
    RunReport,
    SiteOutcome,
    SiteStatus,
    StoppedBy,
)
from pipeline.jobs.report.report_file import stored_sites, write_report
from pipeline.jobs.report.report_page import PAGE_NAME, report_page
from pipeline.jobs.run.budget import Budget
from pipeline.jobs.run.ledger import Ledger, Row
from pipeline.jobs.run.lineup import domain_of
from pipeline.jobs.sites.site_list import SiteTask
from pipeline.jobs.unfinished_work import drop_journal, journal_path
from waygraph.errors import StoreError, WaygraphError


@dataclass(slots=True, eq=False)
class SiteRun:
    """A site of a run, and what this process must know of it. What it became in full is in the ledger."""

    position: int
    task: SiteTask
    status: SiteStatus | None = None
    """None until it has an outcome."""
    attempts: int = 0
    """Tries that were begun, without one that the end of a call cut short."""
    failures: int = 0
    """Tries that failed, of those that count."""
    resumed: bool = False
    """An earlier call of the run had begun with it."""
    alone: bool = False
    """It may have killed an explorer: it is given one for itself."""
    started: float | None = None
    """When an explorer first took it up (monotonic clock)."""
    exploration: Exploration | None = field(default=None, repr=False)
    outcome: SiteOutcome | None = field(default=None, repr=False)
    """Until it is in the ledger; of a site that stays unfinished, until the end."""

    @property
    def key(self) -> str:
        """The site's key."""
        return self.task.site

    @property
    def domain(self) -> str:
        """What it shares with sites that may be on the same server."""
        return domain_of(self.task.site)


class Account:
    """Keeps the books of one call of a run. Every site gets one outcome; `completed` is set with the last one."""

    def __init__(
        self,
        ledger: Ledger,
        store: Store,
        *,
        duplicates: tuple[str, ...] = (),
        budget: Budget,
        on_event: Callable[[JobEvent], None],
    ) -> None:
        self.run_id = ledger.manifest.run_id
        self.sites = tuple(map(_site_of, ledger.rows()))
        self.budget = budget
        self.stopped_by: StoppedBy = ""
        self.encoding: EncodingReport | None = None
        self._listeners = [on_event]
        self._ledger = ledger
        self._duplicates = duplicates
        self._store = store
        self._clock = time.monotonic()
        self._phases: dict[str, float] = {}
        self._last_error: tuple[WaygraphError, ErrorRecord] | None = None
        self._counts: Counter[str] = Counter(site.status for site in self.sites if site.status is not None)
        self._unfinished = len(self.sites) - self._counts.total()
        self.completed = asyncio.Event()
        if not self._unfinished:
            self.completed.set()
        keys = tuple(site.key for site in self.sites)
        on_event(RunStarted(self.run_id, keys, duplicates, dict(self._counts), resumed=ledger.resumed))
        self._tell(now=True)

    @property
    def work(self) -> str:
        """See `RunManifest.work`."""
        return self._ledger.manifest.work

    def listen(self, listener: Callable[[JobEvent], None]) -> None:
        """Have somebody else told what happens from now on."""
        self._listeners.append(listener)

    def emit(self, event: JobEvent) -> None:
        """Tell whoever listens what happens."""
        for listener in self._listeners:
            listener(event)

    @property
    def interrupted(self) -> bool:
        """Whether the run is told to end before all sites have their outcome."""
        return bool(self.stopped_by)

    @property
    def unfinished(self) -> list[SiteRun]:
        """The sites that have no outcome yet."""
        return [site for site in self.sites if site.status is None]

    def recover(self) -> None:
        """Find out what became of sites that were in work when the coordinator died.

        A site may have been published in the moment before: then the store says so, and nothing is done again.
        """
        for row in self._ledger.rows():
            site = self.sites[row.position]
            if row.status != "begun" or site.status is not None:
                continue
            explored = self._ledger.exploration(site.position)
            key = (explored.site if explored is not None else "") or site.key  # the start page may lead elsewhere
            if self._store.read_head(key)[1].current is None:
                continue
            manifest = self._store.manifest(key)
            if manifest.report.get("run_id") != self.run_id:
                continue
            site.attempts = row.attempts  # the last one was not cut short after all
            site.exploration = explored
            # Encoding anew has no journal; there may be one of an exploration that is under way.
            if not manifest.partial and self.work != "reencode":
                drop_journal(journal_path(self._ledger.manifest.store, site.key))
            account = refresh_account(manifest.report) if self.work == "refresh" else {}
            made = Publication(
                site=key, version=manifest.version, encoded=0, reused=0, encode_seconds=0, publish_seconds=0,
                states=manifest.counts.states, refresh=account,
            )  # fmt: skip
            self.finish(site, "published", publication=made)

    # ---- what happens ----------------------------------------------------------------------------------------------

    def begin(self, site: SiteRun) -> Future[None]:
        """An explorer takes a site up, or takes it up again; wait for the future before anything is done."""
        return self._begin(site, SitePhase(site.key, "exploring", site.attempts + 1))

    def begin_encoding(self, site: SiteRun) -> Future[None]:
        """A published site is taken up, to be encoded anew; wait for the future before anything is done."""
        return self._begin(site, SitePhase(site.key, "encoding", site.attempts + 1))

    def _begin(self, site: SiteRun, phase: SitePhase) -> Future[None]:
        site.attempts += 1
        site.started = site.started or time.monotonic()
        self.emit(phase)
        return self._ledger.begin(site.position, site.attempts)

    def progress(self, site: SiteRun, progress: ExploreProgress) -> None:
        """An exploration goes on."""
        if site.status is None:
            self.budget.tell(site.key, progress.states, resumed=site.resumed)
            self.emit(SiteProgress(site.key, progress))

    def explored(self, site: SiteRun, exploration: Exploration) -> None:
        """A site is explored, and not published yet."""
        site.exploration = exploration
        self.budget.tell(site.key, exploration.states, resumed=site.resumed)
        self._ledger.explored(site.position, exploration)

    def encoded(self, site: SiteRun, done: int, states: int) -> None:
        """A site of the store is encoded anew: so many of the states that have to be are done."""
        if site.status is None:
            self.budget.tell(site.key, done, resumed=site.resumed)
            self.emit(SiteEncoding(site.key, done, states))

    def failed(self, site: SiteRun) -> None:
        """A try failed, and there will be another one."""
        self._ledger.failed(site.position, site.failures)
        self.emit(SiteWaits(site.key))

    def notice(self, text: str, *, site: str = "") -> None:
        """Tell people something, of one site or of the run."""
        self.emit(Notice(text, site))

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
        settled: bool = True,
    ) -> None:
        """Give a site its outcome; the first one counts.

        Parameters
        ----------
        settled : False: when the call is stopped later, the next one tries it again, as it does with interrupted sites.

        """
        if site.status is not None:
            return
        site.status = status
        self._counts[status] += 1
        self._unfinished -= 1
        outcome = self._outcome(site, status, publication, None if error is None else self._recorded(error, site))
        site.exploration = None
        self.budget.forget(site.key)
        site.outcome = outcome if site.attempts or error is not None else None  # else there is nothing to remember
        if settled and status != "interrupted":
            written = self._ledger.finish(site.position, outcome, failures=site.failures)
            written.add_done_callback(lambda write: _let_go(site, write))
        if not self._unfinished:
            self.completed.set()
        self._tell()
        self.emit(SiteFinished(outcome))

    @staticmethod
    def _outcome(
        site: SiteRun, status: SiteStatus, publication: Publication | None, error: ErrorRecord | None
    ) -> SiteOutcome:
        return SiteOutcome(
            site=site.key,
            start_url=site.task.start_url,
            status=status,
            attempts=site.attempts,
            seconds=round(time.monotonic() - site.started, 3) if site.started else 0.0,
            exploration=site.exploration,
            publication=publication,
            error=error,
        )

    def _recorded(self, error: WaygraphError, site: SiteRun) -> ErrorRecord:
        """What reports say of an error; what nobody foresaw leaves its traceback. One that fails all is told once."""
        if self._last_error is not None and self._last_error[0] is error:
            return self._last_error[1]
        if error.__cause__ is not None:
            text = "".join(traceback.format_exception(error))
            try:
                self.keep(f"error-{site.key.replace(':', '_')}.txt", text.encode(errors="replace"))
            except StoreError as refused:  # often the very error that is to be told of
                self.notice(f"{site.key}: the traceback is not in the run's folder. {refused.message}", site=site.key)
        self._last_error = error, ErrorRecord.of(error)
        return self._last_error[1]

    def give_up(self, error: WaygraphError) -> None:
        """Fail every site that is not finished, for a reason that concerns all of them; the next call tries them."""
        if self.stopped_by != "signal":
            self.stopped_by = "error"
        for site in self.sites:
            self.finish(site, "failed", error=error, settled=False)

    # ---- the end ---------------------------------------------------------------------------------------------------

    def close(self) -> RunReport:
        """Write the report and return it; sites without an outcome were interrupted."""
        for site in self.sites:
            self.finish(site, "interrupted")
        self._tell(now=True)
        finished = False
        try:
            self._ledger.flush()
            # A call that came to its end is the end of the run: whoever repeats it wants all sites to be mapped again.
            by_itself = not (self.stopped_by or self._counts["interrupted"])
            unsettled = 0 if by_itself else len(self.sites) - self._ledger.settled()
            if self.stopped_by.startswith("max_total") and not unsettled:
                self.stopped_by = ""  # the budget was spent while the last site was published
            report = self._report(unsettled)
            write_report(self._store, report, self._outcomes())
            report = report.model_copy(update={"sites": stored_sites(self._store, report)})
            self.keep(PAGE_NAME, report_page(self._store, report).encode(errors="replace"))
            finished = not unsettled
            return report
        finally:
            self._ledger.close(finished=finished)

    def _report(self, unsettled: int) -> RunReport:
        manifest, calls = self._ledger.manifest, self._ledger.calls()
        return RunReport(
            run_id=self.run_id,
            store=manifest.store,
            work=manifest.work,
            started=manifest.started,
            finished=datetime.now(UTC).isoformat(timespec="milliseconds"),
            seconds=round(sum(call.seconds for call in calls), 3),
            calls=calls,
            interrupted=self.stopped_by not in {"", "error"},
            stopped_by=self.stopped_by,
            unfinished=unsettled,
            phases=self._phases,
            duplicates=self._duplicates,
            encoding=self.encoding,
            findings=findings_of(self._outcomes()),
            sites=(),
        )

    def _outcomes(self) -> Iterator[SiteOutcome]:
        """All outcomes in order: those of the ledger, and between them those that it has not."""
        settled = self._ledger.outcomes()
        position, known = next(settled, (len(self.sites), None))
        for site in self.sites:
            if site.position == position and known is not None:
                yield known
                position, known = next(settled, (len(self.sites), None))
            else:
                yield site.outcome or self._outcome(site, "interrupted", None, None)

    def _tell(self, *, now: bool = False) -> None:
        self._ledger.tell({**self._counts, "left": self._unfinished}, now=now)

    def keep(self, name: str, content: bytes) -> None:
        """Put a file beside the report."""
        self._store.write_run(self.run_id, name, content)


def _site_of(row: Row) -> SiteRun:
    status: SiteStatus | None = row.status if row.status in {"published", "unchanged", "failed"} else None
    attempts = row.attempts - (row.status == "begun")
    return SiteRun(row.position, row.task, status, attempts, row.failures, resumed=row.attempts > 0)


def _let_go(site: SiteRun, write: Future[None]) -> None:
    """An outcome that is in the ledger need not be in memory; called by the thread that wrote it."""
    if not write.cancelled() and write.exception() is None:
        site.outcome = None
