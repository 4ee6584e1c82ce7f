"""WebNavigator's own rules, and its memory as text. The order of the parts is the paper's, the words are our own."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

#: Rules about `navigate` (Appendix G.1), for an agent that has maps.
NAVIGATE_RULES = """\
- In exploration, if the page that is needed is another one, or behind menus, tabs and dialogs, navigate there at once,
  instead of clicking through the site. Nearly every task begins with navigate. The query describes the page by what it
  shows, in the site's own words if you know them, without the reason.
- navigate performs the walk: what you see next is the page. If it is not the one that is needed, or the map has none,
  navigate with another query, or use links and the search of the site.
- In action mode the task goes on on this page: navigate is no action then. Maps do not show what was created since they
  were made."""


@dataclass(frozen=True, slots=True)
class RememberedStep:
    """A step as later prompts show it.

    Attributes
    ----------
    number
        Its number in the task, from 1.
    url
        The page that it was done on.
    action
        The action.
    reason
        Why.
    result
        What came of it.
    """

    number: int
    url: str
    action: str
    reason: str
    result: str

    def __str__(self) -> str:
        return f"{self.number}. on {self.url}: {self.action}\n   why: {self.reason}\n   result: {self.result}"


def history_text(steps: Iterable[RememberedStep]) -> str:
    """Return the latest steps as text; empty without any."""
    lines = [str(step) for step in steps]
    return "\n".join(["Latest steps:", *lines]) if lines else ""
