"""Expected novelty of work items: predict from earlier results how much a further item adds to the map.

Every item belongs to several kinds, from general (links into one folder) to specific (links of one URL template). The
share of items of a kind that brought something new predicts the next one. A kind of which little is known is predicted
by the more general ones: each estimate is shrunk towards that of the more general kind (shrinkage in a hierarchy of
classes, McCallum et al. 1998). What was learned depends on the committed results alone.
"""

from __future__ import annotations

import heapq
import re
import zlib
from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from waygraph.index.graph import PASSIVE_KINDS
from waygraph.index.graph.url_tokens import url_parts
from waygraph.pipeline.browser.page.snapshot import Candidate, Snapshot
from waygraph.pipeline.explore.identity.entities import NUMBER, Entities, url_contexts
from waygraph.pipeline.explore.identity.gain import pack_numbers, unpack_numbers, word_hashes
from waygraph.pipeline.explore.identity.thresholds import (
    GAIN_OF_WORDS,
    MAX_CONTROLS_OF_A_PLACE,
    MIN_LIST,
    MIN_NEW_CONTROLS,
    NEW_PLACE_SHARE,
    PRIOR_WEIGHT,
    REPEATED_SHARE,
)

Item = TypeVar("Item")

_STEP = re.compile(r"([^/\[\]]+)(?:\[(\d+)\])?")
_INDEX = re.compile(r"\[\d+\]|(?<=~~~ )\d+")
_CELL = re.compile(r"/(t[dh])(?:\[(\d+)\])?(?=/|$)")
_NUMBER = re.compile(r"\d+")
#: Longer names are sentences, which no two elements share.
_MAX_NAME = 60

#: Expected gain of an item of which nothing else is known, by where its element stands. Set by hand from the order in
#: which a person would look: menus, links and buttons, rows of tables, then what a pointer or a key may show.
_PRIOR_OF_NAVIGATION = 0.8
_PRIOR_OF_LINK = 0.6
_PRIOR_OF_CONTROL = 0.5
_PRIOR_OF_ROW = 0.5
_PRIOR_OF_INPUT = 0.2
_PRIOR_OF_PROBE = 0.1
#: Factor for a link to the page itself with another query: another order, filter or form of the same content.
_VARIANT = 0.7
#: Factor for each further action between the start page and the element.
_DEPTH_DISCOUNT = 0.8

_NAVIGATION = re.compile(r"/(?:nav|header|aside|footer|menu)\d*/")
_MENU_ROLES = frozenset({"tab", "menuitem", "menuitemradio", "menuitemcheckbox", "treeitem"})
_FIELDS = frozenset({"textbox", "searchbox", "combobox", "listbox", "spinbutton", "slider"})
_INPUT_KINDS = frozenset({"press", "input", "submit", "select"})


@dataclass(frozen=True, slots=True)
class ItemKind:
    """The kinds that a work item belongs to.

    Attributes
    ----------
    prior
        Expected gain, 0 to 1, before anything was learned.
    weight
        Factor of the expected gain: items near the start page are preferred.
    chains
        CRC-32 of the name of each kind; in each chain from the most general to the most specific.
    contexts
        For each word of a link's address: the kind of the links whose addresses differ in this word alone, and the
        word, see `url_contexts`.
    page
        The page on which another element acts; 0 for links.
    """

    prior: float
    weight: float
    chains: tuple[tuple[int, ...], ...]
    contexts: tuple[tuple[int, int], ...] = ()
    page: int = 0

    @property
    def keys(self) -> tuple[int, ...]:
        """All kinds."""
        return (*(key for chain in self.chains for key in chain), *(context for context, _ in self.contexts))


