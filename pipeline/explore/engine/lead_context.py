"""Words around links: the heading above a link, and the words that follow it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from waygraph.core.text import shortened
from waygraph.index.graph import Segment
from waygraph.pipeline.browser.page.snapshot import Candidate

#: Characters of a name, a heading and a description.
MAX_TEXT = 120
#: Texts between a link and the heading above it, and texts after a link that may describe it.
_HEADING_REACH, _DESCRIPTION_REACH = 80, 4
_DESCRIPTION_WORDS = 20
#: Roles of texts that do not describe the link before them.
_NO_DESCRIPTION = frozenset(
    {"heading", "columnheader", "link", "button", "tab", "treeitem", "option", "switch", "checkbox", "radio"}
    | {"menuitem", "menuitemcheckbox", "menuitemradio", "combobox", "listbox", "searchbox", "slider", "spinbutton"}
    | {"textbox"}
)


class LinkContexts:
    """The texts of one page, from which the contexts of its links are read.

    Parameters
    ----------
    segments
        Texts in document order.
    """

    def __init__(self, segments: Sequence[Segment]) -> None:
        self._segments = segments
        self._places: dict[str, list[int]] = {}
        for place, segment in enumerate(segments):
            self._places.setdefault(clean(segment.text), []).append(place)

    def of(self, candidate: Candidate) -> tuple[str, str]:
        """Return the heading above a link and the words that follow it; both empty if its text is not found."""
        name = clean(candidate.action.name)
        known = self._places.get(name, ())
        place = next((place for place in known if _is_inside(self._segments[place], candidate)), None)
        if place is None:
            return "", ""
        above = self._segments[max(0, place - _HEADING_REACH) : place]
        heading = next((clean(each.text) for each in reversed(above) if each.role == "heading"), "")
        return heading, _description(name, self._segments[place + 1 : place + 1 + _DESCRIPTION_REACH])


def clean(text: str) -> str:
    """Return a text with whitespace collapsed, cut to `MAX_TEXT` characters."""
    return shortened(" ".join(text.split()), MAX_TEXT)


def _is_inside(segment: Segment, candidate: Candidate) -> bool:
    """Return whether the centre of a text lies in the box of an element."""
    box, outer = segment.box, candidate.box
    x, y = box.x + box.width / 2, box.y + box.height / 2
    return outer.x <= x <= outer.x + outer.width and outer.y <= y <= outer.y + outer.height


def _description(name: str, following: Iterable[Segment]) -> str:
    words: list[str] = []
    for segment in following:
        if segment.role in _NO_DESCRIPTION or len(words) >= _DESCRIPTION_WORDS:
            break
        if (text := clean(segment.text)) != name:
            words += text.split()
    return shortened(" ".join(words[:_DESCRIPTION_WORDS]), MAX_TEXT)
