"""Policy for hazards: elements and documents that would change data at the site (`hazard`).

They are recognised by the words of `hazards.yaml` in names, URLs, event handlers and icons, and by attributes that name
an HTTP method. `allow` rules of the user's rules file permit single elements and URLs; the lexicon as a whole cannot be
switched off. In the mode `press`, buttons with generic names ("Save") are not refused, since the network guard stops
what they send.
"""

from __future__ import annotations

from waygraph.core.settings import HazardMode
from waygraph.core.urls import is_route
from waygraph.pipeline.browser.page.snapshot import Candidate, Snapshot
from waygraph.pipeline.explore.policies.forms import PRESSLESS_KINDS
from waygraph.pipeline.explore.policies.hazard_names import (
    hazard_in_code,
    hazard_in_icon,
    hazard_in_name,
    is_state_changing_method,
)
from waygraph.pipeline.explore.policies.hazard_urls import hazard_in_url
from waygraph.pipeline.explore.policies.lexicon import LexiconMatch
from waygraph.pipeline.explore.policies.policy import AllowRules, Refusal

#: Roles that show something rather than do something.
_SHOWING_ROLES = frozenset({"link", "tab", "option", "treeitem", "switch"})


class HazardPolicy:
    """Refusal by the lexicon: words in 27 languages, URLs, attributes that name a method, icons.

    Parameters
    ----------
    allowed
        Exceptions of the user.
    mode
        Whether buttons with generic names are pressed behind the network guard.
    follows_items
        Whether an address may be loaded that shows an item of a collection as probably as it does something: `/flag/5`.
    """

    def __init__(
        self, allowed: AllowRules | None = None, mode: HazardMode = "skip", *, follows_items: bool = False
    ) -> None:
        self._allowed = allowed
        self._mode = mode
        self._follows_items = follows_items

    def refuse(self, candidate: Candidate, snapshot: Snapshot) -> Refusal | None:
        """Return why an element is not clicked. Hovering is always safe."""
        if candidate.action.kind in PRESSLESS_KINDS:
            return None
        match = _hazard(candidate, snapshot, follows_items=self._follows_items)
        if match is None or (match.is_generic and self._mode == "press") or self._allows(candidate):
            return None
        return Refusal("hazard", match.phrase, match.rule)

    def is_pressed(self, candidate: Candidate, snapshot: Snapshot) -> bool:
        """Return whether an element that the mode `skip` refuses, or a submit button, is pressed behind the guard."""
        if self._mode == "skip" or candidate.action.kind in PRESSLESS_KINDS or self._allows(candidate):
            return False
        match = _hazard(candidate, snapshot, follows_items=False)
        return match.is_generic if match is not None else candidate.submits == "post"

    def refuse_url(self, url: str) -> Refusal | None:
        """Return why a document is not loaded, also if a script requests it: `location = "/logout"` is no link."""
        match = _hazard_in_target(url, follows_items=self._follows_items)
        if match is None or (self._allowed is not None and self._allowed.allows_url(url)):
            return None
        return Refusal("hazard", match.phrase, match.rule)

    def _allows(self, candidate: Candidate) -> bool:
        return self._allowed is not None and self._allowed.allows(candidate)


def _hazard_in_target(url: str, *, follows_items: bool) -> LexiconMatch | None:
    match = hazard_in_url(url)
    return None if match is not None and match.is_collection and follows_items else match


def _hazard(candidate: Candidate, snapshot: Snapshot, *, follows_items: bool) -> LexiconMatch | None:
    """Return the first match in this order: method, option, target, name, handler, icon; generic names come last."""
    action = candidate.action
    if is_state_changing_method(candidate.method):
        return LexiconMatch(candidate.method, "an attribute says that a script sends this method instead")
    other_page = action.target if _leads_to_other_page(action.target, snapshot.raw_url) else ""
    shows = bool(other_page) or (action.role in _SHOWING_ROLES and not _runs_script(action.target, snapshot.raw_url))
    name = None if _has_anchor(other_page) else hazard_in_name(action.name, shows=shows, leads_to=other_page)
    return (
        (hazard_in_name(action.value, shows=True) if action.kind == "select" else None)  # the name of the option
        or (_hazard_in_target(action.target, follows_items=follows_items) if action.target else None)
        or (name if name is not None and not name.is_generic else None)
        or (hazard_in_code(candidate.handler) if candidate.handler else None)
        or (hazard_in_code(action.target) if action.target.startswith("javascript:") else None)
        or hazard_in_icon(candidate.icon, action.name)
        or name
    )


def _leads_to_other_page(target: str, here: str) -> bool:
    """Return whether a link shows another page, or another route of this one."""
    if not target.startswith(("http:", "https:")):
        return False
    page, _, fragment = target.partition("#")
    return page != here.partition("#")[0] or is_route(fragment)


def _has_anchor(target: str) -> bool:
    """Return whether a link shows one part of a page: an index entry ("purge()"), a heading ("Delete a file")."""
    _, _, fragment = target.partition("#")
    return fragment != "" and not is_route(fragment)


def _runs_script(target: str, here: str) -> bool:
    """Return whether a link has a placeholder address (`#`, `javascript:`) and acts by its event handler."""
    if target.startswith("javascript:"):
        return True
    page, mark, fragment = target.partition("#")
    return bool(mark) and not fragment and page == here.partition("#")[0]
