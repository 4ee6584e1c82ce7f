"""Which elements would change something if they were clicked? Known by their names, their links and their forms."""

from __future__ import annotations

import re
from functools import cache
from importlib.resources import files
from typing import NamedTuple

import yaml

from pipeline.browser.snapshot import Candidate, Snapshot
from pipeline.explore.policy import Refusal

_FIRST_WORDS = 6
#: Roles that show something rather than do something.
_SHOWING = frozenset({"link", "tab", "option", "treeitem", "switch"})


class Forms:
    """Forms are seen and never submitted: a POST changes something, a GET asks a question nobody has."""

    def refuse(self, candidate: Candidate, seen: Snapshot) -> Refusal | None:  # noqa: ARG002 - a Policy
        """Why a submit button must not be pressed."""
        if candidate.action.kind != "click" or candidate.submits in {"", "dialog"}:
            return None
        return Refusal(f"form_{candidate.submits}", candidate.action.name)


class Hazards:
    """The built-in lexicon of `hazards.yaml`: words in twelve languages, and parts of URLs."""

    def refuse(self, candidate: Candidate, seen: Snapshot) -> Refusal | None:  # noqa: ARG002 - a Policy
        """Why an element must not be clicked. Hovering is always safe."""
        action = candidate.action
        if action.kind != "click":
            return None
        lexicon = _lexicon()
        found = lexicon.urls.search(action.target.partition("://")[2].partition("/")[2])
        words = " ".join(action.name.split()[:_FIRST_WORDS])
        if not found and not action.name.endswith("?"):
            found = lexicon.anywhere.search(words) or lexicon.start.match(words)
            if not found and action.role not in _SHOWING:
                found = lexicon.buttons.match(words)
        return Refusal("hazard", found.group(0).strip("/_.?=&-")) if found else None


class Disabled:
    """Disabled elements take no input."""

    def refuse(self, candidate: Candidate, seen: Snapshot) -> Refusal | None:  # noqa: ARG002 - a Policy
        """Why an element cannot be activated."""
        return Refusal("disabled") if candidate.disabled else None


class _Lexicon(NamedTuple):
    anywhere: re.Pattern[str]
    start: re.Pattern[str]
    buttons: re.Pattern[str]
    urls: re.Pattern[str]


@cache
def _lexicon() -> _Lexicon:
    text = files("pipeline.explore").joinpath("hazards.yaml").read_text(encoding="utf-8")
    entries: dict[str, list[str]] = yaml.safe_load(text)
    return _Lexicon(
        anywhere=_words(entries["anywhere"]),
        start=_words(entries["start"]),
        buttons=_words(entries["buttons"]),
        urls=re.compile("|".join(entries["urls"]), re.IGNORECASE),
    )


def _words(lines: list[str]) -> re.Pattern[str]:
    """Whole words for scripts that separate words, plain occurrence for those that do not."""
    spaced: list[str] = []
    unspaced: list[str] = []
    for line in lines:
        for word in re.split(r"\|(?![^(]*\))", line):
            (unspaced if re.search(r"[\u3040-\u30ff\u4e00-\u9fff\uac00-\ud7af]", word) else spaced).append(word)
    return re.compile("|".join([rf"\b(?:{'|'.join(spaced)})\b", *unspaced]), re.IGNORECASE)
