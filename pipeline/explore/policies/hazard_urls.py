"""Hazards in URLs: words by which loading a URL would change data, as in `/logout` or `/cart/empty`."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache, lru_cache
from itertools import pairwise
from urllib.parse import parse_qsl, quote, unquote, urlsplit

from waygraph.core.urls import is_route
from waygraph.pipeline.explore.policies.lexicon import (
    CACHED_LOOKUPS,
    Lexicon,
    LexiconMatch,
    Words,
    code_words,
    is_below_articles,
    lexicon,
    path_segments,
)
from waygraph.pipeline.explore.policies.login_addresses import has_login_address

#: Words of the longest path segment of which a part may match.
_MAX_ACT_WORDS = 3
#: Values of a parameter that says that nothing is done.
_OFF_VALUES = frozenset({"0", "false", "no", "off"})
_SCRIPT = re.compile(r"\.(?:php\d?|aspx?|jspx?|do|action|cgi|pl|cfm)$", re.IGNORECASE)
_STATIC = re.compile(r"\.html?$", re.IGNORECASE)
#: Files that are parts of a page and change nothing at the server: `/icons/delete.svg`.
_RESOURCE = re.compile(
    r"\.(?:m?js|css|map|wasm|png|jpe?g|gif|svg|webp|avif|ico|woff2?|ttf|otf|eot|mp[34]|webm|ogg)$", re.IGNORECASE
)
_IDENTIFIER = re.compile(r"\d+|(?=.*\d)[0-9a-fA-F-]{8,}|[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
#: A code that was made for one mail or one person. Slugs with numbers have words in them: `windows-11`.
_CODE = re.compile(
    r"(?=[^/]*\d)(?=[^/]*[A-Za-z])(?!(?:.*[^A-Za-z])?[A-Za-z]{4,}(?:[^A-Za-z0-9]|$))[\w.=~:+-]{6,}|(?!(?:19|20)\d\d$)\d{4,}|[A-Za-z0-9_=~+]{20,}"
)
_ID_PARAMETER = re.compile(r"(?:^|[_-])(?:id|ids|uid|pid|item|key)$|[a-z]Id$", re.IGNORECASE)


@lru_cache(CACHED_LOOKUPS)
def hazard_in_url(url: str) -> LexiconMatch | None:
    """Return the part of a URL that says that loading it changes data, if any.

    The path is searched first, then the query, then the fragment, if that is a route or a word.
    """
    try:
        parts = urlsplit(url)
    except ValueError:
        return None
    if parts.scheme not in {"http", "https"}:
        return None
    lex = lexicon()
    is_text = code_words(parts.netloc.partition(".")[0]) in lex.article_paths  # `docs.example.org`
    match = None if _RESOURCE.search(parts.path) else _match_path(parts.path, parts.query, lex, is_text=is_text)
    match = match or _match_query(parts.query, lex) or _match_login_query(parts.path, parts.query, lex)
    if match is None and is_route(parts.fragment):
        path, _, query = parts.fragment.lstrip("!").partition("?")
        match = _match_path(path, query, lex, is_text=is_text) or _match_query(query, lex)
    elif match is None and parts.fragment and not is_below_articles(path_segments(parts.path)):
        fragment = code_words(unquote(parts.fragment))
        match = " ".join(fragment) if fragment in lex.acts else None
    if match is None:
        return None
    is_collection = not parts.query and not parts.fragment and _is_item(path_segments(parts.path), match, lex)
    return LexiconMatch(match, "hazards.yaml: addresses", "address", is_collection=is_collection)


#: Letters of the shortest `beside` and `behind` phrase that is a glob. Shorter ones (`/run`, `/on`) are in the URLs of
#: too many pictures.
_MIN_GLOB_LETTERS = 5
#: Letters of the shortest phrase that is searched anywhere in a URL; shorter ones only where a path segment begins.
_MIN_GLOB_LETTERS_ANYWHERE = 6


@cache
def state_changing_globs() -> tuple[str, ...]:
    """Return globs (`*`, `?`) for the URLs that `hazard_in_url` matches, and few others.

    The first letter of a longer word may be a capital. Words in capitals, short words beside identifiers, and query
    values that change data only in certain parameters (`?do=send`) are left out.
    """
    lex = lexicon()
    acts, behind, pairs = (phrases - lex.of_documents for phrases in (lex.acts, lex.behind, lex.pairs))
    beside = {act for act in lex.beside | behind if len("".join(act)) >= _MIN_GLOB_LETTERS}
    at_start = {act for act in acts if len("".join(act)) < _MIN_GLOB_LETTERS_ANYWHERE} | lex.whole | beside
    globs = {f"*{glob}*" for act in acts - at_start for glob in _globs_anywhere(act)}
    globs |= {f"*/{_glob_at_start(act)}*" for act in at_start}
    globs |= {f"*/{first}/{second}*" for first, second in (pair for pair in pairs if len(pair) == 2)}
    return tuple(sorted(globs))


def _globs_anywhere(act: Words) -> set[str]:
    """Return globs for the words of an act, written as one word and with one character between them."""
    spelled = [_any_case(word) for word in act]
    return {"".join(spelled), "?".join(spelled)}


def _any_case(word: str) -> str:
    return f"?{word[1:]}" if word.isascii() else quote(word)


def _glob_at_start(act: Words) -> str:
    """Return a glob for the first and last word of an act; short words in lower case only (`?urge` is in "burger")."""
    if len(act) == 1:
        return act[0] if act[0].isascii() and len(act[0]) < _MIN_GLOB_LETTERS_ANYWHERE else _any_case(act[0])
    return f"{_any_case(act[0])}*{_any_case(act[-1])}"


def _match_path(path: str, query: str, lex: Lexicon, *, is_text: bool) -> str | None:
    segments = path_segments(path)
    is_text = is_text or is_below_articles(segments)
    phrases = [code_words(_SCRIPT.sub("", segment)) for segment in segments]
    for index, phrase in enumerate(phrases):
        neighbours = [segments[at] for at in (index - 1, index + 1) if 0 <= at < len(segments)]
        is_identified = any(_IDENTIFIER.fullmatch(neighbour) for neighbour in neighbours) or _names_item(query)
        is_whole_act = _without_numbers(phrase) in lex.acts or (
            phrase[:-1] in lex.acts and _STATIC.search(segments[index]) is not None
        )
        if is_whole_act and (
            not is_text or is_identified or bool(query) or (len(segments) <= 2 and _ends_session(phrase))
        ):
            return " ".join(phrase)
        if not is_text and not _STATIC.search(segments[index]) and _has_act(phrase, lex):
            return " ".join(phrase)
        if is_identified and phrase in lex.beside:
            return " ".join(phrase)
        if not is_text and phrase in lex.whole:
            return " ".join(phrase)
        if not is_text and phrase in lex.behind and _follows_item(segments[:index], phrases[:index], query, lex):
            return " ".join(phrase)
        if phrase in lex.beside and index > 1 and phrases[index - 2] in lex.named_items and not is_text:
            return " ".join(phrase)
        if not is_text and (_is_session_end(index, phrases, lex) or _is_before_code(index, segments, phrase, lex)):
            return " ".join(phrase)
    if is_text and not _names_item(query) and not any(map(_IDENTIFIER.fullmatch, segments)):
        return None
    pairs = (first + second for first, second in pairwise(phrases))
    return next((" ".join(pair) for pair in pairs if pair in lex.pairs), None)


def _is_session_end(index: int, phrases: Sequence[Words], lex: Lexicon) -> bool:
    """Return whether a segment ends the session: `/salir`, `/exit`, `/auth/exit`, but not `/exit/north`."""
    phrase = phrases[index]
    if _ends_session(phrase):
        return True
    if index < len(phrases) - 1:
        return False
    is_below_session = index > 0 and phrases[index - 1] in lex.session_paths
    if phrase in lex.session_ends:
        return index == 0 or is_below_session
    return phrase in lex.session_ends_below and is_below_session


def _is_before_code(index: int, segments: Sequence[str], phrase: Words, lex: Lexicon) -> bool:
    """Return whether a segment says what the code behind it does: `/newsletter/confirm/abc123`."""
    return phrase in lex.before_code and any(map(_CODE.fullmatch, segments[index + 1 : index + 3]))


def _is_item(segments: Sequence[str], match: str, lex: Lexicon) -> bool:
    """Return whether a path ends with an item of a collection, `/flag/5`, and its only act is the collection's name."""
    *above, name, item = ["", "", *segments][-max(len(segments), 2) :]
    return (
        code_words(name) in lex.collections
        and match == " ".join(code_words(name))
        and _IDENTIFIER.fullmatch(item) is not None
        and not any(map(_IDENTIFIER.fullmatch, above))
    )


