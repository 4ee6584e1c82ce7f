"""What happened when an agent acted."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from waygraph.agents.actions.types import AgentAction
from waygraph.agents.observation.page_observation import PageObservation

#: `done`: performed on the page. `kept`: about the agent itself (note, stop, branch, prune, show); the page was left
#: alone. `invalid`: it does not fit the observation, and nothing was done. `refused`: the gate did not let it through.
#: `failed`: it was tried, and the browser or the map did not get there. `page_lost`: the page closed or crashed.
ActionStatus = Literal["done", "kept", "invalid", "refused", "failed", "page_lost"]

#: `navigated` to another document or route, `dialog` that was answered, `asks` a dialog that waits for an answer,
#: `download` that was started, `new_tab` that
#: opened, `http_error` of the document, `left_scope`, `refused` what leads out of the scope of the task or to an
#: address that is not public, `asks_password` where the page before did not (the session may have ended), `changed` in
#: place, `unchanged`.
EventKind = Literal[
    "navigated",
    "dialog",
    "asks",
    "download",
    "new_tab",
    "http_error",
    "left_scope",
    "refused",
    "asks_password",
    "changed",
    "unchanged",
]

_EVENT_TEXTS: dict[EventKind, str] = {
    "navigated": "The page is now {}.",
    "dialog": "The page showed a dialog: {}.",
    "asks": "The page shows a dialog, which waits for accept or dismiss: {}.",
    "download": "A download was started: {}.",
    "new_tab": "A new tab was opened, which is the current one: {}.",
    "http_error": "The server answered with the error {}.",
    "left_scope": "This page is outside of the site of the task: {}.",
    "refused": "What is outside of the site of the task was not loaded: {}.",
    "asks_password": "This page asks for a password.",
    "changed": "The page has changed.",
    "unchanged": "Nothing on the page has changed.",
}


@dataclass(frozen=True, slots=True)
class PageEvent:
    """Something that happened while an action was performed.

    Attributes
    ----------
    kind
        See `EventKind`.
    detail
        The URL, the text of the dialog with its answer, the status; empty for changes in place.
    """

    kind: EventKind
    detail: str = ""

    def __str__(self) -> str:
        return _EVENT_TEXTS[self.kind].format(self.detail)


@dataclass(frozen=True, slots=True)
class ActionReport:
    """What an action did.

    Attributes
    ----------
    action
        The action.
    status
        See `ActionStatus`.
    message
        What was done, or why not, in one sentence for the model.
    events
        What happened meanwhile.
    rung
        Rung of the ladder that found the element; empty if none was looked for.
    observation
        The page afterwards; None if it was not observed, because nothing was done or nothing responds.
    """

    action: AgentAction
    status: ActionStatus
    message: str
    events: tuple[PageEvent, ...] = ()
    rung: str = ""
    observation: PageObservation | None = None

    @property
    def done(self) -> bool:
        """Whether the action was performed."""
        return self.status in {"done", "kept"}

    def has(self, kind: EventKind) -> bool:
        """Whether something of this kind happened."""
        return any(event.kind == kind for event in self.events)

    def __str__(self) -> str:
        return " ".join([self.message, *map(str, self.events)])
