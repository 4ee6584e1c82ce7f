"""What a state shows itself: its texts without boilerplate, and those that most other states of its URL lack."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from waygraph.core.text import shortened
from waygraph.index.graph import HIDDEN_ROLE, Observation
from waygraph.pipeline.encode.text.site_text import SiteText
from waygraph.pipeline.encode.text_counts import clean

#: Longer names (links around whole cards) are cut, so that a row fits the model's input.
MAX_NAME_CHARS = 80


@dataclass(frozen=True, slots=True)
class Piece:
    """A segment that is used: its index in the observation, its cleaned text, its role."""

    index: int
    text: str
    role: str

    @property
    def name(self) -> str:
        """The text, cut to the length of a name."""
        return shortened(self.text, MAX_NAME_CHARS)


def own_pieces(observation: Observation, site: SiteText) -> list[Piece]:
    """Return distinct pieces in document order without boilerplate, or all of them if only boilerplate is left."""
    pieces = _distinct_pieces(observation)
    # A start page may show nothing but boilerplate, which then describes it.
    return [piece for piece in pieces if piece.text not in site.boilerplate] or pieces


def _distinct_pieces(observation: Observation) -> list[Piece]:
    pieces: dict[tuple[str, str], Piece] = {}
    for index, segment in enumerate(observation.segments):
        if text := clean(segment.text):
            pieces.setdefault((text, segment.role), Piece(index, text, segment.role))
    return list(pieces.values())


def fresh_pieces(observation: Observation, site: SiteText, pieces: Iterable[Piece]) -> frozenset[Piece]:
    """Return visible pieces that most other states of the same URL do not show. Empty if the URL has one state."""
    shared = site.shared.get(observation.url)
    if shared is None:
        return frozenset()
    return frozenset(piece for piece in pieces if piece.text not in shared and piece.role != HIDDEN_ROLE)


@dataclass(frozen=True, slots=True)
class SplitPieces:
    """The distinct texts of a state in three parts, each in document order.

    Attributes
    ----------
    fresh
        Texts that most other states of the same URL do not show. Empty if the URL has one state, or all of its texts
        are such.
    own
        Texts that belong to the page and are not fresh.
    common
        Boilerplate of the site. Empty if the state shows nothing else.
    """

    fresh: tuple[Piece, ...]
    own: tuple[Piece, ...]
    common: tuple[Piece, ...]


def split_pieces(observation: Observation, site: SiteText) -> SplitPieces:
    """Return the texts of a state, those that distinguish it apart from those that it shares."""
    pieces = own_pieces(observation, site)
    fresh = fresh_pieces(observation, site, pieces)
    if len(fresh) == len(pieces):
        fresh = frozenset()
    own = frozenset(pieces)
    return SplitPieces(
        tuple(piece for piece in pieces if piece in fresh),
        tuple(piece for piece in pieces if piece not in fresh),
        tuple(piece for piece in _distinct_pieces(observation) if piece not in own),
    )
