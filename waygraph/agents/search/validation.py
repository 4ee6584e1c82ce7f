"""Validation of proposed actions before they are scored: what does not fit the page or the task is not tried."""

from __future__ import annotations

from collections.abc import Coroutine
from dataclasses import dataclass
from typing import Any

from waygraph.agents.actions.safety import ActionGate, ActionRefused
from waygraph.agents.actions.session import SessionOptions
from waygraph.agents.actions.targets import ActionInvalid, find_element, gesture
from waygraph.agents.actions.types import (
    AcceptAction,
    ClickAction,
    DismissAction,
    GotoAction,
    HoverAction,
    SelectAction,
    StopAction,
    TypeAction,
)
from waygraph.agents.observation.page_observation import PageObservation
from waygraph.agents.search.search_actions import SearchAction, VisitAction
from waygraph.index.graph import Action


@dataclass(frozen=True, slots=True)
class ValidAction:
    """An action that fits the page.

    Attributes
    ----------
    action
        The action; Enter is left out where it would only add a line.
    gesture
        The gesture on its element; None for actions on none.
    is_destructive
        Whether it would change data, by the gate's rules.
    """

    action: SearchAction
    gesture: Action | None
    is_destructive: bool


class ActionValidator:
    """Checks actions by the element table of an observation and the rules of the session's gate.

    Parameters
    ----------
    options
        Options of the session: its scope, and whether it performs actions that change data.
    """

    def __init__(self, options: SessionOptions) -> None:
        self._scope = ActionGate("allow", scope=options.scope)
        self._hazards = ActionGate("refuse")
        self.allows_destructive = options.destructive == "allow" or (
            options.destructive == "confirm" and options.confirm is not None
        )

    async def check(self, action: SearchAction, observation: PageObservation) -> ValidAction:
        """Check an action.

        Parameters
        ----------
        action
            The action.
        observation
            The page that it was proposed for.

        Returns
        -------
        ValidAction
            The action with its gesture.

        Raises
        ------
        ActionInvalid
            If it does not fit the page: no such element, a disabled or covered one, no such option, no dialog that it
            answers, or one that prevents it.
        ActionRefused
            If it leads out of the task's scope, or would change data and the session does not allow that.
        """
        if (observation.dialog is not None) != isinstance(action, AcceptAction | DismissAction) and not isinstance(
            action, StopAction | VisitAction
        ):
            is_open = observation.dialog is not None
            raise ActionInvalid("A dialog is open: accept or dismiss it." if is_open else "No dialog is open.")
        if isinstance(action, ClickAction | TypeAction | SelectAction | HoverAction):
            element = find_element(action.element, observation)
            if isinstance(action, TypeAction) and element.candidate.tag == "textarea":
                action = action.model_copy(update={"press_enter": False})
            made = gesture(action, element, observation)
            await self._scope.check(action, element, observation)
            is_destructive = await self._is_refused(self._hazards.check(action, element, observation))
            return ValidAction(action, made, is_destructive)
        if isinstance(action, GotoAction):
            await self._scope.check_url(action, action.url)
            return ValidAction(action, None, await self._is_refused(self._hazards.check_url(action, action.url)))
        if isinstance(action, AcceptAction) and observation.dialog is not None:
            asked = self._hazards.check_dialog(action, observation.dialog)
            return ValidAction(action, None, await self._is_refused(asked))
        return ValidAction(action, None, is_destructive=False)

    async def _is_refused(self, check: Coroutine[Any, Any, None]) -> bool:
        """Return whether the rules refuse an action; raise their refusal if the session would not perform it."""
        try:
            await check
        except ActionRefused:
            if not self.allows_destructive:
                raise
            return True
        return False