def item_kind(candidate: Candidate, place: str, source_url: str, depth: int) -> ItemKind:
    """Return the kinds of a work item, from what is visible before it is performed.

    Parameters
    ----------
    candidate
        Element and action.
    place
        Place of the element in its page, see `places`.
    source_url
        URL of the page that shows the element.
    depth
        Number of actions from the start page to that page.

    Returns
    -------
    ItemKind
        Kinds and prior. Links are told apart by the list that they stand in, their name and the words of their
        target; other elements by action and role, place and name.
    """
    action = candidate.action
    name = f"name {action.role} {_masked_name(action.name)}" if len(action.name) <= _MAX_NAME else ""
    prior, weight = _prior(candidate, place), round(_DEPTH_DISCOUNT**depth, 4)
    named = (f"{action.kind} {name}",) if name else ()
    at = (f"place {action.kind} {place}", f"list {action.kind} {source_url} {place}")
    if not action.target.startswith(("http:", "https:")) or action.kind in PASSIVE_KINDS:
        return ItemKind(
            prior, weight, _keys((f"role {action.kind} {action.role}",), at, named), page=page_key(source_url)
        )
    if _same_page(action.target, source_url):
        prior = round(prior * _VARIANT, 4)
    return ItemKind(prior, weight, _keys(at, named), url_contexts(action.target))


def _keys(*chains: tuple[str, ...]) -> tuple[tuple[int, ...], ...]:
    return tuple(tuple(map(crc, chain)) for chain in chains)


def places(snapshot: Snapshot) -> list[str]:
    """Return the place of each candidate: its XPath, with the positions in lists left out.

    A step is an item of a list if elements of the page have `MIN_LIST` positions there and equal paths otherwise.
    """
    paths = [_STEP.findall(candidate.action.xpath) for candidate in snapshot.candidates]
    positions: dict[tuple[str, ...], set[str]] = {}
    for steps in paths:
        for key, position in _list_keys(steps):
            positions.setdefault(key, set()).add(position)
    return [
        "/".join(
            tag if len(positions[key]) >= MIN_LIST else f"{tag}{position}"
            for (key, position), (tag, _) in zip(_list_keys(steps), steps, strict=True)
        )
        for steps in paths
    ]


def _list_keys(steps: Sequence[tuple[str, str]]) -> Iterator[tuple[tuple[str, ...], str]]:
    """Yield for each step of a path what items of one list have in common, and the position."""
    tags = tuple(tag for tag, _ in steps)
    for number, (_, position) in enumerate(steps):
        before = tuple(f"{tag}{at}" for tag, at in steps[:number])
        yield (*before, "/", *tags[number:]), position


def place_of(xpath: str) -> str:
    """Return the path of an element without positions, but with the column of a table.

    Items of a list have one place.

    >>> place_of("/html[1]/body[1]/table[1]/tbody[1]/tr[7]/td[2]/a[1]")
    '/html/body/table/tbody/tr/td2/a'
    """
    return _INDEX.sub("", _CELL.sub(lambda cell: f"/{cell[1]}{cell[2] or ''}", xpath))


def _prior(candidate: Candidate, place: str) -> float:
    action = candidate.action
    if action.kind in PASSIVE_KINDS or candidate.listener == "page":
        return _PRIOR_OF_PROBE
    if action.kind in _INPUT_KINDS:
        return _PRIOR_OF_INPUT
    if action.role in _MENU_ROLES or _NAVIGATION.search(place):
        return _PRIOR_OF_NAVIGATION
    if "/tr/" in place:
        return _PRIOR_OF_ROW
    return _PRIOR_OF_LINK if action.target else _PRIOR_OF_CONTROL


def _same_page(target: str, source: str) -> bool:
    a, b = url_parts(target), url_parts(source)
    return a.host == b.host and a.segments == b.segments


def _masked_name(name: str) -> str:
    return _NUMBER.sub("#", name.strip().lower())


