"""Which URLs belong to the site? Exactly those of its host (and port)."""

from __future__ import annotations

from dataclasses import dataclass

from index.graph import site_key
from pipeline.browser.snapshot import Candidate, Snapshot
from pipeline.explore.policy import Refusal

#: Schemes that a link may have without leading anywhere: the click runs the page's own script.
_IN_PAGE_SCHEMES = frozenset({"", "javascript"})


@dataclass(frozen=True, slots=True)
class Scope:
    """The site that is being explored, by its key."""

    site: str

    def refuse_url(self, url: str) -> Refusal | None:
        """Why a document must not be loaded."""
        scheme = url.partition(":")[0].lower()
        if scheme not in {"http", "https"}:
            return Refusal("scheme", scheme)
        return None if site_key(url) == self.site else Refusal("external", url)

    def refuse(self, candidate: Candidate, seen: Snapshot) -> Refusal | None:  # noqa: ARG002 - a Policy
        """Why a link must not be followed."""
        target = candidate.action.target
        if candidate.action.kind != "click" or target.partition(":")[0].lower() in _IN_PAGE_SCHEMES:
            return None
        if candidate.download:
            return Refusal("download", target)
        return self.refuse_url(target)
