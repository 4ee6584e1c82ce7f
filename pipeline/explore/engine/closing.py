"""The button that closes what an action opened: a dialog, a tray, a panel."""

from __future__ import annotations

import re
from functools import cache
from importlib.resources import files

import yaml

from waygraph.pipeline.browser.page.snapshot import Candidate, Snapshot
from waygraph.pipeline.explore.identity.difference import difference_key

#: Characters of the longest name that says what is closed ("Close menu").
_MAX_NAME = 30
#: Words of the classes of buttons that show a cross and have no name.
_ICON = re.compile(r"(?<![a-z])(?:close|dismiss|times|xmark|cross)(?![a-z])", re.IGNORECASE)


def closing_button(before: Snapshot, after: Snapshot) -> Candidate | None:
    """Return the button that closes what an action opened.

    Parameters
    ----------
    before
        Snapshot before the action.
    after
        Snapshot after it.

    Returns
    -------
    Candidate or None
        A button that the action brought and whose name, or icon, says that it closes; of those with the clearest
        name the last one in the document, since what opens last is on top.
    """
    known = {difference_key(candidate, "element") for candidate in before.candidates}
    found = [
        (rank, -number, candidate)
        for number, candidate in enumerate(after.candidates)
        if difference_key(candidate, "element") not in known and (rank := _rank(candidate, after)) is not None
    ]
    return min(found, key=lambda entry: entry[:2])[2] if found else None


def _rank(candidate: Candidate, page: Snapshot) -> int | None:
    """Return how clearly a button says that it closes something, 0 for the clearest; None if it does not say so."""
    action = candidate.action
    leads_away = action.target.partition("#")[0] not in {"", page.raw_url.partition("#")[0]}
    if action.kind != "click" or leads_away or candidate.disabled or candidate.covered:
        return None
    if candidate.submits not in {"", "dialog"}:
        return None
    if not any(map(str.isalpha, action.name)) and _ICON.search(candidate.icon):
        return 0
    name = action.name.strip().lower()
    groups = _names()
    if name in groups["close"]:
        return 0
    if len(name) <= _MAX_NAME and any(_begins_or_ends(name, phrase) for phrase in groups["close"] if len(phrase) > 1):
        return 1
    return 2 if name in groups["cancel"] else None


def _begins_or_ends(name: str, phrase: str) -> bool:
    """Return whether a name begins or ends with a phrase, at a word unless the language is written without spaces."""
    space = " " if phrase < "\u3000" else ""
    return name.startswith(f"{phrase}{space}") or name.endswith(f"{space}{phrase}")


@cache
def _names() -> dict[str, frozenset[str]]:
    """Return the names in `closing.yaml` by group."""
    groups = yaml.safe_load(files(__package__).joinpath("closing.yaml").read_text(encoding="utf-8"))
    return {group: frozenset(name for names in body.values() for name in names) for group, body in groups.items()}
