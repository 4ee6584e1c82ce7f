"""Hazards in names, event handlers and icons: phrases that say that an element changes data at the site."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from urllib.parse import urlsplit

from waygraph.pipeline.explore.policies.lexicon import (
    CACHED_LOOKUPS,
    Lexicon,
    LexiconMatch,
    NameEntry,
    Words,
    code_words,
    fold,
    is_below_articles,
    lexicon,
    path_segments,
    words,
)

#: Words of a name, from the first, that are compared.
_COMPARED_WORDS = 6
#: Words that a name must have to be a question. "Delete?" and "Log out?" are buttons.
_MIN_QUESTION_WORDS = 4
#: Letters that the name of a link without spaces must have to be a question.
_MIN_QUESTION_LETTERS = 8
#: Words of the longest phrase in handlers and icons.
_LONGEST_CODE_PHRASE = 3


@lru_cache(CACHED_LOOKUPS)
def hazard_in_name(name: str, *, shows: bool, leads_to: str = "") -> LexiconMatch | None:
    """Return the phrase in a name that says that the element changes data, if any.

    Parameters
    ----------
    name
        Accessible name of the element.
    shows
        Whether the element shows something rather than does something (a link, a tab).
    leads_to
        Other page that a link leads to; empty for all other elements. The name may then be the title of an article.

    Returns
    -------
    LexiconMatch | None
        None if the name is harmless.
    """
    name_words = words(name)
    if _is_question(fold(name), name_words, shows=shows):
        return None
    lex = lexicon()
    for phrase in lex.harmless:
        if name_words[: len(phrase)] == phrase:
            name_words = name_words[len(phrase) :]
            break
    spaced = _spaced_matches(name_words[:_COMPARED_WORDS], lex, shows=shows, is_link=bool(leads_to))
    # A phrase that is not generic takes precedence: "Save and delete".
    matches = sorted(
        [*spaced, *_unspaced_matches(fold(name), lex, shows=shows)], key=lambda match: match[1] in lex.generic
    )
    if not matches:
        return None
    entry, matching_phrase = matches[0]
    if leads_to and _is_article(name_words, fold(name), leads_to, lex) and not (entry.always and len(name_words) <= 2):
        return None
    rule = f"hazards.yaml: {entry.group} ({', '.join(entry.languages)})"
    return LexiconMatch(matching_phrase, rule, entry.group, is_generic=matching_phrase in lex.generic)


def hazard_in_code(code: str) -> LexiconMatch | None:
    """Return the phrase in the source of an event handler that says that it changes data, such as `deleteUser(5)`."""
    return _phrase_in(code_words(code), lexicon().handlers, "hazards.yaml: handlers")


def hazard_in_icon(classes: str, name: str) -> LexiconMatch | None:
    """Return the phrase or symbol of an icon that says that it changes data, if the element has no name in letters."""
    lex = lexicon()
    for symbol in lex.symbols:
        if symbol in name and not words(name):
            return LexiconMatch(symbol, "hazards.yaml: symbols", "icon")
    return None if words(name) else _phrase_in(code_words(classes), lex.icons, "hazards.yaml: icons")


def is_state_changing_method(method: str) -> bool:
    """Return whether an attribute names an HTTP method that changes data, which a script sends in place of the link."""
    return method.lower() in lexicon().methods


# ---- names -----------------------------------------------------------------------------------------------------------


def _is_question(name: str, name_words: Words, *, shows: bool) -> bool:
    """Return whether a name is a question, such as a heading of a help page: "How do I delete my account?"."""
    if not name.rstrip().endswith("?"):
        return False
    if len(name_words) >= _MIN_QUESTION_WORDS:
        return True
    return shows and not _is_spaced(name) and len("".join(name_words)) >= _MIN_QUESTION_LETTERS


def _is_spaced(name: str) -> bool:
    """Return whether a name has no letters from U+0E00 (Thai) on, where scripts without spaces begin."""
    return not any(letter >= "\u0e00" and letter.isalpha() for letter in name)


def _spaced_matches(name_words: Words, lex: Lexicon, *, shows: bool, is_link: bool) -> Iterator[tuple[NameEntry, str]]:
    """Yield the phrases in a name, from left to right, the longest first, that stand where their group requires."""
    for start in range(len(name_words)):
        for length in range(min(lex.longest, len(name_words) - start), 0, -1):
            phrase = name_words[start : start + length]
            entry = lex.spaced.get(phrase)
            if entry is None:
                continue
            is_whole, is_at_end = length == len(name_words), start + length == len(name_words)
            if entry.whole:
                matches = is_whole
            elif entry.at == "start":
                matches = start == 0 and not (is_link and is_whole)
            elif entry.at == "buttons":
                is_verb_last = is_at_end and not lex.verb_last_languages.isdisjoint(entry.languages)
                matches = not shows and (start == 0 or is_verb_last)
            else:
                matches = True
            if matches:
                yield entry, " ".join(phrase)


def _unspaced_matches(name: str, lex: Lexicon, *, shows: bool) -> Iterator[tuple[NameEntry, str]]:
    compact = "".join(name.split())
    if compact.isascii():
        return
    for phrase, entry in lex.unspaced.items():
        if phrase in compact and (
            entry.at == "anywhere"
            or (entry.at == "start" and compact.startswith(phrase))
            or (entry.at == "buttons" and not shows)
        ):
            yield entry, phrase


def _is_article(name_words: Words, name: str, leads_to: str, lex: Lexicon) -> bool:
    """Return whether a link is the title of a text about an action rather than the action itself."""
    if len(name_words) > lex.max_article_words or any(part in name for part in lex.article_unspaced):
        return True
    if any(name_words[: len(opener)] == opener for opener in lex.openers):
        return True
    if any(_contains(name_words, phrase) for phrase in lex.article_words):
        return True
    try:
        parts = urlsplit(leads_to)
    except ValueError:
        return False
    return not parts.query and is_below_articles(path_segments(parts.path))


def _phrase_in(text_words: Words, phrases: frozenset[Words], rule: str) -> LexiconMatch | None:
    for start in range(len(text_words)):
        for length in range(_LONGEST_CODE_PHRASE, 0, -1):
            if (phrase := text_words[start : start + length]) in phrases:
                return LexiconMatch(" ".join(phrase), rule, "code")
    return None


def _contains(text_words: Words, phrase: Words) -> bool:
    return any(text_words[i : i + len(phrase)] == phrase for i in range(len(text_words)))
