"""What the exam says: success, actions and tokens of each arm, and paired ratios of two arms."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

_RESAMPLES = 2_000


@dataclass(frozen=True)
class Outcome:
    """How a task ended in one arm.

    Attributes
    ----------
    success : whether its reward is 1.
    steps : number of actions, the answer included.
    input_tokens : of all calls of its models, choices of pages included.
    output_tokens : the same for replies.
    calls : number of model calls.
    """

    success: bool
    steps: int
    input_tokens: int
    output_tokens: int
    calls: int


def arm_row(outcomes: Sequence[Outcome]) -> dict[str, Any]:
    """Return what the outcomes of one arm add up to."""
    count = len(outcomes)
    return {
        "tasks": count,
        "success": sum(each.success for each in outcomes),
        "steps": sum(each.steps for each in outcomes),
        "input_tokens": sum(each.input_tokens for each in outcomes),
        "output_tokens": sum(each.output_tokens for each in outcomes),
        "calls": sum(each.calls for each in outcomes),
        "right_within_3": sum(each.success and each.steps <= 3 for each in outcomes),
        "right_within_5": sum(each.success and each.steps <= 5 for each in outcomes),
    }


def paired(first: Mapping[str, Outcome], second: Mapping[str, Outcome]) -> dict[str, Any]:
    """Compare two arms on the tasks that both did.

    Ratios are those of sums over the tasks that both solved, first to second; intervals are 95% bootstrap intervals
    over tasks.
    """
    both = sorted(first.keys() & second.keys())
    solved = [task for task in both if first[task].success and second[task].success]
    difference = [float(first[task].success) - float(second[task].success) for task in both]
    return {
        "tasks": len(both),
        "both_solved": len(solved),
        "success_difference": _with_interval(difference, lambda rows: float(rows.mean())),
        **{
            f"{what}_ratio": _with_interval(
                [(getattr(first[task], what), getattr(second[task], what)) for task in solved],
                lambda rows: float(rows[:, 0].sum() / max(rows[:, 1].sum(), 1)),
            )
            for what in ("steps", "input_tokens", "output_tokens")
        },
    }


def _with_interval(rows: Sequence[Any], statistic: Callable[[Any], float]) -> dict[str, Any] | None:
    if not rows:
        return None
    values = np.asarray(rows, dtype=float)
    random = np.random.default_rng(7)
    samples = [statistic(values[random.integers(0, len(values), len(values))]) for _ in range(_RESAMPLES)]
    low, high = np.quantile(samples, (0.025, 0.975))
    return {"value": round(statistic(values), 3), "interval": [round(float(low), 3), round(float(high), 3)]}
