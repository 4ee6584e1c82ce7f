"""Edges through menus: which pages have them, and which links of a menu they follow."""

from tests.sites.static_pages import BASE
from tests.sites.static_pages import look as snapshot_of
from waygraph.index.graph import Edge, InteractionGraph, Node
from waygraph.pipeline.explore.engine.menu_edges import menu_edges
from waygraph.pipeline.explore.records.state import State

BAR = "<nav><button>Menu</button></nav>"
HELP, FORUM = "<a href='/help'>Help</a>", "<a href='/forum'>Forum</a>"


class Site:
    """States in the order of discovery, by name, and the edges between them."""

    def __init__(self):
        self.seen, self.states, self.performed = {}, {}, []

    def page(self, path, html):
        """Add a page that was loaded."""
        return self._add(path, html, path, None)

    def opened(self, name, source, element, html):
        """Add a state that a click on an element of another state showed."""
        self._add(name, html, self.seen[source].url.removeprefix(BASE), source)
        self.click(source, element, name)

    def click(self, source, element, target):
        """Add a performed click."""
        (action,) = [c.action for c in self.seen[source].candidates if c.action.name == element]
        self.performed.append(Edge(self.seen[source].id, self.seen[target].id, action, 100.0))

    def _add(self, name, html, path, parent):
        seen = self.seen[name] = snapshot_of(html, f"{BASE}{path}")
        self.states[seen.id] = State.of(seen, seen.id, 0, self.seen[parent].id if parent else None)

    def edges(self):
        """Return the edges through menus: source, names of the elements, and target."""
        snapshots = {seen.id: seen for seen in self.seen.values()}
        loaded = {seen.url: seen.id for name, seen in self.seen.items() if name.startswith("/")}
        nodes = [
            Node(seen.id, seen.url, "", (), 0, addressable=name.startswith("/")) for name, seen in self.seen.items()
        ]
        links = [
            Edge(seen.id, loaded[c.action.target], c.action, 50.0, inherited=True)
            for seen in self.seen.values()
            for c in seen.candidates
            if loaded.get(c.action.target, seen.id) != seen.id
        ]
        graph = InteractionGraph(nodes, [*self.performed, *links])
        names = {seen.id: name for name, seen in self.seen.items()}
        return [
            (names[e.source], [a.name for a in (*e.openers, e.action)], names[e.target])
            for e in menu_edges(self.states, self.performed, graph, snapshots.__getitem__)
        ]


def site_with_menu(*, start="/", links=HELP, bar=BAR):
    site = Site()
    site.page(start, f"<h1>Start</h1>{bar}")
    site.opened("menu", start, "Menu", f"<h1>Start</h1>{bar}<ul>{links}</ul>")
    site.page("/help", f"<h1>Help</h1>{bar}")
    return site


def test_pages_with_the_button_lead_to_what_its_menu_links_to():
    site = site_with_menu(links=HELP + FORUM)
    site.page("/forum", f"<h1>Forum</h1>{BAR}")
    assert site.edges() == [("/help", ["Menu", "Forum"], "/forum"), ("/forum", ["Menu", "Help"], "/help")]


def test_an_edge_through_a_menu_is_inherited_and_costs_what_all_its_actions_cost():
    site = site_with_menu()
    site.page("/forum", f"<h1>Forum</h1>{BAR}")
    snapshots = {seen.id: seen for seen in site.seen.values()}
    menu, help_page = site.seen["menu"], site.seen["/help"]
    nodes = [Node(seen.id, seen.url, "", (), 0, addressable=True) for seen in site.seen.values()]
    link = Edge(menu.id, help_page.id, menu.candidates[-1].action, 50.0)
    graph = InteractionGraph(nodes, [*site.performed, link])
    (edge,) = menu_edges(site.states, site.performed, graph, snapshots.__getitem__)
    assert (edge.inherited, edge.cost_ms, edge.action) == (True, 150.0, link.action)
    assert edge.openers == (site.seen["/forum"].candidates[0].action,)


def test_pages_without_the_button_and_with_a_button_at_another_place_have_none():
    site = site_with_menu()
    site.page("/other", "<h1>Other</h1><p><button>Menu</button></p>")
    site.page("/bare", "<h1>Bare</h1>")
    assert site.edges() == []


def test_a_page_on_which_the_button_was_pressed_has_what_was_seen_there():
    site = site_with_menu()
    site.page("/forum", f"<h1>Forum</h1>{BAR}")
    site.opened("own menu", "/forum", "Menu", f"<h1>Forum</h1>{BAR}<p>Empty</p>")
    assert site.edges() == []


def test_links_that_the_page_shows_anyway_are_no_edges_through_a_menu():
    site = site_with_menu(bar=BAR + HELP)
    site.page("/forum", f"<h1>Forum</h1>{BAR}")
    assert site.edges() == []


def test_things_to_do_with_a_page_are_done_with_this_page_only():
    edit = "<a href='/pages/5/edit'>Edit</a>"
    site = site_with_menu(start="/pages/5", links=edit + HELP)
    site.page("/pages/5/edit", "<h1>Edit</h1>")
    site.page("/pages/6", f"<h1>Six</h1>{BAR}")
    assert site.edges() == [("/pages/6", ["Menu", "Help"], "/help")]


def test_of_menus_of_one_button_only_what_all_have_is_expected_elsewhere():
    site = site_with_menu(links=HELP + FORUM)
    site.page("/forum", "<h1>Forum</h1>")
    site.page("/news", f"<h1>News</h1>{BAR}")
    site.opened("news menu", "/news", "Menu", f"<h1>News</h1>{BAR}<ul>{FORUM}</ul>")
    site.page("/search", f"<h1>Search</h1>{BAR}")
    assert site.edges() == [("/help", ["Menu", "Forum"], "/forum"), ("/search", ["Menu", "Forum"], "/forum")]


def test_a_link_that_was_seen_on_several_pages_may_name_one_of_them():
    link = "<a href='/news/old'>Old news</a>"
    site = site_with_menu(links=link)
    site.page("/news", f"<h1>News</h1>{BAR}")
    site.opened("news menu", "/news", "Menu", f"<h1>News</h1>{BAR}<ul>{link}</ul>")
    site.page("/news/old", "<h1>Old</h1>")
    assert site.edges() == [("/help", ["Menu", "Old news"], "/news/old")]


def test_the_menus_of_a_menu_are_opened_one_after_the_other():
    site = site_with_menu(links="<li><button>More</button></li>")
    opened = f"<h1>Start</h1>{BAR}<ul><li><button>More</button></li>{FORUM}</ul>"
    site.opened("submenu", "menu", "More", opened)
    site.page("/forum", f"<h1>Forum</h1>{BAR}")
    assert site.edges() == [("/help", ["Menu", "More", "Forum"], "/forum")]


def test_a_button_that_is_a_link_to_a_part_of_its_own_page_is_the_same_on_every_page():
    site = site_with_menu(bar="<nav><a href='#menu'>Menu</a></nav>")
    site.page("/forum", "<h1>Forum</h1><nav><a href='#menu'>Menu</a></nav>")
    assert site.edges() == [("/forum", ["Menu", "Help"], "/help")]
