"""Checks of queries that all encoders share."""

from __future__ import annotations

from waygraph.core.errors import InvalidInput
from waygraph.core.text import replace_surrogates

SHORTER = "Use fewer words."


def cleaned_query(text: str) -> str:
    """Return `text` with single spaces.

    Parameters
    ----------
    text
        The query of a user.

    Returns
    -------
    str
        At least one character.

    Raises
    ------
    InvalidInput
        If the query is empty or contains lone surrogates, which UTF-8 cannot encode.
    """
    query = " ".join(text.split())
    if not query:
        raise InvalidInput("The query is empty.", hint="Say in a few words what the page is for.")
    if replace_surrogates(query) != query:
        raise InvalidInput("The query is not valid text: it contains lone surrogates.", hint="Send it as valid UTF-8.")
    return query


def refuse_longer(tokens: int, most: int) -> None:
    """Raise InvalidInput if a query has more tokens than the model reads."""
    if tokens > most:
        raise InvalidInput(f"The query has {tokens} tokens; the model reads {most}.", hint=SHORTER)
