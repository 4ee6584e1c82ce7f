"""Detection of block pages; pages that only mention or use a CAPTCHA are content."""

from html.parser import HTMLParser

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.sites.blockpages import BLOCKED, PAGES
from tests.sites.server import Page
from waygraph.index.graph import Action, Box, Segment
from waygraph.pipeline.browser.page.snapshot import Candidate, Snapshot
from waygraph.pipeline.explore.policies.block_page import detect_block_page


class Reader(HTMLParser):
    """Title, texts and clickable elements of a page, roughly as a browser shows them."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.title, self.texts, self.clickable, self._inside = "", [], 0, []
        self.feed(html)

    def handle_starttag(self, tag, _attributes):
        self.clickable += tag in {"a", "button"}
        if tag not in {"input", "meta", "br"}:
            self._inside.append(tag)

    def handle_endtag(self, tag):
        if tag in self._inside:
            del self._inside[len(self._inside) - 1 - self._inside[::-1].index(tag) :]

    def handle_data(self, data):
        if "title" in self._inside:
            self.title += data
        elif data.strip() and not {"script", "iframe", "style"} & set(self._inside):
            self.texts.append(data.strip())


def snapshot(html: str, *, status: int = 200) -> Snapshot:
    page = Reader(html)
    link = Candidate(Action("click", role="link"), "a", disabled=False, submits="", download=False, box=Box(0, 0, 1, 1))
    segments = tuple(Segment(text, "text", Box(0, 0, 10, 10)) for text in page.texts)
    url = "http://shop.example/"
    return Snapshot(
        "id", url, url, page.title, "text/html", status, (), (link,) * page.clickable, segments, capped=False, opened=0
    )


def found(page: Page) -> str | None:
    headers = {"content-type": "text/html"} | {name.lower(): value for name, value in page.headers.items()}
    return detect_block_page(snapshot(page.body, status=page.status), html=page.body, headers=headers)


@pytest.mark.parametrize("path", BLOCKED)
def test_a_block_page_is_recognised(path):
    assert found(PAGES[path]) == BLOCKED[path]


@pytest.mark.parametrize("path", sorted(PAGES.keys() - BLOCKED.keys()))
def test_a_page_of_the_site_is_content(path):
    assert found(PAGES[path]) is None


def test_frames_identify_a_challenge_but_a_captcha_widget_needs_the_document():
    empty = snapshot("<title>x</title>")
    assert detect_block_page(empty, frames=["https://geo.captcha-delivery.com/captcha/?cid=1"]) == "datadome"
    assert detect_block_page(empty, frames=["https://newassets.hcaptcha.com/captcha/v1/x"]) is None


def test_a_large_document_is_no_block_page():
    html = "<script>window._cf_chl_opt = 1</script>" + "<!-- x -->" * 100_000
    assert detect_block_page(snapshot("<title>x</title>"), html=html) is None


@pytest.mark.timeout(20)
@pytest.mark.parametrize(
    "piece", ["<", '<a class="', "g-recaptcha ", "<input ", '"<div class="h-captcha', "verify you"]
)
def test_no_document_makes_recognition_slow(piece):
    assert detect_block_page(snapshot("", status=403), html=piece * (200_000 // len(piece))) in {
        None,
        "hcaptcha",
        "recaptcha",
    }


@given(st.text(), st.text(), st.integers(0, 600))
def test_any_text_and_any_document_can_be_searched(text, html, status):
    named = detect_block_page(snapshot("", status=status), html=html, frames=[text], headers={"server": text})
    assert named is None or status in {403, 405, 429, 503}
