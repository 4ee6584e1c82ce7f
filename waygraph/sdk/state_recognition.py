"""Recognition of the state that an agent's page shows, before a walk and after each of its steps."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from waygraph.client.map_source import AsyncMapApi
from waygraph.core.schemas import LocateAnswer
from waygraph.index.graph import PathStep
from waygraph.pipeline.browser.page.features import features
from waygraph.pipeline.browser.page.replay import same_change, same_or_equivalent
from waygraph.pipeline.browser.page.snapshot import Snapshot
from waygraph.sdk.lead_arrival import arrival_problem
from waygraph.sdk.recorded_steps import step_to_node


@dataclass(frozen=True, slots=True)
class RecognizedState:
    """A state that a page certainly shows, or a lead whose page it was accepted as.

    Attributes
    ----------
    node_id
        The state or lead.
    outcome
        How a teleport to this state ends on the page, see `waygraph.sdk.teleport_result.Outcome`.
    """

    node_id: str
    outcome: Literal["arrived", "arrived_equivalent", "arrived_unmapped"]


@dataclass(frozen=True, slots=True)
class Position:
    """Where a walk is.

    Attributes
    ----------
    snapshot
        The page.
    state
        The state that it certainly shows; None if no state of the map is certain.
    likely_node_id
        The state that is most likely, certain or not; None if the map has no candidate.
    """

    snapshot: Snapshot
    state: RecognizedState | None
    likely_node_id: str | None


class StateRecognizer:
    """Compares pages with what the map says about states.

    Parameters
    ----------
    source
        The maps.
    site
        Key of the site.
    """

    def __init__(self, source: AsyncMapApi, site: str) -> None:
        self._source = source
        self._site = site
        #: By state, a step that leads there: it holds what must be seen.
        self._expected: dict[str, PathStep] = {}
        #: The page before the next step, if it is certain which state it shows.
        self._before: Snapshot | None = None
        #: A page that was recognised only by what the last step changed, and the state that it shows.
        self._recognized_by_change: tuple[Snapshot, str] | None = None
        #: The page that a step to a lead led to, which may have redirected to another address.
        self._led_to: Snapshot | None = None

    async def locate(self, snapshot: Snapshot, target: str | None, *, with_features: bool) -> Position:
        """Return the state that a page shows.

        Parameters
        ----------
        snapshot
            The page.
        target
            The state that is compared first, whatever the map's answer is; None: no state is expected.
        with_features
            Whether to send the page's features if no state is certain without them.

        Returns
        -------
        Position
            The page and what it shows.
        """
        located = await self._locate(snapshot, with_features=False)
        state = await self._recognize(snapshot, located, target)
        if state is None and with_features:
            located = await self._locate(snapshot, with_features=True)
            state = await self._recognize(snapshot, located, target)
        return Position(snapshot, state, located.node_id if state is None else state.node_id)

    async def _locate(self, snapshot: Snapshot, *, with_features: bool) -> LocateAnswer:
        shown = features(snapshot) if with_features else None
        return await self._source.locate(self._site, snapshot.raw_url, list(snapshot.structure), shown)

    async def _recognize(self, snapshot: Snapshot, located: LocateAnswer, target: str | None) -> RecognizedState | None:
        if target is not None and (reached := await self._recognize_target(snapshot, located, target)) is not None:
            return reached
        if self._recognized_by_change is not None and snapshot.id == self._recognized_by_change[0].id:
            return RecognizedState(self._recognized_by_change[1], "arrived_equivalent")
        if located.node_id is None or located.node_id == target:
            return None
        if same_or_equivalent(snapshot, await self._expected_at(located.node_id)):
            return RecognizedState(located.node_id, "arrived" if located.rule == "exact" else "arrived_equivalent")
        return None

    async def _recognize_target(self, snapshot: Snapshot, located: LocateAnswer, target: str) -> RecognizedState | None:
        expected = await self._expected_at(target)
        if expected.lead is not None:
            is_led_to = self._led_to is not None and snapshot.id == self._led_to.id
            is_there = snapshot.url == expected.lead.url or is_led_to  # another page may have a word of the link, too
            if is_there and located.rule != "exact" and not arrival_problem(snapshot, expected.lead):
                return RecognizedState(target, "arrived_unmapped")
        elif same_or_equivalent(snapshot, expected):
            is_exact = located.rule == "exact" and located.node_id == target
            return RecognizedState(target, "arrived" if is_exact else "arrived_equivalent")
        return None

    async def lead_problem(self, snapshot: Snapshot, target: str) -> str:
        """Return why a page is not accepted as that of the lead `target`; empty if `target` is a state."""
        lead = (await self._expected_at(target)).lead
        return arrival_problem(snapshot, lead) if lead is not None else ""

    async def _expected_at(self, node_id: str) -> PathStep:
        if node_id not in self._expected:
            self._expected[node_id] = step_to_node(await self._source.node(self._site, node_id))
        return self._expected[node_id]

    def begin_walk(self, position: Position, steps: Iterable[PathStep]) -> None:
        """Prepare for a walk: remember what its steps lead to and, if it is certain, the page that it starts on."""
        self._before = position.snapshot if position.state is not None else None
        self._expected.update((step.expected_node_id, step) for step in steps)

    def agrees(self, snapshot: Snapshot, step: PathStep) -> bool:
        """Whether the page after a step shows the state that the map expects."""
        before, self._before, self._recognized_by_change = self._before, None, None
        if step.lead is not None:
            self._led_to = snapshot
            return not arrival_problem(snapshot, step.lead)
        agrees = same_or_equivalent(snapshot, step)
        if not agrees and before is not None and same_change(before, snapshot, step):
            agrees, self._recognized_by_change = True, (snapshot, step.expected_node_id)
        if agrees:
            self._before = snapshot
        return agrees
