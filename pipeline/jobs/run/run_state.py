"""State of a run: one outcome per site, written to the run database at once, and the report at the end."""

from __future__ import annotations

import asyncio
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from datetime import UTC, datetime
from enum import Enum, auto

from waygraph.core.errors import StoreError, WaygraphError
from waygraph.index.store import Store
from waygraph.pipeline.explore.records.capture import ExploreProgress
from waygraph.pipeline.jobs.events import (
    JobEvent,
    Notice,
    RunStarted,
    SiteAttemptFailed,
    SiteEncoding,
    SiteFinished,
    SitePhase,
    SiteProgress,
    SiteTurnEnded,
)
from waygraph.pipeline.jobs.failures import counted_attempts, keeps_outcome, sites_for_next_invocation
from waygraph.pipeline.jobs.publishing.changes import refresh_summary
from waygraph.pipeline.jobs.report.outcomes import (
    TURN_ENDED,
    EncodingReport,
    ErrorRecord,
    Exploration,
    Publication,
    SiteOutcome,
    SiteStatus,
    StoppedBy,
)
from waygraph.pipeline.jobs.report.report_file import stored_sites, write_report
from waygraph.pipeline.jobs.report.report_page import PAGE_NAME, report_page
from waygraph.pipeline.jobs.report.run_report import RunReport
from waygraph.pipeline.jobs.report.totals import summarize_outcomes
from waygraph.pipeline.jobs.run.budget import RunBudget
from waygraph.pipeline.jobs.run.run_database import RunDatabase, SiteRow
from waygraph.pipeline.jobs.run.site_run import SiteRun
from waygraph.pipeline.jobs.run.turns import EarlierTurns, add_turns
from waygraph.pipeline.jobs.work_files import journal_path, remove_journal


class RunPhase(Enum):
    """Lifecycle of one invocation of a run."""

    WORKING = auto()
    """Sites are explored and published."""
    STOPPING = auto()
    """The invocation ends early. Sites without an outcome become interrupted."""
    COMPLETED = auto()
    """Every site has an outcome."""
    CLOSED = auto()
    """The report is written and the run database is closed."""


