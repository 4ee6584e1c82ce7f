"""One file that replays a teleport or an agent's run step by step: what was expected, what happened, what it showed.

`waygraph teleport --trace` and `waygraph tasks trace` write such files, and the page of the service reads them. A file
is complete in itself: screenshots are data URLs, and equal screenshots and equal texts are stored once.
"""

from __future__ import annotations

import hashlib
from base64 import b64encode
from datetime import UTC, datetime
from typing import Literal

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
    images: dict[str, str] = {}
    """Data URLs (`image/jpeg` or `image/png`) by key."""
    texts: dict[str, PageText] = {}
    """Texts that an agent read, by key."""
    images_left_out: int = 0
    """Number of screenshots that are missing because of the limits of a file, or because they cannot be read."""


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
            images=self.images,
            texts=self.texts,
            images_left_out=self.images_left_out,
        )
