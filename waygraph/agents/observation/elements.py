"""The elements of one observation that can be acted on, by short id."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Self

from msgspec import structs

from waygraph.index.graph import Box
from waygraph.index.graph.model import ActionKind
from waygraph.pipeline.browser.page.snapshot import Candidate, Snapshot


@dataclass(frozen=True, slots=True)
class ObservedElement:
    """An element that an agent can act on.

    Attributes
    ----------
    ref
        Short id, valid for one observation.
    candidate
        The click on it (a double click, if it takes no other), which holds the locator ladder, and the attributes that
        policies need.
    states
        States and properties with their values.
    list_ref
        Short id of the native list, or of the field with suggestions, that the element is an option of; empty: it is no
        option. The action of the candidate chooses the option; its other attributes are those of the list.
    """

    ref: str
    candidate: Candidate
    states: tuple[tuple[str, str], ...] = ()
    list_ref: str = ""

    @property
    def role(self) -> str:
        """ARIA role; empty for an element that is clickable without one."""
        return "option" if self.list_ref else self.candidate.action.role

    @property
    def name(self) -> str:
        """Accessible name."""
        return self.candidate.action.value if self.list_ref else self.candidate.action.name

    @property
    def is_list(self) -> bool:
        """Whether the element is a native list, of which an option can be chosen."""
        return self.candidate.tag == "select" and not self.list_ref

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
    refs
        Ids of the rows of the outline; empty for a row that is no element.
    """

    def __init__(self, elements: dict[str, ObservedElement], refs: Sequence[str] = ()) -> None:
        self._elements = elements
        self.refs = refs

    @classmethod
    def of(cls, snapshot: Snapshot) -> Self:
        """Build the table of a snapshot that was taken with an outline."""
        elements: dict[str, ObservedElement] = {}
        refs: list[str] = []
        first: dict[int, str] = {}
        for row in snapshot.outline:
            ref = first.get(row.candidate, "")
            if row.candidate >= 0:
                candidate = snapshot.candidates[row.candidate]
                is_option = bool(ref) and row.role == "option"
                if is_option:
                    ref, of_list = str(len(elements) + 1), ref
                    elements[ref] = ObservedElement(ref, _choosing(candidate, row.name), row.states, of_list)
                elif not ref:
                    ref = first[row.candidate] = str(len(elements) + 1)
                    elements[ref] = ObservedElement(ref, candidate, row.states)
            refs.append(ref)
        return cls(elements, refs)

    def options(self, list_ref: str) -> list[ObservedElement]:
        """Return the options of a native list."""
        return [each for each in self if each.list_ref == list_ref]

    def get(self, ref: str) -> ObservedElement | None:
        """Return the element with this id, or None."""
        return self._elements.get(ref)

    def __iter__(self) -> Iterator[ObservedElement]:
        return iter(self._elements.values())

    def __len__(self) -> int:
        return len(self._elements)

    def __contains__(self, ref: object) -> bool:
        return ref in self._elements


def _choosing(candidate: Candidate, option: str) -> Candidate:
    """Return the candidate of a list with the action that chooses an option; suggestions for a field are typed."""
    kind: ActionKind = "select" if candidate.tag == "select" else "input"
    return structs.replace(candidate, action=structs.replace(candidate.action, kind=kind, value=option))
