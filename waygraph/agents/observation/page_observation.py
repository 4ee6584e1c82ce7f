"""One observation of a page: texts for a model, and the elements behind their ids."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Self

from waygraph.agents.observation.elements import ElementTable
from waygraph.agents.observation.render import MAX_LINES, render
from waygraph.agents.observation.simplify import simplify
from waygraph.agents.observation.ui_tree import UiNode, build_tree
from waygraph.pipeline.browser.page.snapshot import Snapshot


@dataclass(frozen=True, slots=True)
class OpenTab:
    """A tab of the browser: its title and URL, and whether it is the one that is observed."""

    title: str
    url: str
    is_current: bool = False


@dataclass(frozen=True)
class PageObservation:
    """What an agent sees of a page. Ids of its elements hold until the next observation.

    Attributes
    ----------
    snapshot
        The snapshot, with an outline.
    elements
        Elements that can be acted on, by id.
    tree
        The raw tree.
    tabs
        All open tabs.
    """

    snapshot: Snapshot
    elements: ElementTable
    tree: UiNode
    tabs: tuple[OpenTab, ...] = ()

    @classmethod
    def of(cls, snapshot: Snapshot, tabs: Sequence[OpenTab] = ()) -> Self:
        """Build the observation of a snapshot that was taken with an outline."""
        elements = ElementTable.of(snapshot)
        first_row: dict[int, str] = {}
        numbers = iter(elements)
        for row in snapshot.outline:
            if row.candidate >= 0 and row.candidate not in first_row:
                first_row[row.candidate] = next(numbers).ref
        return cls(snapshot, elements, build_tree(snapshot.outline, first_row, title=snapshot.title), tuple(tabs))

    @property
    def url(self) -> str:
        """URL as the browser reports it."""
        return self.snapshot.raw_url

    @property
    def title(self) -> str:
        """Title of the document."""
        return self.snapshot.title

    @cached_property
    def simplified(self) -> UiNode:
        """The simplified tree."""
        return simplify(self.tree)

    @cached_property
    def text(self) -> str:
        """The simplified tree as text of at most `MAX_LINES` lines, below a list of the tabs if there are several."""
        return self._tab_list() + render(self.simplified, max_lines=MAX_LINES)

    @cached_property
    def raw_text(self) -> str:
        """The raw tree as text."""
        return render(self.tree)

    def _tab_list(self) -> str:
        if len(self.tabs) < 2:
            return ""
        lines = [
            f"Tab {number}{' (current)' if tab.is_current else ''}: {tab.title or tab.url}"
            for number, tab in enumerate(self.tabs)
        ]
        return "\n".join([*lines, ""])
