"""The records of a search: states that were visited, actions that were proposed, states that only the map knows."""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum
from itertools import pairwise
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from waygraph.agents.run_record import AttemptEnd
from waygraph.agents.search.search_actions import SearchAction
from waygraph.agents.search.trajectory import Note, PastAction, Trajectory
from waygraph.core.schemas import UsageModel
from waygraph.index.graph import Action


class _Record(BaseModel):
    model_config = ConfigDict(extra="forbid")


class RecordedState(_Record):
    """What a page showed, as far as is needed to recognise it.

    Attributes
    ----------
    snapshot
        Node id of the snapshot.
    url
        Normalised URL.
    address
        URL as the browser reports it.
    title
        Title of the document.
    features
        Texts and elements with their counts, see `waygraph.pipeline.browser.page.features`.
    elements
        The first 12 characters of the hashes of the exposed elements.
    """

    snapshot: str
    url: str
    address: str
    title: str = ""
    features: dict[str, int] = {}
    elements: list[str] = []

    @property
    def full_url(self) -> str:
        """The normalised URL with its fragment, by which a script may show another view of the page."""
        fragment = self.address.partition("#")[2]
        return f"{self.url}#{fragment}" if fragment and "#" not in self.url else self.url


class StoredCookie(_Record):
    """A cookie that scripts can read."""

    name: str
    value: str
    domain: str
    path: str
    expires: float
    secure: bool
    same_site: str


class BrowserStorage(_Record):
    """What a site kept in the browser, as far as it is set back for a return.

    Attributes
    ----------
    url
        URL of the page; the cookies are those that a request for it carries.
    origin
        Origin of the page.
    cookies
        Cookies that scripts can read.
    local
        Values of the local storage.
    session
        Values of the session storage.
    withheld
        Values that are not recorded, by area and name: they may grant access, look random, or are long.
    """

    url: str
    origin: str
    cookies: list[StoredCookie] = []
    local: dict[str, str] = {}
    session: dict[str, str] = {}
    withheld: list[str] = []


class TreeNode(_Record):
    """A state that was visited.

    Attributes
    ----------
    id
        Its position in the tree's list of nodes.
    parent
        The node whose action led here; None for roots.
    candidate
        The action that led here; None for the first node.
    state
        What the page showed.
    storage
        What the site kept in the browser then; None: that is not known.
    map_state
        The state of the map that the page was recognised as; empty: none.
    value
        How near the state is to the end of the task, by the reward.
    progress
        How far the task is in the state, in lines of the reward.
    summary
        What the state shows, as far as the task is concerned, in the words of a model.
    notes
        Facts that were read in it.
    change
        What the gesture that led here added to the page, and what it removed (negative), if the URL is the same: the
        difference from what the page showed right before. None: it was no gesture, or led to another URL.
    unstable
        Features that came or went by themselves on pages that showed the state: a tip that is replaced.
    loads
        Whether loading its URL shows the state: `untested`, `yes`, or `no`, see `note_load`.
    same_as
        An earlier node that shows the same; None: there is none. Such a node has no candidates of its own.
    dialog
        The JavaScript dialog that waits for an answer, and is all that the state shows; empty: it shows a page.
    problem
        Why nothing is tried here: an error of the server, a page outside of the task's site. Empty: things are.
    is_expanded
        Whether candidates were generated.
    step
        Number of the step in which it was visited first; 0: before the first step.
    """

    id: int
    parent: int | None
    candidate: int | None
    state: RecordedState
    storage: BrowserStorage | None = None
    map_state: str = ""
    value: float = 0.0
    progress: list[str] = []
    summary: str = ""
    notes: list[str] = []
    change: dict[str, int] | None = None
    unstable: list[str] = []
    loads: Literal["untested", "yes", "no"] = "untested"
    same_as: int | None = None
    dialog: str = ""
    problem: str = ""
    is_expanded: bool = False
    step: int = 0

    def note_load(self, *, shows_state: bool) -> None:
        """Note whether its URL showed the state: one that did before may have failed by chance, and is tried again."""
        if shows_state:
            self.loads = "yes"
        else:
            self.loads = "untested" if self.loads == "yes" else "no"


class CandidateStatus(StrEnum):
    """What became of a proposed action.

    `QUEUED`: it waits in the frontier. `BEGUN`: it is being performed, or the process ended meanwhile. `INTERRUPTED`:
    the process ended while it was performed, so it may have changed data and is never repeated. `DONE`: it was
    performed. `FAILED`: the browser or the map did not get there. `REJECTED`: it does not fit the page any more.
    `DROPPED`: it was removed from the frontier. `CHOSEN`: the answer that ended the search.
    """

    QUEUED = "queued"
    BEGUN = "begun"
    INTERRUPTED = "interrupted"
    DONE = "done"
    FAILED = "failed"
    REJECTED = "rejected"
    DROPPED = "dropped"
    CHOSEN = "chosen"


