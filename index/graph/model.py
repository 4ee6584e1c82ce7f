"""Nodes, edges, actions and paths of an interaction graph, as plain frozen data.

Records of which a page has hundreds (actions, and boxes and segments in `observation`) are msgspec structs: they are
created and decoded several times as fast as dataclasses, and the garbage collector does not track them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, Self

from msgspec import Struct

ActionKind = Literal[
    "goto", "click", "hover", "dblclick", "contextmenu", "press", "input", "select", "focus", "submit"
]  # fmt: skip


#: Separates, in an XPath, the path of a virtual list from the scroll offset and the row that is rendered there.
SCROLL_MARK = " ~~~ "
#: Kinds of action that do not follow a link by themselves, whatever the element leads to when it is pressed.
PASSIVE_KINDS: frozenset[ActionKind] = frozenset({"goto", "hover", "focus"})
#: Kinds of stopped requests that paths may send: pings report that a page was used, which walking any edge of the page
#: does too, and suggestions are looked up for everybody who types into a search field.
HARMLESS_KINDS = frozenset({"ping", "suggestion", "scroll"})


class Action(Struct, frozen=True, order=True, gc=False):
    """A replayable action with everything another browser needs to find the element again.

    `goto` uses `url` alone. All other kinds address one element by a ladder of locators: `role` + `name` + `nth`, then
    `xpath`, then `css`, inside the frame that `frame` names. `click`, `dblclick`, `contextmenu` and `hover` use the
    pointer. `focus` gives the element the focus, `press` then presses a key, `input` types, and `submit` types and
    presses Enter; the element keeps the focus. `select` chooses an option. A `press` without an element
    (`is_page_key`) presses the key in the page.

    Attributes
    ----------
    kind
        What to do.
    url
        URL to load, for `goto`.
    frame
        XPaths of the iframe elements that lead to the element's document, outermost first; empty in the main frame.
    role
        Computed ARIA role of the element.
    name
        Computed accessible name of the element.
    nth
        0-based position among the exposed elements of the same frame with the same role and name, in document order.
    xpath
        Full positional XPath; pieces are joined by " >>> " where the path enters an open shadow root. For a row of a
        virtual list: the path of the list, `SCROLL_MARK`, the scroll offset in CSS pixels, and the path from the list,
        as in `/html[1]/body[1]/div[1] ~~~ 480/div[1]/a[3]`.
    css
        A selector by id or test id if the element has one, else empty.
    target
        Resolved link target of the element; empty if it is not a link.
    value
        The key that `press` presses, the text that `input` and `submit` type, or the option that `select` chooses. For
        `hover` and `focus`, "away" means that the pointer or the focus leaves the element again.
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
        """Return a plain JSON object with every field, in declaration order."""
        return {f: list(v) if isinstance(v := getattr(self, f), tuple) else v for f in self.__struct_fields__}

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> Self:
        """Create an action from a JSON object; unknown keys are ignored, so output of newer writers can be read."""
        values = {k: v for k, v in document.items() if k in cls.__struct_fields__}
        values["frame"] = tuple(values.get("frame", ()))
        return cls(**values)

    @property
    def is_page_key(self) -> bool:
        """Whether the action presses a key in the page, without an element."""
        return self.kind == "press" and not (self.xpath or self.css or self.role or self.name)

    @property
    def needs_scrolling(self) -> bool:
        """Whether the element is in the page only while the list around it is scrolled to it."""
        return SCROLL_MARK in self.xpath

    def __str__(self) -> str:
        if self.kind == "goto":
            return f"goto {self.url}"
        if self.is_page_key:
            return f"press {self.value}"
        return f'{self.kind} {self.role} "{self.name}"' + (f" ({self.value})" if self.value else "")


@dataclass(frozen=True, slots=True, order=True)
class BlockedRequest:
    """A state-changing request that the network guard stopped.

    Attributes
    ----------
    method
        HTTP method.
    url
        URL of the request.
    kind
        Resource type, as browsers name it: `document`, `fetch`, `xhr`, `ping` (beacons), `form`, ... `suggestion` is a
        script's request while text was typed into a search form that then led to a document; `scroll` is a request
        while the page was scrolled through.
    """

    method: str
    url: str
    kind: str = ""


