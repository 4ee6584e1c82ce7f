"""Numbers of rows, with intervals over tasks and returns that are drawn again."""

from __future__ import annotations

import random
import statistics
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from bench.search_tree.returns import Return, ReturnRow
from bench.search_tree.tasks import AGENTS, LOOKAHEAD, NO_MAP, TaskRow

_RESAMPLES = 2_000
Row = TypeVar("Row")


def interval(rows: Sequence[Row], value: Callable[[Sequence[Row]], float]) -> list[float]:
    """Return the middle 95% of a statistic over rows that are drawn again with replacement."""
    if not rows:
        return []
    chance = random.Random(1)
    values = sorted(value(chance.choices(rows, k=len(rows))) for _ in range(_RESAMPLES))
    return [round(values[int(share * (_RESAMPLES - 1))], 3) for share in (0.025, 0.975)]


def task_summary(rows: Sequence[TaskRow]) -> dict[str, Any]:
    """Return the means of each agent, and the differences of the first one's to those of the others."""
    summary: dict[str, Any] = {"tasks": len(rows)}
    for name in AGENTS if rows else ():
        of = [row.by_agent[name] for row in rows]
        summary[name] = {
            "successes": sum(each.success for each in of),
            "mean_steps": round(statistics.mean(each.steps for each in of), 2),
            "mean_loads": round(statistics.mean(each.loads for each in of), 2),
            "median_seconds": round(statistics.median(each.seconds for each in of), 2),
        }
        if name != LOOKAHEAD:
            for what, difference in (("rate", _success), ("steps", _steps)):
                part = _difference(difference, name)
                summary[name][f"first_minus_this_{what}"] = round(part(rows), 3)
                summary[name][f"first_minus_this_{what}_95"] = interval(rows, part)
    if rows and summary[NO_MAP]["successes"]:
        summary["lookahead_per_success_without_map"] = round(_ratio(rows), 2)
        summary["lookahead_per_success_without_map_95"] = interval(rows, _ratio)
    return summary


def _success(row: TaskRow, name: str) -> float:
    return row.by_agent[name].success


def _steps(row: TaskRow, name: str) -> float:
    return row.by_agent[name].steps


def _difference(of: Callable[[TaskRow, str], float], name: str) -> Callable[[Sequence[TaskRow]], float]:
    return lambda rows: statistics.mean(of(row, LOOKAHEAD) - of(row, name) for row in rows)


def _ratio(rows: Sequence[TaskRow]) -> float:
    return sum(_success(row, LOOKAHEAD) for row in rows) / max(1, sum(_success(row, NO_MAP) for row in rows))


def return_summary(rows: Sequence[ReturnRow]) -> dict[str, Any]:
    """Return how many returns arrived, with the map and over URLs alone, and what they took.

    States behind a change of data that have no checkpoint are counted apart.
    """
    without_way = [row for row in rows if not (row.with_map.tried or row.urls_alone.tried)]
    rows = [row for row in rows if row not in without_way]  # a search never tries to return to these
    summary: dict[str, Any] = {
        "returns": len(rows),
        "nodes": len({row.node for row in rows}),
        "states_that_no_way_leads_to": len(without_way),
    }
    parts = {
        "all": rows,
        "without_address": [row for row in rows if not row.has_address],
        "unmapped": [row for row in rows if not row.mapped],
    }
    for name, part in parts.items():
        if part:
            summary[name] = {
                "returns": len(part),
                "with_map": _arm([row.with_map for row in part]),
                "urls_alone": _arm([row.urls_alone for row in part]),
                "map_minus_urls_mean_loads": round(_loads(part), 2),
                "map_minus_urls_mean_loads_95": interval(part, _loads),
                "map_minus_urls_median_seconds": round(_seconds(part), 2),
                "map_minus_urls_median_seconds_95": interval(part, _seconds),
            }
    return summary


def _loads(rows: Sequence[ReturnRow]) -> float:
    return statistics.mean(row.with_map.loads - row.urls_alone.loads for row in rows)


def _seconds(rows: Sequence[ReturnRow]) -> float:
    return statistics.median(row.with_map.seconds - row.urls_alone.seconds for row in rows)


def _arm(of: Sequence[Return]) -> dict[str, Any]:
    return {
        "arrived": sum(each.arrived for each in of),
        "mean_loads": round(statistics.mean(each.loads for each in of), 2),
        "median_seconds": round(statistics.median(each.seconds for each in of), 2),
    }
