"""The actions of agents, as one discriminated union.

Every action is a frozen pydantic model whose field `action` names it. Grammars build them with `make_action`, which
turns whatever is wrong with the values into one sentence for the model.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping
from typing import Annotated, Any, ClassVar, Literal

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, TypeAdapter, ValidationError

from waygraph.agents.actions.keys import key_name
from waygraph.core.errors import InvalidInput
from waygraph.core.schemas import MAX_QUERY_CHARS

#: Longest text that an argument may have, in characters.
MAX_TEXT = 20_000
_ID = re.compile(r"[\[#]?(\d{1,6})\]?")
_PART = re.compile(r"p?\d{1,6}")


class ActionSyntaxError(InvalidInput):
    """The answer of a model is no action. The message is one sentence that the model can be given."""


def _element_id(value: object) -> str:
    match = _ID.fullmatch(str(value).strip()) if isinstance(value, str | int) and not isinstance(value, bool) else None
    if match is None:
        raise ValueError(f"'{_short(value)}' is not the id of an element, which is a number such as 12")
    return str(int(match[1]))


def _part_id(value: object) -> str:
    text = str(value).strip().strip("[]#").lower()
    if isinstance(value, bool) or not _PART.fullmatch(text):
        raise ValueError(f"'{_short(value)}' is not an id, such as 12 or p3")
    return text


def _json_object(value: object) -> object:
    """Return inputs of a tool as JSON, which models write as text or as an object."""
    try:
        given = json.loads(value) if isinstance(value, str) else value
    except (ValueError, RecursionError) as error:
        raise ValueError(f"'{_short(value)}' is no JSON") from error
    if not isinstance(given, dict):
        raise ValueError(f"'{_short(value)}' is no JSON object")  # noqa: TRY004 - pydantic reports it as the others
    return json.dumps(given, ensure_ascii=False)


def _flag(value: object) -> object:
    """Read the flags of the papers' grammar, `0` and `1`, and what models write for them."""
    if isinstance(value, str):
        known = {"1": True, "true": True, "yes": True, "0": False, "false": False, "no": False}
        return known.get(value.strip().lower().removeprefix("press_enter_after="), value)
    return value


def _tab_number(value: object) -> object:
    return value.strip() if isinstance(value, str) else value


def _address(value: str) -> str:
    text = value.strip().strip("<>\"'")
    if "://" not in text and not text.startswith(("about:", "data:", "javascript:", "file:", "view-source:")):
        text = f"https://{text}"
    if not text.startswith(("http://", "https://")) or any(c.isspace() for c in text) or len(text) < 9:
        raise ValueError(f"'{_short(value)}' is not an address; only http and https pages can be loaded")
    return text


ElementId = Annotated[str, BeforeValidator(_element_id), Field(description="Id of the element in the observation.")]
PartId = Annotated[str, BeforeValidator(_part_id), Field(description="Id of the element or part in the observation.")]
Flag = Annotated[bool, BeforeValidator(_flag)]
Text = Annotated[str, Field(max_length=MAX_TEXT)]
Words = Annotated[str, Field(min_length=1, max_length=MAX_TEXT)]


class _ActionModel(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, str_strip_whitespace=False)

    #: How the action is written in the bracket grammar.
    usage: ClassVar[str] = ""


class ClickAction(_ActionModel):
    """Click an element; an option of a list is chosen by it."""

    usage: ClassVar[str] = "click [id]"
    action: Literal["click"] = "click"
    element: ElementId
    button: Literal["left", "right"] = Field("left", description="The mouse button.")
    double: Flag = Field(False, description="Whether to click twice.")


class TypeAction(_ActionModel):
    """Replace the content of a field, and press Enter if wanted; in a list of options, choose the one of this name."""

    usage: ClassVar[str] = "type [id] [text] [press_enter: 0 or 1]"
    action: Literal["type"] = "type"
    element: ElementId
    text: Text = Field(description="The text; empty: clear the field.")
    press_enter: Flag = Field(False, description="Whether to press Enter afterwards.")


class SelectAction(_ActionModel):
    """Choose an option of a list."""

    usage: ClassVar[str] = "select [id] [option]"
    action: Literal["select"] = "select"
    element: ElementId
    option: Words = Field(description="Label of the option.")


