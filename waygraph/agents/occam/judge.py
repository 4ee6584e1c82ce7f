"""AgentOccam's judge: of all suitable actions, which the model proposes in one answer, a second call chooses one."""

from __future__ import annotations

from collections.abc import Sequence

from waygraph.agents.loop.decision import Situation
from waygraph.agents.loop.prompt import UNTRUSTED, page_text
from waygraph.agents.models.chat import ChatMessage, ChatModel, ChatRequest
from waygraph.agents.models.structured import complete_as
from waygraph.agents.occam.reply import OccamCandidate, Verdict
from waygraph.core.errors import BadModelReply

_INSTRUCTIONS = """\
You choose the best of several actions that a web agent may do next. First judge how far the active plan has come. Then
assess each action: what it brings for the plan, what it risks, and its best and worst outcome. An action that repeats
what was tried, or ends the task although neither page nor history shows the answer, has little value."""


async def choose(
    model: ChatModel, situation: Situation, memory: Sequence[str], proposed: Sequence[OccamCandidate]
) -> tuple[OccamCandidate, Verdict | None]:
    """Return the best of several actions.

    Parameters
    ----------
    model
        The judge.
    situation
        What the actions were proposed for.
    memory
        Plans, notes and history, as the agent sees them. Empty texts are left out.
    proposed
        The actions, at least one.

    Returns
    -------
    tuple
        The action that the judge chooses, and its verdict. The first action if there is no choice: then without a
        verdict if the judge was not asked or gave none.

    Raises
    ------
    ModelFailure
        If the judge does not answer.
    """
    by_action: dict[str, OccamCandidate] = {}
    for each in proposed:
        by_action.setdefault(" ".join(each.action.split()).lower(), each)
    unique = list(by_action.values())
    if len(unique) == 1:
        return unique[0], None
    candidates = "\n".join(f"{number}. {each.action}\n   {each.reason}" for number, each in enumerate(unique, 1))
    parts = [f"Task: {situation.task}", *memory, page_text(situation.observation), f"Actions:\n{candidates}"]
    question = "\n\n".join(part for part in parts if part)
    messages = (ChatMessage.system(f"{_INSTRUCTIONS}\n{UNTRUSTED}"), ChatMessage.user(question))
    try:
        verdict, _ = await complete_as(model, ChatRequest(messages), Verdict)
    except BadModelReply:
        return unique[0], None
    return unique[verdict.choice - 1 if 1 <= verdict.choice <= len(unique) else 0], verdict
