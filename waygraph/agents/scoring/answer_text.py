"""Comparison of an answer with a reference: equality, and containment of a text or of a token."""

from __future__ import annotations

import re

from waygraph.agents.tasks.task import ALTERNATIVES_SEPARATOR

#: Separators between tokens as the Penn Treebank tokenizer has them. WebArena uses NLTK's `word_tokenize`; what matters
#: here is only which single characters are tokens, so that `0` is not found in `10`, `0.5` or `3/10`.
_TOKEN_SEPARATORS = re.compile(
    r"""
      \s+
    | [;@\#$%&?!\[\](){}<>"\u201c\u201d\u00ab\u00bb\u2026*`]
    | --+ | \.\.+ | ''+
    | [:,](?!\d)                            # a colon or comma, unless digits follow
    | \.(?=["')\]}>\u201d\u00bb]*(?:\s|$))  # a full stop
    | (?<!\w)['\u2018](?=\w\b) | ['\u2019](?=[\s,;@\#$%&?!\[\](){}<>"]|s\b|$)  # single quotes and the possessive
    """,
    re.VERBOSE,
)

_LOWER_SEPARATOR = ALTERNATIVES_SEPARATOR.lower()


def clean_answer(text: str) -> str:
    """Return a text without surrounding space and one pair of equal quotes, in lower case.

    >>> clean_answer(' "Sprite Yoga Strap" ')
    'sprite yoga strap'
    """
    stripped = text.strip()
    for quote in ("'", '"'):
        if stripped.startswith(quote) and stripped.endswith(quote):
            stripped = stripped[1:-1]
            break
    return stripped.lower()


def is_same_text(reference: str, text: str) -> bool:
    """Return whether two texts are equal after cleaning."""
    return clean_answer(reference) == clean_answer(text)


def includes_text(reference: str, text: str, *, as_token: bool = False, alternatives: bool = False) -> bool:
    """Return whether a text contains the reference, both cleaned.

    Parameters
    ----------
    reference
        The required text.
    text
        The text that is searched.
    as_token
        Whether a reference of one letter or digit must be a token of the text, so that `0` is not found in `10`.
    alternatives
        Whether ` |OR| ` separates alternatives in the reference.

    Returns
    -------
    bool
        Whether the reference, or one of its alternatives, is contained.

    Examples
    --------
    >>> includes_text("0", "10 orders", as_token=True), includes_text("0", "It is 0.", as_token=True)
    (False, True)
    """
    wanted, searched = clean_answer(reference), clean_answer(text)
    options = [part.strip() for part in wanted.split(_LOWER_SEPARATOR)] if alternatives else [wanted]
    return any(
        # A mark of punctuation is no token here, so it is searched as a text.
        option in tokens(searched) if as_token and len(option) == 1 and option.isalnum() else option in searched
        for option in options
    )


def tokens(text: str) -> set[str]:
    """Return the tokens of a text, without punctuation that separates them.

    >>> sorted(tokens("2 of 10, for $5.00."))
    ['10', '2', '5.00', 'for', 'of']
    """
    return {token for token in _TOKEN_SEPARATORS.split(text) if token}
