"""Answers of the HTTP API that show whole maps: lists of sites, graphs in columns, elements of states.

They are made for displays, such as the page of the service. Class names are schema titles of the OpenAPI document, and
docstrings its descriptions.
"""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from waygraph.core.schemas import ActionModel, BoxModel, Openers, PageText, SiteSummary, ToolModel

#: Largest number of element outcomes in one answer; a page may have hundreds of thousands of elements.
MAX_OUTCOMES = 500
#: Largest number of leads in one answer.
MAX_LEADS = 500

#: Largest number of changed states with their texts, of changed actions, and of changed tools, in one answer.
MAX_CHANGES = 1_000
#: Largest number of texts of a changed state of each kind.
MAX_CHANGED_TEXTS = 40

#: Files that an exploration captures of a state besides the screenshot: the HTML, and the accessibility snapshot.
CaptureKind = Literal["dom", "aria"]

#: Flags of an edge in `GraphEdges.flags`.
INHERITED, OPENS_TAB, STATE_CHANGING = 1, 2, 4


class _View(BaseModel):
    model_config = ConfigDict(extra="forbid", use_attribute_docstrings=True)


class SiteCard(SiteSummary):
    """One mapped site with the outcome of the run that made its map."""

    start_node_id: str
    depth: int
    """Largest distance of a state from the start page, in actions."""
    leads: int = 0
    """Pages that are known and were not visited."""
    stood_for: int = 0
    """Pages that are not states because another one represents them (skeleton mode)."""
    thumbnail: str
    """Path of a small image of the start page on this service; it answers 404 if the page has no screenshot."""
    stopped_by: PageText = ""
    """What ended the exploration before it was complete; empty if it was complete or the run did not record it."""
    seconds: float | None = None
    """Duration of the exploration."""
    outcomes: dict[str, int] = Field(default={})
    """Number of elements that were skipped, failed or are pending, by outcome. Outcomes without a number were not
    recorded."""


class GraphStates(_View):
    """States of a map in columns: the i-th values of all lists describe the i-th state."""

    id: list[str]
    url: list[PageText]
    title: list[PageText]
    depth: list[int]
    addressable: list[bool]
    """Whether loading the URL shows the state."""
    stands_for: list[int]
    """Number of pages that the state represents (skeleton mode), itself included."""
    screenshot: list[str]
    """First 16 digits of the content hash of the screenshot: the parameter `v` of images; empty if there is none."""
    skipped: list[int]
    """Number of elements of the state that were skipped."""
    group: list[int]
    """Index of the group of alike pages in `groups`; -1: the state is in none."""


class GraphEdges(_View):
    """Edges of a map in columns: the i-th values of all lists describe the i-th edge."""

    source: list[int]
    """Index of the state in which the action is done."""
    target: list[int]
    """Index of the state that it leads to."""
    kind: list[int]
    """Index of the kind of action in `kinds`."""
    flags: list[int]
    """Sum of 1 (inherited: copied from the parent state, not performed), 2 (opens a tab), 4 (sends a request that may
    change something on the server; no path contains such an edge)."""


class GraphAnswer(_View):
    """All states and edges of the newest version of a map, in columns, since maps may have thousands."""

    site: str
    version: int
    start: int
    """Index of the start state."""
    states: GraphStates
    groups: list[PageText]
    """URL patterns of groups of alike pages: states of one depth whose URLs differ in one place and whose elements are
    mostly equal."""
    kinds: list[str]
    """Kinds of actions that occur, sorted."""
    edges: GraphEdges


class ElementModel(_View):
    """An element of a state, as the action that was done with it, and where that leads."""

    action: ActionModel
    expected_node_id: str
    expected_url: PageText
    cost_ms: float
    inherited: bool = False
    """Not performed in this state while exploring: its result is known from another state with the same element, or
    from the address of the link."""
    openers: Openers = []
    opens_tab: bool = False
    sends: list[PageText] = []
    """Requests that the action sends and that may change something on the server; they were stopped while mapping."""
    box: BoxModel | None = None
    """Where the text that names the element is on the page. Absent if no visible text can be attributed to the element:
    maps store the positions of texts, not of elements."""


