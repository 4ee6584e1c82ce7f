"""Pages whose links and scripts load documents into a frame, while the address of the page stays the same."""

import pytest

from tests.exploring import explore
from tests.sites.server import FixtureServer

CHAPTERS = range(1, 5)
WORDS = ("", "amber anchor", "basin beacon", "cedar cliff", "delta dune")


def chapter(number: int, after: str = "") -> str:
    text = f"{WORDS[number]} " * 6
    return f"<title>Chapter {number}</title><h1>Chapter {number}</h1><p>{text}</p>{after}"


def contents(target: str) -> str:
    return "".join(f"<li><a target={target} href=/{n}>Chapter {n}</a>" for n in CHAPTERS)


BUTTONS = "".join(
    f"""<li><button onclick="document.querySelector('iframe').src='/{n}'">Chapter {n}</button>""" for n in CHAPTERS
)
FRAME = "<iframe name=main width=600 height=400 {}></iframe>"
START_PAGES = {
    "a frameset": "<title>Book</title><frameset cols='200,*'><frame src=/menu><frame name=main src=/1></frameset>",
    "a frame beside a menu": f"<title>Book</title><ul>{contents('main')}</ul>" + FRAME.format("src=/1"),
    "a frame that is empty at first": f"<title>Book</title><ul>{contents('main')}</ul>" + FRAME.format(""),
    "a frame that a script fills": f"<title>Book</title><ul>{BUTTONS}</ul>" + FRAME.format("src=/1"),
    "links inside the frame": "<title>Book</title><h1>Book</h1>" + FRAME.format("src=/next/1"),
}
PAGES = {
    **{f"/{n}": chapter(n) for n in CHAPTERS},
    **{f"/next/{n}": chapter(n, f"<a href=/next/{n + 1}>Next</a>" if n < 4 else "") for n in CHAPTERS},
    "/menu": f"<title>Contents</title><ul>{contents('main')}</ul>",
}


def shown_chapters(capture) -> list[str]:
    """Return the chapter that each state shows, "" for none."""
    texts = [" ".join(segment.text for segment in node.segments) for node in capture.observations.values()]
    return sorted(next((word for word in WORDS[1:] if word in text), "") for text in texts)


@pytest.mark.parametrize("start", START_PAGES)
def test_each_document_that_a_frame_shows_is_a_state(start):
    with FixtureServer({**PAGES, "/": START_PAGES[start]}) as site:
        capture = explore(site.url, depth=4)
        again = explore(site.url, depth=4, workers=2) if start == "a frameset" else capture
    empty = ["" for _ in ["a frame that is empty at first"] if start == _]
    assert shown_chapters(capture) == [*empty, *WORDS[1:]]
    assert set(again.graph.nodes) == set(capture.graph.nodes)
