"""Which addresses act when they are loaded? `/logout`, `/posts/5/delete`, `?action=delete`, by their words."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache, lru_cache
from itertools import pairwise
from urllib.parse import parse_qsl, quote, unquote, urlsplit

from pipeline.explore.lexicon import REMEMBERED, Found, Lexicon, Words, below_articles, code_words, lexicon, pieces_of

_LONGEST_ACT = 3
_NOT_SET = frozenset({"0", "false", "no", "off"})
_SCRIPT = re.compile(r"\.(?:php\d?|aspx?|jspx?|do|action|cgi|pl|cfm)$", re.IGNORECASE)
_STATIC = re.compile(r"\.html?$", re.IGNORECASE)
#: What shows or runs in a page and does nothing at the server: `/icons/delete.svg`.
_PART = re.compile(
    r"\.(?:m?js|css|map|wasm|png|jpe?g|gif|svg|webp|avif|ico|woff2?|ttf|otf|eot|mp[34]|webm|ogg)$", re.IGNORECASE
)
_IDENTIFIER = re.compile(r"\d+|(?=.*\d)[0-9a-fA-F-]{8,}|[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
_ID_KEY = re.compile(r"(?:^|[_-])(?:id|ids|uid|pid|item|key)$|[a-z]Id$", re.IGNORECASE)


@lru_cache(REMEMBERED)
def hazard_in_address(url: str) -> Found | None:
    """The act that loading a URL would be, as far as its words tell."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return None
    if parts.scheme not in {"http", "https"}:
        return None
    known = lexicon()
    found = None if _PART.search(parts.path) else _in_path(parts.path, parts.query, known)
    found = found or _in_query(parts.query, known)
    if found is None and parts.fragment[:1] in {"/", "!"}:
        path, _, query = parts.fragment.lstrip("!").partition("?")
        found = _in_path(path, query, known) or _in_query(query, known)
    elif found is None and parts.fragment and not below_articles(pieces_of(parts.path)):
        said = code_words(unquote(parts.fragment))
        found = " ".join(said) if said in known.acts else None
    return Found(found, "hazards.yaml: addresses", "address") if found else None


#: Shorter words of acts beside identifiers stand in the addresses of too many pictures: `/run`, `/on`.
_LEAST_LETTERS = 5
#: Shorter acts are looked for where a piece of a path begins only.
_LEAST_ANYWHERE = 6


@cache
def acting_globs() -> tuple[str, ...]:
    """Patterns (`*`, `?`) for the addresses that `hazard_in_address` finds, and few others.

    The first letter of a longer word may be a capital. Words in capitals, short words beside identifiers and those of
    queries that are no acts by themselves (`?do=send`) are left out.
    """
    known = lexicon()
    beside = {act for act in known.beside | known.behind if len("".join(act)) >= _LEAST_LETTERS}
    begins = {act for act in known.acts if len("".join(act)) < _LEAST_ANYWHERE} | known.whole | beside
    globs = {f"*{glob}*" for act in known.acts - begins for glob in _globs(act)}
    globs |= {f"*/{_beginning(act)}*" for act in begins}
    globs |= {f"*/{first}/{second}*" for first, second in (pair for pair in known.pairs if len(pair) == 2)}
    return tuple(sorted(globs))


def _globs(act: Words) -> set[str]:
    """The words of an act, spelled as one and with something between them."""
    spelled = [_any_case(word) for word in act]
    return {"".join(spelled), "?".join(spelled)}


def _any_case(word: str) -> str:
    return f"?{word[1:]}" if word.isascii() else quote(word)


def _beginning(act: Words) -> str:
    """First and last word of an act; a short one in lower case alone: `?urge` is in "burger" as well."""
    if len(act) == 1:
        return act[0] if act[0].isascii() and len(act[0]) < _LEAST_ANYWHERE else _any_case(act[0])
    return f"{_any_case(act[0])}*{_any_case(act[-1])}"


def _in_path(path: str, query: str, known: Lexicon) -> str | None:
    pieces = pieces_of(path)
    is_text = below_articles(pieces)
    said = [code_words(_SCRIPT.sub("", piece)) for piece in pieces]
    for index, piece in enumerate(said):
        beside = [pieces[at] for at in (index - 1, index + 1) if 0 <= at < len(pieces)]
        identified = any(_IDENTIFIER.fullmatch(neighbour) for neighbour in beside) or _names_an_item(query)
        whole = _without_numbers(piece) in known.acts or (
            piece[:-1] in known.acts and _STATIC.search(pieces[index]) is not None
        )
        if whole and (not is_text or identified or bool(query) or (len(pieces) <= 2 and _ends_session(piece))):
            return " ".join(piece)
        if not is_text and not _STATIC.search(pieces[index]) and _acts_in_piece(piece, known):
            return " ".join(piece)
        if identified and piece in known.beside:
            return " ".join(piece)
        if not is_text and piece in known.whole:
            return " ".join(piece)
        if not is_text and piece in known.behind and _follows_an_item(pieces[:index], said[:index], query, known):
            return " ".join(piece)
        if piece in known.beside and index > 1 and said[index - 2] in known.named_items and not is_text:
            return " ".join(piece)
    if is_text and not _names_an_item(query) and not any(map(_IDENTIFIER.fullmatch, pieces)):
        return None
    pairs = (first + second for first, second in pairwise(said))
    return next((" ".join(pair) for pair in pairs if pair in known.pairs), None)


def _follows_an_item(pieces: Sequence[str], said: Sequence[Words], query: str, known: Lexicon) -> bool:
    """Whether what comes before in a path is an item: `/messages/5`, `/job/nightly`, but not `/2024/05`."""
    if not pieces:
        return False
    if _names_an_item(query) or (len(said) > 1 and said[-2] in known.named_items):
        return True
    return _IDENTIFIER.fullmatch(pieces[-1]) is not None and not all(piece.isdigit() for piece in pieces[:-1])


def _in_query(query: str, known: Lexicon) -> str | None:
    try:
        pairs = parse_qsl(query, keep_blank_values=True, max_num_fields=200)
    except ValueError:
        return None
    for key, value in pairs:
        named, said = code_words(key), code_words(value)
        if named in known.verbs_in and (said in known.values or _acts_in_piece(said, known)):
            return f"{key}={value}"
        if named in known.routes_in:
            steps = (code_words(piece) for piece in re.split(r"[/.:]", value))
            if any(_acts_in_piece(step, known) for step in steps):
                return f"{key}={value}"
        if value.lower() not in _NOT_SET and _begins_with_act(_without_numbers(named), known):
            return key
    return None


def _acts_in_piece(piece: Words, known: Lexicon) -> bool:
    """Whether a piece of a path is an act, alone or with up to two more words before or behind it."""
    said = _without_numbers(piece)
    if len(said) > _LONGEST_ACT and said not in known.acts:
        return False
    if any(said[: len(opener)] == opener for opener in known.openers):
        return False
    return _begins_with_act(said, known) or any(said[-n:] in known.acts for n in range(1, len(said) + 1))


def _begins_with_act(said: Words, known: Lexicon) -> bool:
    return len(said) <= _LONGEST_ACT and any(said[:n] in known.acts for n in range(1, len(said) + 1))


def _without_numbers(said: Words) -> Words:
    return tuple(word for word in said if not word.isdigit())


def _ends_session(piece: Words) -> bool:
    entry = lexicon().spaced.get(piece)
    return entry is not None and entry.always


def _names_an_item(query: str) -> bool:
    return any(_ID_KEY.search(pair.partition("=")[0]) for pair in query.split("&")) if query else False