@dataclass(frozen=True, slots=True)
class Edge:
    """An action that led from one state to another, or back to the same one. Two nodes may have many edges.

    Attributes
    ----------
    source
        Id of the state in which the action was done.
    target
        Id of the state that it led to.
    action
        The action.
    cost_ms
        Measured duration of the action until the page settled, in milliseconds; 0 if it was not measured.
    inherited
        The action was never performed in this state: its result is known from another state with the same element, or
        from the address of the link. Unverified.
    opens_tab
        The target was shown in a new tab.
    blocked
        Requests that the network guard stopped while the action ran.
    dialogs
        JavaScript dialogs that the action raised, as "type: message"; answered as the map's settings say.
    openers
        Actions that show the element in the page, performed before `action`: opening the menu that contains it. Only
        inherited edges have openers. What the page shows between them and `action` is no state of the map.
    """

    source: str
    target: str
    action: Action
    cost_ms: float = 0.0
    inherited: bool = False
    opens_tab: bool = False
    blocked: tuple[BlockedRequest, ...] = ()
    dialogs: tuple[str, ...] = ()
    openers: tuple[Action, ...] = ()

    @property
    def is_state_changing(self) -> bool:
        """Whether the action, outside the guard, would send a request that may change something on the server.

        Such an edge is never part of a path. Requests of `HARMLESS_KINDS` are excepted.
        """
        return bool(self.state_changing_requests)

    @property
    def state_changing_requests(self) -> tuple[BlockedRequest, ...]:
        """The requests that the action would send and that may change something on the server."""
        return tuple(request for request in self.blocked if request.kind not in HARMLESS_KINDS)


@dataclass(frozen=True, slots=True)
class Node:
    """A state of the site, as an element of the graph.

    Attributes
    ----------
    id
        MD5 (hex) over the sorted element hashes and the normalised URL, see `waygraph.index.graph.identity`.
    url
        Normalised URL, by which pages are compared.
    title
        Title of the document.
    structure
        Sorted MD5 hashes (hex) of the full XPaths of the exposed elements: `H_v` of WebNavigator 3.1.
    depth
        Number of actions from the start state on the canonical discovery path.
    addressable
        Loading `load_url` in the prepared session reproduces this state.
    load_ms
        Measured duration of that load in milliseconds; 0 if it was not measured.
    address
        URL that is requested to load the page, as the site writes it; empty if that is `url`. Servers may refuse the
        normalised form.
    status
        HTTP status of the document if it is an error, although the document draws a page; else 0.
    waiting
        Whether the page still showed that it was not ready (a spinner, "Loading…") when it was stored.
    """

    id: str
    url: str
    title: str
    structure: tuple[str, ...]
    depth: int
    addressable: bool
    load_ms: float = 0.0
    address: str = ""
    status: int = 0
    waiting: bool = False

    @property
    def load_url(self) -> str:
        """The URL that is requested to load the page."""
        return self.address or self.url


@dataclass(frozen=True, slots=True)
class Merge:
    """A snapshot that was recognised as a known state although its computed id differs.

    Attributes
    ----------
    kept
        Id of the known state.
    merged
        Id computed from the snapshot.
    reason
        The rule of `waygraph.pipeline.explore.identity` that decided: `reload`, `volatile`, `same_change`,
        `volatile_parameters`, `same_content`, `equivalent`.
    url
        Normalised URL of the merged snapshot.
    """

    kept: str
    merged: str
    reason: str
    url: str


