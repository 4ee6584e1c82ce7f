"""What WebNavigator's agent is asked. The sections and the order are the paper's, the words are our own."""

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
- Choose an element that the page shows; do not invent ids or addresses.
- Write what you will need on a later page into a note. Repeat no note.
- End with stop as soon as the task is done. If the task asks for information, the answer in stop is that information
  alone, as short as possible. If the task cannot be done on this site, the answer is N/A.
- Change nothing that the task does not ask for. Do not log out."""

_NAVIGATE = """\
- The map knows every page of a site. If what is needed is on another page, or behind menus, tabs and dialogs, navigate
  there at once: describe the page by what it shows, in plain words. Do not search it by clicking.
- After navigate look at the page before you navigate again. If the map has no such page, use the links and the search
  of the site."""

_ANSWER = "Answer with a JSON document of the requested schema."


@dataclass(frozen=True, slots=True)
class RememberedStep:
    """A step as later prompts show it.

    Attributes
    ----------
    url
        The page that it was done on.
    action
        The action.
    reason
        Why.
    result
        What came of it.
    """

    url: str
    action: str
    reason: str
    result: str


def messages(
    situation: Situation,
    *,
    allowed: Collection[str],
    sites: Sequence[str],
    history: Sequence[RememberedStep],
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
    history
        The latest steps, oldest first.
    notes
        The agent's notes.

    Returns
    -------
    tuple of ChatMessage
        Instructions, and the question.
    """
    rules = [_ROLE, _NAVIGATE] if sites else [_ROLE]
    system = "\n".join([*rules, "", "Actions:", action_list(allowed), "", UNTRUSTED, _ANSWER])
    parts = [f"Task: {situation.task}"]
    if sites:
        parts.append(site_list(sites))
    if notes:
        parts.append("Notes:\n" + "\n".join(f"- {note}" for note in notes))
    if history:
        parts.append("Latest steps, oldest first:\n" + "\n".join(map(_step_text, history)))
    parts.append(f"Actions left: {situation.steps_left}")
    if situation.steps_left == 1:
        parts.append("This is the last action: end with stop and your best answer.")
    parts.append(page_text(situation.observation))
    if situation.problem:
        parts.append(problem_text(situation.problem))
    return ChatMessage.system(system), ChatMessage.user(*with_image("\n\n".join(parts), situation.screenshot))


def _step_text(step: RememberedStep) -> str:
    return f"- on {step.url}: {step.action}\n  why: {step.reason}\n  result: {step.result}"
