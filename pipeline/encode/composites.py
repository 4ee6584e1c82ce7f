"""What does a page state say? One text about the whole, and a few about its parts.

Bare segments make bad vectors: "Save" matches any question about saving. The recipe therefore joins segments of a kind
into *composites*, and consecutive ones into *passages*, names the page in each, and describes the page as a whole in a
*context text* whose vector is added to every row's (measured in `bench/retrieval.py`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

from index.graph import Observation
from pipeline.encode.counts import clean
from pipeline.encode.site_text import SiteText
from pipeline.encode.url_words import url_words

BUTTON_ROLES = frozenset({"button", "switch"})
FIELD_ROLES = frozenset(
    {"checkbox", "combobox", "listbox", "radio", "searchbox", "slider", "spinbutton", "switch", "textbox"}
)
COLUMN_ROLES = frozenset({"columnheader"})
ACTION_ROLES = frozenset(
    {"button", "link", "menuitem", "menuitemcheckbox", "menuitemradio", "option", "switch", "tab", "treeitem"}
)

MAX_HEADINGS = 8
MAX_TEXTS = 30
MAX_BUTTONS = 12
MAX_FIELDS = 24
ACTIONS_PER_ROW = 12
MAX_ACTION_ROWS = 4
#: A passage holds about so many words.
PASSAGE_WORDS = 40
MAX_PASSAGES = 8
#: Names longer than this (links around whole cards) are cut, so that a row never outgrows what the model reads.
MAX_NAME_CHARS = 80


@dataclass(frozen=True, slots=True)
class Row:
    """A composite: its text, and the indices of the observation's segments it was made of."""

    text: str
    segments: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class StateText:
    """What is encoded of a state: the context text, at least one composite, and passages of what it says.

    `names` is what other states call it, or its own name when none does; `named` says which.
    """

    context: str
    composites: tuple[Row, ...]
    passages: tuple[Row, ...]
    names: str
    named: bool = False

    @property
    def rows(self) -> tuple[Row, ...]:
        """Everything that is compared with a question."""
        return self.composites + self.passages + ((Row(self.names, ()),) if self.named else ())


@dataclass(frozen=True, slots=True)
class _Piece:
    """A segment that counts: its position in the observation, its cleaned text, its role."""

    index: int
    text: str
    role: str

    @property
    def name(self) -> str:
        return shortened(self.text)


def describe(observation: Observation, site: SiteText) -> StateText:
    """Put a state into words."""
    pieces = _own_pieces(observation, site)
    fresh = _fresh_pieces(observation, site, pieces)
    # What tells a state from the others at its URL (the dialog, the open tab) goes first, before anything is cut off.
    pieces = sorted(pieces, key=lambda piece: piece not in fresh)
    headings = [piece for piece in pieces if piece.role == "heading"][:MAX_HEADINGS]
    words = url_words(observation.url)
    title = site.own_title(observation.title) or (headings[0].name if headings else "")
    name = title or words
    # A dict, since a field repeats its label and a card its picture.
    texts = dict.fromkeys([p.text for p in headings] + [p.text for p in pieces if has_words(p.text)])

    context = _sentences(title, words, *list(texts)[: len(headings) + MAX_TEXTS])
    heading = tuple(p.index for p in headings if p.text == title)
    rows = [Row(_sentences(title, words), heading)]
    rows += _summary(name, headings, [p for p in pieces if p.role in BUTTON_ROLES][:MAX_BUTTONS])
    if fresh and len(fresh) < len(pieces):
        rows += _listing(f"{name}: shows", [p for p in pieces if p in fresh][:MAX_TEXTS])
    rows += _listing(f"{name}: form with fields", [p for p in pieces if p.role in FIELD_ROLES][:MAX_FIELDS])
    rows += _listing(f"{name}: table with columns", [p for p in pieces if p.role in COLUMN_ROLES][:MAX_FIELDS])
    actions = [p for p in pieces if p.role in ACTION_ROLES][: MAX_ACTION_ROWS * ACTIONS_PER_ROW]
    for start in range(0, len(actions), ACTIONS_PER_ROW):
        rows += _listing(f"{name}: actions", actions[start : start + ACTIONS_PER_ROW])
    passages = _passages(name, [p for p in pieces if has_words(p.text)])
    names = _sentences(*observation.called) or name
    return StateText(context, tuple(rows), tuple(passages), names, named=bool(observation.called))


def _own_pieces(observation: Observation, site: SiteText) -> list[_Piece]:
    """Distinct texts in document order, without the site's boilerplate; all of them when nothing else is there."""
    pieces: dict[tuple[str, str], _Piece] = {}
    for index, segment in enumerate(observation.segments):
        if text := clean(segment.text):
            pieces.setdefault((text, segment.role), _Piece(index, text, segment.role))
    own = [piece for piece in pieces.values() if piece.text not in site.boilerplate]
    # A start page may show nothing but what every page shows. Then that is what it is about.
    return own or list(pieces.values())


def _fresh_pieces(observation: Observation, site: SiteText, pieces: Iterable[_Piece]) -> frozenset[_Piece]:
    """What other states at the same URL do not show; empty when the URL has one state."""
    shared = site.shared.get(observation.url)
    return frozenset() if shared is None else frozenset(piece for piece in pieces if piece.text not in shared)


def shortened(text: str) -> str:
    """`text`, cut where it is too long for a name."""
    return text if len(text) <= MAX_NAME_CHARS else text[: MAX_NAME_CHARS - 1].rstrip() + "\u2026"


def has_words(text: str) -> bool:
    """Prices, dates in digits and counters would fill the context without saying what the page is."""
    return sum(character.isalpha() for character in text) >= 2


def _sentences(*texts: str) -> str:
    return ". ".join(text.removesuffix(".") for text in texts if text)


def _summary(name: str, headings: Sequence[_Piece], buttons: Sequence[_Piece]) -> Iterator[Row]:
    parts = [piece for piece in (*headings, *buttons) if piece.text != name]
    if parts:
        yield Row(_sentences(name, *(p.name for p in parts)), tuple(p.index for p in parts))


def _listing(head: str, pieces: Sequence[_Piece]) -> Iterator[Row]:
    if pieces:
        yield Row(f"{head} {', '.join(p.name for p in pieces)}", tuple(p.index for p in pieces))


def _passages(name: str, pieces: Sequence[_Piece]) -> Iterator[Row]:
    """What the state says, passage by passage: a question may be about a detail that no other row has room for."""
    for passage in islice(_cut(pieces), MAX_PASSAGES):
        yield Row(_sentences(name, *(p.text for p in passage)), tuple(p.index for p in passage))


def _cut(pieces: Sequence[_Piece]) -> Iterator[list[_Piece]]:
    passage: list[_Piece] = []
    words = 0
    for piece in pieces:
        passage.append(piece)
        words += len(piece.text.split())
        if words >= PASSAGE_WORDS:
            yield passage
            passage, words = [], 0
    if passage:
        yield passage
