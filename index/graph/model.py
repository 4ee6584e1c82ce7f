"""Nodes, edges and actions of an interaction graph: plain frozen data.

What a page has hundreds of (actions, and boxes and segments in `observation`) are structs of msgspec, which are made
and read back several times as fast as dataclasses and are nothing to the garbage collector.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, Self

from msgspec import Struct

ActionKind = Literal[
    "goto", "click", "hover", "dblclick", "contextmenu", "press", "input", "select", "focus", "submit"
]  # fmt: skip


#: Stands in an XPath between a list that is scrolled and the row that is drawn only then.
SCROLLED = " ~~~ "
#: Kinds of action that go nowhere by themselves, whatever the element leads to when it is pressed.
PASSIVE: frozenset[ActionKind] = frozenset({"goto", "hover", "focus"})


class Action(Struct, frozen=True, order=True, gc=False):
    """A replayable step. It carries everything a stranger's browser needs to find the element again.

    `goto` uses `url` alone. All others address one element by a ladder: `role` + `name` + `nth`, then `xpath`, then
    `css`, inside the frame that `frame` names. `click`, `dblclick`, `contextmenu` and `hover` use the pointer. `focus`
    gives the element the focus, `press` then presses a key, `input` types, and `submit` types and presses Enter; the
    element keeps the focus. `select` chooses an option.

    Attributes
    ----------
    kind : what to do.
    url : for `goto`, the URL to load.
    frame : XPaths of the iframe elements that lead to the element's document, outermost first; empty in the main frame.
    role, name : computed ARIA role and accessible name of the element.
    nth : 0-based position among the exposed elements of the same frame with the same role and name, in document order.
    xpath : full positional XPath; pieces joined by " >>> " where the path enters an open shadow root. For a row of a
        virtual list the path of the list, `SCROLLED`, the scroll offset in CSS pixels, and the path from the list:
        `/html[1]/body[1]/div[1] ~~~ 480/div[1]/a[3]`.
    css : a selector by id or test id when the element has one, else empty.
    target : resolved link target of the element, empty when it is not a link.
    value : the key that `press` presses, the text that `input` and `submit` type, the option that `select` chooses; for
        `hover` and `focus`, "away" when what counts is that pointer or focus leave again.

    """

    kind: ActionKind
    url: str = ""
    frame: tuple[str, ...] = ()
    role: str = ""
    name: str = ""
    nth: int = 0
    xpath: str = ""
    css: str = ""
    target: str = ""
    value: str = ""

    def to_json(self) -> dict[str, Any]:
        """Plain JSON object with every field present, in declaration order."""
        return {f: list(v) if isinstance(v := getattr(self, f), tuple) else v for f in self.__struct_fields__}

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> Self:
        """Inverse of `to_json`; unknown keys are ignored, so that newer writers can be read."""
        values = {k: v for k, v in document.items() if k in cls.__struct_fields__}
        values["frame"] = tuple(values.get("frame", ()))
        return cls(**values)

    @property
    def is_scrolled_to(self) -> bool:
        """Whether its element is in the page only while the list around it is scrolled to it."""
        return SCROLLED in self.xpath

    def __str__(self) -> str:
        if self.kind == "goto":
            return f"goto {self.url}"
        return f'{self.kind} {self.role} "{self.name}"' + (f" ({self.value})" if self.value else "")


@dataclass(frozen=True, slots=True, order=True)
class BlockedRequest:
    """A state-changing request that the network guard stopped.

    `kind` is what asked for it, as browsers call it: `document`, `fetch`, `xhr`, `ping` (beacons), `form`, ...
    """

    method: str
    url: str
    kind: str = ""


@dataclass(frozen=True, slots=True)
class Edge:
    """An action that led from one state to another (or back to the same one). A graph may hold many between two nodes.

    Attributes
    ----------
    cost_ms : measured duration of acting and settling, in milliseconds.
    inherited : the element was skipped because the parent state had it too; the parent's edge is kept, unverified.
    opens_tab : the target was shown in a new tab.
    blocked : requests the network guard stopped while the action ran.
    dialogs : JavaScript dialogs the action raised, as "type: message"; answered as the map's settings say.

    """

    source: str
    target: str
    action: Action
    cost_ms: float = 0.0
    inherited: bool = False
    opens_tab: bool = False
    blocked: tuple[BlockedRequest, ...] = ()
    dialogs: tuple[str, ...] = ()

    @property
    def changes_something(self) -> bool:
        """Whether walking it outside the guard would send a request that may change something.

        Such an edge is never part of a path. Pings report that a page was used, as walking it anyway does.
        """
        return any(request.kind != "ping" for request in self.blocked)


@dataclass(frozen=True, slots=True)
class Node:
    """One page state.

    Attributes
    ----------
    id : MD5 (hex) over the sorted element hashes and the normalised URL, see `index.graph.identity`.
    url : normalised URL.
    structure : sorted MD5 hashes (hex) of the full XPaths of the exposed elements: `H_v` of WebNavigator 3.1.
    depth : number of actions from the start state on the canonical discovery path.
    addressable : loading `url` in the prepared session reproduces this state.
    load_ms : measured duration of that load in milliseconds, 0 when it was not measured.

    """

    id: str
    url: str
    title: str
    structure: tuple[str, ...]
    depth: int
    addressable: bool
    load_ms: float = 0.0


@dataclass(frozen=True, slots=True)
class Merge:
    """A look at a page that was taken for a state already known, although its own id is another one.

    Attributes
    ----------
    kept : id of the known state.
    merged : id that the look has by itself.
    reason : which rule of `pipeline.explore.identity` decided: `reload`, `volatile`, `same_change`,
        `volatile_parameters`, `same_content`, `equivalent`.
    url : normalised URL of the merged look.

    """

    kept: str
    merged: str
    reason: str
    url: str


@dataclass(frozen=True, slots=True)
class Evidence:
    """What tells a state from others at its URL, for pages that differ from its recorded look in noise.

    `index.graph.recognition.is_equivalent` says what it takes. Features are texts and elements without places, see
    `pipeline.browser.features`.

    Attributes
    ----------
    shows : features that must be there, with how often at least: what in-page actions added.
    hides : features that must not be there more often than this: what they removed, and what other states add.
    features : a random sample of the state's features, those that come and go by themselves left out.
    elements : the same of its element hashes, first 12 characters of each.
    own : those of `features` that few other URLs of the site show. Told by the whole map, see `index.distinctive`.
    alone : no state of another URL has the same structure.
    named : what looks drawn at random in the state's URL names its page: other pages of the site have other such URLs.
    """

    shows: Mapping[str, int] = field(default_factory=dict)
    hides: Mapping[str, int] = field(default_factory=dict)
    features: tuple[str, ...] = ()
    elements: tuple[str, ...] = ()
    own: tuple[str, ...] = ()
    alone: bool = True
    named: bool = False


@dataclass(frozen=True, slots=True)
class PathStep:
    """One action of a path, with what must be seen after it.

    Attributes
    ----------
    accepts : ids of looks that were taken for the expected state while exploring.
    evidence : when a page counts as the expected state although its id is none of these; nothing: never.
    change : what the action adds to its page and removes from it (`change_digest`); empty where it leaves the page.
    """

    action: Action
    expected_node_id: str
    expected_url: str
    cost_ms: float
    inherited: bool = False
    opens_tab: bool = False
    accepts: tuple[str, ...] = ()
    evidence: Evidence | None = None
    change: str = ""


@dataclass(frozen=True, slots=True)
class Path:
    """The cheapest known way to a state. An empty `steps` means: already there."""

    source: str | None
    target: str
    steps: tuple[PathStep, ...]
    cost_ms: float