class NoveltyModel:
    """Results of items by kind, and the expected gain of further ones."""

    def __init__(self) -> None:
        self._tried: dict[int, float] = {}
        self._gained: dict[int, float] = {}
        self._variants: dict[int, int] = {}
        """Number of states in a page that offered no new page, by page."""
        self.entities = Entities()

    def learn(self, kind: ItemKind, gain: float, *, is_variant: bool = False) -> None:
        """Add the result of an item.

        Parameters
        ----------
        kind
            Kinds of the item.
        gain
            Between 0, nothing new, and 1.
        is_variant
            Whether it led to another state of its own page that offers no new page.
        """
        if is_variant:
            self._variants[kind.page] = self._variants.get(kind.page, 0) + 1
        for number in kind.keys:
            self._tried[number] = self._tried.get(number, 0.0) + 1.0
            if gain:
                self._gained[number] = self._gained.get(number, 0.0) + gain

    def expected_gain(self, kind: ItemKind, planned: Mapping[int, int]) -> float:
        """Return the expected gain of an item.

        Parameters
        ----------
        kind
            Kinds of the item.
        planned
            Number of items of each kind that are planned and have no result yet. They count as tried without gain, so
            that one round does not take all items of one promising kind.

        Returns
        -------
        float
            Expected gain, 0 to 1.
        """
        known, repeated = self._repetition(kind, planned)
        estimates = []
        for chain in kind.chains:
            estimate, has_results = kind.prior * known, False
            for number in chain:
                if tried := self._tried.get(number, 0.0) + planned.get(number, 0):
                    estimate = (self._gained.get(number, 0.0) + PRIOR_WEIGHT * estimate) / (tried + PRIOR_WEIGHT)
                    has_results = True
            if has_results:
                estimates.append(estimate)
        estimate = sum(estimates) / len(estimates) if estimates else kind.prior * known
        return kind.weight * estimate * repeated / (1 + self._variants.get(kind.page, 0))

    def _repetition(self, kind: ItemKind, planned: Mapping[int, int]) -> tuple[float, float]:
        """Return by which factors the pages whose addresses differ from a link's in one word change its expected gain.

        The first page of a context is new whatever comes after it, so its gain says nothing about the others.

        Parameters
        ----------
        kind
            Kinds of the link.
        planned
            See `expected_gain`.

        Returns
        -------
        tuple[float, float]
            By the gains of pages that differ in a word of which nothing is known, and by those that differ in an
            entity: they are expected to show the same about another thing.
        """
        factors = [1.0], [1.0]
        for context, word in kind.contexts:
            if not (tried := self._tried.get(context, 0.0) + planned.get(context, 0)):
                continue
            gained = self._gained.get(context, 0.0)
            further = max(0.0, gained - 1.0) / kind.prior
            is_entity = word == NUMBER or (word > NUMBER and self.entities.is_entity(context, word))
            share, first = (REPEATED_SHARE, 1.0) if is_entity else (1.0, min(1.0, gained))
            factor = (further + PRIOR_WEIGHT * share) / (max(0.0, tried - first) + PRIOR_WEIGHT)
            factors[is_entity].append(min(1.0, factor))
        return min(factors[0]), min(factors[1])

    def most_promising(
        self, groups: dict[ItemKind, deque[Item]], planned: Mapping[int, int], rank: Callable[[Item], Any]
    ) -> Iterator[tuple[ItemKind, Item, float]]:
        """Take items one by one, always of the kind with the highest expected gain.

        Parameters
        ----------
        groups
            Items by their kinds. An item is removed when it is yielded, and so are empty groups.
        planned
            As in `expected_gain`. The caller may add to it after each item.
        rank
            Sort key of an item. Of kinds with equal gain that one comes first whose first item has the lower key.

        Yields
        ------
        tuple[ItemKind, Item, float]
            Kind, item and expected gain.
        """
        heap = [(-self.expected_gain(kind, planned), rank(items[0]), kind) for kind, items in groups.items()]
        heapq.heapify(heap)
        while heap:
            gain, _, kind = heap[0]
            items = groups[kind]
            now = -self.expected_gain(kind, planned)
            if now > gain:
                # Planned items of its kinds made a gain less likely. For no entry can it be more likely by now.
                heapq.heapreplace(heap, (now, rank(items[0]), kind))
                continue
            item = items.popleft()
            if items:
                heapq.heapreplace(heap, (now, rank(items[0]), kind))
            else:
                heapq.heappop(heap)
                del groups[kind]
            yield kind, item, -now

    def to_checkpoint(self) -> dict[str, Any]:
        """Return all results, as plain JSON."""
        return {
            "tried": [[number, count] for number, count in self._tried.items()],
            "gained": [[number, gain] for number, gain in self._gained.items()],
            "variants": [[page, count] for page, count in self._variants.items()],
            "entities": self.entities.to_checkpoint(),
        }

    def load_checkpoint(self, checkpoint: Mapping[str, Any]) -> None:
        """Restore what `to_checkpoint` returned."""
        self._tried = dict(map(tuple, checkpoint["tried"]))
        self._gained = dict(map(tuple, checkpoint["gained"]))
        self._variants = dict(map(tuple, checkpoint["variants"]))
        self.entities.load_checkpoint(checkpoint["entities"])


