"""The pass that leaves out what an agent can ask for: parts that did not change, the rest of long lists and long texts.

What is left out has an id: that of its element, or `p1`, `p2` and so on. Ids do not depend on what was asked for.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from waygraph.agents.observation.ui_tree import UiNode

#: Options of a list above which it is shortened, and those of it that are written besides the chosen ones.
MAX_OPTIONS, FIRST_OPTIONS = 20, 8
#: Characters of a text above which it is cut, and those of it that are written.
MAX_TEXT, FIRST_TEXT = 500, 300
#: Elements of an unchanged part that are written, and elements or characters that it needs to be folded.
FIRST_ELEMENTS, MIN_ELEMENTS, MIN_CHARS = 5, 8, 400
#: Fields of an unchanged part that are written.
FIRST_FIELDS = 3
_FIELDS = frozenset({"searchbox", "textbox", "spinbutton", "slider"})
_MAX_ELEMENT_NAME = 40

_LANDMARKS = frozenset({"banner", "navigation", "contentinfo", "complementary", "search"})
#: Parts that are folded as landmarks are, since not all pages have those.
_COLLECTIONS = frozenset({"list", "menu", "menubar", "toolbar", "tree", "tablist"})
#: Parts that hold news, and are never folded with what is around them.
_NEWS = frozenset({"dialog", "alertdialog", "alert", "status", "log"})
#: States that say where the agent is, which differ between pages with the same navigation.
_PLACE = frozenset({"current", "selected"})


@dataclass(frozen=True, slots=True)
class Abridged:
    """A tree without what was left out.

    Attributes
    ----------
    tree
        The tree.
    hidden
        Ids of the elements that are left out, by the id that shows them.
    parts
        Number of parts with an id of their own, whether they are shown or not.
    """

    tree: UiNode
    hidden: Mapping[str, frozenset[str]]
    parts: int


def part_fingerprints(root: UiNode) -> frozenset[int]:
    """Return the fingerprints of all parts of a simplified tree that can be folded, for this process."""
    prints: dict[int, int] = {}
    _fingerprint(root, prints)
    return frozenset(prints[id(node)] for node in root.walk() if node.role in _LANDMARKS | _COLLECTIONS)


def abridge(
    root: UiNode,
    *,
    known: Collection[int] = (),
    focused: Collection[str] = (),
    opened: Collection[str] = (),
) -> Abridged:
    """Leave out what an agent can ask for.

    Parameters
    ----------
    root
        A simplified tree; it is not changed.
    known
        Fingerprints of the parts that the page before had, too. They are folded, except for main content, what has the
        focus, dialogs, alerts, and fields with errors.
    focused
        Ids of the elements that have the focus.
    opened
        Ids that were asked for.

    Returns
    -------
    Abridged
        The tree, and what is left out.
    """
    work = _Abridging(root, frozenset(known), frozenset(focused), frozenset(opened))
    tree = work.written(root, may_fold=True, in_full=False)
    return Abridged(tree, work.hidden, work.parts)


class _Abridging:
    def __init__(self, root: UiNode, known: frozenset[int], focused: frozenset[str], opened: frozenset[str]) -> None:
        self._prints: dict[int, int] = {}
        if known:
            _fingerprint(root, self._prints)
        self._known = known
        self._focused = focused
        self._opened = opened
        self.hidden: dict[str, frozenset[str]] = {}
        self.parts = 0

    def written(self, node: UiNode, *, may_fold: bool, in_full: bool) -> UiNode:
        """Return a copy of a node as it is written, which numbers the parts in it in document order."""
        is_folded = may_fold and self._is_unchanged(node)
        is_long = max(len(node.name), len(node.states.get("value", ""))) > MAX_TEXT
        has_many = len(node.folded) > MAX_OPTIONS and node.folded[0].role == "option"
        key = ""
        if is_folded or is_long or has_many:
            key = node.ref or self._next_part()
        is_open = in_full or key in self._opened
        within = {
            "may_fold": may_fold and not is_folded and node.role != "main",
            "in_full": in_full or (is_folded and is_open),
        }
        before = dict(self.hidden)
        copy = UiNode(
            node.role,
            node.name,
            dict(node.states),
            node.ref,
            [self.written(child, **within) for child in node.children],
            [self.written(item, **within) for item in node.folded],
            None if node.cells is None else [[self.written(each, **within) for each in cell] for cell in node.cells],
        )
        if not key or is_open:
            return copy
        if is_folded:
            self.hidden = before | {key: frozenset(node.refs())}
            return _folded(node, "" if node.ref else key)
        self.hidden[key] = frozenset()
        if not node.ref:
            copy.part = key
        if is_long:
            copy.name = _cut(node.name)
            copy.states |= {key: _cut(value) for key, value in node.states.items() if key == "value"}
        if has_many:
            copy.folded = _some_options(copy.folded, key)
            self.hidden[key] = frozenset(item.ref for item in node.folded if item.ref) - {*copy.refs()}
        return copy

    def _next_part(self) -> str:
        self.parts += 1
        return f"p{self.parts}"

    def _is_unchanged(self, node: UiNode) -> bool:
        if node.role not in _LANDMARKS | _COLLECTIONS or self._prints.get(id(node)) not in self._known:
            return False
        nodes = list(node.walk())
        refs = [each.ref for each in nodes if each.ref]
        return (
            (len(refs) >= MIN_ELEMENTS or sum(len(each.name) for each in nodes) >= MIN_CHARS)
            and self._focused.isdisjoint(refs)
            and not any(each.role in _NEWS or each.states.get("invalid", "false") != "false" for each in nodes)
        )


def _folded(node: UiNode, part: str) -> UiNode:
    """Return an unchanged part as one line: its first elements, and those that say where the agent is.

    Its first fields are kept below the line: what can be typed into is used on many pages.
    """
    elements = [each for each in node.walk() if each.ref and each is not node]
    fields = [each for each in elements if each.role in _FIELDS][:FIRST_FIELDS]
    named = [each for each in elements if each.name and each not in fields]
    shown = named[:FIRST_ELEMENTS]
    shown += [each for each in named[FIRST_ELEMENTS:] if not _PLACE.isdisjoint(each.states)]
    items = []
    for each in shown:
        place = {key: value for key, value in each.states.items() if key in _PLACE}
        items.append(UiNode(each.role, _cut(each.name, _MAX_ELEMENT_NAME), place, each.ref))
    more = len(elements) - len(items) - len(fields)
    items += [UiNode("text", f"… {more} more")] if more else []
    kept = [UiNode(each.role, _cut(each.name), dict(each.states), each.ref) for each in fields]
    return UiNode(node.role, node.name, dict(node.states), node.ref, kept, items, part=part, note="unchanged")


def _some_options(options: list[UiNode], key: str) -> list[UiNode]:
    shown = [each for i, each in enumerate(options) if i < FIRST_OPTIONS or each.states.get("selected") == "true"]
    more = len(options) - len(shown)
    for each in options:
        if each not in shown and "more" in each.states:
            more += int(each.states["more"]) - 1
    return [*shown, UiNode("text", f"… {more} more, show [{key}]")]


def _cut(text: str, limit: int = FIRST_TEXT) -> str:
    """Return a text, or the beginning of a long one, cut between words, with an ellipsis.

    >>> _cut("one two three", 9)
    'one two …'
    """
    if len(text) <= limit:
        return text
    head = text[:limit]
    words, _, rest = head.rpartition(" ")
    return f"{words if words and len(rest) < limit // 2 else head} …"


def _fingerprint(node: UiNode, prints: dict[int, int]) -> int:
    """Return a hash of what a node and everything below it shows, and note those of all nodes."""
    parts = tuple(_fingerprint(each, prints) for each in node.parts())
    states = tuple(item for item in node.states.items() if item[0] not in _PLACE)
    found = prints[id(node)] = hash((node.role, node.name, states, node.cells is None, parts))
    return found
