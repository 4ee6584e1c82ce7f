"""Which names and addresses look like acts? The words of `hazards.yaml`, compared with what a page says."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib.resources import files
from itertools import product
from typing import Any, Literal, NamedTuple
from urllib.parse import unquote, urlsplit

import yaml

Words = tuple[str, ...]
At = Literal["anywhere", "start", "buttons"]

_FIRST_WORDS = 6
#: A question has at least so many words; "Delete?" and "Log out?" ask to be pressed. Links whose names have no spaces
#: ask with at least so many letters.
_QUESTION_WORDS = 4
_QUESTION_LETTERS = 8
_LONGEST_ACT = 3
_UNSPACED = frozenset({"ja", "zh", "ko", "th"})
REMEMBERED = 65_536
#: Letters that have no decomposition, and are typed without their stroke by many.
_STROKES = str.maketrans({"\u0131": "i", "ł": "l", "đ": "d", "ø": "o", "æ": "ae", "œ": "oe"})
_WORD = re.compile(r"(?:[^\W_]|[\u0900-\u0963])+")
_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")


@dataclass(frozen=True, slots=True)
class Found:
    """A part of the lexicon that fits: the `phrase`, and the `rule` it belongs to, for people."""

    phrase: str
    rule: str
    group: str = ""


class _Entry(NamedTuple):
    group: str
    at: At
    always: bool
    whole: bool
    languages: Words


@dataclass(frozen=True, slots=True)
class Lexicon:
    """`hazards.yaml`, ready to be looked up; its comments say what each part is for."""

    spaced: Mapping[Words, _Entry]
    unspaced: Mapping[str, _Entry]
    longest: int
    ends: frozenset[str]
    harmless: tuple[Words, ...]
    openers: tuple[Words, ...]
    article_words: tuple[Words, ...]
    article_unspaced: Words
    article_paths: frozenset[Words]
    words_at_most: int
    acts: frozenset[Words]
    whole: frozenset[Words]
    beside: frozenset[Words]
    behind: frozenset[Words]
    named_items: frozenset[Words]
    pairs: frozenset[Words]
    verbs_in: frozenset[Words]
    routes_in: frozenset[Words]
    values: frozenset[Words]
    methods: frozenset[str]
    handlers: frozenset[Words]
    icons: frozenset[Words]
    symbols: str


def fold(text: str) -> str:
    """Lower case without accents, so that `SUPPRIMER`, `Déconnexion` and `cikis` are found.

    >>> fold("DÉCONNEXION")
    'deconnexion'
    """
    apart = unicodedata.normalize("NFKD", text.casefold())
    bare = "".join(character for character in apart if not "\u0300" <= character <= "\u036f")
    return unicodedata.normalize("NFC", bare).translate(_STROKES)


def words(text: str) -> Words:
    """The words of a text, folded.

    >>> words("Log-out (now)")
    ('log', 'out', 'now')
    """
    return tuple(_WORD.findall(fold(text)))


def code_words(text: str) -> Words:
    """The words of an identifier or of a piece of a URL: `deleteUser` has two.

    >>> code_words("removeItem_fromCart")
    ('remove', 'item', 'from', 'cart')
    """
    return words(_HUMP.sub(" ", text))


@lru_cache(REMEMBERED)
def hazard_in_name(name: str, *, shows: bool, leads_to: str = "") -> Found | None:
    """The act that a name says, if any.

    Parameters
    ----------
    name : accessible name of the element.
    shows : whether the element shows something rather than does something (a link, a tab).
    leads_to : the other page that a link leads to; empty for everything else. Its names may be those of articles.
    """
    said = words(name)
    if _asks(fold(name), said, shows=shows):
        return None
    known = lexicon()
    for phrase in known.harmless:
        if said[: len(phrase)] == phrase:
            said = said[len(phrase) :]
            break
    found = next(_acts_said(said[:_FIRST_WORDS], known, shows=shows, is_link=bool(leads_to)), None)
    if found is None:
        found = next(_acts_unspaced(fold(name), known, shows=shows), None)
    if found is None:
        return None
    entry, phrase_found = found
    if leads_to and _is_article(said, fold(name), leads_to, known) and not (entry.always and len(said) <= 2):
        return None
    rule = f"hazards.yaml: {entry.group} ({', '.join(entry.languages)})"
    return Found(phrase_found, rule, entry.group)


def pieces_of(path: str) -> list[str]:
    """The pieces of a path, decoded.

    >>> pieces_of("/a%20b//c/")
    ['a b', 'c']
    """
    return [piece for piece in unquote(path).split("/") if piece]


def below_articles(pieces: Sequence[str]) -> bool:
    """Whether a page lies below one of the places of a site that hold texts, such as `/docs/`."""
    return any(code_words(piece) in lexicon().article_paths for piece in pieces[:-1])


def hazard_in_code(code: str) -> Found | None:
    """The act that the text of a handler names, such as `deleteUser(5)`."""
    return _phrase_in(code_words(code), lexicon().handlers, "hazards.yaml: handlers")


def hazard_in_icon(classes: str, name: str) -> Found | None:
    """The act that an icon stands for, when the element has no name in letters."""
    known = lexicon()
    for symbol in known.symbols:
        if symbol in name and not words(name):
            return Found(symbol, "hazards.yaml: symbols", "icon")
    return None if words(name) else _phrase_in(code_words(classes), known.icons, "hazards.yaml: icons")


def changing_method(method: str) -> bool:
    """Whether a script will send this method instead of following the link."""
    return method.lower() in lexicon().methods


# ---- names -----------------------------------------------------------------------------------------------------------


def _asks(name: str, said: Words, *, shows: bool) -> bool:
    """Whether a name is a question, such as a heading of answers: "How do I delete my account?"."""
    if not name.rstrip().endswith("?"):
        return False
    return len(said) >= _QUESTION_WORDS or (shows and not _is_spaced(name) and len("".join(said)) >= _QUESTION_LETTERS)


def _is_spaced(name: str) -> bool:
    """Whether a name is written in letters whose words have spaces between them; Thai and what comes later has not."""
    return not any(letter >= "\u0e00" and letter.isalpha() for letter in name)


def _acts_said(said: Words, known: Lexicon, *, shows: bool, is_link: bool) -> Iterator[tuple[_Entry, str]]:
    for start in range(len(said)):
        for length in range(min(known.longest, len(said) - start), 0, -1):
            phrase = said[start : start + length]
            entry = known.spaced.get(phrase)
            if entry is None:
                continue
            whole, at_end = length == len(said), start + length == len(said)
            if entry.whole:
                stands = whole
            elif entry.at == "start":
                stands = start == 0 and not (is_link and whole)
            elif entry.at == "buttons":
                verb_last = at_end and not known.ends.isdisjoint(entry.languages)
                stands = not shows and (start == 0 or verb_last)
            else:
                stands = True
            if stands:
                yield entry, " ".join(phrase)


def _acts_unspaced(name: str, known: Lexicon, *, shows: bool) -> Iterator[tuple[_Entry, str]]:
    compact = "".join(name.split())
    if compact.isascii():
        return
    for phrase, entry in known.unspaced.items():
        if phrase in compact and (
            entry.at == "anywhere"
            or (entry.at == "start" and compact.startswith(phrase))
            or (entry.at == "buttons" and not shows)
        ):
            yield entry, phrase


def _is_article(said: Words, name: str, leads_to: str, known: Lexicon) -> bool:
    """Whether a link is the title of a text about an act rather than the act itself."""
    if len(said) > known.words_at_most or any(part in name for part in known.article_unspaced):
        return True
    if any(said[: len(opener)] == opener for opener in known.openers):
        return True
    if any(_contains(said, phrase) for phrase in known.article_words):
        return True
    try:
        parts = urlsplit(leads_to)
    except ValueError:
        return False
    return not parts.query and below_articles(pieces_of(parts.path))


def _phrase_in(said: Words, phrases: frozenset[Words], rule: str) -> Found | None:
    for start in range(len(said)):
        for length in range(_LONGEST_ACT, 0, -1):
            if (phrase := said[start : start + length]) in phrases:
                return Found(" ".join(phrase), rule, "code")
    return None


def _contains(said: Words, phrase: Words) -> bool:
    return any(said[i : i + len(phrase)] == phrase for i in range(len(said)))


# ---- reading the file ------------------------------------------------------------------------------------------------


@cache
def lexicon() -> Lexicon:
    """Read the file, once per process."""
    text = files("pipeline.explore").joinpath("hazards.yaml").read_text(encoding="utf-8")
    document: dict[str, Any] = yaml.safe_load(text)
    spaced: dict[Words, _Entry] = {}
    unspaced: dict[str, _Entry] = {}
    for group, body in document["groups"].items():
        for language, lines in body["words"].items():
            for line in _alternatives(lines):
                entry = _Entry(group, body["at"], body.get("always", False), line.startswith("="), (language,))
                if language in _UNSPACED:
                    unspaced.setdefault(fold("".join(line.split())), entry)
                else:
                    phrase = words(line)
                    first = spaced.setdefault(phrase, entry)
                    if first.group == group and language not in first.languages:
                        # One languages' whole name may be another's verb: then the verb counts.
                        spaced[phrase] = first._replace(
                            languages=(*first.languages, language), whole=first.whole and entry.whole
                        )
    articles, addresses = document["articles"], document["addresses"]
    return Lexicon(
        spaced=spaced,
        unspaced=unspaced,
        longest=max(map(len, spaced)),
        ends=frozenset(document["verbs_last"]),
        harmless=tuple(sorted(map(words, _alternatives(document["harmless"])), key=len, reverse=True)),
        openers=tuple(map(words, articles["openers"])),
        article_words=tuple(map(words, articles["words"])),
        article_unspaced=tuple(map(fold, articles["unspaced"])),
        article_paths=_set(articles["paths"]),
        words_at_most=articles["words_at_most"],
        acts=_set(addresses["acts"]),
        whole=_set(addresses["whole"]),
        beside=_set(addresses["beside_identifier"]),
        behind=_set(addresses["behind_identifier"]),
        named_items=_set(addresses["named_items"]),
        pairs=_set(addresses["pairs"]),
        verbs_in=_set(addresses["verbs_in"]),
        routes_in=_set(addresses["routes_in"]),
        values=_set(addresses["values"]),
        methods=frozenset(document["methods"]),
        handlers=_set(document["handlers"]),
        icons=_set(document["icons"]),
        symbols=document["symbols"],
    )


def _set(lines: Iterable[str]) -> frozenset[Words]:
    return frozenset(map(words, _alternatives(lines)))


def _alternatives(lines: Iterable[str]) -> Iterator[str]:
    """Write out what "(a|b|)" stands for."""
    for line in lines:
        pieces = [piece.split("|") for piece in re.split(r"[()]", line)]
        yield from ("".join(chosen) for chosen in product(*pieces))