@dataclass(slots=True)
class ShownContent:
    """What the states of the map have shown so far. Measures the gain of a new one.

    Attributes
    ----------
    places
        CRC-32 of role and place of each element.
    controls
        CRC-32 of role and name of each element that is not a link.
    words
        CRC-32 of each word.
    elements
        First 32 bits of the hash of each exposed element.
    """

    places: set[int] = field(default_factory=set)
    controls: set[int] = field(default_factory=set)
    words: set[int] = field(default_factory=set)
    elements: set[int] = field(default_factory=set)

    def add(self, snapshot: Snapshot) -> float:
        """Add a new state.

        Parameters
        ----------
        snapshot
            Snapshot of the state.

        Returns
        -------
        float
            Its gain: 1 for elements at new places or controls with new names, which make a page of a new kind; less
            for new words alone.
        """
        places, controls = _places(snapshot), _controls(snapshot)
        words = word_hashes(snapshot)
        new_places = len(places - self.places) / len(places) if places else 0.0
        new_controls = len(controls - self.controls)
        new_words = len(words - self.words) / len(words) if words else 0.0
        elements = {int(element[:8], 16) for element in snapshot.structure}
        new_elements = len(elements - self.elements) / len(elements) if elements else 0.0
        self.elements |= elements
        self.places |= places
        self.controls |= controls
        self.words |= words
        if max(new_places, new_elements) >= NEW_PLACE_SHARE or new_controls >= MIN_NEW_CONTROLS:
            return 1.0
        return round(GAIN_OF_WORDS * new_words, 4)

    def to_checkpoint(self) -> dict[str, str]:
        """Return everything, as plain JSON."""
        return {name: pack_numbers(getattr(self, name)) for name in ("places", "controls", "words", "elements")}

    @classmethod
    def from_checkpoint(cls, checkpoint: Mapping[str, str]) -> ShownContent:
        """Return what `to_checkpoint` was called on."""
        return cls(**{name: set(unpack_numbers(packed)) for name, packed in checkpoint.items()})


def _places(snapshot: Snapshot) -> set[int]:
    return {crc(f"{c.action.kind} {c.action.role} {place_of(c.action.xpath)}") for c in snapshot.candidates}


def _controls(snapshot: Snapshot) -> set[int]:
    """Return the controls of a page. Buttons of a list, whose names are content, are left out; fields are of a form."""
    controls = [c.action for c in snapshot.candidates if not c.action.target and c.action.name]
    places = Counter(f"{action.role} {place_of(action.xpath)}" for action in controls)
    return {
        crc(f"{action.role} {_masked_name(action.name)}")
        for action in controls
        if action.role in _FIELDS or places[f"{action.role} {place_of(action.xpath)}"] <= MAX_CONTROLS_OF_A_PLACE
    }


def page_key(url: str) -> int:
    """Return the kind of all elements of a page that are no links."""
    return crc(f"page {url}")


def crc(text: str) -> int:
    """Return the CRC-32 of a text."""
    return zlib.crc32(text.encode(errors="replace"))
