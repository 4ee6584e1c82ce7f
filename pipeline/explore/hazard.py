"""Which elements would change something if they were clicked? Known by names, addresses, attributes and forms."""

from __future__ import annotations

from typing import Protocol

from pipeline.browser.snapshot import Candidate, Snapshot
from pipeline.explore.addresses import hazard_in_address
from pipeline.explore.lexicon import Found, changing_method, hazard_in_code, hazard_in_icon, hazard_in_name
from pipeline.explore.policy import Refusal

#: Roles that show something rather than do something.
_SHOWING = frozenset({"link", "tab", "option", "treeitem", "switch"})
#: Ways to act that press nothing.
_TOUCHLESS = frozenset({"hover", "goto", "focus", "scroll"})


class Allowed(Protocol):
    """What the user wants acted on all the same."""

    def allows(self, candidate: Candidate) -> bool:
        """Whether an element is to be acted on."""
        ...

    def allows_url(self, url: str) -> bool:
        """Whether a URL is to be loaded."""
        ...


class Forms:
    """Forms are seen and never submitted: a POST changes something, a GET asks a question nobody has.

    Parameters
    ----------
    allowed : submit buttons of GET forms that the user wants pressed; the guard would stop a POST anyway.
    """

    def __init__(self, allowed: Allowed | None = None) -> None:
        self._allowed = allowed

    def refuse(self, candidate: Candidate, seen: Snapshot) -> Refusal | None:  # noqa: ARG002 - a Policy
        """Why a submit button must not be pressed."""
        if candidate.action.kind in _TOUCHLESS or candidate.submits in {"", "dialog"}:
            return None
        if candidate.submits == "get" and self._allowed is not None and self._allowed.allows(candidate):
            return None
        rule = f"submits a form with method {candidate.submits.upper()}"
        return Refusal(f"form_{candidate.submits}", candidate.action.name, rule)


class Hazards:
    """The lexicon of `hazards.yaml`: words in 27 languages, addresses, attributes that name a method, icons.

    Parameters
    ----------
    allowed : elements that the user wants to be acted on all the same.
    """

    def __init__(self, allowed: Allowed | None = None) -> None:
        self._allowed = allowed

    def refuse(self, candidate: Candidate, seen: Snapshot) -> Refusal | None:
        """Why an element must not be clicked. Hovering is always safe."""
        if candidate.action.kind in _TOUCHLESS:
            return None
        found = _hazard(candidate, seen)
        if found is None or (self._allowed is not None and self._allowed.allows(candidate)):
            return None
        return Refusal("hazard", found.phrase, found.rule)

    def refuse_url(self, url: str) -> Refusal | None:
        """Why a document must not be loaded that a script goes to: `location = "/logout"` shows no link."""
        found = hazard_in_address(url)
        if found is None or (self._allowed is not None and self._allowed.allows_url(url)):
            return None
        return Refusal("hazard", found.phrase, found.rule)


def _hazard(candidate: Candidate, seen: Snapshot) -> Found | None:
    action = candidate.action
    if changing_method(candidate.method):
        return Found(candidate.method, "an attribute says that a script sends this method instead")
    leads_to = action.target if _leads_elsewhere(action.target, seen.raw_url) else ""
    shows = bool(leads_to) or (action.role in _SHOWING and not _runs_script(action.target, seen.raw_url))
    return (
        (hazard_in_address(action.target) if action.target else None)
        or (None if _names_a_place(leads_to) else hazard_in_name(action.name, shows=shows, leads_to=leads_to))
        or (hazard_in_code(candidate.handler) if candidate.handler else None)
        or (hazard_in_code(action.target) if action.target.startswith("javascript:") else None)
        or hazard_in_icon(candidate.icon, action.name)
    )


def _leads_elsewhere(target: str, here: str) -> bool:
    """Whether a link shows another page, or another route of this one."""
    if not target.startswith(("http:", "https:")):
        return False
    page, _, fragment = target.partition("#")
    return page != here.partition("#")[0] or fragment[:1] in {"/", "!"}


def _names_a_place(leads_to: str) -> bool:
    """Whether a link shows one place of another page: an entry of an index ("purge()"), a heading ("Delete a file")."""
    _, _, fragment = leads_to.partition("#")
    return fragment[:1] not in {"", "/", "!"}


def _runs_script(target: str, here: str) -> bool:
    """Whether a link has an address only because links must have one: `#`, `javascript:`."""
    if target.startswith("javascript:"):
        return True
    page, mark, fragment = target.partition("#")
    return bool(mark) and not fragment and page == here.partition("#")[0]


class Disabled:
    """Disabled elements take no input."""

    def refuse(self, candidate: Candidate, seen: Snapshot) -> Refusal | None:  # noqa: ARG002 - a Policy
        """Why an element cannot be activated."""
        return Refusal("disabled", rule="the element is disabled") if candidate.disabled else None


class Covered:
    """What lies behind something that covers the page takes no pointer. It is acted on where that is gone."""

    def refuse(self, candidate: Candidate, seen: Snapshot) -> Refusal | None:  # noqa: ARG002 - a Policy
        """Why an element cannot be pointed at."""
        return Refusal("covered", rule="something lies over the whole page") if candidate.covered else None
