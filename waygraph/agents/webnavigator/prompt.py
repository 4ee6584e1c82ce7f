"""WebNavigator's own rules, and its memory as text. The order of the parts is the paper's, the words are our own."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

#: Rules about `navigate`, for an agent that has maps.
NAVIGATE_RULES = """\
- The map knows every page of a site. If what is needed is on another page, or behind menus, tabs and dialogs, navigate
  there at once: describe the page by what it shows, in plain words. Do not search it by clicking.
- After navigate look at the page before you navigate again. If the map has no such page, use the links and the search
  of the site."""


@dataclass(frozen=True, slots=True)
class RememberedStep:
    """A step as later prompts show it.

    Attributes
    ----------
    url
        The page that it was done on.
    action
        The action.
    reason
        Why.
    result
        What came of it.
    """

    url: str
    action: str
    reason: str
    result: str

    def __str__(self) -> str:
        return f"- on {self.url}: {self.action}\n  why: {self.reason}\n  result: {self.result}"


def history_text(steps: Iterable[RememberedStep]) -> str:
    """Return the latest steps as text; empty without any."""
    lines = [str(step) for step in steps]
    return "\n".join(["Latest steps, oldest first:", *lines]) if lines else ""
