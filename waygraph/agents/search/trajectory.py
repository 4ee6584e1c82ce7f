"""What a search knows of the way to a state: the steps, why each was taken, and the notes on all pages that it read."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from waygraph.core.text import shortened

#: Characters of a summary, a reason or a note. One that is longer repeats the page.
_MAX_CHARS = 600


@dataclass(frozen=True, slots=True)
class PastAction:
    """An action on the way to a state.

    Attributes
    ----------
    action
        The action as text.
    url
        Where it led.
    title
        Title of that page.
    summary
        What the page before showed, in the words of the model; empty: nobody said.
    thinking
        Why it was chosen, in the words of the model; empty: nobody said.
    """

    action: str
    url: str
    title: str
    summary: str = ""
    thinking: str = ""


@dataclass(frozen=True, slots=True)
class Note:
    """A fact that was read on a page.

    Attributes
    ----------
    text
        The fact.
    url
        URL of the page.
    """

    text: str
    url: str


@dataclass(frozen=True, slots=True)
class Trajectory:
    """The way to a state.

    Attributes
    ----------
    task
        The task, in plain words.
    history
        The actions, the latest last. Those before a change of data are among them.
    notes
        What was read on all visited pages, those of other branches included: the search leaves pages whose facts an
        answer needs.
    progress
        How far the task was in the state before, in the words of the reward; empty: nobody said.
    """

    task: str
    history: tuple[PastAction, ...] = ()
    notes: tuple[Note, ...] = ()
    progress: tuple[str, ...] = ()


def history_text(history: Sequence[PastAction]) -> str:
    """Return steps for a prompt, one JSON document a line. Titles and summaries repeat texts of pages.

    >>> print(history_text([PastAction("click link 'A'", "http://x/a", "A", summary="Three links")]))
    Steps so far:
    {"page": "Three links", "action": "click link 'A'", "led to": "A", "at": "http://x/a"}
    """
    rows = (
        {"page": each.summary, "why": each.thinking, "action": each.action, "led to": each.title, "at": each.url}
        for each in history
    )
    return "\n".join(["Steps so far:", *_lines(rows)]) if history else "Steps so far: none"


def notes_text(notes: Sequence[Note]) -> str:
    """Return notes for a prompt, one JSON document a line; empty without any."""
    return "\n".join(["Notes:", *_lines({"note": each.text, "at": each.url} for each in notes)]) if notes else ""


def _lines(rows: Iterable[dict[str, str]]) -> list[str]:
    return [
        json.dumps({name: shortened(text, _MAX_CHARS) for name, text in row.items() if text}, ensure_ascii=False)
        for row in rows
    ]
