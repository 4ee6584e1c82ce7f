"""Numbers of rows, with intervals over tasks and returns that are drawn again."""

from __future__ import annotations

import random
import statistics
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from bench.search_tree.returns import Return, ReturnRow, TreeRow
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
    failed = [row.map_rank for row in rows if not row.by_agent[LOOKAHEAD].success]
    summary["failures_with_lookahead"] = {
        "target_first_in_the_map_search": failed.count(1),
        "target_lower": sum(rank is not None and rank > 1 for rank in failed),
        "target_not_found_by_the_map_search": failed.count(0),
        "not_noted": failed.count(None),
    }
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


def return_summary(by_site: Sequence[Sequence[ReturnRow]], trees: Sequence[TreeRow]) -> dict[str, Any]:
    """Return how many returns arrived, with the map and over URLs alone, what they took, and what was not drawn."""
    rows = [row for of_site in by_site for row in of_site]
    summary: dict[str, Any] = {
        "returns": len(rows),
        "states": sum(len({(row.seed, row.node) for row in of_site}) for of_site in by_site),
        "trees": len(trees),
        "states_of_trees": sum(tree.nodes for tree in trees),
        "states_before_a_change": sum(tree.before_change for tree in trees),
        "states_that_no_way_leads_to": sum(tree.without_way for tree in trees),
        "returns_while_trees_grew": sum(tree.grown_returns for tree in trees),
        "arrived_while_trees_grew": sum(tree.grown_arrived for tree in trees),
    }
    pairs = [(row, row.with_map, row.urls_alone) for row in rows]
    fresh = [
        (row, row.fresh_with_map, row.fresh_urls_alone) for row in rows if row.fresh_with_map and row.fresh_urls_alone
    ]
    parts = {
        "all": pairs,
        "without_address": [each for each in pairs if not each[0].has_address],
        "unmapped": [each for each in pairs if not each[0].mapped],
        "in_a_new_context": fresh,
    }
    summary |= {name: _pairs([(first, second) for _, first, second in part]) for name, part in parts.items() if part}
    return summary


def _pairs(pairs: Sequence[tuple[Return, Return]]) -> dict[str, Any]:
    return {
        "returns": len(pairs),
        "with_map": _arm([first for first, _ in pairs]),
        "urls_alone": _arm([second for _, second in pairs]),
        "map_minus_urls_arrived_share": round(_arrived(pairs), 3),
        "map_minus_urls_arrived_share_95": interval(pairs, _arrived),
        "map_minus_urls_mean_loads": round(_loads(pairs), 2),
        "map_minus_urls_mean_loads_95": interval(pairs, _loads),
        "map_minus_urls_median_seconds": round(_seconds(pairs), 2),
        "map_minus_urls_median_seconds_95": interval(pairs, _seconds),
    }


def _arrived(pairs: Sequence[tuple[Return, Return]]) -> float:
    return statistics.mean(first.arrived - second.arrived for first, second in pairs)


def _loads(pairs: Sequence[tuple[Return, Return]]) -> float:
    return statistics.mean(first.loads - second.loads for first, second in pairs)


def _seconds(pairs: Sequence[tuple[Return, Return]]) -> float:
    return statistics.median(first.seconds - second.seconds for first, second in pairs)


def _arm(of: Sequence[Return]) -> dict[str, Any]:
    return {
        "arrived": sum(each.arrived for each in of),
        "mean_loads": round(statistics.mean(each.loads for each in of), 2),
        "median_seconds": round(statistics.median(each.seconds for each in of), 2),
    }
