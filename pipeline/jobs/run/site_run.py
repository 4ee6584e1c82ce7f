"""A site of a run, as the coordinator's process holds it."""

from __future__ import annotations

import time
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Self

from waygraph.pipeline.jobs.failures import FailureCounts, counted_attempts
from waygraph.pipeline.jobs.report.outcomes import ErrorRecord, Exploration, Publication, SiteOutcome, SiteStatus
from waygraph.pipeline.jobs.run.fair_queue import fairness_domain
from waygraph.pipeline.jobs.run.run_database import SiteRow
from waygraph.pipeline.jobs.run.turns import EarlierTurns
from waygraph.pipeline.jobs.sites.site_list import SiteTask


@dataclass(slots=True, eq=False)
class SiteRun:
    """A site of a run, as this process needs it. Its full outcome is in the run database."""

    position: int
    task: SiteTask
    status: SiteStatus | None = None
    """None until the site has an outcome."""
    attempts: int = 0
    """Attempts that were begun, except one that the end of an invocation interrupted."""
    failures: FailureCounts = field(default_factory=FailureCounts)
    """Failed attempts. Excused ones are counted per invocation."""
    resumed: bool = False
    """An earlier invocation of the run had begun the site."""
    alone: bool = False
    """The site may have killed an explorer, so it gets one for itself."""
    started: float | None = None
    """When an explorer first began the site (monotonic clock, seconds)."""
    turns: EarlierTurns | None = None
    """The turns that it had, if it waits for another one or has one."""
    exploration: Exploration | None = field(default=None, repr=False)
    outcome: SiteOutcome | None = field(default=None, repr=False)
    """Set until it is in the run database. For a site that stays unfinished, set until the end."""

    @classmethod
    def from_row(cls, row: SiteRow) -> Self:
        """Return the site of a row of the run database."""
        return cls(
            row.position,
            row.task,
            status=row.status if row.status in {"published", "unchanged", "failed"} else None,
            attempts=counted_attempts(row.attempts, cut_short=row.status == "begun"),
            failures=FailureCounts(counted=row.failures),
            resumed=bool(row.status),
        )

    @property
    def key(self) -> str:
        """Key of the site."""
        return self.task.site

    @property
    def domain(self) -> str:
        """Domain that it shares with sites which may be on the same server."""
        return fairness_domain(self.task.site)

    def to_outcome(
        self, status: SiteStatus, *, publication: Publication | None = None, error: ErrorRecord | None = None
    ) -> SiteOutcome:
        """Return the outcome of the site as of now.

        Parameters
        ----------
        status
            The outcome.
        publication
            What was published, if anything was.
        error
            Why it failed, if it did.

        Returns
        -------
        SiteOutcome
            The record for the report.
        """
        return SiteOutcome(
            site=self.key,
            start_url=self.task.start_url,
            status=status,
            attempts=self.attempts,
            seconds=round(time.monotonic() - self.started, 3) if self.started else 0.0,
            exploration=self.exploration,
            publication=publication,
            error=error,
        )

    def hold_outcome(self, outcome: SiteOutcome, write: Future[None]) -> None:
        """Hold an outcome until it is in the run database."""
        self.outcome = outcome

        def release(write: Future[None]) -> None:  # called by the thread that wrote it
            if not write.cancelled() and write.exception() is None and self.outcome is outcome:
                self.outcome = None

        write.add_done_callback(release)
