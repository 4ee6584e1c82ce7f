"""Leads: pages that the site links to and that the exploration did not visit.

Links of all states are collected by target. If the leads exceed their budget of bytes, those are left out that were
expected to bring the least when they were met: the hundredth record of a list before a menu entry of its own.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field

from waygraph.index.graph import Action, Box, Edge, Lead, lead_id
from waygraph.pipeline.browser.page.snapshot import Candidate, PageLink, Snapshot
from waygraph.pipeline.explore.engine.lead_context import LinkContexts, clean
from waygraph.pipeline.explore.engine.listed_leads import ListedLeads
from waygraph.pipeline.explore.engine.novelty import NoveltyModel, item_kind, places
from waygraph.pipeline.explore.identity.url_groups import folder_of, group_of
from waygraph.pipeline.explore.policies.policy import Refusal
from waygraph.pipeline.explore.records.element_outcome import ElementOutcome
from waygraph.pipeline.explore.records.listing import ListedPage
from waygraph.pipeline.explore.records.outcome import VARIES
from waygraph.pipeline.explore.records.state import State

#: Targets that are compared; further ones are counted only.
MAX_TARGETS = 200_000
#: Longer URLs are no leads: requests of the HTTP API cannot contain them.
MAX_URL = 8_192
#: Distinct names of links to one target that are kept.
MAX_NAMES = 4
#: Leads that one policy refuses and that are kept, each with a name of its own. Nobody walks to them, but an agent that
#: is asked to log out learns where that is.
MAX_REFUSED = 50
#: Bytes of a lead beside its URL, which its action repeats: names, context, and path of the link.
_BYTES_PER_LEAD = 400
#: Place of links that no element of the page shows, see `places`.
_NO_PLACE = "/hidden"
_NO_BOX = Box(0, 0, 0, 0)
_NUMBER = re.compile(r"\d+")


@dataclass(frozen=True, slots=True)
class LeadSources:
    """What leads are collected from.

    Attributes
    ----------
    states
        States by id, in the order of discovery.
    snapshot_of
        Returns the snapshot of a state.
    depth
        Returns the number of actions from the start page to a state.
    normalize
        Returns the normalised URL of a link.
    url_key
        Returns the URL by which two links lead to one page.
    is_in_scope
        Whether a URL belongs to the site.
    refuse
        Returns why a policy leaves an element alone; None if it does not.
    tried
        Targets of the links that were followed.
    listed
        Pages that the site lists in sitemaps and feeds.
    refuse_url
        Returns the reason of the policy that refuses a URL; None if there is none.
    """

    states: Mapping[str, State]
    snapshot_of: Callable[[str], Snapshot]
    depth: Callable[[str], int]
    normalize: Callable[[str], str]
    url_key: Callable[[str], str]
    is_in_scope: Callable[[str], bool]
    refuse: Callable[[Candidate, Snapshot], Refusal | None]
    tried: AbstractSet[str]
    listed: Sequence[ListedPage] = ()
    refuse_url: Callable[[str], str | None] = lambda _: None


def tried_targets(
    outcomes: Iterable[ElementOutcome],
    edges: Iterable[Edge],
    states: Mapping[str, State],
    is_loaded: Callable[[str], bool],
) -> set[str]:
    """Return the targets of the links that were followed.

    A click that a script handled in the page (a tree that unfolds, a request that was stopped) says nothing about the
    page that the link names, unless another link to it was followed.

    Parameters
    ----------
    outcomes
        Outcomes of elements.
    edges
        Performed edges.
    states
        States by id.
    is_loaded
        Whether a URL was requested.

    Returns
    -------
    set of str
        URLs.
    """
    handled = {
        (edge.source, str(edge.action))
        for edge in edges
        if edge.action.target
        and states[edge.source].url == states[edge.target].url
        and not is_loaded(edge.action.target)
    }
    return {
        each.target
        for each in outcomes
        if each.target
        and (
            each.status == "failed"
            or (each.status == "done" and (each.state, each.element) not in handled)
            or each.reason == VARIES
        )
    }


@dataclass(frozen=True, slots=True)
class CollectedLeads:
    """The leads of a finished exploration.

    Attributes
    ----------
    leads
        Leads by id, in the order of their first links, then listed pages.
    left_out
        Pages that the budget left out, by the group of their URLs.
    """

    leads: Mapping[str, Lead]
    left_out: Counter[str]


def collect_leads(sources: LeadSources, budget: int, counters: Counter[str]) -> CollectedLeads:
    """Collect the leads of a finished exploration.

    Leads that a policy refuses take no place of others: of those with one reason and one name the first is kept, if the
    budget has room for it after all others. Pages that only the site lists take the room that is left then.

    Parameters
    ----------
    sources
        States, policies and rules of the exploration.
    budget
        Bytes of all leads together, see `ExploreSettings.lead_bytes`.
    counters
        Incremented: `leads/known` by the number of targets, `leads/refused/<reason>` by those that a policy refuses,
        `leads/hidden` by the leads that no person sees, `leads/left_out` by the targets that the budget left out,
        `leads/too_long` and `leads/too_many` by targets that are not compared.

    Returns
    -------
    CollectedLeads
        The leads, and what was left out.
    """
    if budget <= 0:
        return CollectedLeads({}, Counter())
    targets = _Targets(sources, counters)
    for state in sources.states.values():
        targets.add_links_of(state)
    counters["leads/known"] += len(targets.by_key)
    for target in targets.by_key.values():
        if target.refusal:
            counters[f"leads/refused/{target.refusal}"] += 1
    chosen, left_out = _within_budget(sources, targets, budget)
    named = (ListedPage(url, name) for url, name in targets.named.items() if sources.is_in_scope(url))
    listed = ListedLeads([*named, *sources.listed], sources.url_key)
    linked = _build_leads(sources, {key: target for key, target in targets.by_key.items() if key in chosen})
    leads = {lead.id: listed.completed(lead) for lead in linked.values()}
    counters["leads/hidden"] += sum(lead.hidden for lead in leads.values())
    room = budget - sum(map(_size, chosen))
    visited = (state.url for state in sources.states.values())
    for page in listed.most_novel_first(targets.is_known, visited, sources.refuse_url, counters):
        room -= _size(page.url)
        if room < 0:
            left_out[folder_of(group_of(page.url))] += 1
            continue
        lead = listed.lead(page, sources.normalize(page.url), next(iter(sources.states)))
        counters["leads/listed"] += lead.id not in leads
        leads.setdefault(lead.id, lead)
    counters["leads/left_out"] += left_out.total()
    return CollectedLeads(leads, left_out)


@dataclass(slots=True)
class _Target:
    """A page that was not visited.

    Attributes
    ----------
    state, number
        State and number of the link that the lead is over: the first visible one that no policy refuses, else the first
        visible one, else the same of hidden ones. The number is that of a candidate; -1 - the number of a link that is
        no candidate.
    hidden
        Whether no person sees any link to it.
    refusal
        Reason of the policy that refuses the link; empty if there is none.
    names
        Distinct names of links, that of the chosen one first.
    """

    state: str
    number: int
    hidden: bool
    refusal: str
    names: list[str] = field(default_factory=list)


class _Targets:
    """Pages that links lead to and that were not visited, by URL key."""

    def __init__(self, sources: LeadSources, counters: Counter[str]) -> None:
        self._sources = sources
        self._counters = counters
        self._visited = {sources.url_key(url) for url in sources.tried}
        self._visited.update(sources.url_key(state.url) for state in sources.states.values())
        self._keys: dict[str, str] = {}
        self.links_to_visited: dict[str, tuple[str, int]] = {}
        """By key of a visited page, state and number of the first link to it."""
        self.by_key: dict[str, _Target] = {}
        self.named: dict[str, str] = {}
        """Names of pages that JSON-LD of the states names, by URL."""

    def is_known(self, key: str) -> bool:
        """Return whether a page was visited, or a link leads to it."""
        return key in self._visited or key in self.by_key

    def add_links_of(self, state: State) -> None:
        """Add the links of a state: those that can be clicked in document order, then those that no element shows."""
        seen = self._sources.snapshot_of(state.id)
        for url, name in seen.named_pages:
            self.named.setdefault(url, name)
        for number, candidate in enumerate(seen.candidates):
            # A download is a file, not a page.
            if candidate.action.kind == "click" and not (candidate.covered or candidate.disabled or candidate.download):
                self._add(seen, state.id, number, candidate.action.target, candidate.action.name)
        self._counters["leads/too_many"] += seen.links_cut
        for number, link in enumerate(seen.links):
            self._add(seen, state.id, -1 - number, link.url, link.name, hidden=link.hidden)

    def _add(self, seen: Snapshot, state: str, number: int, url: str, name: str, *, hidden: bool = False) -> None:
        key = self._key(url)
        if not key:
            return
        if key in self._visited:
            self.links_to_visited.setdefault(key, (state, number))
            return
        target, name = self.by_key.get(key), clean(name)
        if target is None:
            if len(self.by_key) >= MAX_TARGETS:
                self._counters["leads/too_many"] += 1
                self._keys[url] = ""
                return
            refusal = self._refusal(seen, number)
            self.by_key[key] = _Target(state, number, hidden, refusal, [name] if name else [])
        elif target.hidden and not hidden:
            target.state, target.number, target.hidden = state, number, False
            target.refusal, target.names = self._refusal(seen, number), [name] if name else []
        elif target.hidden == hidden:
            lifts = bool(target.refusal) and not self._refusal(seen, number)
            if lifts:
                target.state, target.number, target.refusal = state, number, ""
            if name and name not in target.names and (lifts or len(target.names) < MAX_NAMES):
                target.names.insert(0 if lifts else len(target.names), name)

    def _refusal(self, seen: Snapshot, number: int) -> str:
        refusal = self._sources.refuse(_candidate(seen, number), seen)
        return refusal.reason if refusal is not None else ""

    def _key(self, url: str) -> str:
        """Return the key of a URL; empty if it is no lead: no page, another site's, or too long, which is counted."""
        key = self._keys.get(url)
        if key is None:
            is_page = url.startswith(("http:", "https:")) and self._sources.is_in_scope(url)
            if is_page and len(url) > MAX_URL:
                self._counters["leads/too_long"] += 1
                is_page = False
            key = self._keys[url] = self._sources.url_key(url) if is_page else ""
        return key


