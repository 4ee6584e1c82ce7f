"""Texts that describe a state: one about the whole, and several about its parts.

The vector of a bare segment is a poor match: "Save" matches any query about saving. Segments of a kind are therefore
joined into *composites* and consecutive ones into *passages*. Each names the page. A *context text* describes the page
as a whole; its vector is added to that of every row (measured in `bench/retrieval`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

from waygraph.index.graph import Observation
from waygraph.pipeline.encode.text.own_text import Piece, fresh_pieces, own_pieces
from waygraph.pipeline.encode.text.site_text import SiteText
from waygraph.pipeline.encode.text.url_words import url_words

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
#: Target length of a passage.
PASSAGE_WORDS = 40
MAX_PASSAGES = 8


@dataclass(frozen=True, slots=True)
class TextRow:
    """A text to encode, and the indices of the observation's segments that it is made of."""

    text: str
    segments: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class StateText:
    """The texts of one state: the context text, at least one composite, and passages.

    Attributes
    ----------
    context
        Describes the state as a whole.
    composites
        Texts made of segments of one kind.
    passages
        Running text.
    names
        The anchor texts of the state, or its own name if it has none; empty for a page that was not visited, whose
        names are a row.
    named
        Whether `names` are anchor texts.
    generated
        Texts of the state's generated description.
    """

    context: str
    composites: tuple[TextRow, ...]
    passages: tuple[TextRow, ...]
    names: str
    named: bool = False
    generated: tuple[TextRow, ...] = ()

    @property
    def rows(self) -> tuple[TextRow, ...]:
        """All rows that a query is compared with."""
        anchors = (TextRow(self.names, ()),) if self.named else ()
        return self.composites + self.passages + anchors + self.generated


def describe(observation: Observation, site: SiteText) -> StateText:
    """Return the texts that describe a state."""
    pieces = own_pieces(observation, site)
    fresh = fresh_pieces(observation, site, pieces)
    # Pieces that distinguish a state from others of its URL (a dialog, an open tab) come first, since lists are cut.
    pieces = sorted(pieces, key=lambda piece: piece not in fresh)
    headings = [piece for piece in pieces if piece.role == "heading"][:MAX_HEADINGS]
    words = url_words(observation.url)
    title = site.own_title(observation.title) or (headings[0].name if headings else "")
    name = title or words
    # A dict removes repetitions: a field repeats its label, a card its picture.
    texts = dict.fromkeys([p.text for p in headings] + [p.text for p in pieces if has_words(p.text)])

    context = _sentences(title, words, *list(texts)[: len(headings) + MAX_TEXTS])
    generated = tuple(TextRow(text, ()) for text in observation.generated_texts)
    if not observation.visited:
        row = TextRow(_sentences(*observation.anchor_texts) or words, ())
        return StateText(context, (row,), (), "", generated=generated)
    heading = tuple(p.index for p in headings if p.text == title)
    rows = [TextRow(_sentences(title, words), heading)]
    rows += _summary(name, headings, [p for p in pieces if p.role in BUTTON_ROLES][:MAX_BUTTONS])
    if fresh and len(fresh) < len(pieces):
        rows += _listing(f"{name}: shows", [p for p in pieces if p in fresh][:MAX_TEXTS])
    rows += _listing(f"{name}: form with fields", [p for p in pieces if p.role in FIELD_ROLES][:MAX_FIELDS])
    rows += _listing(f"{name}: table with columns", [p for p in pieces if p.role in COLUMN_ROLES][:MAX_FIELDS])
    actions = [p for p in pieces if p.role in ACTION_ROLES][: MAX_ACTION_ROWS * ACTIONS_PER_ROW]
    for start in range(0, len(actions), ACTIONS_PER_ROW):
        rows += _listing(f"{name}: actions", actions[start : start + ACTIONS_PER_ROW])
    passages = _passages(name, [p for p in pieces if has_words(p.text)])
    names = _sentences(*observation.anchor_texts) or name
    named = bool(observation.anchor_texts)
    return StateText(context, tuple(rows), tuple(passages), names, named=named, generated=generated)


def has_words(text: str) -> bool:
    """Return whether a text has at least two letters. Prices, dates and counters do not describe a page."""
    return sum(character.isalpha() for character in text) >= 2


def _sentences(*texts: str) -> str:
    return ". ".join(text.removesuffix(".") for text in texts if text)


def _summary(name: str, headings: Sequence[Piece], buttons: Sequence[Piece]) -> Iterator[TextRow]:
    parts = [piece for piece in (*headings, *buttons) if piece.text != name]
    if parts:
        yield TextRow(_sentences(name, *(p.name for p in parts)), tuple(p.index for p in parts))


def _listing(head: str, pieces: Sequence[Piece]) -> Iterator[TextRow]:
    if pieces:
        yield TextRow(f"{head} {', '.join(p.name for p in pieces)}", tuple(p.index for p in pieces))


def _passages(name: str, pieces: Sequence[Piece]) -> Iterator[TextRow]:
    """Yield running text in passages. A query may be about a detail that no other row contains."""
    for passage in islice(_cut(pieces), MAX_PASSAGES):
        yield TextRow(_sentences(name, *(p.text for p in passage)), tuple(p.index for p in passage))


def _cut(pieces: Sequence[Piece]) -> Iterator[list[Piece]]:
    passage: list[Piece] = []
    words = 0
    for piece in pieces:
        passage.append(piece)
        words += len(piece.text.split())
        if words >= PASSAGE_WORDS:
            yield passage
            passage, words = [], 0
    if passage:
        yield passage
