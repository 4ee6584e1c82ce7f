"""Answers of the MCP tools: small forms of the HTTP answers, for language models.

The tools call a state a screen and a path a way. Class names, fields and docstrings are part of the output schemas.
"""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict


class _ToolAnswer(BaseModel):
    model_config = ConfigDict(extra="forbid", use_attribute_docstrings=True)


class Site(_ToolAnswer):
    """A mapped site."""

    site: str
    """Key: the `site` parameter of other tools."""
    title: str = ""
    start_url: str
    screens: int
    mapped: str
    """When the site was explored (UTC)."""


class Sites(_ToolAnswer):
    """Mapped sites."""

    sites: list[Site]
    more: int = 0
    """Sites that are not shown; narrow them down with `contains`."""


class Screen(_ToolAnswer):
    """A page in one state, such as with a dialog open."""

    site: str = ""
    """Empty: the one that you asked about."""
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
    """goto, click, dblclick, contextmenu (right click), hover, focus, press, select, input (type), or submit (type and
    press Enter)."""
    value: str = ""
    """The URL, key, text or option."""
    role: str = ""
    name: str = ""
    selector: str = ""
    """For Playwright's `page.locator`, or `target` of its MCP tools. If it fails: role and name."""
    expect_url: str = ""
    """Address afterwards. Empty: the next step shows it."""
    match: Literal["exact", "path", "glob"] = "exact"
    """How to compare it. exact: parameters in any order, without #anchors. path: without parameters. glob: * is any
    text."""
    expect_id: str = ""
    """Screen afterwards."""
    notes: list[str] = []


class Way(_ToolAnswer):
    """Actions that lead to a screen."""

    start: str | None
    """Screen where it begins; null: anywhere, the first step loads an address."""
    seconds: float
    """What the steps took while mapping."""
    steps: list[Step]
    """None: already there."""
    more_steps: int = 0
    """Call again from the last `expect_id` for the rest."""
    tools: list[str] = []
    """Page tools there, with their inputs (* required): `describe_tool` explains one."""
    note: str = ""


class Navigation(_ToolAnswer):
    """A chosen screen and the way to it."""

    candidates: list[Screen]
    """The chosen screen, then others by score in case the choice is wrong: `path_to` leads there."""
    confidence: float | None = None
    """How likely the candidate with the best score is right, by its lead over the next. Others have none."""
    reason: str
    """Of the choice."""
    way: Way | None = None
    """To the first candidate. Null: none was chosen."""
    nothing_matches: bool = False
    """Most likely no screen fits: rephrase."""
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


class ScreenTool(_ToolAnswer):
    """What one can do on a page."""

    id: str
    name: str
    does: str = ""
    inputs: list[str] = []
    """* required."""
    may_change: bool = False
    screen: str
    """Nearest one that has it, for `path_to`."""
    url: str


class ScreenTools(_ToolAnswer):
    """Page tools."""

    tools: list[ScreenTool]
    more: int = 0
    """Left out: raise `first`, or search."""


class ScreenToolDetail(_ToolAnswer):
    """A page tool in full."""

    id: str
    name: str
    does: str = ""
    input_schema: dict[str, Any]
    more_inputs: int = 0
    """Left out of the schema."""
    submits: str = ""
    """Method and address of its form."""
    screens: list[str]
    """Nearest ones that have it."""
    notes: list[str] = []


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