class ElementOutcomeModel(_View):
    """An element that is not in the map, and why."""

    status: Literal["skipped", "failed", "pending"]
    element: PageText
    reason: PageText = ""
    detail: PageText = ""
    """What decided that."""
    rule: PageText = ""
    """The rule that decided, if one did."""
    target: PageText = ""
    """Where the element leads, if it is a link."""
    xpath: PageText = ""


class LeadSummary(_View):
    """A page that a state links to and that was not visited."""

    node_id: str
    url: PageText
    title: PageText
    refusal: str = ""
    """Why no path leads there; empty: paths may."""
    hidden: bool = False
    """Whether no person sees a link to the page."""


class ElementsAnswer(_View):
    """Elements of one state: those whose actions are edges, those that are not in the map, and links to leads."""

    site: str
    version: int
    node_id: str
    elements: list[ElementModel]
    outcomes: list[ElementOutcomeModel]
    """Elements that were skipped, failed or are pending, at most 500."""
    outcomes_total: int
    leads: list[LeadSummary]
    """Leads that were found in this state, at most 500."""
    leads_total: int
    captures: list[CaptureKind] = []
    """What the store keeps of the state besides its screenshot."""


class StateChangeModel(_View):
    """A state that differs between two versions."""

    verdict: Literal["moved", "changed", "gone", "added"]
    """`moved`: the same content under another id. `gone`, `added`: in one of the versions only."""
    before: str = ""
    """Id in the older version; empty if it was added."""
    after: str = ""
    """Id in the newer version; empty if it is gone."""
    url: PageText
    title: PageText
    previous_url: PageText = ""
    """URL in the older version, if it differs."""
    depth: int
    added: list[PageText] = []
    """Texts that only the newer version shows, at most 40."""
    removed: list[PageText] = []
    """Texts that only the older version shows, at most 40."""
    screenshot_before: str | None = None
    """Path of the older version's screenshot on this service; null if there is none."""
    screenshot_after: str | None = None


class ActionChangeModel(_View):
    """An action that differs between two versions."""

    verdict: Literal["changed", "gone", "added", "session_dependent", "non_deterministic"]
    action: ActionModel
    source: str
    """Id of the state in which it is done, in the newest of the versions that has the action."""
    source_url: PageText
    previous_target_url: PageText = ""
    target_url: PageText = ""


class ToolChangeModel(_View):
    """A tool that differs between two versions."""

    verdict: Literal["changed", "gone", "added"]
    name: PageText
    attributes: list[str] = []
    """Names of what changed: `schema`, `description` and so on."""
    inputs: list[PageText] = []
    """Inputs that differ: `+name` is new, `-name` is gone, `~name` changed."""
    before: ToolModel | None = None
    """The tool in the older version; absent if it was added."""
    after: ToolModel | None = None
    """The tool in the newer version; absent if it is gone."""


class BrokenPathModel(_View):
    """A state of the older version whose path from the start page is broken."""

    node_id: str
    url: PageText
    title: PageText
    action: ActionModel
    """The first action of the path that is gone or leads elsewhere."""


class ChangesAnswer(_View):
    """Differences between two versions of a map, without differences in noise."""

    site: str
    from_version: int
    to_version: int
    from_created: str
    to_created: str
    versions: list[int]
    """All published versions."""
    counts: dict[str, dict[str, int]]
    """Numbers of `states`, `edges` and `tools` by verdict, unchanged ones (`match`) included."""
    states: list[StateChangeModel]
    """Changed states first, then new ones, those that are gone, and those with another id; at most 1,000."""
    changed_ids: list[str]
    """Ids, in the newer version, of all states that are new or changed."""
    actions: list[ActionChangeModel]
    """At most 1,000."""
    actions_total: int
    tools: list[ToolChangeModel] = []
    """Changed tools first, then those that are gone, and new ones; at most 1,000."""
    tools_total: int = 0
    broken: list[BrokenPathModel]
    """At most 1,000."""
    broken_total: int
