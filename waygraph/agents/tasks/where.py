"""Selection of tasks by what their file states of them, such as `level=hard`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from waygraph.agents.tasks.task import Task
from waygraph.core.errors import InvalidInput

#: Accepted values by label: a task has one of the values of every label.
Conditions = Mapping[str, frozenset[str]]


def parse_conditions(values: Sequence[str] | None) -> Conditions:
    """Return the conditions of options `--where`.

    Parameters
    ----------
    values
        Each KEY=VALUE. Several values of one key are alternatives.

    Returns
    -------
    Conditions
        Accepted values by label.

    Raises
    ------
    InvalidInput
        If an option is malformed.

    Examples
    --------
    >>> parse_conditions(["level=hard", "level=medium"]) == {"level": {"hard", "medium"}}
    True
    """
    conditions: dict[str, frozenset[str]] = {}
    for text in values or ():
        key, equals, value = text.partition("=")
        if not equals or not key:
            raise InvalidInput(f"--where: '{text}' does not have the form KEY=VALUE.", hint="--where level=hard")
        conditions[key] = conditions.get(key, frozenset()) | {value}
    return conditions


def matches(task: Task, conditions: Conditions) -> bool:
    """Return whether a task meets all conditions."""
    return all(task.labels.get(key) in values for key, values in conditions.items())


def matching(tasks: Iterable[Task], conditions: Conditions) -> list[Task]:
    """Return the tasks that meet all conditions.

    Parameters
    ----------
    tasks
        The tasks.
    conditions
        The conditions.

    Returns
    -------
    list of Task
        The tasks, in their order.

    Raises
    ------
    InvalidInput
        If no task has a label or a value that is asked for, which is a slip of the pen more often than meant.
    """
    every = list(tasks)
    for key, values in conditions.items():
        known = sorted({task.labels[key] for task in every if key in task.labels})
        if not known:
            labels = sorted({label for task in every for label in task.labels})
            raise InvalidInput(f"No task has the label '{key}'.", hint=f"Labels: {', '.join(labels) or 'none'}")
        if unknown := sorted(values.difference(known)):
            raise InvalidInput(f"No task has {key}={unknown[0]}.", hint=f"Values: {', '.join(known[:20])}")
    return [task for task in every if matches(task, conditions)]
