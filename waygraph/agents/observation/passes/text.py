"""Passes over texts: characters without meaning, text that a name repeats, text that is the name of its parent."""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache

from waygraph.agents.observation.ui_tree import UiNode, parents_first

#: Roles whose name is not taken from a child: they structure what they contain.
_KEEPS_TEXT = frozenset(
    {
        *("RootWebArea", "table", "grid", "treegrid", "row", "rowgroup", "DescriptionList", "list"),
        *("toolbar", "tablist", "menubar", "menu"),
    }
)
_WORDS = re.compile(r"\w+")
#: Unicode categories without meaning for a reader: control and format characters, private use (icon fonts), unassigned.
_ODD = frozenset({"Cc", "Cf", "Co", "Cn", "Cs"})


def clean_characters(root: UiNode) -> None:
    """Remove characters without meaning from names and values, and collapse whitespace."""
    for node in root.walk():
        node.name = clean(node.name)
        node.states = {key: clean(value) for key, value in node.states.items()}


def clean(text: str) -> str:
    r"""Return a text in one line, without control characters and characters of icon fonts.

    >>> clean("Cart\ue001  (2)\n")
    'Cart (2)'
    """
    if not text.isascii() or not text.isprintable():
        text = "".join(" " if c.isspace() else "" if unicodedata.category(c) in _ODD else c for c in text)
    return " ".join(text.split())


def halve_names(root: UiNode) -> None:
    """Say once what a name says twice, because a picture in the node repeats the words beside it."""
    for node in root.walk():
        half = node.name[: len(node.name) // 2]
        if half and node.name == f"{half} {half}" and any(c.role == "img" and c.name == half for c in node.children):
            node.name = half


def hide_redundant_text(root: UiNode) -> None:
    """Remove text that is empty, or that the name of its parent or a neighbour contains, and paragraphs of a parent."""
    for parent in parents_first(root):
        children = parent.children
        kept = []
        for i, node in enumerate(children):
            if node.role == "paragraph" and node.is_leaf and not node.ref and not node.states:
                if node.name and contains(parent.name, node.name):
                    continue
            elif node.is_text and not node.states:
                neighbours = [children[j] for j in (i - 1, i + 1) if 0 <= j < len(children)]
                names = [parent.name, *(other.name for other in neighbours if not other.is_text)]
                if not node.name or any(contains(name, node.name) for name in names if name):
                    continue
            kept.append(node)
        parent.children = kept


def contains(text: str, part: str) -> bool:
    """Whether the words of `part` are in `text`, in this order and next to each other.

    >>> contains("Page 12 of 40", "12"), contains("Page 12 of 40", "1")
    (True, False)
    """
    if part == text:
        return True
    if part not in text:
        return False
    whole, inner = _words(text), _words(part)
    if not inner:  # punctuation alone
        return True
    return any(whole[i : i + len(inner)] == inner for i in range(len(whole) - len(inner) + 1))


@lru_cache(maxsize=4096)
def _words(text: str) -> tuple[str, ...]:
    return tuple(_WORDS.findall(text))


def lift_only_text(root: UiNode) -> None:
    """Make the only text in a node without a name its name."""
    for node in reversed(parents_first(root)):
        if node.name or len(node.children) != 1 or node.role in _KEEPS_TEXT:
            continue
        only = node.children[0]
        if only.is_text and not only.states:
            node.name, node.children = only.name, []


def rename_text(root: UiNode) -> None:
    """Call all kinds of text `text`."""
    for node in root.walk():
        if node.role in {"StaticText", "LabelText"}:
            node.role = "text"
