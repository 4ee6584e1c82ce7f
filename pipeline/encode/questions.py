"""Which questions can be asked at all? What every encoder refuses, before it counts tokens."""

from __future__ import annotations

from waygraph.errors import InvalidInput
from waygraph.spelling import spellable

SHORTER = "Ask in fewer words."


def cleaned_question(text: str) -> str:
    """`text` with single spaces.

    Raises
    ------
    InvalidInput
        When nothing is left, or it holds what UTF-8 cannot spell.

    """
    question = " ".join(text.split())
    if not question:
        raise InvalidInput("The question is empty.", hint="Say in a few words what the page is for.")
    if spellable(question) != question:
        raise InvalidInput("The question is no text: it holds halves of characters.", hint="Send it as valid UTF-8.")
    return question


def refuse_longer(tokens: int, most: int) -> None:
    """Refuse a question that a model would cut off (InvalidInput)."""
    if tokens > most:
        raise InvalidInput(f"The question has {tokens} tokens, more than {most}, which the model reads.", hint=SHORTER)
