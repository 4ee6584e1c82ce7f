"""What a session changes on the page of a URL: news make a session, preferences and records of visits do not."""

import pytest

from waygraph.index.graph import Action, Box, Segment
from waygraph.pipeline.browser.page.snapshot import Candidate, Snapshot
from waygraph.pipeline.explore.engine.varying import session_effect

BOX = Box(0, 0, 9, 9)
TEXTS = ("Lamp", "A lamp for the desk.", "12 euros", "In stock")
SOURCE_URL = "http://x/source"


def page(elements=(), texts=TEXTS, title="Lamp", url="http://x/lamp"):
    """A page with elements: targets of links, and names of buttons."""
    candidates = tuple(
        Candidate(
            Action("click", "link" if "/" in name else "button", name, f"//*[{i}]", target=name if "/" in name else ""),
            "a" if "/" in name else "button",
            False,
            "",
            False,
            BOX,
        )
        for i, name in enumerate(elements)
    )
    structure = tuple(str(i) for i in range(len(elements)))
    segments = tuple(Segment(text, "text", BOX) for text in texts)
    return Snapshot(str(structure), url, url, title, "text/html", 200, structure, candidates, segments, False, 0)


PLAIN = page(("http://x/", "Dark mode", "Dismiss"))
SOURCE = page(("http://x/", "http://x/lamp", "Light mode"), title="Home", url=SOURCE_URL)


@pytest.mark.parametrize(
    ("effect", "other"),
    [
        pytest.param("page", page(("http://x/", "Dark mode", "Dismiss"), title="Lampe"), id="other title"),
        pytest.param(
            "part",
            page(("http://x/", "Dark mode", "Dismiss"), ("Lamp", "Eine Lampe.", "12 Euro", "Da")),
            id="most texts are new",
        ),
        pytest.param("part", page(("http://x/", "http://x/keys", "Dark mode", "Dismiss")), id="new link"),
        pytest.param("part", page(("http://x/", "Delete", "Dark mode", "Dismiss")), id="new button"),
        pytest.param("none", PLAIN, id="same"),
        pytest.param("none", page(("http://x/",), TEXTS[:1]), id="elements and texts are gone"),
        pytest.param("none", page(("http://x/", "Light mode")), id="a switch as it is on the source, a bar is gone"),
        pytest.param("none", page(("http://x/", "Dark mode", "Dismiss", SOURCE_URL)), id="link to the source"),
        pytest.param("none", page(("http://x/", "Dark mode", "Dismiss"), (*TEXTS, "New", "1")), id="some more texts"),
    ],
)
def test_news_are_an_effect_of_a_session_and_preferences_are_none(effect, other):
    assert session_effect(PLAIN, other, SOURCE) == effect


@pytest.mark.parametrize(
    ("effect", "news"), [("none", ("http://x/set?to=light",)), ("part", ("http://x/set?to=light", "http://x/keys"))]
)
def test_the_counterpart_of_the_link_that_left_a_value_is_no_news(effect, news):
    plain = page(("http://x/", "http://x/set?to=dark"))
    assert session_effect(plain, page(("http://x/", *news)), plain, switch="http://x/set?to=dark") == effect