@dataclass(frozen=True, slots=True)
class Evidence:
    """Features by which a page is recognised as a state although noise gives it another id.

    The rules are in `waygraph.index.graph.recognition.is_equivalent`. Features are texts and elements without their
    positions, see `waygraph.pipeline.browser.page.features`.

    Attributes
    ----------
    shows
        Features that must be present, with their minimum counts: those that in-page actions added.
    hides
        Features that must not occur more often than this: those that in-page actions removed, and those that other
        states at the same URL add.
    features
        A random sample of the state's features, without those that come and go by themselves.
    elements
        A random sample of the state's element hashes, the first 12 characters of each.
    own
        Those of `features` that few other URLs of the site show. Computed from the whole map, see
        `waygraph.index.catalog.distinctive`.
    alone
        No state at another URL has the same structure.
    named
        The random-looking parts of the state's URL identify its page: other pages of the site differ in nothing else.
    urls
        Other URLs at which the site showed the same page. Computed from the whole map, see
        `waygraph.index.graph.recognition.Recognition.other_urls`.
    """

    shows: Mapping[str, int] = field(default_factory=dict)
    hides: Mapping[str, int] = field(default_factory=dict)
    features: tuple[str, ...] = ()
    elements: tuple[str, ...] = ()
    own: tuple[str, ...] = ()
    alone: bool = True
    named: bool = False
    urls: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Lead:
    """A page that a state links to and that was not visited. There is one lead for each page.

    Attributes
    ----------
    id
        See `lead_id`.
    url
        Normalised URL of the page.
    names
        Distinct names of links to it, that of `action` first; empty if no link has a name.
    heading
        The heading under which the link stands; empty if there is none.
    description
        The words that follow the link; empty if there are none.
    state
        Id of the state that shows the link; the start state for a page that only the site's sitemaps and feeds list.
    action
        Click on the link. `goto` if there is nothing to click: no person sees a link, or only the site lists the page.
    depth
        Number of actions from the start page to the page, over that state.
    refusal
        Reason of the policy that refuses every link to the page (`robots`, `hazard`, `rule`, ...); empty if there is
        none. A refused page is never walked to.
    hidden
        Whether no person sees a link to the page: it is in the markup of that state alone.
    lastmod
        When the page changed last, as the site's sitemap or feed says, in UTC: `2026-01-31` or `2026-01-31T12:00:00Z`.
        Empty if that is not known.
    """

    id: str
    url: str
    names: tuple[str, ...]
    heading: str
    description: str
    state: str
    action: Action
    depth: int
    refusal: str = ""
    hidden: bool = False
    lastmod: str = ""

    @property
    def is_linked(self) -> bool:
        """Whether a state shows a link to the page."""
        return self.action.kind != "goto"

    @property
    def title(self) -> str:
        """The name that stands for the title of the page: its first link name, else its URL."""
        return self.names[0] if self.names else self.url

    @property
    def load_url(self) -> str:
        """The URL that is requested to load the page: as its link or the site's listing writes it."""
        written = self.action.target or self.action.url
        return (written if "#" in self.url else written.partition("#")[0]) or self.url


@dataclass(frozen=True, slots=True)
class PathStep:
    """One action of a path, and the state it is expected to lead to.

    Attributes
    ----------
    action
        The action.
    expected_node_id
        Id of the state that the action leads to.
    expected_url
        Normalised URL of that state.
    cost_ms
        Cost of the step in milliseconds, see `waygraph.index.graph.path_costs`.
    inherited
        The step follows an inherited edge, which was never walked.
    opens_tab
        The state is shown in a new tab.
    accepts
        Ids of other snapshots that were recognised as the expected state during exploration.
    evidence
        When a page counts as the expected state although its id is none of these; None: never.
    change
        What the action adds to its page and removes from it (`change_digest`); empty if it leaves the page.
    lead
        The page that was not visited, if the step leads to one; `expected_node_id` is its id.
    openers
        Actions to perform in the page before `action`, see `Edge.openers`.
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
    lead: Lead | None = None
    openers: tuple[Action, ...] = ()


@dataclass(frozen=True, slots=True)
class Path:
    """The cheapest known path to a state. Without steps, source and target are the same state.

    Attributes
    ----------
    source
        Id of the state where the path begins; None: anywhere, so that the first step is a `goto`.
    target
        Id of the state where it ends.
    steps
        The actions, in order.
    cost_ms
        Sum of the costs of the steps, in milliseconds.
    """

    source: str | None
    target: str
    steps: tuple[PathStep, ...]
    cost_ms: float
