"""Performs actions in the tabs of an agent, with the gestures of the page views."""

from __future__ import annotations

from dataclasses import dataclass, replace

from playwright.async_api import Error as PlaywrightError
from playwright.async_api import TimeoutError as PlaywrightTimeoutError

from waygraph.agents.actions.report import PageEvent
from waygraph.agents.actions.safety import ActionGate
from waygraph.agents.actions.tabs import AgentTabs
from waygraph.agents.actions.targets import ActionInvalid, ElementAction, find_element, gesture
from waygraph.agents.actions.types import (
    AgentAction,
    ClickAction,
    CloseTabAction,
    FocusTabAction,
    GoBackAction,
    GoForwardAction,
    GoHomeAction,
    GotoAction,
    HoverAction,
    NewTabAction,
    PressAction,
    ScrollAction,
    SelectAction,
    TypeAction,
)
from waygraph.agents.observation.elements import ObservedElement
from waygraph.agents.observation.page_observation import PageObservation
from waygraph.core.settings import BrowserSettings
from waygraph.index.graph import Action
from waygraph.pipeline.browser.page.failures import FailureKind, NotActionable, PageFailure
from waygraph.pipeline.browser.page.snapshot import Snapshot

_PAST = {"click": "Clicked", "type": "Filled", "press": "Pressed", "hover": "Moved the pointer to"}
#: What keeps an element from being acted on, for models. Messages of the browser package quote the page's code.
_OBSTACLES = {
    FailureKind.ELEMENT_MISSING: "is no longer on the page; it has changed since it was observed",
    FailureKind.ELEMENT_COVERED: "is covered by another element",
    FailureKind.ELEMENT_OUTSIDE: "lies outside of the page",
    FailureKind.ELEMENT_DISABLED: "is disabled",
    FailureKind.FRAME_MISSING: "was in a frame that is gone",
    FailureKind.OPTION_MISSING: "has no such option",
    FailureKind.VALUE_REJECTED: "does not accept this value; dates are 2025-01-31, times 13:30, colours #ff8800",
}


@dataclass(frozen=True, slots=True)
class Performed:
    """An action that was performed, before its result was observed.

    Attributes
    ----------
    message
        What was done, in one sentence.
    events
        Tabs that were opened.
    rung
        Rung of the ladder that found the element.
    snapshot
        The current tab afterwards; None: it is not observed yet.
    is_other_tab
        Whether another tab is the current one now.
    failed
        Whether the browser did not do it.
    """

    message: str
    events: tuple[PageEvent, ...] = ()
    rung: str = ""
    snapshot: Snapshot | None = None
    is_other_tab: bool = False
    failed: bool = False


