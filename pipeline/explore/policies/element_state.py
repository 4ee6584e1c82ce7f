"""Policies for elements that take no input: disabled elements (`disabled`) and covered elements (`covered`).

They cannot be switched off: a click on such an element would fail. A covered element is acted on in every state in
which it is not covered.
"""

from __future__ import annotations

from waygraph.pipeline.browser.page.snapshot import Candidate, Snapshot
from waygraph.pipeline.explore.policies.policy import Refusal


class DisabledPolicy:
    """Refusal of disabled elements."""

    def refuse(self, candidate: Candidate, snapshot: Snapshot) -> Refusal | None:  # noqa: ARG002 - an ElementPolicy
        """Return why an element is not acted on."""
        return Refusal("disabled", rule="the element is disabled") if candidate.disabled else None


class CoveredPolicy:
    """Refusal of elements that lie behind something that covers the page, and so take no pointer input."""

    def refuse(self, candidate: Candidate, snapshot: Snapshot) -> Refusal | None:  # noqa: ARG002 - an ElementPolicy
        """Return why an element is not acted on."""
        return Refusal("covered", rule="something lies over the whole page") if candidate.covered else None
