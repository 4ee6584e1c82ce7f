"""Events of a run, for progress displays and metrics."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from waygraph.pipeline.explore.records.capture import ExploreProgress
from waygraph.pipeline.jobs.report.outcomes import Publication, SiteOutcome

Phase = Literal["exploring", "encoding"]


@dataclass(frozen=True, slots=True)
class RunStarted:
    """A run begins or resumes. Its report will be `runs/<run_id>/report.json` in the store."""

    run_id: str
    sites: tuple[str, ...]
    duplicates: tuple[str, ...]
    done: Mapping[str, int] = field(default_factory=dict)
    """Number of sites by outcome, from earlier invocations."""
    resumed: bool = False


@dataclass(frozen=True, slots=True)
class SitePhase:
    """A site enters a phase. `attempt` counts from 1."""

    site: str
    phase: Phase
    attempt: int


@dataclass(frozen=True, slots=True)
class SiteProgress:
    """Progress of the exploration of a site."""

    site: str
    progress: ExploreProgress


@dataclass(frozen=True, slots=True)
class SiteEncoding:
    """Progress of the encoding of a site: `done` of `states` states."""

    site: str
    done: int
    states: int


@dataclass(frozen=True, slots=True)
class SiteAttemptFailed:
    """An attempt of a site failed and will be retried."""

    site: str


@dataclass(frozen=True, slots=True)
class SiteTurnEnded:
    """The turn of a site ended. The site waits for another turn. `outcome` is that of its turns so far."""

    outcome: SiteOutcome
    publication: Publication | None
    """What this turn published. None: nothing, since the site has a better map."""


@dataclass(frozen=True, slots=True)
class SiteFinished:
    """A site has its outcome."""

    outcome: SiteOutcome


@dataclass(frozen=True, slots=True)
class Notice:
    """A message for people: a retry, a lack of CPUs, a slow stop."""

    text: str
    site: str = ""
    """Key of the site that it concerns, if it concerns one. Displays of many sites may omit it."""


JobEvent = (
    RunStarted | SitePhase | SiteProgress | SiteEncoding | SiteAttemptFailed | SiteTurnEnded | SiteFinished | Notice
)
