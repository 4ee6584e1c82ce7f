"""What an agent can do: one union of actions, three grammars that models write them in, and their execution.

`types` defines the actions. `brackets`, `calls` and `tool_calls` parse them. `session.AgentSession` performs them with
the gestures of `waygraph.pipeline.browser.page`, asks `safety` before, and reports what happened.
"""

from waygraph.agents.actions.brackets import describe_actions, parse_brackets
from waygraph.agents.actions.calls import parse_call
from waygraph.agents.actions.report import ActionReport, PageEvent
from waygraph.agents.actions.safety import ActionGate, ActionRefused
from waygraph.agents.actions.session import AgentSession, SessionOptions
from waygraph.agents.actions.tool_calls import parse_tool_call, tool_schemas
from waygraph.agents.actions.types import (
    ACTION_TYPES,
    AcceptAction,
    ActionSyntaxError,
    AgentAction,
    BranchAction,
    ClickAction,
    CloseTabAction,
    DismissAction,
    FocusTabAction,
    GoBackAction,
    GoForwardAction,
    GoHomeAction,
    GotoAction,
    HoverAction,
    NavigateAction,
    NewTabAction,
    NoteAction,
    PressAction,
    PruneAction,
    ScrollAction,
    SelectAction,
    ShowAction,
    StopAction,
    TypeAction,
    UseToolAction,
    make_action,
)

__all__ = [
    "ACTION_TYPES",
    "AcceptAction",
    "ActionGate",
    "ActionRefused",
    "ActionReport",
    "ActionSyntaxError",
    "AgentAction",
    "AgentSession",
    "BranchAction",
    "ClickAction",
    "CloseTabAction",
    "DismissAction",
    "FocusTabAction",
    "GoBackAction",
    "GoForwardAction",
    "GoHomeAction",
    "GotoAction",
    "HoverAction",
    "NavigateAction",
    "NewTabAction",
    "NoteAction",
    "PageEvent",
    "PressAction",
    "PruneAction",
    "ScrollAction",
    "SelectAction",
    "SessionOptions",
    "ShowAction",
    "StopAction",
    "TypeAction",
    "UseToolAction",
    "describe_actions",
    "make_action",
    "parse_brackets",
    "parse_call",
    "parse_tool_call",
    "tool_schemas",
]
