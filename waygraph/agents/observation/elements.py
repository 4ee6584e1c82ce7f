"""The elements of one observation that can be acted on, by short id."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Self

from waygraph.index.graph import Box
from waygraph.pipeline.browser.page.snapshot import Candidate, Snapshot


@dataclass(frozen=True, slots=True)
class ObservedElement:
    """An element that an agent can act on.

    Attributes
    ----------
    ref
        Short id, valid for one observation.
    candidate
        The click on it, which holds the locator ladder, and the attributes that policies need.
    states
        States and properties with their values.
    """

    ref: str
    candidate: Candidate
    states: tuple[tuple[str, str], ...] = ()

    @property
    def role(self) -> str:
        """ARIA role; empty for an element that is clickable without one."""
        return self.candidate.action.role

    @property
    def name(self) -> str:
        """Accessible name."""
        return self.candidate.action.name

    @property
    def box(self) -> Box:
        """Position on the page."""
        return self.candidate.box

    def __str__(self) -> str:
        return f"[{self.ref}] {self.role or self.candidate.tag} '{self.name}'"


class ElementTable:
    """Elements by short id. Ids are "1", "2" and so on, in document order.

    Parameters
    ----------
    elements
        The elements.
    """

    def __init__(self, elements: dict[str, ObservedElement]) -> None:
        self._elements = elements

    @classmethod
    def of(cls, snapshot: Snapshot) -> Self:
        """Build the table of a snapshot that was taken with an outline."""
        elements: dict[str, ObservedElement] = {}
        seen: set[int] = set()
        for row in snapshot.outline:
            if row.candidate >= 0 and row.candidate not in seen:
                seen.add(row.candidate)
                ref = str(len(elements) + 1)
                elements[ref] = ObservedElement(ref, snapshot.candidates[row.candidate], row.states)
        return cls(elements)

    def get(self, ref: str) -> ObservedElement | None:
        """Return the element with this id, or None."""
        return self._elements.get(ref)

    def __iter__(self) -> Iterator[ObservedElement]:
        return iter(self._elements.values())

    def __len__(self) -> int:
        return len(self._elements)

    def __contains__(self, ref: object) -> bool:
        return ref in self._elements
