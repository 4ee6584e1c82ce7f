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
    is_disabled = element.candidate.disabled or (bool(element.list_ref) and ("disabled", "true") in element.states)
    if not isinstance(action, HoverAction) and is_disabled:
        raise ActionInvalid(f"{element} is disabled; something else has to be done first.")
    if element.candidate.covered:
        raise ActionInvalid(f"{element} is covered by something in front of the page, which has to be closed first.")
    kind, value = _kind_and_value(action, element, observation)
    return structs.replace(element.candidate.action, kind=kind, value=value)


def _kind_and_value(
    action: ElementAction, element: ObservedElement, observation: PageObservation
) -> tuple[ActionKind, str]:
    match action:
        case ClickAction() if element.list_ref:
            return element.candidate.action.kind, element.candidate.action.value
        case ClickAction():
            only = element.candidate.action.kind  # a double click, for what takes no other
            return ("dblclick" if action.double else "contextmenu" if action.button == "right" else only), ""
        case HoverAction():
            return "hover", ""
        case PressAction():
            return "press", action.key
        case SelectAction():
            return "select", _option(action.option, element, observation)
        case TypeAction():
            field = observation.elements.get(element.list_ref) or element
            if field.is_list:  # models write this, and it is the way to an option that has no id
                return "select", _option(action.text, field, observation)
            if field.role not in _TYPED_ROLES:
                raise ActionInvalid(f"{field} is no field, so nothing can be typed into it.")
            if ("readonly", "true") in field.states:
                raise ActionInvalid(f"{field} is read-only; clicking it may open something.")
            return ("submit" if action.press_enter else "input"), action.text


def _option(wanted: str, element: ObservedElement, observation: PageObservation) -> str:
    """Return the name of the option that is meant: the same words, in any case."""
    of_list = observation.elements.get(element.list_ref) or element
    if not of_list.is_list:
        raise ActionInvalid(f"{element} is no list of options; click it, and then the option that appears.")
    options = observation.elements.options(of_list.ref)
    folded = " ".join(wanted.split()).casefold()
    found = [each for each in options if each.name.casefold() == folded] or (
        [each for each in options if folded and folded in each.name.casefold()]
    )
    if not found and observation.is_cut(of_list.ref):  # the observation has the beginning of the list
        return " ".join(wanted.split())
    if len(found) != 1:
        names = [each.name for each in found or options]
        shown = ", ".join(f"'{name}'" for name in names[:_LISTED_OPTIONS])
        more = f" and {len(names) - _LISTED_OPTIONS} more" if len(names) > _LISTED_OPTIONS else ""
        problem, those = ("several options like", "they") if found else ("no option", "its options")
        raise ActionInvalid(f"{of_list} has {problem} '{wanted[:60]}'; {those} are {shown}{more}.")
    if ("disabled", "true") in found[0].states:
        raise ActionInvalid(f"{found[0]} is disabled; something else has to be done first.")
    return found[0].name
