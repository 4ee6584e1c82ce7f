"""WebNavigator's own rules, and its memory as text. The order of the parts is the paper's, the words are our own."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

#: Rules about `navigate` (Appendix G.1), for an agent that has maps.
NAVIGATE_RULES = """\
- In exploration, if another page is needed, or what menus, tabs and dialogs hide, navigate there at once instead of
  clicking through the site; nearly every task begins so. The query says what the page shows, in the site's own words,
  without the reason. If the page that comes is the wrong one, navigate with another query, or use links and the search.
- In action mode the task goes on on this page, without navigate. Maps lack what was created later."""


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
    shown = list(steps)
    if not shown:
        return ""
    older = " (older ones are not shown)" if shown[0].number > 1 else ""
    return "\n".join([f"Latest steps{older}:", *map(str, shown)])