class TreeCandidate(_Record):
    """A proposed action in a visited state.

    Attributes
    ----------
    id
        Its position in the tree's list of candidates.
    node
        The state in which it is performed.
    action
        The action. The id of its element is that of the observation in which it was proposed.
    gesture
        The gesture on its element, with the locator ladder; None for actions on no element.
    key
        What equal actions have in common.
    text
        The action as text.
    score
        How much it promises: the value of its outcome, times the number of generators that proposed it; walks over the
        map have no such factor.
    contexts
        Names of the generators that proposed it.
    thinking
        Why, in the words of the model that proposed it.
    is_destructive
        Whether it would change data at the site, as far as is known before it is performed.
    outcome
        Node id in the map of the state that it leads to; empty: unknown.
    status
        See `CandidateStatus`.
    reason
        Why it has this status, in words.
    result
        The node that it led to.
    changed
        Requests that changed data, seen while it was performed.
    merged
        Equal proposals that became this one, and why they are equal, in words.
    """

    id: int
    node: int
    action: SearchAction
    gesture: dict[str, Any] | None
    key: str
    text: str
    score: float
    contexts: list[str]
    thinking: str = ""
    is_destructive: bool = False
    outcome: str = ""
    status: CandidateStatus = CandidateStatus.QUEUED
    reason: str = ""
    result: int | None = None
    changed: list[str] = []
    merged: list[str] = []

    @property
    def is_stop(self) -> bool:
        """Whether it ends the task."""
        return self.action.action == "stop"

    @property
    def frequency(self) -> int:
        """Number of generators that proposed it."""
        return len(self.contexts)

    @property
    def recorded(self) -> Action | None:
        """The gesture as the browser package performs it."""
        return Action.from_json(self.gesture) if self.gesture is not None else None


class KnownState(_Record):
    """A state that was judged by what the map says of it, without visiting it.

    Attributes
    ----------
    node_id
        Its id in the map.
    url
        Its URL.
    title
        Its title.
    value
        How near it is to the end of the task, by the reward.
    seen_from
        The visited node from which it was looked up.
    """

    node_id: str
    url: str
    title: str
    value: float
    seen_from: int


class BacktrackRecord(_Record):
    """A return to a visited node.

    Attributes
    ----------
    step
        Number of steps that were done before.
    target
        The node.
    tried
        Checkpoints that were tried, in order: `map:3` or `url:0`, with the number of the node; `dialog:2`: the action
        of this node that opened a dialog was performed again.
    arrived
        Whether the page showed the node's state; otherwise everything was undone.
    problem
        Why not.
    """

    step: int
    target: int
    tried: list[str]
    arrived: bool
    problem: str = ""


class StepRecord(_Record):
    """A step of the run, as `waygraph.agents.run_record.AgentStep` has it."""

    state: str
    url: str
    action: str
    status: str
    message: str
    thinking: str = ""
    usage: UsageModel | None = None
    details: dict[str, Any] = {}


class SearchTree(_Record):
    """A search: everything that is needed to go on with it without asking a model again.

    Attributes
    ----------
    version
        Version of this format.
    task
        The task.
    budget
        Number of actions that the frontier keeps when others are added. Each change of data reduces it by one.
    nodes
        Visited states, in the order of their visits.
    candidates
        Proposed actions, in the order of their proposal.
    known
        States that were judged without visiting them, by their id in the map.
    backtracks
        Returns to earlier nodes.
    log
        The steps.
    root
        The node below which the search goes on; a later one than the first after data was changed.
    changes
        Number of actions that changed data.
    prunes
        Number of times that the frontier lost an action: to its budget, or because no way led back.
    agreed
        The answer that all generators agreed on; None: there is none.
    end
        Why the search ended; None: it has not.
    problem
        What failed, if it failed.
    """

    version: Literal[1] = 1
    task: str
    budget: int = Field(ge=1)
    nodes: list[TreeNode] = []
    candidates: list[TreeCandidate] = []
    known: dict[str, KnownState] = {}
    backtracks: list[BacktrackRecord] = []
    log: list[StepRecord] = []
    root: int = 0
    changes: int = 0
    prunes: int = 0
    agreed: int | None = None
    end: AttemptEnd | None = None
    problem: str = ""

    @property
    def steps(self) -> int:
        """Number of actions that were performed or tried."""
        return len(self.log)

    @property
    def queued(self) -> list[TreeCandidate]:
        """The frontier, in the order of proposal."""
        return [each for each in self.candidates if each.status is CandidateStatus.QUEUED]

    @property
    def chosen(self) -> TreeCandidate | None:
        """The answer that ended the search."""
        return next((each for each in self.candidates if each.status is CandidateStatus.CHOSEN), None)

    def ancestry(self, node: int) -> Iterator[TreeNode]:
        """Yield a node and the nodes above it, up to the root of the search."""
        current: int | None = node
        while current is not None:
            yield self.nodes[current]
            current = None if current == self.root else self.nodes[current].parent

    def trajectory(self, node: int) -> Trajectory:
        """Return the way to a node from the first one, over changes of data, and the notes on all visited pages."""
        path: list[TreeNode] = []
        current: int | None = node
        while current is not None:
            path.append(self.nodes[current])
            current = self.nodes[current].parent
        steps = []
        for each, before in pairwise(path):
            if each.candidate is not None:
                done = self.candidates[each.candidate]
                state = each.state
                steps.append(PastAction(done.text, state.address, state.title, before.summary, done.thinking))
        notes = {text: Note(text, each.state.address) for each in reversed(self.nodes) for text in each.notes}
        progress = next((tuple(each.progress) for each in path if each.progress), ())
        return Trajectory(self.task, tuple(reversed(steps)), tuple(reversed(notes.values())), progress)

    def is_live(self, node: int) -> bool:
        """Whether a node lies below the root: nothing has changed data since it was visited."""
        return any(each.id == self.root for each in self.ancestry(node))

    def live_nodes(self) -> list[TreeNode]:
        """Return the nodes below the root, the root included."""
        return [node for node in self.nodes if self.is_live(node.id)]

    def add_node(self, state: RecordedState, *, parent: int | None, candidate: int | None) -> TreeNode:
        """Add a visited state, and note it as the result of the action that led there."""
        node = TreeNode(id=len(self.nodes), parent=parent, candidate=candidate, state=state, step=self.steps)
        self.nodes.append(node)
        if candidate is not None:
            self.candidates[candidate].result = node.id
        return node