def _follows_item(segments: Sequence[str], phrases: Sequence[Words], query: str, lex: Lexicon) -> bool:
    """Return whether the segments before an act name an item: `/messages/5`, `/job/nightly`, but not `/2024/05`."""
    if not segments:
        return False
    if _names_item(query) or (len(phrases) > 1 and phrases[-2] in lex.named_items):
        return True
    return _IDENTIFIER.fullmatch(segments[-1]) is not None and not all(segment.isdigit() for segment in segments[:-1])


def _match_query(query: str, lex: Lexicon) -> str | None:
    try:
        # Some applications separate by ";": ?action=markasread;sa=all
        pairs = parse_qsl(query.replace(";", "&"), keep_blank_values=True, max_num_fields=200)
    except ValueError:
        return None
    for key, value in pairs:
        parameter, phrase = code_words(key), code_words(value)
        if parameter in lex.verbs_in and _is_verb(value, lex):
            return f"{key}={value}"
        if parameter in lex.routes_in:
            steps = [code_words(step) for step in re.split(r"[/.:]", value)]
            if any(_has_act(step, lex) for step in steps) or any(a + b in lex.pairs for a, b in pairwise(steps)):
                return f"{key}={value}"
        if (values := lex.parameters.get(parameter)) is not None and (phrase in values if values else value):
            return f"{key}={value}" if values else key
        if value.lower() not in _OFF_VALUES and _begins_with_act(_without_numbers(parameter), lex):
            return key
    return None


