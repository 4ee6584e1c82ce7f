"""Recognition of states whose id differs from the recorded one: known aliases, and evidence for all other pages."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field

from waygraph.index.graph.model import Evidence, Merge
from waygraph.index.graph.multigraph import InteractionGraph
from waygraph.index.graph.url_tokens import mask_random_tokens

# Thresholds of `is_equivalent`. Those of a whole page were measured by `bench/likeness.py`, see docs/states.md.

#: Share of the state's sampled features that the page must show.
FEATURE_SHARE = 0.75
#: Share of the state's sampled elements that the page must have.
ELEMENT_SHARE = 0.5
#: Share of the state's own features that the page must show besides. Advertisements that stayed while the site was
#: mapped look like own features, so it is well below 1.
OWN_SHARE = 0.4

# Thresholds of a page whose shared layout (navigation, header and footer of all pages) has another form, as on
# telephones or when logged in. Measured by `bench/foreign_profiles.py`.

#: Number of own features that a state needs to be recognised by them alone.
MIN_OWN = 2
#: Share of the state's own features that the page must show.
OWN_SHARE_OTHER_LAYOUT = 0.6
#: Share of the state's sampled elements that the page must have.
ELEMENT_SHARE_OTHER_LAYOUT = 0.25
#: Share of the page's features that may be unknown to the state.
UNKNOWN_SHARE_OTHER_LAYOUT = 0.4

#: A page that shows at least this share of the shared layout's features is in the language of the map
#: (`is_contradicted`).
SHARED_LAYOUT_SHARE = 0.5

#: Reason of merges by which a state represents other pages (skeleton mode), not other snapshots of its own page.
REPRESENTED_PAGE = "equivalent"
#: Reason of merges of pages that are equal but for their URLs.
SAME_CONTENT = "same_content"
#: Number of further URLs of one page that are compared.
MAX_OTHER_URLS = 8


@dataclass(frozen=True, slots=True)
class Recognition:
    """Rules by which the states of a map are recognised, besides their ids.

    Attributes
    ----------
    merges
        By computed id, the snapshots that were recognised as a known state.
    stands_for
        By state, the number of pages that it represents, itself included, if these are several (skeleton mode).
    evidence
        By state, the features that identify it. States without evidence are recognised by ids alone.
    """

    merges: Mapping[str, Merge] = field(default_factory=dict)
    stands_for: Mapping[str, int] = field(default_factory=dict)
    evidence: Mapping[str, Evidence] = field(default_factory=dict)

    def canonical(self, node_id: str) -> str:
        """Return the state that a snapshot with this id was recognised as; the id itself if it was not merged."""
        merge = self.merges.get(node_id)
        return node_id if merge is None else merge.kept

    def aliases(self) -> dict[str, tuple[str, ...]]:
        """Return by state the ids of other snapshots of the same page, sorted."""
        found: dict[str, list[str]] = {}
        for merged, merge in sorted(self.merges.items()):
            if merge.reason != REPRESENTED_PAGE:
                found.setdefault(merge.kept, []).append(merged)
        return {kept: tuple(merged) for kept, merged in found.items()}

    def other_urls(self, graph: InteractionGraph) -> dict[str, tuple[str, ...]]:
        """Return by URL of a page the other URLs that showed the same page while the site was explored, sorted.

        These are the URLs of snapshots that were merged as `same_content` into the page as loaded, without those that
        have states of their own, and those that differ in random-looking parts only. At most `MAX_OTHER_URLS` each.

        Parameters
        ----------
        graph
            States of the map.

        Returns
        -------
        dict of str to tuple of str
            Only URLs that have others.
        """
        with_states = {node.url for node in graph.nodes.values()}
        found: dict[str, set[str]] = {}
        for merge in self.merges.values():
            page = graph.nodes.get(merge.kept)
            if page is None or merge.reason != SAME_CONTENT or not page.addressable or merge.url in with_states:
                continue
            if mask_random_tokens(merge.url) != mask_random_tokens(page.url):
                found.setdefault(page.url, set()).add(merge.url)
        return {url: tuple(sorted(others)[:MAX_OTHER_URLS]) for url, others in found.items()}

    def states(self) -> set[str]:
        """Return the ids of all states that have merges, represented pages or evidence."""
        return {merge.kept for merge in self.merges.values()} | {*self.stands_for, *self.evidence}


#: Recognition of maps made before merges and evidence were recorded.
NO_RECOGNITION = Recognition()


def is_equivalent(
    evidence: Evidence | None, state_url: str, url: str, features: Mapping[str, int], structure: Collection[str]
) -> bool:
    """Return whether a page shows a state although its id is another one.

    All of these must hold:

    - The URLs are equal, apart from random-looking parts that do not identify a page; or the site showed the same page
      at this URL.
    - The page shows all features that distinguish the state from others at its URL, and none that distinguish those
      from it.
    - Either enough of the whole page is present, together with most of the state's own features; or the state's own
      features alone are, because the shared layout has another form (on telephones, or for logged-in users).

    Parameters
    ----------
    evidence
        Evidence of the state; None: never equivalent.
    state_url
        Normalised URL of the state.
    url
        Normalised URL of the page.
    features
        Features that the page shows, with their counts.
    structure
        Hashes of the page's exposed elements.

    Returns
    -------
    bool
        Whether the page counts as the state.
    """
    if evidence is None or not evidence.features or not _is_same_page_url(evidence, state_url, url):
        return False
    if any(features.get(name, 0) < count for name, count in evidence.shows.items()):
        return False
    if any(features.get(name, 0) > count for name, count in evidence.hides.items()):
        return False
    elements = shared_fraction(evidence.elements, {element[:12] for element in structure})
    own = shared_fraction(evidence.own, features)
    if shared_fraction(evidence.features, features) >= FEATURE_SHARE and elements >= ELEMENT_SHARE:
        return own >= OWN_SHARE
    return (
        len(evidence.own) >= MIN_OWN
        and own >= OWN_SHARE_OTHER_LAYOUT
        and elements >= ELEMENT_SHARE_OTHER_LAYOUT
        and _unknown_fraction(evidence, features) <= UNKNOWN_SHARE_OTHER_LAYOUT
    )


def _is_same_page_url(evidence: Evidence, state_url: str, url: str) -> bool:
    if state_url == url or url in evidence.urls:
        return True
    return not evidence.named and mask_random_tokens(state_url) == mask_random_tokens(url)


def _unknown_fraction(evidence: Evidence, features: Collection[str]) -> float:
    """Return the fraction of a page's features that the state does not show, within the range of the state's sample."""
    known = frozenset(evidence.features)
    # The sample holds the state's smallest feature hashes: beyond the last one nothing is known.
    in_range = [name for name in features if name <= evidence.features[-1]]
    return sum(name not in known for name in in_range) / len(in_range) if in_range else 1.0


def is_contradicted(evidence: Evidence | None, features: Mapping[str, int]) -> bool:
    """Return whether a page has a state's id but shows other content in the same elements, such as "please log in".

    The page contradicts its id if it shows none of the state's own features although it is in the language of the map,
    which is assumed if it shows the texts of the shared layout. If it does not, the page may be translated; the id then
    is trusted if no other URL has this structure.
    """
    if evidence is None or len(evidence.own) < MIN_OWN or shared_fraction(evidence.own, features) > 0:
        return False
    own = frozenset(evidence.own)
    shared_layout = [name for name in evidence.features if name not in own]
    has_same_language = bool(shared_layout) and shared_fraction(shared_layout, features) >= SHARED_LAYOUT_SHARE
    return has_same_language or not evidence.alone


def shared_fraction(sample: Collection[str], found: Iterable[str]) -> float:
    """Return the fraction of a sample that was found; 1 for an empty sample."""
    present = frozenset(found)
    return sum(name in present for name in sample) / len(sample) if sample else 1.0
