"""Scores of a repeated run as text."""

from __future__ import annotations

from typing import TYPE_CHECKING

from waygraph.cli.output import print_table, say

if TYPE_CHECKING:
    from waygraph.agents.scoring.repeats import RepeatedScore


def print_repeats(result: RepeatedScore) -> None:
    """Print how often each task succeeded, and mean and spread of the rates of success.

    Parameters
    ----------
    result
        The scores.
    """
    count = len(result.repeats)
    rows = [(task.task_id, f"{task.successes} of {count}", _missing(count - task.scored)) for task in result.tasks]
    print_table(("task", "successes", ""), rows, right=("successes",))
    say()
    rates = ", ".join(f"{rate:.1%}" for rate in result.success_rates)
    spread = "" if result.spread is None else f", standard deviation {result.spread:.1%}"
    say(f"{count} repeats: mean success {result.mean_success:.1%}{spread}; each: {rates}")
    if result.undecided:
        say(f"{result.undecided} results have no reward and count as failures here; --checks names what they lack.")
    first = result.repeats[0]
    say(f"scored by {', '.join(first.scorers)}; tasks of {first.task_file.name}, sha256 {first.task_file.sha256}")


def _missing(count: int) -> str:
    return f"{count} without a reward" if count else ""
