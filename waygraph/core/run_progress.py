"""Progress of a run that is going on: a file in the run's folder, which other processes and machines read.

The coordinator of a run writes it every few seconds, and a last time when the run ends. A run that was killed leaves
the file as it was, so readers compare `updated` with the time.
"""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict

#: Name of the file in the run's folder.
PROGRESS_NAME = "progress.json"
#: A file that was not written for longer belongs to a run that does not work any more, in seconds.
STALE_SECONDS = 90.0
#: Largest number of listed sites.
MAX_ACTIVE_SITES = 100


class _Progress(BaseModel):
    model_config = ConfigDict(frozen=True, use_attribute_docstrings=True)


class ActiveSite(_Progress):
    """A site that a run works on."""

    site: str
    """Key of the site, as the run was asked for it."""
    phase: Literal["exploring", "encoding"]
    """`encoding` includes publishing."""
    since: str
    """Begin of the attempt (ISO 8601, UTC)."""
    attempt: int
    states: int = 0
    """States that were found, or encoded by a run that re-encodes."""
    edges: int = 0
    pending: int = 0
    """Elements that were discovered and not acted on yet; in a run that re-encodes, states that are left."""
    failed: int = 0


class RunProgress(_Progress):
    """Progress of a run."""

    run_id: str
    work: str
    """`index`, `refresh`, `reencode`, or the function that explores instead."""
    updated: str
    """When this was written (ISO 8601, UTC)."""
    ended: bool = False
    sites: int
    """Number of sites of the run."""
    done: dict[str, int]
    """Number of sites with an outcome, by outcome."""
    active: list[ActiveSite]
    """Sites in progress, those that began first at first; at most 100."""
