"""Leads: pages that the site links to and that the exploration did not visit.

Links of all states are collected by target. If there are more targets than a map keeps, those are kept of which the map
has the fewest of their kinds: a menu entry of its own before the hundredth record of a list.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field

from waygraph.core.text import shortened
from waygraph.index.graph import Edge, Lead, Segment, lead_id
from waygraph.pipeline.browser.page.snapshot import Candidate, Snapshot
from waygraph.pipeline.explore.engine.novelty import ItemKind, NoveltyModel, item_kind, places
from waygraph.pipeline.explore.policies.policy import Refusal
from waygraph.pipeline.explore.records.element_outcome import ElementOutcome
from waygraph.pipeline.explore.records.outcome import VARIES
from waygraph.pipeline.explore.records.state import State

#: Number of leads that every map may have. Larger maps may have more, see `ExploreSettings.leads_per_state`.
MIN_LEADS = 100
#: Targets that are compared; further ones are counted only.
MAX_TARGETS = 200_000
#: Longer URLs are no leads: requests of the HTTP API cannot contain them.
MAX_URL = 8_192
#: Characters of all URLs of a map's leads together.
MAX_URL_CHARACTERS = 2_000_000
#: Links of a target, with distinct names, that are kept.
MAX_LINKS = 4
#: Characters of a name, a heading and a description.
MAX_TEXT = 120
#: Texts between a link and the heading above it, and texts after a link that may describe it.
_HEADING_REACH, _DESCRIPTION_REACH = 80, 4
_DESCRIPTION_WORDS = 20
#: Roles of texts that do not describe the link before them.
_NO_DESCRIPTION = frozenset(
    {"heading", "columnheader", "link", "button", "tab", "treeitem", "option", "switch", "checkbox", "radio"}
    | {"menuitem", "menuitemcheckbox", "menuitemradio", "combobox", "listbox", "searchbox", "slider", "spinbutton"}
    | {"textbox"}
)


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
    """

    states: Mapping[str, State]
    snapshot_of: Callable[[str], Snapshot]
    depth: Callable[[str], int]
    normalize: Callable[[str], str]
    url_key: Callable[[str], str]
    is_in_scope: Callable[[str], bool]
    refuse: Callable[[Candidate, Snapshot], Refusal | None]
    tried: AbstractSet[str]


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


def collect_leads(sources: LeadSources, limit: int, counters: Counter[str]) -> dict[str, Lead]:
    """Return the leads of a finished exploration by id, in the order of their first links.

    Parameters
    ----------
    sources
        States, policies and rules of the exploration.
    limit
        Number of leads to keep.
    counters
        Incremented: `leads/known` by the number of targets, `leads/refused` by the leads that a policy refuses,
        `leads/too_long` and `leads/too_many` by targets that are not compared.

    Returns
    -------
    dict of str and Lead
        At most `limit` leads.
    """
    if limit <= 0:
        return {}
    targets = _Targets(sources, counters)
    for state in sources.states.values():
        targets.add_links_of(state)
    counters["leads/known"] += len(targets.by_key)
    chosen: set[str] = set()
    characters = 0
    for key in _most_novel_first(targets.by_key, targets.visited_kinds):
        if len(chosen) >= limit:
            break
        if characters + len(key) <= MAX_URL_CHARACTERS:
            chosen.add(key)
            characters += len(key)
    leads = (_lead(sources, target) for key, target in targets.by_key.items() if key in chosen)
    found = {lead.id: lead for lead in leads}
    counters["leads/refused"] += sum(bool(lead.refusal) for lead in found.values())
    return found


@dataclass(slots=True)
class _Target:
    """A page that was not visited: its kinds by its first link, and the first links with distinct names."""

    kind: ItemKind
    links: list[tuple[str, int]] = field(default_factory=list)
    names: list[str] = field(default_factory=list)