class ActionPerformer:
    """Performs actions, all but `navigate` and those that concern the agent alone.

    Parameters
    ----------
    tabs
        The tabs.
    gate
        Asked before actions that load a page or activate an element.
    settings
        Timeouts.
    """

    def __init__(self, tabs: AgentTabs, gate: ActionGate, settings: BrowserSettings) -> None:
        self._tabs = tabs
        self._gate = gate
        self._settings = settings

    async def perform(self, action: AgentAction, observation: PageObservation, *, home: str) -> Performed:
        """Perform an action.

        Parameters
        ----------
        action
            The action.
        observation
            The latest observation.
        home
            Where `go_home` leads.

        Returns
        -------
        Performed
            What was done.

        Raises
        ------
        ActionInvalid
            If the action does not fit the observation.
        ActionRefused
            If the gate does not let it through.
        PageFailure
            If the page does not respond.
        """
        match action:
            case PressAction() if action.element is None:
                return await self._press(action, observation)
            case ClickAction() | TypeAction() | SelectAction() | PressAction() | HoverAction():
                return await self._act(action, observation)
            case ScrollAction():
                return await self._scroll(action, observation)
            case GotoAction():
                return await self._load(action, action.url)
            case GoHomeAction():
                return await self._load(action, home)
            case GoBackAction() | GoForwardAction():
                return await self._move_in_history(action)
            case NewTabAction() | FocusTabAction() | CloseTabAction():
                return await self._switch_tab(action)
            case _:
                raise ActionInvalid(f"The action {action.action} is not performed on a page.")

    async def _act(self, action: ElementAction, observation: PageObservation) -> Performed:
        element = find_element(action.element or "", observation)
        recorded = gesture(action, element, observation)
        await self._gate.check(action, element, observation)
        view = self._tabs.current
        try:
            result = await view.act(recorded)
        except NotActionable as error:
            raise ActionInvalid(f"{element} {_OBSTACLES.get(error.kind, 'takes no input')}.") from error
        events: tuple[PageEvent, ...] = ()
        if result.popup is not None:
            self._tabs.adopt(result.popup.page, result.popup)
            events = (PageEvent("new_tab", result.popup.page.url),)
        message = _message(action, element, recorded, observation)
        return Performed(message, events, result.rung, result.snapshot, is_other_tab=bool(events))

    async def _press(self, action: PressAction, observation: PageObservation) -> Performed:
        focused = next((each for each in observation.elements if ("focused", "true") in each.states), None)
        if focused is not None:
            await self._gate.check(action, focused, observation)
        view = self._tabs.current
        view.forget_earlier_actions()
        try:
            await view.press_key(action.key)
        except PlaywrightError as error:
            raise PageFailure.of(error, f"{action.key} on {view.page.url}") from error
        return Performed(f"Pressed {action.key}.")

    async def _scroll(self, action: ScrollAction, observation: PageObservation) -> Performed:
        element = find_element(action.element, observation) if action.element else None
        view = self._tabs.current
        try:
            moved = await view.scroll(action.direction, element.candidate.action if element else None)
        except NotActionable as error:
            raise ActionInvalid(f"{element} {_OBSTACLES[FailureKind.ELEMENT_MISSING]}.") from error
        if not moved:
            raise ActionInvalid(f"Nothing can be scrolled further {action.direction} here.")
        return Performed(f"Scrolled {action.direction}.")

    async def _load(self, action: AgentAction, url: str) -> Performed:
        if not url:
            raise ActionInvalid("There is no home page in this session.")
        await self._gate.check_url(action, url)
        view = self._tabs.current
        try:
            result = await view.goto(url, digest=False)
        except PageFailure as failure:
            if view.downloads or failure.kind is FailureKind.DOWNLOAD_STARTED:
                return Performed(f"Loaded {url}.")  # the view has recorded the download
            if failure.net_code:
                return Performed(f"{url} could not be loaded ({failure.net_code}).", failed=True)
            raise
        return Performed(f"Loaded {url}.", snapshot=result.snapshot)

    async def _move_in_history(self, action: GoBackAction | GoForwardAction) -> Performed:
        view = self._tabs.current
        page, before = view.page, view.page.url
        is_back = isinstance(action, GoBackAction)
        view.forget_earlier_actions()
        timeout_ms = self._settings.navigation_timeout_ms
        go, undo = (page.go_back, page.go_forward) if is_back else (page.go_forward, page.go_back)
        try:
            await view.with_timeout(go(wait_until="commit", timeout=timeout_ms))
            if is_back and page.url == "about:blank" != before:
                await view.with_timeout(undo(wait_until="commit", timeout=timeout_ms))
        except PlaywrightTimeoutError:
            return Performed(f"The page {'before' if is_back else 'after'} this one did not load.", failed=True)
        except PlaywrightError as error:
            raise PageFailure.of(error, before) from error
        if page.url == before:
            return Performed(f"There is no page to go {'back' if is_back else 'forward'} to.", failed=True)
        return Performed(f"Went {'back' if is_back else 'forward'}.")

    async def _switch_tab(self, action: NewTabAction | FocusTabAction | CloseTabAction) -> Performed:
        match action:
            case NewTabAction():
                if action.url is not None:
                    await self._gate.check_url(action, action.url)
                await self._tabs.open()
                if action.url is None:
                    return Performed("Opened a tab.", is_other_tab=True)
                loaded = await self._load(action, action.url)
                return replace(loaded, message=f"Opened a tab. {loaded.message}", is_other_tab=True)
            case FocusTabAction():
                if not self._tabs.focus(action.tab):
                    raise ActionInvalid(f"There is no tab {action.tab}; the tabs go from 0 to {self._tabs.count - 1}.")
                return Performed(f"Tab {action.tab} is the current one.", is_other_tab=True)
            case CloseTabAction():
                if self._tabs.count < 2:
                    raise ActionInvalid("The only tab cannot be closed.")
                await self._tabs.close_current()
                return Performed("Closed the tab.", is_other_tab=True)


def _message(action: ElementAction, element: ObservedElement, recorded: Action, observation: PageObservation) -> str:
    """Return what was done to an element, in one sentence."""
    field = observation.elements.get(element.list_ref) or element
    if recorded.kind != "select":
        return f"{'Filled' if recorded.kind == 'input' else _PAST[action.action]} {field}."
    chosen = next((each for each in observation.elements.options(field.ref) if each.name == recorded.value), None)
    is_taken_back = (
        chosen is not None and ("selected", "true") in chosen.states and ("multiselectable", "true") in field.states
    )
    return f"{'Took back' if is_taken_back else 'Chose'} '{recorded.value}' in {field}."
