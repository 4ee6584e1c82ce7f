"""The actions of a tree search: those of agents that can be replayed, and walks to states of a map."""

from __future__ import annotations

import json
from typing import Annotated, ClassVar, Literal

from pydantic import BaseModel, ConfigDict, Field

from waygraph.agents.actions.types import (
    AcceptAction,
    ClickAction,
    DismissAction,
    GotoAction,
    HoverAction,
    NavigateAction,
    SelectAction,
    StopAction,
    TypeAction,
)
from waygraph.core.urls import is_part_of
from waygraph.index.graph import Action


class VisitAction(BaseModel):
    """Walk to a state of a map, and verify the arrival."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    usage: ClassVar[str] = "visit [state]"
    action: Literal["visit"] = "visit"
    state: str = Field(min_length=1, description="Id of the state.")
    title: str = Field("", description="Title of the state, for people.")


SearchAction = Annotated[
    ClickAction
    | TypeAction
    | SelectAction
    | HoverAction
    | GotoAction
    | NavigateAction
    | AcceptAction
    | DismissAction
    | StopAction
    | VisitAction,
    Field(discriminator="action"),
]
#: Actions of agents that a search performs. Going back, tabs and notes are left out, because the search returns to
#: states itself and works in one tab; scrolling, because observations contain the whole page; keys, because what they
#: do depends on the focus, which no replay restores.
SEARCH_ACTIONS = ("click", "type", "select", "hover", "goto", "navigate", "stop")
#: Actions in a state that is a JavaScript dialog.
DIALOG_STATE_ACTIONS = ("accept", "dismiss", "stop")


def merge_key(action: SearchAction, gesture: Action | None, dialog: str = "") -> str:
    """Return a text that equal actions have in common, whatever ids their elements had in an observation.

    Texts to type are compared without upper case and characters outside of ASCII. All answers are one action.

    Parameters
    ----------
    action
        The action.
    gesture
        The gesture on its element; None for actions on none.
    dialog
        The dialog that the action answers, see `dialog_key`; empty: none.

    Returns
    -------
    str
        The key.
    """
    match action:
        case StopAction():
            parts: list[object] = ["stop"]
        case GotoAction():
            parts = ["goto", action.url]
        case NavigateAction():
            parts = ["navigate", action.site, action.query.casefold()]
        case VisitAction():
            parts = ["visit", action.state]
        case AcceptAction():
            parts = ["accept", action.text, dialog]
        case DismissAction():
            parts = ["dismiss", dialog]
        case _ if gesture is not None:
            value = gesture.value
            if isinstance(action, TypeAction):
                value = value.lower().encode("ascii", "ignore").decode()
            # A link to `#` has the address of the page that it is on, and is the same on another one.
            target = "" if gesture.target.endswith("#") else gesture.target
            parts = [gesture.kind, value, *gesture.frame, gesture.role, gesture.name, gesture.nth, target]
        case _:
            parts = [action.action, action.model_dump_json()]
    return json.dumps(parts, ensure_ascii=False)


def describe(action: SearchAction, gesture: Action | None) -> str:
    """Return an action as text, for people and models."""
    match action:
        case StopAction():
            return f"stop [{action.answer}]"
        case GotoAction():
            return f"goto [{action.url}]"
        case NavigateAction():
            return f"navigate [{action.site}] [{action.query}]"
        case VisitAction():
            return f"visit [{action.title or action.state}]"
        case AcceptAction():
            return f"accept [{action.text}]" if action.text is not None else "accept"
        case _:
            return str(gesture) if gesture is not None else action.action


def loaded_url(action: SearchAction, gesture: Action | None, page: str) -> str:
    """Return the address of the document, or of the client-side route, that an action shows, if it is known before.

    Parameters
    ----------
    action
        The action.
    gesture
        The gesture on its element; None for actions on none.
    page
        Address of the page that the action is on.

    Returns
    -------
    str
        The target of a link, or the address of a `goto`; empty for everything else. A link to `#`, or to a fragment of
        its own page that is no route, is like a button: what its script shows is seen when it was clicked.
    """
    if isinstance(action, GotoAction):
        return action.url
    target = gesture.target if gesture is not None and gesture.kind == "click" else ""
    is_loaded = target.startswith(("http:", "https:")) and not target.endswith("#") and not is_part_of(target, page)
    return target if is_loaded else ""