def _candidate(seen: Snapshot, number: int) -> Candidate:
    """Return a link as a candidate, which policies judge by name and target."""
    return seen.candidates[number] if number >= 0 else _as_candidate(seen.links[-1 - number])


def _as_candidate(link: PageLink) -> Candidate:
    action = Action("click", role="link", name=link.name, target=link.url)
    return Candidate(action, "a", disabled=False, submits="", download=False, box=_NO_BOX)


def _within_budget(sources: LeadSources, targets: _Targets, budget: int) -> tuple[set[str], Counter[str]]:
    """Return the keys of the targets to keep, and how many of each group the budget leaves out."""
    keys = [key for key, target in targets.by_key.items() if not target.refusal]
    refused = list(_first_refused(targets.by_key))
    if sum(map(_size, (*keys, *refused))) > budget:
        gains = _expected_gains(sources, targets)
        keys.sort(key=lambda key: (-gains[key], targets.by_key[key].hidden))
    chosen: set[str] = set()
    left_out: Counter[str] = Counter()
    for key in (*keys, *refused):
        if _size(key) <= budget:
            budget -= _size(key)
            chosen.add(key)
        else:
            left_out[folder_of(group_of(key))] += 1
    return chosen, left_out


def _size(key: str) -> int:
    return _BYTES_PER_LEAD + 2 * len(key)


