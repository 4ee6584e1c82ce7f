"""Reading and changing verbs in names of remote methods and in paths."""

from __future__ import annotations

import re
from urllib.parse import parse_qsl, unquote, urlsplit

from pydantic import BaseModel, ConfigDict

_SPACE = re.compile(r"[./:#]")
_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")


class Verbs(BaseModel):
    """Words of method names from `guard_rules.yaml`; all in lower case.

    Attributes
    ----------
    read
        First words of methods that only read.
    change
        Words that a reading method does not contain.
    visit
        Further words that nothing contains which a visit of a page may send.
    subscribe
        Words of `change` that a WebSocket message of a visit may contain.
    alive
        Types of messages that keep a connection alive.
    prefixes
        Words that may precede the first word (`eth_getBalance`, `web_search_read`).
    parameters
        Query parameters whose value may be a verb (`?action=delete`).
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    read: frozenset[str]
    change: frozenset[str]
    visit: frozenset[str]
    subscribe: frozenset[str]
    alive: frozenset[str]
    prefixes: frozenset[str]
    parameters: frozenset[str]

    def is_reading(self, name: str) -> bool:
        """Whether a method only reads by its name: `items.getAll` does, `mark_all_as_read` and `listAdd` do not.

        The part before the last dot, slash or colon is a name space and needs no verb.
        """
        if not name.isascii():
            return False
        words = _words(_SPACE.split(name)[-1])
        while len(words) > 1 and words[0] in self.prefixes:
            words = words[1:]
        return bool(words) and words[0] in self.read and self.change.isdisjoint(_words(name))

    def keeps_alive(self, name: str) -> bool:
        """Whether a message of this type only keeps a connection alive."""
        return name.lower() in self.alive

    def names_change(self, url: str) -> bool:
        """Whether a URL names a change: `/item/delete/search`, `/search?action=delete`."""
        try:
            parts = urlsplit(url)
            parameters = parse_qsl(parts.query, max_num_fields=200)
        except ValueError:
            return True
        segments = [_words(segment) for segment in unquote(parts.path).split("/")]
        values = [_words(value) for name, value in parameters if name.lower() in self.parameters]
        return any(words[0] in self.change for words in (*segments, *values) if words)


def has_word(name: str, words: frozenset[str]) -> bool:
    """Whether a name has one of these words: `updateSeat`, `seat_update` and `seat/update` have `update`."""
    return not words.isdisjoint(_words(name))


def last_segments(url: str) -> list[str]:
    """Return the last two segments of a URL's path, decoded; an endpoint is named there."""
    try:
        path = urlsplit(url).path
    except ValueError:
        return []
    return [segment for segment in unquote(path).split("/") if segment][-2:]


def _words(name: str) -> list[str]:
    return [word.lower() for word in _WORD.findall(name)]
