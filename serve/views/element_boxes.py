"""Attribution of visible texts to the elements of actions: where on the page an element is."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from waygraph.index.graph import Action, Box, Segment


class ElementBoxes:
    """Finds the boxes of elements among the visible texts of one state.

    A map stores positions of texts. An action names its element by role, accessible name and its number among the
    elements with both. The number counts hidden elements too, so an element is found only if all texts with its role
    and name are alike in number, or if one text alone has its name.

    Parameters
    ----------
    segments
        Visible texts of the state, in reading order.
    """

    def __init__(self, segments: Iterable[Segment]) -> None:
        self._by_role: defaultdict[tuple[str, str], list[Box]] = defaultdict(list)
        self._by_name: defaultdict[str, list[Box]] = defaultdict(list)
        for segment in segments:
            name = _plain(segment.text)
            self._by_role[segment.role, name].append(segment.box)
            self._by_name[name].append(segment.box)

    def find(self, action: Action) -> Box | None:
        """Return the box of the text that names an action's element; None if there is no such text.

        Parameters
        ----------
        action
            An action of the state.

        Returns
        -------
        Box | None
            The box, in CSS pixels of the page.
        """
        name = _plain(action.name)
        if not name or action.kind == "goto":
            return None
        alike = self._by_role.get((action.role, name), [])
        if action.nth < len(alike):
            return alike[action.nth]
        named = self._by_name.get(name, [])
        return named[0] if len(named) == 1 else None


def _plain(text: str) -> str:
    return " ".join(text.split()).casefold()
