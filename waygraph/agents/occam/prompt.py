"""AgentOccam's own rules, and its memory as text. The order of the parts is the paper's, the words are our own."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

#: Rules about plans.
PLAN_RULES = """\
- You work by plans. The task is plan 0. Use branch to divide a plan if it has several parts; the new plan is then the
  active one, and you see the history of the active plan only. Use prune to give up what does not work and resume an
  earlier plan, on the page where it was made."""

#: Rules about `navigate`, for an agent that has maps.
NAVIGATE_RULES = """\
- navigate goes to any page of a site with a map at once: describe the page by what it shows. If the map has no such
  page, use the links and the search of the site."""


@dataclass(frozen=True, slots=True)
class PlannedStep:
    """A step as later prompts show it.

    Attributes
    ----------
    plan
        Id of the plan that was active.
    state
        Node id of the page that it was done on.
    page
        The part of that page that mattered, or its description.
    action
        The action.
    reason
        Why.
    result
        What came of it.
    """

    plan: int
    state: str
    page: str
    action: str
    reason: str
    result: str


def history_text(steps: Iterable[PlannedStep], current: str) -> str:
    """Return the latest steps of the active plan as text; empty without any.

    Parameters
    ----------
    steps
        The steps, oldest first.
    current
        Node id of the page that is shown now: it is not repeated.

    Returns
    -------
    str
        The text.
    """
    lines = [_step_text(step, current) for step in steps]
    return "\n".join(["Latest steps of the active plan, oldest first:", *lines]) if lines else ""


def _step_text(step: PlannedStep, current: str) -> str:
    page = "the same page as now" if step.state == current else step.page
    return f"- page: {page}\n  action: {step.action}\n  why: {step.reason}\n  result: {step.result}"
