"""Links that lead elsewhere each time make no edges; redirects that lead to one page do."""

from itertools import count

import pytest

from tests.exploring import explore
from tests.sites.server import FixtureServer, Page

PAGES = ("Heron", "Otters", "Newt", "Natterjacks")


def varying_site():
    turns, tickets = count(), count(1)

    def random_page(_):
        return Page(redirect=f"/page?id={PAGES[next(turns) % len(PAGES)]}")

    def quote(_):
        return f"<title>Quote</title><h1>Quote</h1><p>{PAGES[next(turns) % len(PAGES)]} say so.</p>"

    def next_unread(_):
        name = PAGES[next(turns) % len(PAGES)]
        return f"<title>{name}</title><h1>{name}</h1>" + "".join(f"<p><a href='/#{i}'>{i}</a></p>" for i in name)

    def page(request):
        name = request.query["id"]
        return f"<title>{name}</title><h1>{name}</h1><p>All about {name.lower()}.</p><a href='/'>Home</a>"

    return {
        "/": "<h1>Marsh</h1><a href='/random'>Random page</a><a href='/quote/shuffle'>A quote</a>"
        "<a href='/mail/nextUnread'>Next message</a>"
        "<a href='/old'>Moved</a><a href='/visit'>Visit</a>",
        "/random": random_page,
        "/quote/shuffle": quote,
        "/mail/nextUnread": next_unread,
        "/page": page,
        "/old": Page(redirect="/new"),
        "/new": "<title>New</title><h1>New place</h1><p>It moved here.</p>",
        "/visit": lambda _: Page(redirect=f"/desk?ticket={next(tickets)}"),
        "/desk": "<title>Desk</title><h1>Desk</h1><p>One moment.</p>",
    }


@pytest.fixture(scope="module")
def capture():
    with FixtureServer(varying_site()) as site:
        yield explore(site.url, depth=2)


def test_links_that_lead_elsewhere_each_time_are_skipped_with_the_reason(capture):
    skipped = {skip.element: skip for skip in capture.report.skips if skip.reason == "varies"}
    assert skipped.keys() == {'click link "Random page"', 'click link "Next message"'}
    assert "/page?id=" in skipped['click link "Random page"'].detail


def test_what_they_happened_to_show_is_neither_a_state_nor_a_lead(capture):
    titles = {observation.title for observation in capture.observations.values()}
    assert titles == {"", "New", "Desk", "Quote"}
    assert capture.leads == {}


def test_redirects_to_one_page_are_edges(capture):
    names = {edge.action.name for edge in capture.graph.edges}
    assert {"Moved", "Visit"} <= names


def test_a_page_whose_address_stays_and_whose_text_varies_is_a_state(capture):
    assert "A quote" in {edge.action.name for edge in capture.graph.edges}