class PressAction(_ActionModel):
    """Press a key or a combination of keys."""

    usage: ClassVar[str] = "press [key]"
    action: Literal["press"] = "press"
    key: Annotated[str, AfterValidator(key_name), Field(description="The key: Enter, Escape, ArrowDown, Control+a.")]
    element: ElementId | None = Field(None, description="Element to focus first; absent: where the focus is.")


class HoverAction(_ActionModel):
    """Move the pointer to an element."""

    usage: ClassVar[str] = "hover [id]"
    action: Literal["hover"] = "hover"
    element: ElementId


class ScrollAction(_ActionModel):
    """Scroll the page, or the box around an element."""

    usage: ClassVar[str] = "scroll [up or down]"
    action: Literal["scroll"] = "scroll"
    direction: Literal["up", "down", "left", "right"]
    element: ElementId | None = Field(None, description="An element inside the box to scroll; absent: the page.")


class GotoAction(_ActionModel):
    """Load an address in the current tab."""

    usage: ClassVar[str] = "goto [url]"
    action: Literal["goto"] = "goto"
    url: Annotated[Words, AfterValidator(_address)]


class GoBackAction(_ActionModel):
    """Go back to the page before."""

    usage: ClassVar[str] = "go_back"
    action: Literal["go_back"] = "go_back"


class GoForwardAction(_ActionModel):
    """Undo going back."""

    usage: ClassVar[str] = "go_forward"
    action: Literal["go_forward"] = "go_forward"


class GoHomeAction(_ActionModel):
    """Return to the page where the task began; with several sites, to the list of them."""

    usage: ClassVar[str] = "go_home"
    action: Literal["go_home"] = "go_home"


class NewTabAction(_ActionModel):
    """Open a tab."""

    usage: ClassVar[str] = "new_tab"
    action: Literal["new_tab"] = "new_tab"
    url: Annotated[Words, AfterValidator(_address)] | None = Field(None, description="Address to load in it.")


class FocusTabAction(_ActionModel):
    """Continue in another tab."""

    usage: ClassVar[str] = "tab_focus [number]"
    action: Literal["tab_focus"] = "tab_focus"
    tab: Annotated[int, BeforeValidator(_tab_number), Field(ge=0, le=999, description="Number of the tab, from 0.")]


class CloseTabAction(_ActionModel):
    """Close the current tab."""

    usage: ClassVar[str] = "close_tab"
    action: Literal["close_tab"] = "close_tab"


class ShowAction(_ActionModel):
    """Show what the page leaves out behind an id: an unchanged part, the rest of a list or text, more lines."""

    usage: ClassVar[str] = "show [id]"
    action: Literal["show"] = "show"
    part: PartId


class AcceptAction(_ActionModel):
    """Accept the open dialog; a text answers its question."""

    usage: ClassVar[str] = "accept [text]"
    action: Literal["accept"] = "accept"
    text: Text | None = Field(None, description="Answer to a prompt; absent: the text that it proposes.")


class DismissAction(_ActionModel):
    """Dismiss the open dialog: answer no."""

    usage: ClassVar[str] = "dismiss"
    action: Literal["dismiss"] = "dismiss"


class NoteAction(_ActionModel):
    """Write a note for later steps; the page is left alone."""

    usage: ClassVar[str] = "note [text]"
    action: Literal["note"] = "note"
    text: Words


class StopAction(_ActionModel):
    """End the task with an answer."""

    usage: ClassVar[str] = "stop [answer]"
    action: Literal["stop"] = "stop"
    answer: Text = Field("", description="The answer; empty if the task asks for none.")


class BranchAction(_ActionModel):
    """Add a plan below another plan, and follow it."""

    usage: ClassVar[str] = "branch [plan id] [intent]"
    action: Literal["branch"] = "branch"
    plan: Annotated[str, Field(min_length=1, max_length=20, description="Id of the parent plan.")]
    intent: Words


class PruneAction(_ActionModel):
    """Give up the plans below an earlier one, and resume it."""

    usage: ClassVar[str] = "prune [plan id] [reason]"
    action: Literal["prune"] = "prune"
    plan: Annotated[str, Field(min_length=1, max_length=20, description="Id of the plan to resume.")]
    reason: Words


class NavigateAction(_ActionModel):
    """Go to the page of a mapped site that fits a description."""

    usage: ClassVar[str] = "navigate [site] [query]"
    action: Literal["navigate"] = "navigate"
    site: Annotated[str, Field(min_length=1, max_length=300, description="Name or host of the site.")]
    query: Annotated[
        str, Field(min_length=1, max_length=MAX_QUERY_CHARS, description="The page to find, in plain words.")
    ]
    thinking: Text = Field("", description="What the page is wanted for.")


