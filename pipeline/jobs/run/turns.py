"""Turns: how the budget of an invocation is divided among sites, and the sums over the turns of a site.

A site gets a turn, its map is published, and it waits until no waiting site has a larger expected gain. Each further
turn may double its map, so that resuming and publishing cost a constant share of the exploration.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

from waygraph.core.settings import JobSettings
from waygraph.pipeline.jobs.exploring.turn import Turn
from waygraph.pipeline.jobs.report.outcomes import Exploration, Publication, SiteOutcome


def takes_turns(jobs: JobSettings, *, work: str, sites: int) -> bool:
    """Return whether the sites of an invocation take turns.

    A refresh publishes whole maps only, so its sites are explored one after the other. Without a limit of the
    invocation every site is explored to its own limits in any case.

    >>> takes_turns(JobSettings(max_total_states=100), work="index", sites=2)
    True
    >>> takes_turns(JobSettings(), work="index", sites=2)
    False
    """
    limited = jobs.max_total_states > 0 or jobs.max_total_seconds > 0
    return limited and jobs.states_per_turn > 0 and sites > 1 and work != "refresh"


@dataclass(frozen=True, slots=True)
class EarlierTurns:
    """The turns that a site had.

    Attributes
    ----------
    states
        Number of states of its map.
    expected_gain
        See `Exploration.expected_gain`.
    seconds
        Duration of its explorations in this invocation.
    """

    states: int
    expected_gain: float
    seconds: float = 0.0

    @classmethod
    def of(cls, exploration: Exploration | None, *, seconds: float = 0.0) -> Self:
        """Return the turns whose last exploration is given."""
        if exploration is None:
            return cls(0, 0.0, seconds)
        return cls(exploration.states, exploration.expected_gain, seconds)

    def rank(self, position: int) -> tuple[float, int]:
        """Return the rank of the site among those that wait: by expected gain, then by `position` in the list.

        The gain is that of the same number of actions at every site, so that gains can be compared as they are.
        """
        return -self.expected_gain, position


def next_turn(jobs: JobSettings, earlier: EarlierTurns | None, *, is_last_site: bool) -> Turn:
    """Return the next turn of a site.

    Parameters
    ----------
    jobs
        Settings of the run.
    earlier
        The turns that it had. None: none.
    is_last_site
        Whether all other sites have their outcome. Then the turn has no limit.

    Returns
    -------
    Turn
        The turn.

    Examples
    --------
    >>> next_turn(JobSettings(), None, is_last_site=False).states
    50
    >>> next_turn(JobSettings(), EarlierTurns(130, 2.5), is_last_site=False).states
    130
    """
    earlier = earlier or EarlierTurns(0, 0.0)
    return Turn(0 if is_last_site else max(jobs.states_per_turn, earlier.states), earlier.seconds)


def add_turns(earlier: SiteOutcome, outcome: SiteOutcome) -> SiteOutcome:
    """Return an outcome with the durations and encoded states of earlier turns added.

    The other statistics of an exploration are cumulative, since it resumes from a journal.

    Parameters
    ----------
    earlier
        Outcome of the site after its turn before, with those before it.
    outcome
        Outcome of its last turn alone.

    Returns
    -------
    SiteOutcome
        Outcome of all turns.
    """
    return outcome.model_copy(
        update={
            "seconds": round(earlier.seconds + outcome.seconds, 3),
            "exploration": _add_exploration(earlier.exploration, outcome.exploration),
            "publication": _add_publication(earlier.publication, outcome.publication),
        }
    )


def _add_exploration(earlier: Exploration | None, last: Exploration | None) -> Exploration | None:
    if earlier is None or last is None:
        return last or earlier
    return last.model_copy(
        update={
            "seconds": round(earlier.seconds + last.seconds, 3),
            "waited_for_encoders": round(earlier.waited_for_encoders + last.waited_for_encoders, 3),
        }
    )


def _add_publication(earlier: Publication | None, last: Publication | None) -> Publication | None:
    if earlier is None or last is None:
        return last or earlier
    encoded = earlier.encoded + last.encoded
    return last.model_copy(
        update={
            "encoded": encoded,
            # Vectors of an earlier turn that a later one reuses are no reuse of the run.
            "reused": max(0, last.states - last.without_vectors - encoded),
            "streamed": earlier.streamed + last.streamed,
            "encode_seconds": round(earlier.encode_seconds + last.encode_seconds, 3),
            "publish_seconds": round(earlier.publish_seconds + last.publish_seconds, 3),
        }
    )
