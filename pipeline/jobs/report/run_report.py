"""The report of a bulk run, and the exit code that follows from it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pydantic import SkipValidation, computed_field, field_serializer, model_validator

from waygraph.core.errors import RunUnfinished, SiteUnreachable, SomeSitesFailed
from waygraph.pipeline.jobs.report.outcomes import (
    INTERRUPTED,
    EncodingReport,
    Findings,
    Invocation,
    ReportRecord,
    SiteOutcome,
    StoppedBy,
    Totals,
)
from waygraph.pipeline.jobs.report.totals import summarize_outcomes


class RunReport(ReportRecord):
    """Report of a bulk run over all its invocations."""

    run_id: str
    store: str
    work: str = "index"
    """`index`, `refresh`, `reencode`, or the function that explored instead."""
    started: str
    """ISO 8601, UTC."""
    finished: str
    seconds: float
    """Working time of all invocations."""
    calls: tuple[Invocation, ...] = ()
    interrupted: bool
    stopped_by: StoppedBy = ""
    """What ended this invocation before all sites had an outcome."""
    unfinished: int = 0
    """Sites that the next invocation of the run continues with."""
    phases: dict[str, float]
    """Seconds of this invocation: `start` (of actors), `encoder_ready` (concurrent with exploring), `work`, `stop`."""
    duplicates: tuple[str, ...]
    """URLs that were left out because their site was named before."""
    encoding: EncodingReport | None = None
    """Of this invocation. None if it was lost with the publisher."""
    findings: Findings
    """Computed from the sites if not given."""
    sites: SkipValidation[Sequence[SiteOutcome]]
    """In the order of the list. Those of a large run are read from the report file on access."""

    @model_validator(mode="before")
    @classmethod
    def _count(cls, given: dict[str, Any]) -> dict[str, Any]:
        known = {name: value for name, value in given.items() if name not in {"totals", "exit_code"}}
        if "findings" not in known:
            known["findings"] = summarize_outcomes(known["sites"])
        return known

    @field_serializer("sites")
    def _all_sites(self, sites: Sequence[SiteOutcome]) -> list[dict[str, Any]]:
        return [site.model_dump(mode="json") for site in sites]

    @property
    def location(self) -> str:
        """Location of the report file."""
        return f"{self.store.rstrip('/')}/runs/{self.run_id}/report.json"

    @computed_field  # type: ignore[prop-decorator]  # mypy: decorators on properties
    @property
    def totals(self) -> Totals:
        """Sums over the sites."""
        return self.findings.totals

    @computed_field  # type: ignore[prop-decorator]  # mypy: decorators on properties
    @property
    def exit_code(self) -> int:
        """0: all published; 5: some failed; all failed: their common code, else 4; 11: budget spent; 130: stopped."""
        if self.stopped_by.startswith("max_total"):
            return RunUnfinished.exit_code
        totals, codes = self.findings.totals, self.findings.error_codes
        if self.interrupted or totals.interrupted:
            return INTERRUPTED
        if not codes:
            return 0
        if totals.published or totals.unchanged:
            return SomeSitesFailed.exit_code
        return codes[0] if len(codes) == 1 else SiteUnreachable.exit_code