class RunState:
    """State of one invocation of a run. Every site gets exactly one outcome; `completed` is set with the last one.

    Parameters
    ----------
    database
        The run database. It is closed with the run state.
    store
        Where the report goes.
    duplicates
        URLs that were left out because their site is already in the run.
    budget
        Limits of this invocation.
    on_event
        Callback for events.

    Attributes
    ----------
    sites
        All sites, in the order of the list.
    stopped_by
        Why the invocation ends early, or empty.
    encoding
        Statistics of the encoders, when they are known.
    completed
        Set when every site has an outcome.
    """

    def __init__(
        self,
        database: RunDatabase,
        store: Store,
        *,
        duplicates: tuple[str, ...] = (),
        budget: RunBudget,
        on_event: Callable[[JobEvent], None],
    ) -> None:
        self.run_id = database.manifest.run_id
        self.sites = tuple(map(SiteRun.from_row, database.rows()))
        self.budget = budget
        self.stopped_by: StoppedBy = ""
        self.encoding: EncodingReport | None = None
        self._listeners = [on_event]
        self._warned: set[tuple[str, str]] = set()
        self._database = database
        self._duplicates = duplicates
        self._store = store
        self._started_at = time.monotonic()
        self._phase_seconds: dict[str, float] = {}
        for position, outcome in database.outcomes_of_turns():
            self.sites[position].turns = EarlierTurns.of(outcome.exploration)
        self._closed = False
        self._last_error: tuple[WaygraphError, ErrorRecord] | None = None
        self._counts: Counter[str] = Counter(site.status for site in self.sites if site.status is not None)
        self._unfinished = len(self.sites) - self._counts.total()
        self.completed = asyncio.Event()
        if not self._unfinished:
            self.completed.set()
        keys = tuple(site.key for site in self.sites)
        on_event(RunStarted(self.run_id, keys, duplicates, dict(self._counts), resumed=database.resumed))
        self._publish_status(now=True)

    @property
    def work(self) -> str:
        """See `RunManifest.work`."""
        return self._database.manifest.work

    def subscribe(self, listener: Callable[[JobEvent], None]) -> None:
        """Add a callback for events from now on."""
        self._listeners.append(listener)

    def emit(self, event: JobEvent) -> None:
        """Call all listeners with an event."""
        for listener in self._listeners:
            listener(event)

    @property
    def phase(self) -> RunPhase:
        """Where the invocation is in its lifecycle."""
        if self._closed:
            return RunPhase.CLOSED
        if self.completed.is_set():
            return RunPhase.COMPLETED
        return RunPhase.STOPPING if self.is_stopping else RunPhase.WORKING

    @property
    def is_stopping(self) -> bool:
        """Whether the invocation ends before all sites have an outcome."""
        return bool(self.stopped_by)

    @property
    def unfinished(self) -> list[SiteRun]:
        """Sites without an outcome."""
        return [site for site in self.sites if site.status is None]

    @property
    def has_one_site_left(self) -> bool:
        """Whether all sites but one have an outcome."""
        return self._unfinished == 1

    def recover(self) -> None:
        """Complete sites that were published just before an earlier coordinator died.

        A site that the run database lists as begun may be published already. If the store has a version of this run,
        the site gets the outcome `published` and is not explored again, unless only its turn had ended.
        """
        for row in self._database.rows():
            site = self.sites[row.position]
            if row.status == "begun" and site.status is None:
                self._recover(site, row)

    def _recover(self, site: SiteRun, row: SiteRow) -> None:
        exploration = self._database.exploration(site.position)
        # The start page may redirect to another site, under whose key the map is published.
        key = (exploration.site if exploration is not None else "") or site.key
        if self._store.read_head(key)[1].current is None:
            return
        manifest = self._store.manifest(key)
        if manifest.report.get("run_id") != self.run_id:
            return
        is_of_turn = manifest.partial and manifest.report.get("stopped_by") == TURN_ENDED and self.work != "reencode"
        if is_of_turn and site.turns is not None and self._is_recorded(site, key, manifest.version):
            return  # the coordinator died in a later turn
        site.attempts = counted_attempts(row.attempts, cut_short=False)
        site.exploration = exploration
        # Re-encoding has no journal; a journal of this site belongs to an exploration in progress.
        if not manifest.partial and self.work != "reencode":
            remove_journal(journal_path(self._database.manifest.store, site.key))
        publication = Publication(
            site=key,
            version=manifest.version,
            encoded=0,
            reused=0,
            encode_seconds=0,
            publish_seconds=0,
            states=manifest.counts.states,
            refresh=refresh_summary(manifest.report) if self.work == "refresh" else {},
        )
        if is_of_turn:
            self.end_turn(site, publication)
        else:
            self.finish(site, "published", publication=publication)

    def _is_recorded(self, site: SiteRun, key: str, version: int) -> bool:
        """Return whether a version is in the recorded outcome of a site's turns."""
        known = self._database.outcome(site.position)
        published = None if known is None else known.publication
        return published is not None and (published.site or site.key, published.version) == (key, version)

    # -- progress of sites -------------------------------------------------------------------------------------------

    def begin_exploring(self, site: SiteRun) -> Future[None]:
        """Begin an attempt to explore a site. Wait for the future before any work is done."""
        return self._begin(site, SitePhase(site.key, "exploring", site.attempts + 1))

    def begin_encoding(self, site: SiteRun) -> Future[None]:
        """Begin an attempt to re-encode a site. Wait for the future before any work is done."""
        return self._begin(site, SitePhase(site.key, "encoding", site.attempts + 1))

    def _begin(self, site: SiteRun, phase: SitePhase) -> Future[None]:
        site.attempts += 1
        site.started = site.started or time.monotonic()
        self.emit(phase)
        return self._database.begin(site.position, site.attempts)

    def set_progress(self, site: SiteRun, progress: ExploreProgress) -> None:
        """Record the progress of an exploration."""
        if site.status is None:
            self.budget.update(site.key, progress.states, resumed=site.resumed)
            self.emit(SiteProgress(site.key, progress))
            for warning in progress.warnings:
                if (site.key, warning) not in self._warned:
                    self._warned.add((site.key, warning))
                    self.notify(warning, site=site.key)

    def set_exploration(self, site: SiteRun, exploration: Exploration) -> None:
        """Record that a site is explored and not published yet."""
        site.exploration = exploration
        self.budget.update(site.key, exploration.states, resumed=site.resumed)
        self._database.set_exploration(site.position, exploration)

    def set_encoding_progress(self, site: SiteRun, done: int, states: int) -> None:
        """Record the progress of re-encoding a site: `done` of `states` states."""
        if site.status is None:
            self.budget.update(site.key, done, resumed=site.resumed)
            self.emit(SiteEncoding(site.key, done, states))

    def record_failed_attempt(self, site: SiteRun) -> None:
        """Record a failed attempt that will be retried."""
        self._database.reopen_site(site.position, site.failures.counted)
        self.emit(SiteAttemptFailed(site.key))

    def end_turn(self, site: SiteRun, publication: Publication | None) -> None:
        """Record that the turn of a site ended. It has no outcome yet and waits for another turn.

        Parameters
        ----------
        site
            The site, with the exploration of its turn.
        publication
            What was published. None: nothing, since the site has a better map.
        """
        if site.status is not None:
            return
        exploration = site.exploration
        outcome = self._with_turns(site, site.to_outcome("interrupted", publication=publication))
        if outcome.publication is not None:
            outcome = outcome.model_copy(update={"status": "published"})
        explored = (site.turns.seconds if site.turns else 0.0) + (exploration.seconds if exploration else 0.0)
        site.turns = EarlierTurns.of(outcome.exploration, seconds=explored)
        site.exploration, site.started = None, None
        site.attempts -= 1  # the next turn continues this attempt
        site.hold_outcome(outcome, self._database.end_turn(site.position, outcome, site.attempts))
        self.emit(SiteTurnEnded(outcome, publication))

    def _with_turns(self, site: SiteRun, outcome: SiteOutcome) -> SiteOutcome:
        """Return the outcome of the last turn of a site with those of its earlier turns added."""
        earlier = self._outcome_of_turns(site)
        return outcome if earlier is None else add_turns(earlier, outcome)

    def _outcome_of_turns(self, site: SiteRun) -> SiteOutcome | None:
        """Return the outcome of the turns of an unfinished site, if it had any."""
        return (site.outcome or self._database.outcome(site.position)) if site.turns is not None else None

    def notify(self, text: str, *, site: str = "") -> None:
        """Emit a message for people, about one site or the run."""
        self.emit(Notice(text, site))

    def record_phase(self, phase: str, *, since: float | None = None) -> None:
        """Record the duration of a phase, from `since` (monotonic clock) or the start of the run until now."""
        self._phase_seconds[phase] = round(time.monotonic() - (self._started_at if since is None else since), 3)

    def finish(
        self,
        site: SiteRun,
        status: SiteStatus,
        *,
        publication: Publication | None = None,
        error: WaygraphError | None = None,
        is_final: bool = True,
    ) -> None:
        """Set the outcome of a site. Only the first call has an effect.

        An interrupted site that had a turn gets the outcome of its turns, and the next invocation continues it.

        Parameters
        ----------
        site
            The site.
        status
            Its outcome.
        publication
            What was published, if anything was.
        error
            Why it failed, if it did.
        is_final
            If False and this invocation is stopped later, the next invocation tries the site again, as it does with
            interrupted sites.
        """
        if site.status is not None:
            return
        error_record = None if error is None else self._error_record(error, site)
        keeps = keeps_outcome(is_final=is_final, interrupted=status == "interrupted")
        of_turns = self._outcome_of_turns(site) if status == "interrupted" else None
        outcome = of_turns or self._with_turns(
            site, site.to_outcome(status, publication=publication, error=error_record)
        )
        site.status = outcome.status
        self._counts[outcome.status] += 1
        self._unfinished -= 1
        site.exploration = None
        self.budget.forget(site.key)
        if keeps:
            site.hold_outcome(outcome, self._database.finish(site.position, outcome, failures=site.failures.counted))
        elif of_turns is None:  # that is in the run database, or held until it is
            site.outcome = outcome if site.attempts or error is not None else None  # else there is nothing to report
        if not self._unfinished:
            self.completed.set()
        self._publish_status()
        self.emit(SiteFinished(outcome))

    def _error_record(self, error: WaygraphError, site: SiteRun) -> ErrorRecord:
        """Return the report entry of an error. The traceback of an unexpected error is written to the run's folder.

        An error that fails many sites is recorded once.
        """
        if self._last_error is not None and self._last_error[0] is error:
            return self._last_error[1]
        if error.__cause__ is not None:
            text = "".join(traceback.format_exception(error))
            try:
                self.write_file(f"error-{site.key.replace(':', '_')}.txt", text.encode(errors="replace"))
            except StoreError as refused:  # often the very error that is being recorded
                self.notify(f"{site.key}: the traceback is not in the run's folder. {refused.message}", site=site.key)
        self._last_error = error, ErrorRecord.of(error)
        return self._last_error[1]

    def fail_unfinished(self, error: WaygraphError) -> None:
        """Fail every unfinished site for a common reason. The next invocation tries them again."""
        if self.stopped_by != "signal":
            self.stopped_by = "error"
        for site in self.sites:
            self.finish(site, "failed", error=error, is_final=False)

    # -- the end -----------------------------------------------------------------------------------------------------

    def close(self) -> RunReport:
        """Write the report and return it. Sites without an outcome are interrupted."""
        for site in self.sites:
            self.finish(site, "interrupted")
        self._publish_status(now=True)
        finished = False
        try:
            self._database.flush()
            left = self._sites_for_next_invocation()
            if self.stopped_by.startswith("max_total") and not left:
                self.stopped_by = ""  # the budget was spent while the last site was published
            report = self._report(left)
            write_report(self._store, report, self._outcomes())
            report = report.model_copy(update={"sites": stored_sites(self._store, report)})
            self.write_file(PAGE_NAME, report_page(self._store, report).encode(errors="replace"))
            finished = not left
            return report
        finally:
            self._closed = True
            self._database.close(finished=finished)

    def _sites_for_next_invocation(self) -> int:
        ended_early = bool(self.stopped_by or self._counts["interrupted"])
        final = self._database.count_final() if ended_early else 0
        return sites_for_next_invocation(len(self.sites), final, ended_early=ended_early)

    def _report(self, left: int) -> RunReport:
        manifest, invocations = self._database.manifest, self._database.invocations()
        return RunReport(
            run_id=self.run_id,
            store=manifest.store,
            work=manifest.work,
            started=manifest.started,
            finished=datetime.now(UTC).isoformat(timespec="milliseconds"),
            seconds=round(sum(each.seconds for each in invocations), 3),
            calls=invocations,
            interrupted=self.stopped_by not in {"", "error"},
            stopped_by=self.stopped_by,
            unfinished=left,
            phases=self._phase_seconds,
            duplicates=self._duplicates,
            encoding=self.encoding,
            findings=summarize_outcomes(self._outcomes()),
            sites=(),
        )

    def _outcomes(self) -> Iterator[SiteOutcome]:
        """Yield all outcomes in order: those of the run database, and between them those that it does not have."""
        stored = self._database.outcomes()
        position, outcome = next(stored, (len(self.sites), None))
        for site in self.sites:
            if site.position == position and outcome is not None:
                yield site.outcome or outcome
                position, outcome = next(stored, (len(self.sites), None))
            else:
                yield site.outcome or site.to_outcome("interrupted")

    def _publish_status(self, *, now: bool = False) -> None:
        self._database.write_status({**self._counts, "left": self._unfinished}, now=now)

    def write_file(self, name: str, content: bytes) -> None:
        """Write a file beside the report."""
        self._store.write_run(self.run_id, name, content)
