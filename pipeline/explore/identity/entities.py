"""Entities: words of URLs that name a thing of the site (a record, a project, a user), found without a list of names.

A site applies its functions to things, and writes the name of the thing into the address: `/projects/alpha/gantt`,
`?title=Special:LinksTo/Alpha`, `/cite?page=Alpha`. The page of a thing links to these functions with the name that
stands in its own address. So a word is an entity if a link carries it over from the address of its page, and a link of
another page is equal but for another such word.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any

from waygraph.index.graph.url_tokens import url_parts
from waygraph.pipeline.explore.identity.gain import pack_numbers, unpack_numbers
from waygraph.pipeline.explore.identity.templates import is_identifier, mask_identifier

#: Words of contexts that belong to no word of the URL.
QUERY, NUMBER = 0, 1

_SEPARATOR = re.compile(r"([/:])")
_JOINT = re.compile(r"[\W_]+")
#: Values of a URL whose words are told apart. Longer URLs are filters, one after the other.
_MAX_VALUES = 8


@lru_cache(maxsize=65_536)
def url_values(url: str) -> tuple[tuple[str, ...], ...]:
    """Return the segments of a URL's path and the values of its query, each with what stands before it and between.

    Numbers, dates and tokens are masked.

    >>> url_values("http://x/wiki/Special:Log/Ann?limit=50")
    (('/', 'wiki'), ('/', 'Special', ':', 'Log'), ('/', 'Ann'), ('?limit=', '#'))
    """
    parts = url_parts(url)
    named = [("/", segment) for segment in parts.segments if segment]
    named += [(f"?{key}=", value) for key, value in sorted(parts.query)]
    return tuple((before, *map(_masked, _SEPARATOR.split(text))) for before, text in named)


@lru_cache(maxsize=65_536)
def url_contexts(url: str) -> tuple[tuple[int, int], ...]:
    """Return the contexts of a URL's words: for each the CRC-32 of the URL without the word, and the key of the word.

    A word is a value, or a part of one. URLs that have a context in common differ in one word. Two contexts belong to
    no word: that of a URL that numbers an item has the word `NUMBER`, and the path alone has the word `QUERY`.
    """
    host, values = url_parts(url).host, url_values(url)
    texts = ["".join(value) for value in values]
    contexts = [(_crc(host, "path", *(text for text in texts if text.startswith("/"))), QUERY)]
    if any(_is_masked(part) for value in values for part in value[1::2]):
        contexts.append((_crc(host, *texts), NUMBER))
    for number, value in enumerate(values[:_MAX_VALUES]):
        places = (
            [(1, len(value))] if len(value) == 2 else [(1, len(value)), *((i, i + 1) for i in range(1, len(value), 2))]
        )
        for first, end in places:
            word = "".join(value[first:end])
            if word and not _is_masked(word):
                rest = f"{''.join(value[:first])}*{''.join(value[end:])}"
                contexts.append((_crc(host, *texts[:number], rest, *texts[number + 1 :]), word_key(word)))
    return tuple(contexts)


def word_key(word: str) -> int:
    """Return the CRC-32 of a word, however its parts are joined and its letters are written.

    >>> word_key("Main_Page") == word_key("main-page")
    True
    """
    return _crc(_JOINT.sub(" ", word).lower())


def _masked(text: str) -> str:
    return mask_identifier(text) if is_identifier(text) else text


def _is_masked(word: str) -> bool:
    return word == "*" or "#" in word


def _crc(*texts: str) -> int:
    return zlib.crc32("\n".join(texts).encode(errors="replace"))


class Entities:
    """Words that name a thing of the site.

    A link votes for a word that also stands in the address of its page, in the context of its own address, if it has a
    further word of its own (links up to a folder do not). The words of a context with two different ones are entities.
    """

    def __init__(self) -> None:
        self._words: set[int] = set()
        self._first: dict[int, int] = {}
        """By context, the first word that was voted for; 0 if there were two."""

    def is_entity(self, context: int, word: int) -> bool:
        """Return whether a word names a thing in a context: as elsewhere on the site, or as two others do there."""
        return word in self._words or self._first.get(context) == 0

    def learn(self, page: str, links: Iterable[str]) -> None:
        """Learn from the links of a page."""
        own = {word for _, word in url_contexts(page) if word > NUMBER}
        if not own:
            return
        for url in dict.fromkeys(links):
            contexts = [(context, word) for context, word in url_contexts(url) if word > NUMBER]
            if all(word in own for _, word in contexts):
                continue
            for context, word in contexts:
                if word not in own or (first := self._first.setdefault(context, word)) == word:
                    continue
                self._words.update({first, word} - {0})
                self._first[context] = 0

    def to_checkpoint(self) -> dict[str, Any]:
        """Return what was learned, as plain JSON."""
        return {"words": pack_numbers(self._words), "first": [[key, word] for key, word in self._first.items()]}

    def load_checkpoint(self, checkpoint: Mapping[str, Any]) -> None:
        """Restore what `to_checkpoint` returned."""
        self._words = set(unpack_numbers(checkpoint["words"]))
        self._first = dict(map(tuple, checkpoint["first"]))
