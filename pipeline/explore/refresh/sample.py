"""Sample of answers that a refresh asks for again: doubted ones, probably stale ones, and some at random."""

from __future__ import annotations

import hashlib
import random
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from itertools import accumulate, zip_longest
from math import ceil

from waygraph.pipeline.explore.identity.thresholds import (
    ACTION_COST,
    FIRST_SNAPSHOT_COST,
    LISTED_SHARE,
    LONE_ACTION_COST,
    OVERHEAD_MS,
    PAGES_SHARE,
    UNIFORM_SHARE,
)
from waygraph.pipeline.explore.refresh.exploration_record import AnswerHistory, ExplorationRecord, RecordedOutcome


@dataclass(frozen=True, slots=True)
class RefreshPlan:
    """Answers that are asked for again.

    Attributes
    ----------
    loads
        Normalised URLs; None for all.
    outcomes
        Indices in `ExplorationRecord.outcomes`; None for all.
    uniform
        Those of `outcomes` that were drawn with equal chances.
    """

    loads: Collection[str] | None = None
    outcomes: Collection[int] | None = None
    uniform: Collection[int] = frozenset()

    @property
    def everything(self) -> bool:
        """Whether no answer is reused."""
        return self.loads is None and self.outcomes is None


def plan_refresh(
    record: ExplorationRecord,
    changed: Sequence[str] = (),
    *,
    share: float,
    budget_ms: float,
    seed: str,
    doubted: Callable[[RecordedOutcome], bool] = lambda _: False,
) -> RefreshPlan:
    """Choose the answers that are asked for again.

    Equal arguments give equal plans, so an interrupted refresh is resumed with the same plan.

    Parameters
    ----------
    record
        Record of the earlier exploration.
    changed
        Recorded URLs that the site says have changed, most recently changed first. They are chosen first.
    share
        Largest share of the browser work of a first exploration that the refresh may take, in [0, 1].
    budget_ms
        Largest time that the re-asked answers may take, in milliseconds, by the times recorded before.
    seed
        Seed of the random sample.
    doubted
        Whether an action is performed again in any case, because agents found it broken, for example.

    Returns
    -------
    RefreshPlan
        The sample.
    """
    chance = random.Random(hashlib.sha256(seed.encode()).digest())  # noqa: S311 - a sample, no secret
    urls = sorted(record.loads)
    work = share * (FIRST_SNAPSHOT_COST * len(urls) + ACTION_COST * len(record.outcomes))
    page_count = int(PAGES_SHARE * work)
    stale_pages = _draw_stale([record.loads[url].track for url in urls], page_count, chance)
    numbers = {url: number for number, url in enumerate(urls)}
    listed = [numbers[url] for url in changed[: ceil(LISTED_SHARE * page_count)]]
    stale_pages = list(dict.fromkeys((*listed, *stale_pages)))[:page_count]
    action_count = round((work - len(stale_pages)) / LONE_ACTION_COST)
    doubted_actions = frozenset(number for number, recorded in enumerate(record.outcomes) if doubted(recorded))
    uniform, stale = _draw_actions(record.outcomes, doubted_actions, action_count, chance)
    # Doubted actions are performed whatever they take, and pages are loaded before other actions are performed.
    budget_ms -= sum(_cost_ms(record.outcomes[number].outcome.ms) for number in doubted_actions)
    load_times = [record.loads[url].load.ms for url in urls]
    loads = frozenset(urls[index] for index in _affordable(stale_pages, load_times, PAGES_SHARE * budget_ms))
    budget_ms -= sum(_cost_ms(record.loads[url].load.ms) for url in loads)
    # Alternating, so that a small budget buys some of both.
    mixed = [number for pair in zip_longest(uniform, stale) for number in pair if number is not None]
    actions = doubted_actions.union(_affordable(mixed, [each.outcome.ms for each in record.outcomes], budget_ms))
    return RefreshPlan(loads, actions, actions.intersection(uniform))


def _draw_actions(
    outcomes: Sequence[RecordedOutcome], doubted: Collection[int], count: int, chance: random.Random
) -> tuple[list[int], list[int]]:
    """Draw up to `count` actions that are not doubted: a share with equal chances, the others by staleness."""
    others = [number for number in range(len(outcomes)) if number not in doubted]
    uniform = chance.sample(others, min(len(others), round(UNIFORM_SHARE * count)))
    rest = sorted(set(others) - set(uniform))
    histories = [outcomes[number].track for number in rest]
    return uniform, [rest[index] for index in _draw_stale(histories, count - len(uniform), chance)]


def _affordable(wanted: Sequence[int], ms: Sequence[float], budget_ms: float) -> list[int]:
    """Return the first of the wanted indices that fit the budget together."""
    ends = accumulate(_cost_ms(ms[number]) for number in wanted)
    return [number for number, end in zip(wanted, ends, strict=True) if end <= budget_ms]


def _cost_ms(ms: float) -> float:
    return ms + OVERHEAD_MS


def _draw_stale(histories: Sequence[AnswerHistory], count: int, chance: random.Random) -> list[int]:
    """Draw indices, weighted by the probability that the answer changed since it was last asked for.

    Weighted sampling without replacement: the largest `u ** (1 / weight)` (Efraimidis and Spirakis, 2006).
    """
    keyed = []
    for index, history in enumerate(histories):
        weight = 1 - (1 - history.change_rate) ** (history.age + 1)
        keyed.append((chance.random() ** (1 / weight), index))
    return [index for _, index in sorted(keyed, reverse=True)[: max(0, count)]]
