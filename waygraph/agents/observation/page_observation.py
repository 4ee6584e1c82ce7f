"""One observation of a page: texts for a model, and the elements behind their ids."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal, Self

from waygraph.agents.observation.elements import ElementTable
from waygraph.agents.observation.open_dialog import OpenDialog
from waygraph.agents.observation.passes.abridging import Abridged, abridge, part_fingerprints
from waygraph.agents.observation.render import MAX_LINES, lines_of, render
from waygraph.agents.observation.simplify import simplify
from waygraph.agents.observation.ui_tree import UiNode, build_tree
from waygraph.pipeline.browser.page.snapshot import Snapshot

#: What a text is made of: the accessibility tree, the simplified tree, or that without what `with_part` shows, which is
#: the rest of long lists and texts, lines, and unchanged parts.
TextForm = Literal["raw", "simplified", "abridged"]


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
    form
        What the text is made of.
    known_parts
        Fingerprints of the parts of the page before, which are folded if this one has them unchanged.
    opened
        Ids that were asked for.
    window
        Number of the page of lines that the text has, from 0.
    dialog
        The JavaScript dialog that is all that can be seen; None: there is none.
    """

    snapshot: Snapshot
    elements: ElementTable
    tree: UiNode
    tabs: tuple[OpenTab, ...] = ()
    form: TextForm = "simplified"
    known_parts: frozenset[int] = frozenset()
    opened: frozenset[str] = frozenset()
    window: int = 0
    dialog: OpenDialog | None = None

    @classmethod
    def of(
        cls,
        snapshot: Snapshot,
        tabs: Sequence[OpenTab] = (),
        *,
        form: TextForm = "simplified",
        before: PageObservation | None = None,
    ) -> Self:
        """Build the observation of a snapshot that was taken with an outline.

        Parameters
        ----------
        snapshot
            The snapshot.
        tabs
            All open tabs.
        form
            What the text is made of.
        before
            The observation before, whose unchanged parts are folded in the text; None: nothing is.

        Returns
        -------
        PageObservation
            The observation.
        """
        elements = ElementTable.of(snapshot)
        tree = build_tree(snapshot.outline, elements.refs, title=snapshot.title)
        known = part_fingerprints(before.simplified) if form == "abridged" and before is not None else frozenset()
        return cls(snapshot, elements, tree, tuple(tabs), form, known)

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

    @property
    def shown(self) -> UiNode:
        """The tree that the text is made of, with nothing left out."""
        return self.tree if self.form == "raw" else self.simplified

    @cached_property
    def text(self) -> str:
        """The page as text of at most `MAX_LINES` lines, below a list of the tabs if there are several.

        What it leaves out, if it does, has an id for `with_part`.
        """
        return self._tab_list() + ("\n".join(self._window_lines()) if self.form == "abridged" else self.full_text)

    @cached_property
    def full_text(self) -> str:
        """The tree as text of at most `MAX_LINES` lines, with nothing else left out."""
        return render(self.shown, max_lines=MAX_LINES)

    def with_part(self, part: str) -> PageObservation | None:
        """Return this observation with a text that shows what was left out.

        Parameters
        ----------
        part
            Id behind which something is left out, or that of an element that is left out itself.

        Returns
        -------
        PageObservation or None
            The observation; None: nothing is left out there.
        """
        if self.form != "abridged":
            return None
        hidden = self._abridged.hidden
        number = int(part.removeprefix("p")) - self._abridged.parts - 1 if part.startswith("p") else -1
        if 0 <= number < len(self._windows) and number != self.window:
            return replace(self, window=number)
        key = part if part in hidden else next((key for key, refs in hidden.items() if part in refs), None)
        return None if key is None else replace(self, opened=self.opened | {key}, window=0)

    @cached_property
    def raw_text(self) -> str:
        """The raw tree as text."""
        return render(self.tree)

    @cached_property
    def _abridged(self) -> Abridged:
        focused = [each.ref for each in self.elements if ("focused", "true") in each.states and not each.list_ref]
        return abridge(self.simplified, known=self.known_parts, focused=focused, opened=self.opened)

    @cached_property
    def _windows(self) -> list[list[str]]:
        lines = list(lines_of(self._abridged.tree))
        return [lines[i : i + MAX_LINES] for i in range(0, len(lines), MAX_LINES)]

    def _window_lines(self) -> list[str]:
        """Return the lines of the window, between lines that say how to show those around it."""
        first = self._abridged.parts + 1
        total = sum(map(len, self._windows))
        before, after = self.window * MAX_LINES, total - (self.window + 1) * MAX_LINES
        return [
            *([f"[p{first + self.window - 1}] ({before} lines before these)"] if self.window else []),
            *self._windows[self.window],
            *([f"[p{first + self.window + 1}] ({after} more lines)"] if after > 0 else []),
        ]

    def is_cut(self, list_ref: str) -> bool:
        """Whether the snapshot has not all options of a native list, because it is very long."""
        found = next((node for node in self.tree.walk() if node.ref == list_ref), None)
        return found is not None and any("more" in child.states for child in found.children)

    def _tab_list(self) -> str:
        if len(self.tabs) < 2:
            return ""
        lines = [
            f"Tab {number}{' (current)' if tab.is_current else ''}: {tab.title or tab.url}"
            for number, tab in enumerate(self.tabs)
        ]
        return "\n".join([*lines, ""])
