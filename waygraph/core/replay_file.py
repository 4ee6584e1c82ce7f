"""One file that replays a teleport or an agent's run step by step: what was expected, what happened, what it showed.

`waygraph teleport --trace` and `waygraph tasks trace` write such files, and the page of the service reads them. A file
is complete in itself: screenshots are data URLs, and equal screenshots and equal texts are stored once. The report of a
run of agents contains the same traces, with the images and texts of all of them in one place.
"""

from __future__ import annotations

import hashlib
from base64 import b64encode
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal, Protocol

from pydantic import BaseModel, ConfigDict, Field

from waygraph.core.schemas import PageObject, PageText, UsageModel
from waygraph.core.text import replace_surrogates

#: Largest size of one screenshot; larger ones are left out.
MAX_IMAGE_BYTES = 2 * 2**20
#: Largest size of all screenshots of a file; those that come after it are left out.
MAX_IMAGES_BYTES = 48 * 2**20
_KEY_DIGITS = 16
_MEDIA_TYPES = ((b"\xff\xd8\xff", "image/jpeg"), (b"\x89PNG\r\n\x1a\n", "image/png"))


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True, hide_input_in_errors=True)


class ReplayPage(_Part):
    """A page at one moment."""

    node_id: str = ""
    """Id of the state that it shows; empty: unknown."""
    url: PageText = ""
    title: PageText = ""
    screenshot: str = ""
    """Key of the screenshot in `ReplayFile.images`; empty: there is none."""
    text: str = ""
    """Key of what an agent read in `ReplayFile.texts`; empty: there is none."""


class ReplayStep(_Part):
    """One step."""

    action: PageText
    """The action as text; empty: a model's answer was no action."""
    status: PageText = ""
    """Status in the words of what wrote the trace, for example `done` or `drifted`."""
    agrees: bool | None = None
    """Whether the step led where the map says; None: nothing was expected of it."""
    message: PageText = ""
    """What happened, or why the step failed."""
    ms: float | None = None
    """Time from the action until the page had settled, in milliseconds."""
    before: ReplayPage | None = None
    """The page that the step was decided on."""
    expected: ReplayPage | None = None
    """The page that the map expects after the step."""
    after: ReplayPage | None = None
    """The page after the step."""
    thinking: PageText = ""
    """Why, in the model's words."""
    usage: UsageModel | None = None
    """What the model calls of the step took."""
    details: PageObject = {}
    """What else the agent recorded: scores, plans, candidates."""


class ReplayOutcome(_Part):
    """How a walk or a run ended."""

    status: PageText
    good: bool | None = None
    """Whether the end is what was wanted; None: that is not known."""
    message: PageText = ""
    """Why it ended so; empty if nothing failed."""
    answer: PageText = ""
    """The agent's answer."""
    url: PageText = ""


class ReplayTreeAction(_Part):
    """An action that a tree search proposed in a state."""

    text: PageText
    score: float
    """How much it promised."""
    status: str
    """What became of it, see `waygraph.agents.search.tree.CandidateStatus`."""
    reason: PageText = ""
    """Why it has this status."""
    result: int | None = None
    """Number of the state that it led to."""
    proposed_by: list[PageText] = []
    """Names of the generators that proposed it."""
    merged: list[PageText] = []
    """Equal proposals that became this one, and why they are equal."""
    changes_data: bool = False
    """Whether it would change data at the site."""
    is_known: bool = False
    """Whether the map knew what it leads to."""


class ReplayTreeNode(_Part):
    """A state that a tree search visited."""

    number: int
    parent: int | None = None
    """The state whose action led here; None for roots. It has a smaller number."""
    step: int = 0
    """Number of the step that led here first, from 1; 0: it was there before the first step."""
    title: PageText = ""
    url: PageText = ""
    screenshot: str = ""
    """Key of the window in `ReplayFile.images`; empty: there is none."""
    value: float | None = None
    """How near the state is to the end of the task, by the search's reward; None: it was not judged."""
    map_state: str = ""
    """State of the map that it was recognised as; empty: none."""
    same_as: int | None = None
    """Number of the earlier state that shows the same, with which it was merged."""
    problem: PageText = ""
    """Why nothing was tried here."""
    notes: list[PageText] = []
    """What else is special about it."""
    is_answer: bool = False
    """Whether the answer was chosen here."""
    actions: list[ReplayTreeAction] = []
    """What was proposed here, the most promising first."""
    actions_left_out: int = 0


class ReplayTreeReturn(_Part):
    """A return to a state that was visited before."""

    target: int
    tried: list[PageText]
    """The ways that were tried, in order."""
    arrived: bool
    problem: PageText = ""
    """Why it did not arrive."""


class ReplayTreeStep(_Part):
    """A step of a search, or, without an action, its end."""

    returns: list[ReplayTreeReturn] = []
    """Returns that were made for it."""
    node: int | None = None
    """State in which it was done."""
    action: PageText = ""
    status: PageText = ""
    result: int | None = None
    """State that it led to."""
    score: float | None = None
    rule: PageText = ""
    """The rule that chose it."""
    changed: list[PageText] = []
    """Requests that changed data."""