def _match_login_query(path: str, query: str, lex: Lexicon) -> str | None:
    """Return the parameter with which a login page ends the session: `/login?bye=1`."""
    if not query or not has_login_address(f"http://x/{path.lstrip('/')}"):
        return None
    for key, value in parse_qsl(query, keep_blank_values=True, max_num_fields=200):
        if code_words(key) in lex.session_ends | lex.session_ends_below and value.lower() not in _OFF_VALUES:
            return key
    return None


def _is_verb(value: str, lex: Lexicon) -> bool:
    """Return whether the value of a parameter that names an action is one that changes data."""
    phrase = code_words(value)
    if phrase in lex.values or _has_act(phrase, lex) or phrase in lex.whole:
        return True
    # Of "controller.verb" and "controller/verb", the verb.
    *above, verb = re.split(r"[./:]", value)
    if above and code_words(verb) in lex.values:
        return True
    at = phrase.index("add") if "add" in phrase else len(phrase)
    return any(phrase[at + 1 : at + 1 + len(each)] == each for each in lex.added)


def _has_act(phrase: Words, lex: Lexicon) -> bool:
    """Return whether a path segment is an act, alone or with up to two more words before or after it."""
    phrase = _without_numbers(phrase)
    if len(phrase) > _MAX_ACT_WORDS and phrase not in lex.acts:
        return False
    if any(phrase[: len(opener)] == opener for opener in lex.openers):
        return False
    return _begins_with_act(phrase, lex) or any(phrase[-n:] in lex.acts for n in range(1, len(phrase) + 1))


def _begins_with_act(phrase: Words, lex: Lexicon) -> bool:
    return len(phrase) <= _MAX_ACT_WORDS and any(phrase[:n] in lex.acts for n in range(1, len(phrase) + 1))


def _without_numbers(phrase: Words) -> Words:
    return tuple(word for word in phrase if not word.isdigit())


def _ends_session(phrase: Words) -> bool:
    """Return whether a path segment is a phrase of the group "log out", in whatever language."""
    lex = lexicon()
    entry = lex.spaced.get(phrase) or lex.unspaced.get("".join(phrase))
    return entry is not None and entry.always


def _names_item(query: str) -> bool:
    return any(_ID_PARAMETER.search(pair.partition("=")[0]) for pair in query.split("&")) if query else False
