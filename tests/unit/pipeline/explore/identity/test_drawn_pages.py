"""A document with the status 404 is a page of the site if an application drew what was asked for."""

from dataclasses import replace

import pytest

from tests.sites.static_pages import look
from waygraph.index.graph import Action
from waygraph.pipeline.explore.identity.drawn_pages import DrawnPages

BAR = "<a href='/'>Home</a><a href='/about'>About</a><a href='/team'>Team</a>"
START = look(f"<title>App</title>{BAR}<h1>Start</h1>", "http://x/")


def is_page(found, body, path="/about", name="About", status=404):
    seen = replace(look(body, f"http://x{path}"), status=status)
    return found.is_page(seen, START, Action("click", role="link", name=name, target=f"http://x{path}"))


@pytest.mark.parametrize(
    ("body", "path", "name"),
    [
        (f"<title>About us</title>{BAR}<p>All of us", "/about", "More"),
        (f"<title>App</title>{BAR}<h1>The team</h1>", "/people", "Team"),
        (f"<title>App</title>{BAR}<p>Über uns</p>", "/%C3%BCber", "→"),
    ],
)
def test_what_was_asked_for_with_the_navigation_of_the_site_is_a_page(body, path, name):
    assert is_page(DrawnPages(), body, path, name)


@pytest.mark.parametrize(
    "body",
    [
        f"<title>About: page not found</title>{BAR}",
        f"<title>About</title>{BAR}<h1>404</h1>",
        f"<title>About</title>{BAR}<h1>Seite nicht gefunden</h1>",
        f"<title>About</title>{BAR}<h1>Страница не найдена</h1>",
        f"<title>App</title>{BAR}<h1>A walk in the woods</h1>",
        "<title>About</title><h1>About</h1><a href='/'>Home</a>",
    ],
)
def test_error_pages_are_no_pages(body):
    assert not is_page(DrawnPages(), body)


def test_a_page_that_another_missing_address_showed_is_the_error_page_of_the_site():
    found, body = DrawnPages(), f"<title>About and team</title>{BAR}<p>Gone fishing"
    assert is_page(found, body)
    assert not is_page(found, body, "/team", "Team")
    resumed = DrawnPages()
    resumed.load_checkpoint(found.to_checkpoint())
    assert not is_page(resumed, body, "/team", "Team")


def test_other_errors_are_no_pages():
    assert not is_page(DrawnPages(), f"<title>About</title>{BAR}<h1>About</h1>", status=403)