class ReplayTreeKnown(_Part):
    """A state that was judged by what the map says of it, and not visited."""

    value: float
    title: PageText
    url: PageText
    seen_from: int


class ReplayTree(_Part):
    """The tree of a search: what was visited in which order, and what was proposed, merged, dropped or left."""

    nodes: list[ReplayTreeNode]
    nodes_left_out: int = 0
    steps: list[ReplayTreeStep]
    """Every step of the search, those of interrupted processes included, and what was done after the last one."""
    known: list[ReplayTreeKnown] = []
    """The best of the states that were judged and not visited."""
    known_total: int = 0
    counts: dict[str, int] = {}
    """Totals over the whole search, by what they count."""


class ReplayFile(_Part):
    """A teleport or an agent's run, step by step."""

    format: Literal["waygraph-replay"] = "waygraph-replay"
    version: Literal[1] = 1
    """Version of the format."""
    kind: Literal["teleport", "agent"]
    created: str
    """Time at which the file was made, ISO 8601."""
    title: PageText
    """The task, or the target of the teleport."""
    site: PageText = ""
    """Key of the mapped site; empty: none."""
    facts: dict[str, PageText] = Field(default={})
    """Further properties, such as the agent and its model."""
    outcome: ReplayOutcome | None = None
    """None: the trace ends without it."""
    steps: list[ReplayStep]
    tree: ReplayTree | None = None
    """The tree, if the agent was a tree search."""
    images: dict[str, str] = {}
    """Data URLs (`image/jpeg` or `image/png`) by key."""
    texts: dict[str, PageText] = {}
    """Texts that an agent read, by key."""
    images_left_out: int = 0
    """Number of screenshots that are missing because of the limits of a file, or because they cannot be read."""


class ReplayCollector(Protocol):
    """Takes the screenshots and texts that a replay refers to."""

    def add_image_file(self, path: Path) -> str:
        """Add a screenshot; return its key, or an empty text if it was left out."""

    def add_text_file(self, path: Path) -> str:
        """Add a text; return its key, or an empty text if it was left out."""


class ReplayContents:
    """Collects screenshots and texts of a replay file, each once, within its limits.

    Attributes
    ----------
    images
        Data URLs by key.
    texts
        Texts by key.
    images_left_out
        Number of screenshots that were refused.
    """

    def __init__(self) -> None:
        self.images: dict[str, str] = {}
        self.texts: dict[str, str] = {}
        self.images_left_out = 0
        self._image_bytes = 0

    def add_image(self, content: bytes) -> str:
        """Add a screenshot.

        Parameters
        ----------
        content
            A JPEG or PNG image.

        Returns
        -------
        str
            Its key; empty if it was left out: it is of another type, or too large.
        """
        media_type = next((name for magic, name in _MEDIA_TYPES if content.startswith(magic)), None)
        key = hashlib.sha256(content).hexdigest()[:_KEY_DIGITS]
        if key in self.images:
            return key
        is_too_large = len(content) > MAX_IMAGE_BYTES or self._image_bytes + len(content) > MAX_IMAGES_BYTES
        if media_type is None or is_too_large:
            self.images_left_out += 1
            return ""
        self._image_bytes += len(content)
        self.images[key] = f"data:{media_type};base64,{b64encode(content).decode()}"
        return key

    def add_image_file(self, path: Path) -> str:
        """Add the screenshot in a file, as `add_image` does."""
        return self.add_image(path.read_bytes())

    def add_text_file(self, path: Path) -> str:
        """Add the text in a file, as `add_text` does."""
        return self.add_text(path.read_text(encoding="utf-8", errors="replace"))

    def add_text(self, text: str) -> str:
        """Add a text, and return its key; empty for an empty text."""
        if not text:
            return ""
        text = replace_surrogates(text)
        key = hashlib.sha256(text.encode()).hexdigest()[:_KEY_DIGITS]
        self.texts[key] = text
        return key

    def file(
        self,
        kind: Literal["teleport", "agent"],
        *,
        title: str,
        steps: list[ReplayStep],
        outcome: ReplayOutcome | None,
        site: str = "",
        facts: dict[str, str] | None = None,
        tree: ReplayTree | None = None,
    ) -> ReplayFile:
        """Return the file with everything that was added.

        Parameters
        ----------
        kind
            What is replayed.
        title
            The task, or the target.
        steps
            The steps; they name screenshots and texts by their keys.
        outcome
            How it ended.
        site
            Key of the mapped site.
        facts
            Further properties.
        tree
            The tree of a search.

        Returns
        -------
        ReplayFile
            The file.
        """
        return ReplayFile(
            kind=kind,
            created=datetime.now(UTC).isoformat(timespec="seconds"),
            title=title,
            site=site,
            facts={name: value for name, value in (facts or {}).items() if value},
            outcome=outcome,
            steps=steps,
            tree=tree,
            images=self.images,
            texts=self.texts,
            images_left_out=self.images_left_out,
        )
