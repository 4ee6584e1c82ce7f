"""What AgentOccam is asked. The parts and their order are the paper's, the words are our own."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from waygraph.agents.loop.decision import Situation
from waygraph.agents.loop.prompt import UNTRUSTED, action_list, page_text, problem_text, site_list, with_image
from waygraph.agents.models.chat import ChatMessage

_ROLE = """\
You do tasks on websites for a person. In each step you see the page as a tree of text, in which every element that you
can act on has an id in brackets, and you choose one action.

Rules:
- An id is valid for the page that you see now only.
- You work by plans. The task is plan 0. Use branch to divide a plan if it has several parts; the new plan is then the
  active one, and you see the history of the active plan only. Use prune to give up what does not work and resume an
  earlier plan, on the page where it was made.
- Write what you will need later into a note. Repeat no note.
- End with stop as soon as the task is done. If the task asks for information, the answer in stop is that information
  alone, as short as possible. If the task cannot be done on this site, the answer is N/A.
- Change nothing that the task does not ask for. Do not log out."""

_NAVIGATE = """\
- navigate goes to any page of a site with a map at once: describe the page by what it shows. If the map has no such
  page, use the links and the search of the site."""

_ANSWER = "Answer with a JSON document of the requested schema."


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


def messages(
    situation: Situation,
    *,
    allowed: Collection[str],
    sites: Sequence[str],
    plan: str,
    history: Sequence[PlannedStep],
    notes: Sequence[str],
) -> tuple[ChatMessage, ...]:
    """Return the messages of one step.

    Parameters
    ----------
    situation
        What is known.
    allowed
        Names of the actions.
    sites
        Keys of the sites that have maps.
    plan
        The tree of plans.
    history
        The latest steps of the active plan, oldest first.
    notes
        The agent's notes.

    Returns
    -------
    tuple of ChatMessage
        Instructions, and the question.
    """
    rules = [_ROLE, _NAVIGATE] if sites else [_ROLE]
    system = "\n".join([*rules, "", "Actions:", action_list(allowed), "", UNTRUSTED, _ANSWER])
    parts = [f"Task: {situation.task}", f"Plans:\n{plan}"]
    if sites:
        parts.append(site_list(sites))
    if notes:
        parts.append("Notes:\n" + "\n".join(f"- {note}" for note in notes))
    if history:
        current = situation.observation.snapshot.id
        steps = "\n".join(_step_text(step, current) for step in history)
        parts.append(f"Latest steps of the active plan, oldest first:\n{steps}")
    parts.append(f"Actions left: {situation.steps_left}")
    if situation.steps_left == 1:
        parts.append("This is the last action: end with stop and your best answer.")
    parts.append(page_text(situation.observation))
    if situation.problem:
        parts.append(problem_text(situation.problem))
    return ChatMessage.system(system), ChatMessage.user(*with_image("\n\n".join(parts), situation.screenshot))


def _step_text(step: PlannedStep, current: str) -> str:
    page = "the same page as now" if step.state == current else step.page
    return f"- page: {page}\n  action: {step.action}\n  why: {step.reason}\n  result: {step.result}"
