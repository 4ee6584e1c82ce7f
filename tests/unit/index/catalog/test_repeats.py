"""Further states of a page count less in a search."""

from __future__ import annotations

from collections import defaultdict

from hypothesis import given
from hypothesis import strategies as st

from waygraph.index.catalog.repeats import REPEAT_PENALTIES, page_key, repeat_penalties

SECOND, FURTHER = REPEAT_PENALTIES["text"]


def test_the_first_state_of_each_page_keeps_its_score():
    found = repeat_penalties(["/a", "/a", "/b", "/a", "/a", "/b"], "text")
    assert found == [0, SECOND, 0, FURTHER, FURTHER, SECOND]


def test_an_encoder_that_was_not_measured_keeps_all_scores():
    assert repeat_penalties(["/a", "/a"], "jina-v4") == [0, 0]


def test_a_page_is_its_url_without_the_query_and_its_title():
    page = page_key("http://s/mugs", "Mugs")
    assert page_key("http://s/mugs?theme=dark", "Mugs") == page
    assert page_key("http://s/mugs?id=2", "Bowls") != page
    assert page_key("http://s/mugs#/table", "Mugs") != page
    assert page_key("http://s/mugs?theme=dark#/table?sort=up", "Mugs") == page_key(
        "http://s/mugs#/table?sort=up", "Mugs"
    )
    assert page_key("http://s/mugs?theme=dark", "") != page_key("http://s/mugs", "")


@given(st.lists(st.tuples(st.sampled_from("abc"), st.floats(0, 2)), max_size=20))
def test_states_of_one_page_keep_their_order(hits):
    hits = sorted(hits, key=lambda hit: -hit[1])
    penalties = repeat_penalties((url for url, _ in hits), "text")
    scores = defaultdict(list)
    for (url, score), penalty in zip(hits, penalties, strict=True):
        scores[url].append(score - penalty)
    assert all(found == sorted(found, reverse=True) for found in scores.values())