class _Targets:
    """Pages that links lead to, by URL key: those that were not visited, and how many visited ones are of each kind."""

    def __init__(self, sources: LeadSources, counters: Counter[str]) -> None:
        self._sources = sources
        self._counters = counters
        self._visited = {sources.url_key(url) for url in sources.tried}
        self._visited.update(sources.url_key(state.url) for state in sources.states.values())
        self._counted: set[str] = set()
        self._ignored: dict[str, bool] = {}
        self.visited_kinds: Counter[int] = Counter()
        self.by_key: dict[str, _Target] = {}

    def add_links_of(self, state: State) -> None:
        """Add the links of a state, in document order."""
        seen = self._sources.snapshot_of(state.id)
        kind_at = _kinds(self._sources, state, seen)
        for number, candidate in enumerate(seen.candidates):
            if candidate.action.kind != "click" or candidate.covered or candidate.disabled:
                continue
            url = candidate.action.target
            if self._is_ignored(url):
                continue
            key = self._sources.url_key(url)
            if key not in self._visited:
                self._add(key, url, (state.id, number), _clean(candidate.action.name), kind_at)
            elif key not in self._counted:
                self._counted.add(key)
                self.visited_kinds.update(kind_at(number).keys)

    def _add(self, key: str, url: str, link: tuple[str, int], name: str, kind_at: Callable[[int], ItemKind]) -> None:
        target = self.by_key.get(key)
        if target is None:
            if len(self.by_key) >= MAX_TARGETS:
                self._counters["leads/too_many"] += 1
                self._ignored[url] = True
                return
            target = self.by_key[key] = _Target(kind_at(link[1]))
        if not target.links or (len(target.links) < MAX_LINKS and name not in target.names):
            target.links.append(link)
            target.names.append(name)

    def _is_ignored(self, url: str) -> bool:
        """Return whether a URL is no lead: no page, another site's, or too long. Count it once if it is too long."""
        ignored = self._ignored.get(url)
        if ignored is None:
            ignored = not url.startswith(("http:", "https:")) or not self._sources.is_in_scope(url)
            if not ignored and len(url) > MAX_URL:
                self._counters["leads/too_long"] += 1
                ignored = True
            self._ignored[url] = ignored
        return ignored


def _kinds(sources: LeadSources, state: State, seen: Snapshot) -> Callable[[int], ItemKind]:
    """Return a function that returns the kinds of a candidate of a state. Places are computed on its first call."""
    found: list[str] = []

    def kind_at(number: int) -> ItemKind:
        if not found:
            found.extend(places(seen))
        return item_kind(seen.candidates[number], found[number], state.url, sources.depth(state.id))

    return kind_at


def _most_novel_first(targets: Mapping[str, _Target], visited: Counter[int]) -> Iterator[str]:
    """Yield the keys of targets, those first of whose kinds the map and the leads before them have the fewest."""
    model, taken = NoveltyModel(), Counter(visited)
    groups: dict[ItemKind, deque[tuple[int, str]]] = {}
    for number, (key, target) in enumerate(targets.items()):
        groups.setdefault(target.kind, deque()).append((number, key))
    for kind, (_, key), _ in model.most_promising(groups, taken, lambda item: item[0]):
        yield key
        taken.update(kind.keys)


def _lead(sources: LeadSources, target: _Target) -> Lead:
    """Return the lead to a target over its first link that no policy refuses, or over its first link."""
    refusals: list[str] = []
    for state_id, number in target.links:
        seen = sources.snapshot_of(state_id)
        refusal = sources.refuse(seen.candidates[number], seen)
        refusals.append(refusal.reason if refusal is not None else "")
        if refusal is None:
            break
    chosen = len(refusals) - 1 if refusals[-1] == "" else 0
    state_id, number = target.links[chosen]
    seen = sources.snapshot_of(state_id)
    candidate = seen.candidates[number]
    heading, description = _context(candidate, seen.segments)
    names = [target.names[chosen], *target.names[:chosen], *target.names[chosen + 1 :]]
    url = sources.normalize(candidate.action.target)
    return Lead(
        id=lead_id(url),
        url=url,
        names=tuple(name for name in names if name),
        heading=heading,
        description=description,
        state=state_id,
        action=candidate.action,
        depth=sources.depth(state_id) + 1,
        refusal=refusals[chosen],
    )


def _context(candidate: Candidate, segments: Sequence[Segment]) -> tuple[str, str]:
    """Return the heading above a link and the words that follow it; both empty if its text is not found."""
    name = _clean(candidate.action.name)
    texts = enumerate(segments)
    place = next((i for i, each in texts if _clean(each.text) == name and _is_inside(each, candidate)), None)
    if place is None:
        return "", ""
    above = segments[max(0, place - _HEADING_REACH) : place]
    heading = next((_clean(each.text) for each in reversed(above) if each.role == "heading"), "")
    return heading, _description(name, segments[place + 1 : place + 1 + _DESCRIPTION_REACH])


def _is_inside(segment: Segment, candidate: Candidate) -> bool:
    """Return whether the centre of a text lies in the box of an element."""
    box, outer = segment.box, candidate.box
    x, y = box.x + box.width / 2, box.y + box.height / 2
    return outer.x <= x <= outer.x + outer.width and outer.y <= y <= outer.y + outer.height


def _description(name: str, following: Iterable[Segment]) -> str:
    words: list[str] = []
    for segment in following:
        if segment.role in _NO_DESCRIPTION or len(words) >= _DESCRIPTION_WORDS:
            break
        if (text := _clean(segment.text)) != name:
            words += text.split()
    return shortened(" ".join(words[:_DESCRIPTION_WORDS]), MAX_TEXT)


def _clean(text: str) -> str:
    return shortened(" ".join(text.split()), MAX_TEXT)
