"""The texts of a state are split into what distinguishes it, what belongs to the page, and boilerplate."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from waygraph.index.graph import HIDDEN_ROLE, Box, Observation, Segment
from waygraph.pipeline.encode.text.own_text import split_pieces
from waygraph.pipeline.encode.text.site_text import SiteText
from waygraph.pipeline.encode.text_counts import clean, count_segments

URL = "http://x/orders"


def state(*texts: str) -> Observation:
    return Observation("n", URL, "Orders", tuple(Segment(text, "text", Box(0, 0, 1, 1)) for text in texts))


def texts(pieces) -> list[str]:
    return [piece.text for piece in pieces]


SITE = SiteText(boilerplate=frozenset({"Menu"}), shared={URL: frozenset({"Orders"})})


def test_a_state_is_split_in_three():
    shown = split_pieces(state("Menu", "Orders", "Delete  all?", "Orders"), SITE)
    assert (texts(shown.fresh), texts(shown.own), texts(shown.common)) == (["Delete all?"], ["Orders"], ["Menu"])


def test_where_everything_is_fresh_nothing_is():
    shown = split_pieces(state("Menu", "Delete all?"), SITE)
    assert (texts(shown.fresh), texts(shown.own)) == ([], ["Delete all?"])


def test_a_state_of_boilerplate_alone_keeps_it():
    shown = split_pieces(state("Menu"), SITE)
    assert (texts(shown.own), texts(shown.common)) == (["Menu"], [])


def test_what_a_state_hides_belongs_to_the_page_and_distinguishes_only_the_state_that_shows_it():
    box = Box(0, 0, 1, 1)
    closed = replace(state("Orders"), segments=(Segment("Orders", "text", box), Segment("How?", HIDDEN_ROLE, box)))
    site = SiteText(shared=count_segments([closed, closed, state("Orders", "How?")]).shared)
    assert texts(split_pieces(closed, site).own) == ["Orders", "How?"]
    assert texts(split_pieces(state("Orders", "How?"), site).fresh) == ["How?"]


@given(st.lists(st.sampled_from(["Menu", "Orders", "Delete all?", " Orders ", ""])), st.booleans())
def test_every_text_is_in_exactly_one_part(shown, has_other_states):
    site = SITE if has_other_states else SiteText(boilerplate=SITE.boilerplate)
    split = split_pieces(state(*shown), site)
    found = texts((*split.fresh, *split.own, *split.common))
    assert len(found) == len(set(found))
    assert set(found) == {clean(text) for text in shown} - {""}
