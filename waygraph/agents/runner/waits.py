"""Waits after tasks: a site may refuse the next post of its user until a time has passed.

WebChoreArena marks tasks that need such a wait (`required_wait`), but not how long. They post and vote on a forum
(Postmill), which allows users three posts an hour that its administrators do not trust.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from collections.abc import Set as AbstractSet
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from waygraph.agents.tasks.task import Task

#: Wait after a marked task, in seconds, with which three posts an hour are never exceeded.
POSTMILL_WAIT_S = 1200.0


def needs_wait(task: Task) -> bool:
    """Return whether the task's file says that the next task must wait."""
    return task.labels.get("required_wait") == "true"


class SiteWaits:
    """Sites on which a marked task is done, or has ended too short a time ago.

    Parameters
    ----------
    seconds
        The wait; 0: none.
    clock
        Gives the time in seconds.
    """

    def __init__(self, seconds: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._seconds = seconds
        self._clock = clock
        self._until: dict[str, float] = {}

    def allow(self, task: Task, reset: AbstractSet[str]) -> bool:
        """Return whether a task may begin. A site that is reset before it has forgotten earlier posts."""
        now = self._clock()
        return all(self._until.get(site, 0.0) <= now for site in task.sites if site not in reset)

    def begin(self, task: Task) -> None:
        """Keep the sites of a marked task to itself."""
        self._set(task, math.inf)

    def end(self, task: Task) -> None:
        """Begin the wait after a marked task."""
        self._set(task, self._clock() + self._seconds)

    def left(self) -> float | None:
        """Return the seconds until the first wait ends; None if none will."""
        now = self._clock()
        times = [until - now for until in self._until.values() if now < until < math.inf]
        return min(times, default=None)

    def _set(self, task: Task, until: float) -> None:
        if self._seconds and needs_wait(task):
            self._until.update(dict.fromkeys(task.sites, until))
