"""Lexicon of hazards: the content of `hazards.yaml`, and the folding of texts into words to compare with it."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from itertools import product
from typing import Any, Literal, NamedTuple
from urllib.parse import unquote

import yaml

#: Folded words of a phrase, in order.
Words = tuple[str, ...]
#: Where in a name a phrase must be, see `hazards.yaml`.
PhrasePosition = Literal["anywhere", "start", "buttons"]

#: Languages that are written without spaces, or with few (Korean).
_UNSPACED_LANGUAGES = frozenset({"ja", "zh", "ko", "th"})
#: Results that each lookup function caches.
CACHED_LOOKUPS = 65_536
#: Letters without a Unicode decomposition that are often typed without their stroke.
_STROKES = str.maketrans({"\u0131": "i", "ł": "l", "đ": "d", "ø": "o", "æ": "ae", "œ": "oe"})
_WORD = re.compile(r"(?:[^\W_]|[\u0900-\u0963])+")
_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")


@dataclass(frozen=True, slots=True)
class LexiconMatch:
    """A part of the lexicon that matches an element.

    Attributes
    ----------
    phrase
        The matching phrase.
    rule
        The part of `hazards.yaml` that it belongs to, for users.
    group
        Group of the phrase.
    is_generic
        Whether the phrase says only that something is sent or saved, so that the network guard can be relied on.
    is_collection
        Whether the phrase may as well be the name of a collection in an address that shows one of its items.
    """

    phrase: str
    rule: str
    group: str = ""
    is_generic: bool = False
    is_collection: bool = False


class NameEntry(NamedTuple):
    """A phrase of `groups`.

    Attributes
    ----------
    group
        Name of the group.
    at
        Where in a name the phrase must be.
    always
        Whether it also counts for links that look like articles, if it is the whole name.
    whole
        Whether it must be the whole name.
    languages
        Languages that have it.
    """

    group: str
    at: PhrasePosition
    always: bool
    whole: bool
    languages: Words


@dataclass(frozen=True, slots=True)
class Lexicon:
    """Content of `hazards.yaml`, indexed for lookups. The comments of the file describe each part.

    Attributes
    ----------
    spaced
        Phrases of names in languages that are written with spaces.
    unspaced
        Phrases of names in languages that are written without spaces.
    longest
        Words of the longest phrase in `spaced`.
    verb_last_languages
        Languages whose verbs also stand at the end of a name.
    generic
        Phrases of names of buttons that say only that something is sent or saved.
    harmless
        Beginnings of button names that only change what is shown, the longest first.
    openers
        First words of titles of articles.
    article_words
        Words of titles of articles.
    article_unspaced
        The same in languages that are written without spaces.
    article_paths
        Path segments below which there are texts.
    max_article_words
        Words above which a link name is a headline.
    acts
        Path segments that change data, whole or as the beginning or end of a segment.
    whole
        Path segments that change data as a whole segment only.
    beside
        Path segments that change data beside an identifier.
    session_ends
        Words by which a session ends as a whole path, below `session_paths` and in the query of a login page.
    session_ends_below
        The same, but not as a whole path.
    session_paths
        Path segments below which `session_ends` count.
    before_code
        Path segments that change data before a code.
    collections
        Those of `beside` that are names of collections as well, before an identifier.
    behind
        Path segments that change data behind an identifier.
    named_items
        Path segments that an identifier follows, whatever it looks like.
    pairs
        Two consecutive path segments that change data.
    of_documents
        Those of `acts`, `behind` and `pairs` that count in addresses of documents only.
    verbs_in
        Query parameters whose value names an action.
    routes_in
        Query parameters whose value is a path of the application.
    values
        Values of `verbs_in` that change data, besides `acts`.
    added
        Objects of "add" in a value of `verbs_in`.
    parameters
        Query parameters that change data, with the values that they do so with; with none, whatever the value.
    methods
        HTTP methods that change data, as attributes of links name them.
    handlers
        Phrases in event handlers.
    icons
        Phrases in the classes of icons.
    symbols
        Characters of icons.
    """

    spaced: Mapping[Words, NameEntry]
    unspaced: Mapping[str, NameEntry]
    longest: int
    verb_last_languages: frozenset[str]
    generic: frozenset[str]
    harmless: tuple[Words, ...]
    openers: tuple[Words, ...]
    article_words: tuple[Words, ...]
    article_unspaced: Words
    article_paths: frozenset[Words]
    max_article_words: int
    acts: frozenset[Words]
    whole: frozenset[Words]
    beside: frozenset[Words]
    session_ends: frozenset[Words]
    session_ends_below: frozenset[Words]
    session_paths: frozenset[Words]
    before_code: frozenset[Words]
    collections: frozenset[Words]
    behind: frozenset[Words]
    named_items: frozenset[Words]
    pairs: frozenset[Words]
    of_documents: frozenset[Words]
    verbs_in: frozenset[Words]
    routes_in: frozenset[Words]
    values: frozenset[Words]
    added: frozenset[Words]
    parameters: Mapping[Words, frozenset[Words]]
    methods: frozenset[str]
    handlers: frozenset[Words]
    icons: frozenset[Words]
    symbols: str


# ---- words -----------------------------------------------------------------------------------------------------------


def fold(text: str) -> str:
    """Return a text in lower case without accents, so that `SUPPRIMER`, `Déconnexion` and `cikis` match.

    >>> fold("DÉCONNEXION")
    'deconnexion'
    """
    decomposed = unicodedata.normalize("NFKD", text.casefold())
    bare = "".join(character for character in decomposed if not "\u0300" <= character <= "\u036f")
    return unicodedata.normalize("NFC", bare).translate(_STROKES)


def words(text: str) -> Words:
    """Return the folded words of a text.

    >>> words("Log-out (now)")
    ('log', 'out', 'now')
    """
    return tuple(_WORD.findall(fold(text)))


def code_words(text: str) -> Words:
    """Return the folded words of an identifier or a part of a URL: `deleteUser` has two.

    >>> code_words("removeItem_fromCart")
    ('remove', 'item', 'from', 'cart')
    """
    return words(_HUMP.sub(" ", text))


def path_segments(path: str) -> list[str]:
    """Return the non-empty segments of a URL path, decoded.

    >>> path_segments("/a%20b//c/")
    ['a b', 'c']
    """
    return [segment for segment in unquote(path).split("/") if segment]


def is_below_articles(segments: Sequence[str]) -> bool:
    """Return whether a page lies below a part of a site that holds texts, such as `/docs/`."""
    return any(code_words(segment) in lexicon().article_paths for segment in segments[:-1])


# ---- reading the file ------------------------------------------------------------------------------------------------


@cache
def lexicon() -> Lexicon:
    """Return the content of `hazards.yaml`, read once per process."""
    text = files("waygraph.pipeline.explore.policies").joinpath("hazards.yaml").read_text(encoding="utf-8")
    document: dict[str, Any] = yaml.safe_load(text)
    spaced: dict[Words, NameEntry] = {}
    unspaced: dict[str, NameEntry] = {}
    for group, body in document["groups"].items():
        for language, lines in body["words"].items():
            for line in _expand(lines):
                entry = NameEntry(group, body["at"], body.get("always", False), line.startswith("="), (language,))
                if language in _UNSPACED_LANGUAGES:
                    unspaced.setdefault(fold("".join(line.split())), entry)
                else:
                    phrase = words(line)
                    first = spaced.setdefault(phrase, entry)
                    if first.group == group and language not in first.languages:
                        # A whole name of one language may be a verb of another; the verb then counts.
                        spaced[phrase] = first._replace(
                            languages=(*first.languages, language), whole=first.whole and entry.whole
                        )
    articles, addresses = document["articles"], document["addresses"]
    of_documents = addresses["documents"]
    return Lexicon(
        spaced=spaced,
        unspaced=unspaced,
        longest=max(map(len, spaced)),
        verb_last_languages=frozenset(document["verbs_last"]),
        generic=_generic(document["generic"]),
        harmless=tuple(sorted(map(words, _expand(document["harmless"])), key=len, reverse=True)),
        openers=tuple(map(words, articles["openers"])),
        article_words=tuple(map(words, articles["words"])),
        article_unspaced=tuple(map(fold, articles["unspaced"])),
        article_paths=_phrases(articles["paths"]),
        max_article_words=articles["words_at_most"],
        acts=_phrases(addresses["acts"] + of_documents["acts"]),
        whole=_phrases(addresses["whole"]),
        beside=_phrases(addresses["beside_identifier"]),
        session_ends=_phrases(addresses["session_ends"]),
        session_ends_below=_phrases(addresses["session_ends_below"]),
        session_paths=_phrases(addresses["session_paths"]),
        before_code=_phrases(addresses["before_code"]),
        collections=_phrases(addresses["collections"]),
        behind=_phrases(addresses["behind_identifier"] + of_documents["behind_identifier"]),
        named_items=_phrases(addresses["named_items"]),
        pairs=_phrases(addresses["pairs"] + of_documents["pairs"]),
        of_documents=_phrases(phrase for phrases in of_documents.values() for phrase in phrases),
        verbs_in=_phrases(addresses["verbs_in"]),
        routes_in=_phrases(addresses["routes_in"]),
        values=_phrases(addresses["values"]),
        added=_phrases(addresses["added"]),
        parameters=_parameters(addresses["parameters"]),
        methods=frozenset(document["methods"]),
        handlers=_phrases(document["handlers"]),
        icons=_phrases(document["icons"]),
        symbols=document["symbols"],
    )


def _phrases(lines: Iterable[str]) -> frozenset[Words]:
    return frozenset(map(words, _expand(lines)))


def _parameters(lines: Iterable[str]) -> dict[Words, frozenset[Words]]:
    """Return the values of parameters, from "name" or "name=value"."""
    found: dict[Words, set[Words]] = {}
    for name, _, value in (line.partition("=") for line in _expand(lines)):
        found.setdefault(words(name), set()).update({words(value)} if value else ())
    return {name: frozenset(values) for name, values in found.items()}


def _generic(by_language: Mapping[str, Sequence[str]]) -> frozenset[str]:
    """Return phrases as `LexiconMatch.phrase` has them."""
    return frozenset(
        fold("".join(line.split())) if language in _UNSPACED_LANGUAGES else " ".join(words(line))
        for language, lines in by_language.items()
        for line in _expand(lines)
    )


def _expand(lines: Iterable[str]) -> Iterator[str]:
    """Yield each line with every alternative of its "(a|b|)" groups."""
    for line in lines:
        parts = [part.split("|") for part in re.split(r"[()]", line)]
        yield from ("".join(alternative) for alternative in product(*parts))
