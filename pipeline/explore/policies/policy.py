"""Protocols of policies. Each policy is one small class that says why an element or a document is refused.

A policy has `refuse` for elements (`ElementPolicy`). Policies that also refuse documents, which a script or a redirect
may request where no link leads, have `refuse_url`. Both return a `Refusal`, or None to leave the decision to the next
policy. `waygraph.pipeline.explore.policies.site_policies` lists the policies in their order.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from waygraph.pipeline.browser.page.snapshot import Candidate, Snapshot


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why an element is not acted on, or a document not loaded.

    Attributes
    ----------
    reason
        Code of the reason: `external`, `hazard`, `robots`, `rule`, ...
    detail
        The part of the element that decided: a word of its name, its target.
    rule
        The rule that decided, for users who want to override it; `--explain-skips` shows it.
    """

    reason: str
    detail: str = ""
    rule: str = ""


class ElementPolicy(Protocol):
    """Reason to leave elements alone. Policies are applied in order; the first refusal counts."""

    def refuse(self, candidate: Candidate, snapshot: Snapshot) -> Refusal | None:
        """Return why `candidate`, an element of the state `snapshot`, is not acted on; None if it may be."""
        ...


class AllowRules(Protocol):
    """Exceptions that the user makes from the lexicon of hazards and from the form policy."""

    def allows(self, candidate: Candidate) -> bool:
        """Return whether an element is acted on although a policy would refuse it."""
        ...

    def allows_url(self, url: str) -> bool:
        """Return whether a document is loaded although a policy would refuse it."""
        ...
