"""Policy for forms: submit buttons are not pressed (`form_post`, `form_get`).

A POST may change data at the site. A GET may be a search, which is submitted from its field (action kind `submit`).
`allow` rules of the user's rules file permit GET forms. In the mode `press`, buttons of POST forms are pressed behind
the network guard, which stops the request.
"""

from __future__ import annotations

from waygraph.core.settings import HazardMode
from waygraph.pipeline.browser.page.snapshot import Candidate, Snapshot
from waygraph.pipeline.explore.policies.policy import AllowRules, Refusal

#: Kinds of actions that press nothing.
PRESSLESS_KINDS = frozenset({"hover", "goto", "focus", "scroll"})


class FormPolicy:
    """Refusal of submit buttons. Buttons of `<form method="dialog">` close a dialog and are pressed.

    Parameters
    ----------
    allowed
        Exceptions of the user, for GET forms.
    mode
        Whether buttons of POST forms are pressed behind the network guard.
    """

    def __init__(self, allowed: AllowRules | None = None, mode: HazardMode = "skip") -> None:
        self._allowed = allowed
        self._mode = mode

    def refuse(self, candidate: Candidate, snapshot: Snapshot) -> Refusal | None:  # noqa: ARG002 - an ElementPolicy
        """Return why a submit button is not pressed."""
        if candidate.action.kind in PRESSLESS_KINDS or candidate.submits in {"", "dialog"}:
            return None
        if candidate.submits == "get" and self._allowed is not None and self._allowed.allows(candidate):
            return None
        if candidate.submits == "post" and self._mode == "press":
            return None
        rule = f"submits a form with method {candidate.submits.upper()}"
        return Refusal(f"form_{candidate.submits}", candidate.action.name, rule)
