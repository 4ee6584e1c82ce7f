"""Edges through menus: from pages that show the button of a menu, to the pages that the open menu links to.

A menu is opened on the page that shows it first, since only new elements are acted on. On other pages its links are
known all the same: the button is there, and what it shows was seen elsewhere. Such an edge is inherited, and performs
the actions that open the menu (`Edge.openers`) before the click on the link.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from msgspec import structs

from waygraph.index.graph import Action, Edge, InteractionGraph
from waygraph.index.graph.url_tokens import moved_within_page, url_parts, within_page
from waygraph.pipeline.browser.page.snapshot import Snapshot
from waygraph.pipeline.explore.identity.templates import is_identifier
from waygraph.pipeline.explore.records.state import State

#: Kinds of action that open menus.
_OPENING_KINDS = frozenset({"click", "hover"})

#: What identifies an element on every page that shows it at the same place; its XPath is the fourth part.
_ElementKey = tuple[str, str, tuple[str, ...], str, str, str, str]
#: What identifies a link of a menu: role, name and target.
_LinkKey = tuple[str, str, str]


@dataclass(frozen=True, slots=True)
class _Menu:
    """A menu that was opened on a page.

    Attributes
    ----------
    page
        State on which it was opened, as loaded.
    shown
        Links of the page while the menu is open.
    edges
        Edges that open it.
    links
        Links that the page shows only while the menu is open, as edges to addressable states at other URLs.
    """

    page: State
    shown: frozenset[_LinkKey]
    edges: tuple[Edge, ...]
    links: tuple[Edge, ...]


#: Menus that the same elements opened on several pages.
_SameMenus = list[_Menu]


def menu_edges(
    states: Mapping[str, State],
    performed: Sequence[Edge],
    graph: InteractionGraph,
    snapshot_of: Callable[[str], Snapshot],
) -> Iterator[Edge]:
    """Yield the edges through menus to pages that no edge leads to, grouped by source in the order of discovery.

    A state has them if it shows the element that opens the menu, at the same place, and the element was not acted on at
    its URL. Of a menu that was opened on several pages, only links that it has on all of them are used. Of a menu that
    was opened on one page, links that belong to that page are left out (`_belongs_to_page`).

    Parameters
    ----------
    states
        States by id, in the order of discovery.
    performed
        Performed edges.
    graph
        The graph with all other edges.
    snapshot_of
        Returns the snapshot of a state.

    Yields
    ------
    Edge
        Inherited edges with openers.
    """
    menus = _menus_by_opener(states, performed, graph, snapshot_of)
    opener_places = {key[3] for key in menus}
    acted_on = {(states[edge.source].url, edge.action) for edge in performed}
    for node_id, state in states.items() if menus else ():
        seen = snapshot_of(node_id)
        linked = {node_id, *(edge.target for edge in graph.edges_from(node_id))}
        for candidate in seen.candidates:
            opener = candidate.action
            if opener.xpath not in opener_places or candidate.covered or candidate.disabled:
                continue
            if (state.url, opener) in acted_on:
                continue
            for same in menus.get(_element_key(opener, seen.raw_url), {}).values():
                for menu, link in _links_at(state, same, states):
                    if link.target not in linked:
                        linked.add(link.target)
                        opened_on = snapshot_of(menu.page.id).raw_url
                        further = (_moved(edge.action, opened_on, seen.raw_url) for edge in menu.edges[1:])
                        cost_ms = round(sum(edge.cost_ms for edge in (*menu.edges, link)), 1)
                        openers = (opener, *further)
                        yield replace(link, source=node_id, cost_ms=cost_ms, inherited=True, openers=openers)


def _menus_by_opener(
    states: Mapping[str, State],
    performed: Iterable[Edge],
    graph: InteractionGraph,
    snapshot_of: Callable[[str], Snapshot],
) -> dict[_ElementKey, dict[tuple[_ElementKey, ...], _SameMenus]]:
    """Return the menus that were opened, by the first element that opens them, and by all of them."""
    opened_by: dict[str, Edge] = {}
    for edge in performed:
        if edge.source == states[edge.target].parent and _opens_in_page(edge, states):
            opened_by.setdefault(edge.target, edge)
    menus: dict[_ElementKey, dict[tuple[_ElementKey, ...], _SameMenus]] = {}
    for node_id in opened_by:
        edges = _edges_to(node_id, opened_by)
        page, opened = snapshot_of(edges[0].source), snapshot_of(node_id)
        known = {_link_key(candidate.action) for candidate in page.candidates if not candidate.covered}
        links = tuple(
            link
            for link in graph.edges_from(node_id)
            if link.action.kind == "click"
            and states[link.target].url != page.url
            and graph.nodes[link.target].addressable
            and not link.is_state_changing
            and _link_key(link.action) not in known
        )
        if links:
            shown = frozenset(_link_key(candidate.action) for candidate in opened.candidates)
            keys = tuple(_element_key(edge.action, page.raw_url) for edge in edges)
            same = menus.setdefault(keys[0], {}).setdefault(keys, [])
            same.append(_Menu(states[edges[0].source], shown, edges, links))
    return menus


def _opens_in_page(edge: Edge, states: Mapping[str, State]) -> bool:
    return (
        edge.action.kind in _OPENING_KINDS
        and states[edge.source].url == states[edge.target].url
        and not edge.is_state_changing
        and not edge.opens_tab
        and not edge.dialogs
    )


def _edges_to(node_id: str, opened_by: Mapping[str, Edge]) -> tuple[Edge, ...]:
    """Return the edges from the page as loaded to a state that was opened in it."""
    edges: list[Edge] = []
    while (edge := opened_by.get(node_id)) is not None:
        edges.append(edge)
        node_id = edge.source
    return tuple(reversed(edges))


def _links_at(state: State, same: _SameMenus, states: Mapping[str, State]) -> Iterator[tuple[_Menu, Edge]]:
    """Yield the links that a menu most likely has in a state, each with a menu that it was seen in."""
    pages = {menu.page.url for menu in same}
    if state.url in pages:
        return
    for menu in same:
        for link in menu.links:
            key, target = _link_key(link.action), states[link.target].url
            if len(pages) == 1:
                is_likely = not _belongs_to_page(link, menu.page, state)
            else:
                # The page that a link leads to may not link to itself.
                is_likely = all(key in other.shown or other.page.url == target for other in same)
            if is_likely:
                yield menu, link


def _belongs_to_page(link: Edge, page: State, other: State) -> bool:
    """Return whether a link that was seen on `page` has an address that names this page, and not the page `other`.

    A menu of things to do with the page links to such addresses, and to those of `other` when it is opened there.
    """
    return bool(_names_in(link.action.target) & _names_of(page.url) - _names_in(other.url))


def _names_of(url: str) -> set[str]:
    """Return the parts of a URL that name its page: the end of its path, identifiers, and the values of its query."""
    parts = url_parts(url)
    segments = [segment for segment in parts.segments if segment]
    return {*segments[-1:], *filter(is_identifier, segments), *(value for _, value in parts.query if value)}


def _names_in(url: str) -> set[str]:
    parts = url_parts(url)
    return {*parts.segments, *(value for _, value in parts.query)}


def _element_key(action: Action, page_url: str) -> _ElementKey:
    """Return what identifies an element. A link to a part of its own page is the same on every page."""
    target = within_page(action.target, page_url)
    return action.kind, action.value, action.frame, action.xpath, action.role, action.name, target


def _link_key(action: Action) -> _LinkKey:
    return action.role, action.name, action.target


def _moved(action: Action, page_url: str, other_url: str) -> Action:
    """Return an action of one page as it is on another one: links to parts of the page lead to parts of the other."""
    moved: Action = structs.replace(action, target=moved_within_page(action.target, page_url, other_url))
    return moved
