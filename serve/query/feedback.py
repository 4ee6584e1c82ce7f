"""Reports of agents on the steps that they walked: paths avoid recent failures, and all reports are logged."""

from __future__ import annotations

import logging
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable

from waygraph.core.errors import StoreError
from waygraph.core.schemas import FeedbackAnswer, WalkedStep
from waygraph.index.catalog.catalog import OpenMap
from waygraph.index.graph import Action
from waygraph.index.store.feedback import FeedbackStorage
from waygraph.serve.query.avoidance import AvoidedParts, action_of, parts_of_step

log = logging.getLogger("ray.serve.waygraph")

#: Failed steps kept per site: wrong reports can make paths longer, but cannot use up memory.
MAX_FAILURES = 2_000

#: A step of a map: source state (empty for a `goto`, which starts anywhere), action, target state.
_Step = tuple[str, Action, str]


class StepFeedback:
    """Keeps the steps of one store's maps that agents recently reported as failed. Thread-safe.

    Parameters
    ----------
    avoid_seconds
        How long a failed step is avoided, unless an agent reports that it works.
    clock
        Returns the time in seconds.
    """

    def __init__(self, avoid_seconds: float, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._avoid_seconds = avoid_seconds
        self._clock = clock
        self._lock = threading.Lock()
        #: By site, the failed steps with the time until which they are avoided, earliest first.
        self._failed: dict[str, OrderedDict[_Step, float]] = {}
        self._logged_problem = ""

    def record(self, opened: OpenMap, walked: Iterable[WalkedStep], notes: FeedbackStorage) -> FeedbackAnswer:
        """Record a report on one site.

        Parameters
        ----------
        opened
            The site's map.
        walked
            The report. Steps that the map does not have are counted, and not kept.
        notes
            Log of reports in the store, for maintenance. Refreshes visit the pages first that agents reached and that
            the map does not have.

        Returns
        -------
        FeedbackAnswer
            How many steps were recorded, and how many the map does not have.
        """
        steps = [(_known_step(opened, each), each) for each in walked]
        known = [(step, each) for step, each in steps if step is not None]
        avoided_until = self._clock() + self._avoid_seconds
        with self._lock:
            failed = self._failed.setdefault(opened.site, OrderedDict())
            for step, each in known:
                failed.pop(step, None)
                if each.outcome != "ok":
                    failed[step] = avoided_until
            while len(failed) > MAX_FAILURES:
                failed.popitem(last=False)
        if known:
            self._write(opened, known, notes)
        return FeedbackAnswer(taken=len(known), unknown=len(steps) - len(known))

    def recent_failures(self, opened: OpenMap) -> AvoidedParts:
        """Return the parts of a map that recently failed."""
        now = self._clock()
        with self._lock:
            failed = self._failed.get(opened.site)
            if not failed:
                return AvoidedParts()
            while failed and next(iter(failed.values())) <= now:
                failed.popitem(last=False)
            steps = list(failed)
        parts = AvoidedParts()
        for source, action, target in steps:
            parts += parts_of_step(opened, source or None, action, target)
        return parts

    def _write(self, opened: OpenMap, known: Iterable[tuple[_Step, WalkedStep]], notes: FeedbackStorage) -> None:
        """Write a report to the store. A store that is not writable is logged once, not with every report."""
        rows = [
            {
                "source": source or None,
                "action": action.to_json(),
                "target": target,
                **each.model_dump(include={"outcome", "ms"}),
            }
            for (source, action, target), each in known
        ]
        try:
            notes.add(opened.site, opened.version, rows)
        except StoreError as error:
            if error.message != self._logged_problem:
                log.warning("reports of agents are not kept: %s", error)
            self._logged_problem = error.message
        else:
            self._logged_problem = ""


def _known_step(opened: OpenMap, walked: WalkedStep) -> _Step | None:
    """Return the step of the map that was walked; None if the map does not have it.

    Its parts are those of the map: whatever else a caller sends about a step is not kept.
    """
    action, target = action_of(walked.action), opened.recognition.canonical(walked.target)
    parts = parts_of_step(opened, walked.source, action, target)
    if action.kind == "goto":
        return ("", Action("goto", url=action.url), target) if target in parts.gotos else None
    if not parts.edges:
        return None
    source = "" if walked.source is None else opened.recognition.canonical(walked.source)
    return source, parts.edges[0].action, target
