"""Answers of the MCP tools: small forms of the HTTP answers, for language models.

The tools call a state a screen and a path a way. Class names, fields and docstrings are part of the output schemas.
"""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class _ToolAnswer(BaseModel):
    model_config = ConfigDict(extra="forbid", use_attribute_docstrings=True)


class Site(_ToolAnswer):
    """A mapped site."""

    site: str
    """Key: the `site` parameter of other tools."""
    start_url: str
    screens: int
    mapped: str
    """When the map was made (UTC)."""


class Sites(_ToolAnswer):
    """Mapped sites."""

    sites: list[Site]
    more: int = 0
    """Sites that are not shown; narrow them down with `contains`."""


class Screen(_ToolAnswer):
    """A page in one state, such as with a dialog open."""

    site: str
    id: str
    title: str
    url: str
    """Several screens may share it."""
    score: float
    """Comparable within one site."""
    matched: str = ""
    """The best matching text."""
    note: str = ""


class Screens(_ToolAnswer):
    """Found screens."""

    screens: list[Screen]
    """Best first."""
    more: int = 0
    """Left out."""
    skipped: dict[str, str] = {}
    """Sites that could not be searched, and why."""
    nothing_matches: bool = False


class Step(_ToolAnswer):
    """One action of a way."""

    do: str
    """What to do, in words. Names are quoted from the page."""
    expect_url: str
    """Address afterwards."""
    expect_id: str
    """Screen afterwards."""
    nth: int = 0
    """Which of the elements with this role and name, from 0."""
    frame: list[str] = []
    """The element is inside these frames."""
    xpath: str = ""
    """Given for elements without a name."""
    notes: list[str] = []


class Way(_ToolAnswer):
    """Actions that lead to a screen."""

    start: str | None
    """Screen where it begins; null: anywhere, the first step loads an address."""
    seconds: float
    steps: list[Step]
    """None: already there."""
    more_steps: int = 0
    """Call again from the last `expect_id` for the rest."""
    note: str = ""


class Navigation(_ToolAnswer):
    """A chosen screen and the way to it."""

    chosen: Screen | None
    """Null: none of the candidates fits."""
    reason: str
    way: Way | None = None
    nothing_matches: bool = False
    others: list[Screen] = []
    """Next best candidates: `path_to` leads there."""
    notes: list[str] = []


class ScreenAction(_ToolAnswer):
    """An action possible on a screen."""

    model_config = ConfigDict(title="Action")

    do: str
    to: str
    """Screen that it leads to."""
    to_url: str = ""
    """Given when the address changes."""


class ScreenDetail(_ToolAnswer):
    """What a screen shows."""

    site: str
    id: str
    title: str
    url: str
    texts: list[str]
    """Visible texts in reading order, headings marked with #."""
    more_texts: int = 0
    """Texts after these: call with a higher `first_text`."""
    actions: list[ScreenAction] = []
    """Actions possible here."""
    more_actions: int = 0
    """Actions after these: call with a higher `first_action`."""
    screenshot: str = ""
    """Resource with the screenshot (JPEG)."""


class Result(_ToolAnswer):
    """A found screen."""

    id: str
    title: str
    url: str


class Results(_ToolAnswer):
    """Found screens."""

    results: list[Result]


class Document(_ToolAnswer):
    """A screen as text."""

    id: str
    title: str
    text: str
    url: str
    metadata: dict[str, str]