def _expected_gains(sources: LeadSources, targets: _Targets) -> dict[str, float]:
    """Return what each target was expected to bring when it was met, if each page met before brought nothing."""
    met_in: dict[str, list[tuple[str, int]]] = {}
    for key, (state, number) in targets.links_to_visited.items():
        met_in.setdefault(state, []).append((key, number))
    for key, target in targets.by_key.items():
        if not target.refusal:
            met_in.setdefault(target.state, []).append((key, target.number))
    model, met = NoveltyModel(), Counter[int]()
    gains: dict[str, float] = {}
    for each in sources.states.values():
        if links := met_in.get(each.id):
            seen, depth = sources.snapshot_of(each.id), sources.depth(each.id)
            found = places(seen)
            for key, number in links:
                place = found[number] if number >= 0 else _NO_PLACE
                kind = item_kind(_candidate(seen, number), place, each.url, depth)
                gains[key] = model.expected_gain(kind, met)
                met.update(kind.keys)
    return gains


def _first_refused(targets: Mapping[str, _Target]) -> Iterator[str]:
    """Yield the keys of refused targets: the first of each reason and name."""
    names: dict[str, set[str]] = {}
    for key, target in targets.items():
        if target.refusal:
            known = names.setdefault(target.refusal, set())
            name = _NUMBER.sub("#", target.names[0].casefold()) if target.names else ""
            if name not in known and len(known) < MAX_REFUSED:
                known.add(name)
                yield key


def _build_leads(sources: LeadSources, targets: Mapping[str, _Target]) -> dict[str, Lead]:
    """Return the leads to targets by id. The snapshot of each state is read once."""
    by_state: dict[str, list[str]] = {}
    for key, target in targets.items():
        by_state.setdefault(target.state, []).append(key)
    built: dict[str, Lead] = {}
    for state, keys in by_state.items():
        seen = sources.snapshot_of(state)
        contexts = LinkContexts(seen.segments)
        built.update((key, _lead(sources, targets[key], seen, contexts)) for key in keys)
    return {built[key].id: built[key] for key in targets}


def _lead(sources: LeadSources, target: _Target, seen: Snapshot, contexts: LinkContexts) -> Lead:
    candidate = _candidate(seen, target.number)
    url = sources.normalize(candidate.action.target)
    heading, description = contexts.of(candidate) if target.number >= 0 else ("", "")
    return Lead(
        id=lead_id(url),
        url=url,
        names=tuple(target.names),
        heading=heading,
        description=description,
        state=target.state,
        action=candidate.action if target.number >= 0 else Action("goto", url=candidate.action.target),
        depth=sources.depth(target.state) + 1,
        refusal=target.refusal,
        hidden=target.hidden,
    )
