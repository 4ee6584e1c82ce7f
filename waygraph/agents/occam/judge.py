"""AgentOccam's judge: several answers are sampled, and the best action is chosen."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from waygraph.agents.loop.decision import Situation
from waygraph.agents.loop.prompt import UNTRUSTED, page_text
from waygraph.agents.models.chat import ChatMessage, ChatModel, ChatRequest
from waygraph.agents.models.structured import complete_as
from waygraph.agents.occam.reply import OccamReply, Verdict
from waygraph.core.errors import BadModelReply

#: Share of equal actions from which no judge is asked.
AGREEMENT = 0.6

_INSTRUCTIONS = """\
You choose the best of several actions that a web agent may do next. Prefer the one that leads to the goal with the
fewest further steps, fits what the page shows, and does not repeat what was tried. Prefer to end the task only if the
page or the history shows the answer."""


def agreed(replies: Sequence[OccamReply]) -> OccamReply | None:
    """Return the reply whose action at least 60% of them have; None if there is none.

    Parameters
    ----------
    replies
        The replies, at least one.

    Returns
    -------
    OccamReply or None
        The first reply with that action.
    """
    action, count = Counter(map(_key, replies)).most_common(1)[0]
    if count / len(replies) < AGREEMENT:
        return None
    return next(reply for reply in replies if _key(reply) == action)


async def choose(model: ChatModel, situation: Situation, plan: str, replies: Sequence[OccamReply]) -> OccamReply:
    """Return the best of several replies.

    Parameters
    ----------
    model
        The judge.
    situation
        What the replies were made for.
    plan
        The tree of plans.
    replies
        The replies, at least one.

    Returns
    -------
    OccamReply
        The reply on which most agree, or which the judge chooses. If the judge chooses none of them, the first.

    Raises
    ------
    ModelFailure
        If the judge does not answer.
    """
    if (clear := agreed(replies)) is not None:
        return clear
    by_action: dict[str, OccamReply] = {}
    for reply in replies:
        by_action.setdefault(_key(reply), reply)
    unique = list(by_action.values())
    candidates = "\n".join(f"{number}. {reply.action}\n   {reply.reason}" for number, reply in enumerate(unique, 1))
    question = f"Task: {situation.task}\n\nPlans:\n{plan}\n\n{page_text(situation.observation)}\n\n{candidates}"
    messages = (ChatMessage.system(f"{_INSTRUCTIONS}\n{UNTRUSTED}"), ChatMessage.user(question))
    try:
        verdict, _ = await complete_as(model, ChatRequest(messages), Verdict)
    except BadModelReply:
        return unique[0]
    return unique[verdict.choice - 1] if 1 <= verdict.choice <= len(unique) else unique[0]


def _key(reply: OccamReply) -> str:
    return " ".join(reply.action.split()).lower()
