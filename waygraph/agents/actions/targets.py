"""From an agent's action on an element to the gesture on the page, or to the sentence that says why there is none."""

from __future__ import annotations

from msgspec import structs

from waygraph.agents.actions.types import (
    ClickAction,
    HoverAction,
    PressAction,
    SelectAction,
    TypeAction,
)
from waygraph.agents.observation.elements import ObservedElement
from waygraph.agents.observation.page_observation import PageObservation
from waygraph.core.errors import WaygraphError
from waygraph.index.graph import Action
from waygraph.index.graph.model import ActionKind

_TYPED_ROLES = frozenset({"textbox", "searchbox", "combobox", "spinbutton", "slider"})
_LISTED_OPTIONS = 20

ElementAction = ClickAction | TypeAction | SelectAction | PressAction | HoverAction


class ActionInvalid(WaygraphError):
    """An agent's action does not fit the page that it observed. Nothing was done; observe and choose again."""

    exit_code, http_status, slug, title = 2, 422, "action-invalid", "Action invalid"


def find_element(ref: str, observation: PageObservation) -> ObservedElement:
    """Return the element with an id.

    Parameters
    ----------
    ref
        The id.
    observation
        The observation that it belongs to.

    Returns
    -------
    ObservedElement
        The element.

    Raises
    ------
    ActionInvalid
        If there is none; the message is one sentence for the model.
    """
    element = observation.elements.get(ref)
    if element is None:
        count = len(observation.elements)
        known = f"the ids of this page go from 1 to {count}" if count else "this page has no elements with an id"
        raise ActionInvalid(f"There is no element [{ref}]; {known}.")
    return element


def gesture(action: ElementAction, element: ObservedElement, observation: PageObservation) -> Action:
    """Return the recorded action that performs an agent's action on an element.

    Parameters
    ----------
    action
        The action.
    element
        Its element.
    observation
        The observation that the element belongs to.

    Returns
    -------
    Action
        The gesture, with the locator ladder of the element.

    Raises
    ------
    ActionInvalid
        If the element does not take it: it is disabled, covered, or of another kind.
    """
    if not isinstance(action, HoverAction) and element.candidate.disabled:
        raise ActionInvalid(f"{element} is disabled; something else has to be done first.")
    if element.candidate.covered:
        raise ActionInvalid(f"{element} is covered by something in front of the page, which has to be closed first.")
    kind, value = _kind_and_value(action, element, observation)
    return structs.replace(element.candidate.action, kind=kind, value=value)


def _kind_and_value(
    action: ElementAction, element: ObservedElement, observation: PageObservation
) -> tuple[ActionKind, str]:
    match action:
        case ClickAction():
            return ("dblclick" if action.double else "contextmenu" if action.button == "right" else "click"), ""
        case HoverAction():
            return "hover", ""
        case PressAction():
            return "press", action.key
        case SelectAction():
            return "select", _option(action.option, element, observation)
        case TypeAction():
            if element.candidate.tag == "select":
                raise ActionInvalid(f"{element} is a list of options; write select [{element.ref}] [option].")
            if element.role not in _TYPED_ROLES:
                raise ActionInvalid(f"{element} is no field, so nothing can be typed into it.")
            if ("readonly", "true") in element.states:
                raise ActionInvalid(f"{element} is read-only; clicking it may open something.")
            return ("submit" if action.press_enter else "input"), action.text


def _option(wanted: str, element: ObservedElement, observation: PageObservation) -> str:
    """Return the label of the option that is meant: the same words, in any case."""
    if element.candidate.tag != "select":
        raise ActionInvalid(f"{element} is no list of options; click it, and then the option that appears.")
    node = next(node for node in observation.tree.walk() if node.ref == element.ref)
    options = [child for child in node.children if child.role == "option"]
    labels = [option.name for option in options if "more" not in option.states]
    folded = " ".join(wanted.split()).casefold()
    found = [label for label in labels if label.casefold() == folded] or (
        [label for label in labels if folded and folded in label.casefold()]
    )
    if not found and len(labels) < len(options):  # a long list, of which the observation shows the beginning
        return " ".join(wanted.split())
    if len(set(found)) != 1:
        shown = ", ".join(f"'{label}'" for label in labels[:_LISTED_OPTIONS])
        more = f" and {len(labels) - _LISTED_OPTIONS} more" if len(labels) > _LISTED_OPTIONS else ""
        problem = "several options like" if found else "no option"
        raise ActionInvalid(f"{element} has {problem} '{wanted[:60]}'; its options are {shown}{more}.")
    return found[0]
