"""The policies of one site, built once per site from the settings, and the order in which they are applied."""

from __future__ import annotations

from dataclasses import dataclass

from waygraph.core.settings import ExploreSettings, HazardMode
from waygraph.pipeline.explore.policies.blocklist import BlockList
from waygraph.pipeline.explore.policies.element_state import CoveredPolicy, DisabledPolicy
from waygraph.pipeline.explore.policies.forms import FormPolicy
from waygraph.pipeline.explore.policies.hazard import HazardPolicy
from waygraph.pipeline.explore.policies.policy import ElementPolicy, Refusal
from waygraph.pipeline.explore.policies.robots import RobotsPolicy
from waygraph.pipeline.explore.policies.scope import Scope


@dataclass(frozen=True, slots=True)
class SitePolicies:
    """Scope, user's rules and hazards of one site.

    Robots.txt is not part of it: the same `RobotsPolicy` serves all hosts that an exploration visits.

    Attributes
    ----------
    scope
        Hosts that belong to the site.
    rules
        Rules of the user for the site.
    hazards
        The lexicon, with the exceptions that the rules make.
    forms
        The policy for submit buttons.
    """

    scope: Scope
    rules: BlockList
    hazards: HazardPolicy
    forms: FormPolicy

    @classmethod
    def of(cls, site: str, explore: ExploreSettings, *, start: str = "") -> SitePolicies:
        """Return the policies that the settings define for a site.

        Parameters
        ----------
        site
            Key of the site that the start page led to.
        explore
            Settings with the scope and the rules file.
        start
            Key of the site that the user asked for, if it may differ from `site`.

        Returns
        -------
        SitePolicies
            The policies of the site.

        Raises
        ------
        InvalidInput
            See `Scope.of` and `BlockList.read`.
        """
        scope = Scope.of(site, explore, start=start)
        rules = BlockList.read(explore.rules, site)
        # Nothing is pressed that a guard which only observes would let through.
        mode: HazardMode = "skip" if explore.guard == "observe" else explore.hazards
        return cls(scope, rules, HazardPolicy(rules, mode), FormPolicy(rules, mode))

    def for_elements(self, robots: RobotsPolicy | None) -> tuple[ElementPolicy, ...]:
        """Return the policies for elements, in order. The first refusal counts."""
        return (
            DisabledPolicy(),
            CoveredPolicy(),
            self.scope,
            *((robots,) if robots is not None else ()),
            self.rules,
            self.forms,
            self.hazards,
        )

    def refuse_url(self, url: str, robots: RobotsPolicy | None) -> Refusal | None:
        """Return the first refusal of a document, which may be requested by a script where no link leads."""
        return (
            self.scope.refuse_url(url)
            or (robots.refuse_url(url) if robots is not None else None)
            or self.rules.refuse_url(url)
            or self.hazards.refuse_url(url)
        )

    def is_state_changing(self, url: str) -> bool:
        """Return whether a request for a URL of the site changes data with any method, according to the lexicon."""
        return self.hazards.refuse_url(url) is not None and self.scope.refuse_url(url) is None
