"""What is asked again in a refresh? A share of what is known: what is in doubt, what is oldest, and some at random."""

from __future__ import annotations

import hashlib
import random
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from itertools import accumulate, zip_longest

from pipeline.explore.refresh.record import KeptOutcome, Record, Track

#: What asking takes besides the answer itself: a page that is reached and looked at.
_OVERHEAD_MS = 250.0
#: What things cost a browser, in glances at a page that looks as it did: a first look with its pictures, an action in a
#: level's work, an action for which its state must be reached alone. Of the demo shop; other sites are near enough.
_FIRST_LOOK, _ACTION, _LONE_ACTION = 3.0, 1.1, 2.5
#: Of the work of a refresh, what pages get at most.
_PAGES_SHARE = 0.75
#: So much of a sample of actions is drawn with equal chances: from this part the share of stale edges is estimated.
_UNIFORM_SHARE = 0.5


@dataclass(frozen=True, slots=True)
class Plan:
    """What is asked again.

    Attributes
    ----------
    loads : normalised URLs. None: all.
    outcomes : places in `Record.outcomes`. None: all.
    uniform : those of `outcomes` that were drawn with equal chances.
    """

    loads: Collection[str] | None = None
    outcomes: Collection[int] | None = None
    uniform: Collection[int] = frozenset()

    @property
    def everything(self) -> bool:
        """Whether nothing is recalled."""
        return self.loads is None and self.outcomes is None


def choose(
    record: Record,
    *,
    share: float,
    budget_ms: float,
    seed: str,
    doubted: Callable[[KeptOutcome], bool] = lambda _: False,
) -> Plan:
    """Choose what is asked again. Equal arguments give equal plans, so that a killed refresh goes on with its own.

    Parameters
    ----------
    share : of the work of a first exploration, what is done at most, in [0, 1].
    budget_ms : how long that may take, going by what it took before.
    doubted : actions that are asked again in any case, such as those that agents found broken.
    """
    chance = random.Random(hashlib.sha256(seed.encode()).digest())  # noqa: S311 - a sample, no secret
    urls, outcomes = sorted(record.loads), record.outcomes
    work = share * (_FIRST_LOOK * len(urls) + _ACTION * len(outcomes))
    pages = _due([record.loads[url].track for url in urls], int(_PAGES_SHARE * work), chance)
    asked = {number for number, kept in enumerate(outcomes) if doubted(kept)}
    actions = round((work - len(pages)) / _LONE_ACTION)
    others = [number for number in range(len(outcomes)) if number not in asked]
    drawn = chance.sample(others, min(len(others), round(_UNIFORM_SHARE * actions)))
    rest = sorted(set(others) - set(drawn))
    due = [rest[place] for place in _due([outcomes[n].track for n in rest], actions - len(drawn), chance)]
    left = budget_ms - sum(_cost(outcomes[number].outcome.ms) for number in asked)
    loads = {
        urls[place] for place in _afforded(pages, [record.loads[url].load.ms for url in urls], _PAGES_SHARE * left)
    }
    left -= sum(_cost(record.loads[url].load.ms) for url in loads)
    # One of these, one of those, so that a small budget buys some of both.
    mixed = [number for pair in zip_longest(drawn, due) for number in pair if number is not None]
    asked |= set(_afforded(mixed, [kept.outcome.ms for kept in outcomes], left))
    return Plan(frozenset(loads), frozenset(asked), frozenset(drawn) & asked)


def _afforded(wanted: Sequence[int], ms: Sequence[float], budget_ms: float) -> list[int]:
    """Of what is wanted, from the first on, as much as there is time for."""
    ends = accumulate(_cost(ms[number]) for number in wanted)
    return [number for number, end in zip(wanted, ends, strict=True) if end <= budget_ms]


def _cost(ms: float) -> float:
    return ms + _OVERHEAD_MS


def _due(tracks: Sequence[Track], count: int, chance: random.Random) -> list[int]:
    """Places of those that most probably changed since they were asked for, with chances by that probability.

    Weighted sampling without replacement: the largest `u ** (1 / weight)` (Efraimidis and Spirakis, 2006).
    """
    keyed = []
    for place, track in enumerate(tracks):
        weight = 1 - (1 - track.change_rate) ** (track.age + 1)
        keyed.append((chance.random() ** (1 / weight), place))
    return [place for _, place in sorted(keyed, reverse=True)[: max(0, count)]]
