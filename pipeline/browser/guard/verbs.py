"""Does the name of a remote method, or a path, say that it only reads? Told by the words it is made of."""

from __future__ import annotations

import re
from urllib.parse import parse_qsl, unquote, urlsplit

from pydantic import BaseModel, ConfigDict

_SPACE = re.compile(r"[./:#]")
_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")


class Verbs(BaseModel):
    """What `guard_rules.yaml` says of the words in names of methods; all in lower case.

    Attributes
    ----------
    read : the first word of a method that only reads.
    change : no word of such a method.
    before : words that may stand before the first one (`eth_getBalance`, `web_search_read`).
    asked_by : parameters of an address whose value may be such a word (`?action=delete`).
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    read: frozenset[str]
    change: frozenset[str]
    before: frozenset[str]
    asked_by: frozenset[str]

    def only_reads(self, name: str) -> bool:
        """Whether a method of this name reads: `items.getAll` does, `mark_all_as_read` and `listAdd` do not.

        What stands before the last dot, slash or colon is a name space: it need not be a verb.
        """
        if not name.isascii():
            return False
        said = _words(_SPACE.split(name)[-1])
        while len(said) > 1 and said[0] in self.before:
            said = said[1:]
        return bool(said) and said[0] in self.read and self.change.isdisjoint(_words(name))

    def change_at(self, url: str) -> bool:
        """Whether an address names a change: `/item/delete/search`, `/search?action=delete`."""
        try:
            parts = urlsplit(url)
            asked = parse_qsl(parts.query, max_num_fields=200)
        except ValueError:
            return True
        pieces = [_words(piece) for piece in unquote(parts.path).split("/")]
        values = [_words(value) for name, value in asked if name.lower() in self.asked_by]
        return any(said[0] in self.change for said in (*pieces, *values) if said)


def _words(name: str) -> list[str]:
    return [word.lower() for word in _WORD.findall(name)]