class UseToolAction(_ActionModel):
    """Use a tool of a mapped site; this walks to a page that has it. Answers of navigate name tools (* required)."""

    usage: ClassVar[str] = 'use_tool [site] [tool] [{"input": "value"}]'
    action: Literal["use_tool"] = "use_tool"
    site: Annotated[str, Field(min_length=1, max_length=300, description="Name or host of the site.")]
    tool: Annotated[str, Field(min_length=1, max_length=300, description="Name or id of the tool.")]
    arguments: Annotated[
        str, BeforeValidator(_json_object), Field(max_length=MAX_TEXT, description="JSON object with its inputs.")
    ] = "{}"


AgentAction = Annotated[
    ClickAction
    | TypeAction
    | SelectAction
    | PressAction
    | HoverAction
    | ScrollAction
    | GotoAction
    | GoBackAction
    | GoForwardAction
    | GoHomeAction
    | NewTabAction
    | FocusTabAction
    | CloseTabAction
    | ShowAction
    | AcceptAction
    | DismissAction
    | NoteAction
    | StopAction
    | BranchAction
    | PruneAction
    | NavigateAction
    | UseToolAction,
    Field(discriminator="action"),
]

#: What can be done while a JavaScript dialog is open.
DIALOG_ACTIONS = frozenset({"accept", "dismiss", "note", "stop"})

#: The types of the union by the value of their field `action`.
ACTION_TYPES: Mapping[str, type[_ActionModel]] = {
    kind.model_fields["action"].default: kind
    for kind in (
        ClickAction, TypeAction, SelectAction, PressAction, HoverAction, ScrollAction, GotoAction, GoBackAction,
        GoForwardAction, GoHomeAction, NewTabAction, FocusTabAction, CloseTabAction, ShowAction, AcceptAction,
        DismissAction, NoteAction, StopAction, BranchAction, PruneAction, NavigateAction,
        UseToolAction,
    )
}  # fmt: skip
_ADAPTER: TypeAdapter[AgentAction] = TypeAdapter(AgentAction)


def check_available(name: str, allowed: Collection[str] | None = None) -> None:
    """Raise `ActionSyntaxError` if there is no action of this name, or if it is not one of those that are allowed."""
    names = [known for known in ACTION_TYPES if allowed is None or known in allowed]
    if name not in names:
        raise ActionSyntaxError(f"'{_short(name)}' is not an available action; the actions are {', '.join(names)}.")


def example_names(allowed: Collection[str] | None = None) -> list[str]:
    """Return the names of one or two of the actions that are allowed, to show how they are written."""
    usual = ["click", "stop"]
    known = [*usual, *(name for name in ACTION_TYPES if name not in usual)]
    return [name for name in known if allowed is None or name in allowed][:2]


def make_action(name: str, values: Mapping[str, Any], allowed: Collection[str] | None = None) -> AgentAction:
    """Build an action from values that a model wrote.

    Parameters
    ----------
    name
        Name of the action, a key of `ACTION_TYPES`.
    values
        Its fields.
    allowed
        Names of the actions that may be used; None: all.

    Returns
    -------
    AgentAction
        The action.

    Raises
    ------
    ActionSyntaxError
        If there is no such action, it is not allowed, or a value does not fit.
    """
    check_available(name, allowed)
    try:
        return _ADAPTER.validate_python({**values, "action": name})
    except ValidationError as error:
        raise ActionSyntaxError(_sentence(name, error)) from error


def _sentence(name: str, error: ValidationError) -> str:
    """Return what is wrong first, as one sentence."""
    first = error.errors(include_url=False, include_context=False)[0]
    field = str(first["loc"][-1]) if len(first["loc"]) > 1 else ""
    usage = f"write {ACTION_TYPES[name].usage}"
    if first["type"] == "missing":
        return f"The action {name} needs a value for '{field}': {usage}."
    if first["type"] == "extra_forbidden":
        return f"The action {name} has no '{_short(field)}': {usage}."
    problem = first["msg"].removeprefix("Value error, ")
    return f"The action {name} cannot be read, because {problem[:1].lower()}{problem[1:]}: {usage}."


def _short(value: object) -> str:
    text = " ".join(str(value).split())
    return text if len(text) <= 60 else f"{text[:57]}..."
