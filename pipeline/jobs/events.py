"""What does a run tell while it works? Events for progress displays; the report is what counts afterwards."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from pipeline.explore.capture import ExploreProgress
from pipeline.jobs.report.outcomes import SiteOutcome

Phase = Literal["exploring", "encoding"]


@dataclass(frozen=True, slots=True)
class RunStarted:
    """A run begins or goes on; its report will be `runs/<run_id>/report.json` in the store."""

    run_id: str
    sites: tuple[str, ...]
    duplicates: tuple[str, ...]
    done: Mapping[str, int] = field(default_factory=dict)
    """How many sites have which outcome already, from earlier calls."""
    resumed: bool = False


@dataclass(frozen=True, slots=True)
class SitePhase:
    """A site enters a phase; `attempt` counts from 1."""

    site: str
    phase: Phase
    attempt: int


@dataclass(frozen=True, slots=True)
class SiteProgress:
    """Where the exploration of a site stands."""

    site: str
    progress: ExploreProgress


@dataclass(frozen=True, slots=True)
class SiteEncoding:
    """How far the encoding of a site is: so many of the states that have to be encoded."""

    site: str
    done: int
    states: int


@dataclass(frozen=True, slots=True)
class SiteWaits:
    """A try of a site failed; until another one begins, nothing is done about it."""

    site: str


@dataclass(frozen=True, slots=True)
class SiteFinished:
    """A site is published, needed nothing, has failed or was interrupted."""

    outcome: SiteOutcome


@dataclass(frozen=True, slots=True)
class Notice:
    """Something a person would want to know: a retry, a lack of CPUs, a slow stop."""

    text: str
    site: str = ""
    """The one that it is about, if it is about one: of many sites, not everything is shown."""


JobEvent = RunStarted | SitePhase | SiteProgress | SiteEncoding | SiteWaits | SiteFinished | Notice
