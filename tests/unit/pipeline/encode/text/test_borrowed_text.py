"""What visited pages of a kind lend to a page of that kind that was not visited."""

from waygraph.index.graph import Box, Observation, Segment
from waygraph.pipeline.encode.text.borrowed_text import BorrowedTexts
from waygraph.pipeline.encode.text.site_text import SiteText

BOX = Box(0, 0, 1, 1)


def page(url: str, *texts: tuple[str, str]) -> Observation:
    return Observation(url, url, "", tuple(Segment(text, role, BOX) for role, text in texts))


def borrowed(url: str, *pages: Observation, site: SiteText | None = None) -> tuple[str, ...]:
    return tuple(BorrowedTexts(pages, site or SiteText()).of(url))


def history(name: str, *more: tuple[str, str]) -> Observation:
    texts = (("heading", "Earlier versions"), ("button", "Compare"), ("columnheader", "Edited by"), *more)
    return page(f"http://s/pages/{name}/history", *texts)


def test_a_page_borrows_what_visited_pages_of_its_kind_have_in_common():
    pages = history("about", ("heading", "About us")), history("contact", ("heading", "Contact"))
    assert borrowed("http://s/pages/prints/history", *pages) == ("Earlier versions", "Compare", "Edited by")


def test_pages_that_differ_lend_nothing():
    pages = page("http://s/users/add", ("textbox", "Last name")), page("http://s/images/add", ("button", "Choose file"))
    assert borrowed("http://s/redirects/add", *pages) == ()


def test_one_visited_page_speaks_for_the_same_end_of_a_path_elsewhere():
    gantt = page("http://s/projects/apollo/issues/gantt", ("heading", "Gantt"), ("textbox", "Months"))
    for url in ("http://s/issues/gantt", "http://s/projects/gemini/issues/gantt"):
        assert borrowed(url, gantt) == ("Gantt", "Months")
    assert borrowed("http://s/projects/gemini/issues/calendar", gantt) == ()


def test_names_of_another_entity_are_not_borrowed():
    gantt = page("http://s/projects/apollo/issues/gantt", ("heading", "Apollo"), ("heading", "Gantt"))
    assert borrowed("http://s/projects/gemini/issues/gantt", gantt) == ("Gantt",)


def test_running_text_and_boilerplate_are_not_borrowed():
    more = ("text", "Nobody has edited this page since May"), ("link", "Home")
    pages = history("about", *more), history("contact", *more)
    site = SiteText(boilerplate=frozenset({"Compare"}))
    assert borrowed("http://s/pages/prints/history", *pages, site=site) == ("Earlier versions", "Edited by")


def test_a_visited_page_lends_nothing_to_itself():
    assert borrowed("http://s/pages/about/history", history("about"), history("contact", ("heading", "x y"))) == ()
