"""Planning of paths to a target, around the steps that failed in the agent's browser."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence

from waygraph.client.map_source import AsyncMapApi
from waygraph.core.errors import NoPath
from waygraph.core.schemas import ActionModel, AvoidedStep
from waygraph.index.graph import Action, PathStep
from waygraph.pipeline.browser.page.replay import ReplayResult
from waygraph.sdk.recorded_steps import recorded_step

log = logging.getLogger(__name__)

#: Number of missing links that one plan avoids.
MAX_MISSING_LINKS = 40


class PathPlanner:
    """Plans paths to one target, and avoids steps that failed before.

    Parameters
    ----------
    source
        The maps.
    site
        Key of the site.
    target
        Node id of the target; replaced by the id of the state that it stands for.
    allow_goto
        Whether paths may load URLs.
    """

    def __init__(self, source: AsyncMapApi, site: str, target: str, *, allow_goto: bool) -> None:
        self._source = source
        self._site = site
        self._allow_goto = allow_goto
        self.target = target
        #: Steps that failed.
        self._failed: list[AvoidedStep] = []
        #: Links that this browser did not show on one page. Other pages most likely hide them too, so they are avoided
        #: everywhere as long as there is another path.
        self._hidden: list[AvoidedStep] = []
        #: The state that a URL showed last, and the state of the same URL that was expected.
        self._displaced: tuple[str, str] | None = None

    async def plan(self, start: str | None, is_missing: Callable[[Action], bool]) -> tuple[PathStep, ...]:
        """Return the steps from a state (`None`: from anywhere) to the target.

        After a failure, a path does not begin with a link that is missing, as long as there is another path: results of
        a search form count as recorded wherever the form stands, and may have other links on each page. The first
        failure is left to the walk, which reports it.

        Parameters
        ----------
        start
            Node id of the state where the path starts.
        is_missing
            Whether the page is known not to show the element of an action.

        Returns
        -------
        tuple[PathStep, ...]
            The steps; none if the start is the target.

        Raises
        ------
        NoPath
            If the map has no path.
        """
        shown, expected = self._displaced or ("", "")
        self._displaced = None
        if start == shown:
            # The site stores how the page was left and shows it again, whatever path leads there. The action that
            # changed the page on this URL may change it back.
            try:
                return await self._path(start, expected, allow_goto=False) + await self._path(expected, self.target)
            except NoPath as error:
                log.debug("no path that reverts the change of '%s': %s", start, error.message)
        steps = first = await self._path(start, self.target)
        missing: list[AvoidedStep] = []
        while self._failed and steps and is_missing((*steps[0].openers, steps[0].action)[0]):
            missing.append(_avoided(start, steps[0].action.to_json()))
            if len(missing) > MAX_MISSING_LINKS:
                return first
            try:
                steps = await self._path(start, self.target, missing=missing)
            except NoPath:
                return first
        return steps

    async def _path(
        self, start: str | None, end: str, *, allow_goto: bool = True, missing: Sequence[AvoidedStep] = ()
    ) -> tuple[PathStep, ...]:
        allow_goto = allow_goto and self._allow_goto
        failed = [*self._failed, *missing]
        try:
            answer = await self._source.path(self._site, start, end, allow_goto=allow_goto, avoid=failed + self._hidden)
        except NoPath:
            if not self._hidden:
                raise
            answer = await self._source.path(self._site, start, end, allow_goto=allow_goto, avoid=failed)
        if end == self.target:
            self.target = answer.target
        return tuple(recorded_step(step) for step in answer.steps)

    def note_failure(self, start: str | None, steps: Sequence[PathStep], replayed: ReplayResult) -> None:
        """Avoid the step at which a replay of `steps` from the state `start` stopped."""
        index = len(replayed.steps) - 1
        source = steps[index - 1].expected_node_id if index else start
        action = steps[index].action
        self._failed.append(_avoided(source, action.to_json()))
        last = replayed.steps[-1]
        if last.seen_node_id and last.seen_url == last.step.expected_url:
            self._displaced = last.seen_node_id, last.step.expected_node_id
        if action.target and last.gone and not steps[index].openers:
            self._hidden.append(_avoided(None, action.to_json()))


def _avoided(source: str | None, action: object) -> AvoidedStep:
    # Validated when it is sent, if it is sent: the maps of a folder have no limits of size.
    return AvoidedStep.model_construct(source=source, action=ActionModel.model_validate(action))
