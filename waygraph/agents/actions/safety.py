"""The gate before an action: scope of the task, and actions that would change data at the site.

What changes data is decided by the rules of the explorer: the lexicon of hazards (names, addresses, handlers, icons,
method attributes) and forms that are submitted by POST, which the network guard would stop while exploring.
"""

from __future__ import annotations

import inspect
import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Literal

from msgspec import structs

from waygraph.agents.actions.targets import gesture
from waygraph.agents.actions.types import AgentAction, ClickAction, PressAction, SelectAction, TypeAction
from waygraph.agents.observation.elements import ObservedElement
from waygraph.agents.observation.open_dialog import OpenDialog
from waygraph.agents.observation.page_observation import PageObservation
from waygraph.core.errors import WaygraphError
from waygraph.core.schemas import ToolModel
from waygraph.pipeline.browser.page.snapshot import Candidate
from waygraph.pipeline.explore.policies.forms import FormPolicy
from waygraph.pipeline.explore.policies.hazard import HazardPolicy
from waygraph.pipeline.explore.policies.policy import Refusal
from waygraph.pipeline.explore.policies.scope import Scope

#: What to do with an action that would change data: refuse it, ask `confirm`, or allow it.
DestructiveMode = Literal["refuse", "confirm", "allow"]
#: Whether an action may be done. It is given the action, the element if there is one, and the rule that it breaks.
Confirm = Callable[[AgentAction, ObservedElement | None, Refusal], bool | Awaitable[bool]]

#: An agent follows a link that its task leads to: `/flag/5` may be the page of a flag. An explorer follows all links,
#: and leaves it alone.
_HAZARDS = HazardPolicy(follows_items=True)
_ACTIVATING_KEYS = frozenset({"Enter", "Space"})
_REASONS = {
    "hazard": "it would change data at the site",
    "form_post": "it sends a form that may change data at the site",
    "form_get": "it sends a form",
    "external": "it leads out of the site of the task",
    "scheme": "it leads to an address that no page has",
    "download": "it is a download",
    "tool": "it may change data at the site",
    "dialog": "accepting it may change data at the site; it can be dismissed",
}


class ActionRefused(WaygraphError):
    """An agent's action was not done: it leaves the scope of the task, or would change data. Allow or confirm it."""

    exit_code, http_status, slug, title = 1, 403, "action-refused", "Action refused"


@dataclass(frozen=True, slots=True)
class ActionGate:
    """Decides whether an action may be done.

    Attributes
    ----------
    destructive
        What to do with actions that would change data.
    confirm
        Asked if `destructive` is `confirm`; None: such actions are refused.
    scope
        Hosts that the agent may visit; None: all.
    """

    destructive: DestructiveMode = "refuse"
    confirm: Confirm | None = None
    scope: Scope | None = None

    async def check(self, action: AgentAction, element: ObservedElement, observation: PageObservation) -> None:
        """Check an action on an element.

        Parameters
        ----------
        action
            The action.
        element
            The element.
        observation
            The observation that the element belongs to.

        Raises
        ------
        ActionRefused
            If the action may not be done; the message is one sentence for the model.
        """
        candidate = _performed(action, element, observation)
        if candidate is None:
            return
        snapshot = observation.snapshot
        outside = self.scope.refuse(_without_download(candidate), snapshot) if self.scope is not None else None
        if outside is not None:
            raise ActionRefused(_sentence(str(element), outside))
        await self._check_hazard(
            action, element, _HAZARDS.refuse(candidate, snapshot) or _form_refusal(candidate, observation)
        )

    async def check_url(self, action: AgentAction, url: str) -> None:
        """Check an action that loads an address; raises `ActionRefused` as `check` does."""
        outside = self.scope.refuse_url(url) if self.scope is not None else None
        if outside is not None:
            raise ActionRefused(_sentence(url, outside))
        await self._check_hazard(action, None, _HAZARDS.refuse_url(url), url)

    async def check_tool(self, action: AgentAction, tool: ToolModel) -> None:
        """Check a call of a tool; raises `ActionRefused` as `check` does."""
        url = tool.target or tool.url
        outside = self.scope.refuse_url(url) if self.scope is not None else None
        if outside is not None:
            raise ActionRefused(_sentence(url, outside))
        hazard = _HAZARDS.refuse_url(tool.target) if tool.target else None
        refusal = hazard or (None if tool.read_only else Refusal("tool", tool.name))
        await self._check_hazard(action, None, refusal, f"The tool {json.dumps(tool.name, ensure_ascii=False)}")

    async def check_dialog(self, action: AgentAction, dialog: OpenDialog) -> None:
        """Check an action that accepts a dialog; raises `ActionRefused` as `check` does."""
        await self._check_hazard(action, None, Refusal("dialog", str(dialog)), f"The dialog '{dialog}'")

    async def _check_hazard(
        self, action: AgentAction, element: ObservedElement | None, refusal: Refusal | None, url: str = ""
    ) -> None:
        if refusal is None or self.destructive == "allow":
            return
        if self.destructive == "confirm" and self.confirm is not None:
            answer = self.confirm(action, element, refusal)
            if await answer if inspect.isawaitable(answer) else answer:
                return
        raise ActionRefused(_sentence(str(element) if element is not None else url, refusal))


def _without_download(candidate: Candidate) -> Candidate:
    """Return the candidate without its mark as a download: agents may start downloads, within their scope."""
    return structs.replace(candidate, download=False)


def _performed(action: AgentAction, element: ObservedElement, observation: PageObservation) -> Candidate | None:
    """Return the candidate as the action uses it; None if the action activates nothing."""
    candidate = element.candidate
    match action:
        case ClickAction() | TypeAction() | SelectAction() if element.list_ref or element.is_list:
            made = gesture(action, element, observation)
            # The option is judged, by its whole name. A suggestion for a field is only filled in.
            return None if made.kind == "input" else structs.replace(candidate, submits="", action=made)
        case ClickAction():
            is_field = candidate.tag == "input" and element.role in _FIELDS
            return structs.replace(candidate, submits="") if is_field else candidate
        case PressAction() if action.key in _ACTIVATING_KEYS:
            return candidate
        case TypeAction() if action.press_enter:
            # The name of a field says what it is for, not what Enter does.
            return structs.replace(candidate, action=structs.replace(candidate.action, name="", target=""))
        case _:
            return None


_FIELDS = frozenset({"textbox", "searchbox", "combobox", "spinbutton", "checkbox", "radio", "slider"})


def _form_refusal(candidate: Candidate, observation: PageObservation) -> Refusal | None:
    refusal = FormPolicy().refuse(candidate, observation.snapshot)
    return refusal if refusal is not None and refusal.reason == "form_post" else None


def _sentence(what: str, refusal: Refusal) -> str:
    reason = _REASONS.get(refusal.reason, refusal.reason)
    detail = f" ({refusal.detail})" if refusal.detail and refusal.detail not in what else ""
    return f"{what} was left alone, because {reason}{detail}."
