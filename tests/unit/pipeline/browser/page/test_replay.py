"""Links to parts of a page are found however the URL of the page is written, and at its other URLs."""

from types import SimpleNamespace

import pytest

from waygraph.core.urls import UrlPolicy, normalize_url
from waygraph.index.graph import Action
from waygraph.pipeline.browser.page.replay import _as_shown

PAGES = {"http://wiki.example/?id=start": ("http://wiki.example/",)}


def view_of(url: str) -> SimpleNamespace:
    return SimpleNamespace(page=SimpleNamespace(url=url), normalize=lambda address: normalize_url(address, UrlPolicy()))


@pytest.mark.parametrize(
    ("recorded", "shown_at", "expected"),
    [
        ("http://wiki.example/?a=1&b=2#menu", "http://wiki.example/?b=2&a=1", "http://wiki.example/?b=2&a=1#menu"),
        ("http://wiki.example/?id=start#menu", "http://wiki.example/", "http://wiki.example/#menu"),
        ("http://wiki.example/?id=other#menu", "http://wiki.example/", "http://wiki.example/?id=other#menu"),
        ("http://wiki.example/?id=start", "http://wiki.example/", "http://wiki.example/?id=start"),
    ],
)
def test_link_to_a_part_is_that_of_the_shown_page_and_other_links_stay(recorded, shown_at, expected):
    action = Action(kind="click", role="link", name="Menu", target=recorded)
    assert _as_shown(action, view_of(shown_at), PAGES).target == expected
