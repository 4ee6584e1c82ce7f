"""Further states of a page count less in a search."""

from __future__ import annotations

from collections import defaultdict

from hypothesis import given
from hypothesis import strategies as st

from waygraph.index.catalog.repeats import REPEAT_PENALTIES, page_key, plain_first, plainness, repeat_penalties
from waygraph.index.graph import Node

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


def state(name: str, url: str, *, addressable: bool = True, depth: int = 1) -> Node:
    return Node(name, url, "Mugs", (), depth, addressable)


PLAIN = state("a", "http://s/mugs")
SORTED, OPENED = state("b", "http://s/mugs?sort=up"), state("c", "http://s/mugs", addressable=False, depth=2)
NO_WORDS = [frozenset[str]()] * 3


def test_a_plain_page_comes_before_its_variants_that_score_little_more():
    found = plain_first([1.0, 1.02, 1.04], [PLAIN, SORTED, OPENED], NO_WORDS, "text")
    assert found == [1.04, 1.02, 1.04]
    assert plainness(PLAIN) < plainness(SORTED) < plainness(OPENED)


def test_a_variant_stays_first_if_it_alone_shows_a_word_of_the_query_or_scores_much_more():
    words = [frozenset({"mug"}), frozenset({"mug"}), frozenset({"mug", "delet"})]
    assert plain_first([1.0, 1.0, 1.04], [PLAIN, SORTED, OPENED], words, "text") == [1.0, 1.0, 1.04]
    assert plain_first([1.0, 1.0, 1.2], [PLAIN, SORTED, OPENED], NO_WORDS, "text") == [1.0, 1.0, 1.2]


def test_leads_other_pages_and_encoders_that_were_not_measured_keep_their_scores():
    other = state("d", "http://s/bowls?sort=up")
    assert plain_first([1.0, 1.02, 1.03], [PLAIN, None, other], NO_WORDS, "text") == [1.0, 1.02, 1.03]
    assert plain_first([1.0, 1.02, 1.04], [PLAIN, SORTED, OPENED], NO_WORDS, "jina-v4") == [1.0, 1.02, 1.04]


@given(st.lists(st.tuples(st.sampled_from([PLAIN, SORTED, OPENED, None]), st.floats(0, 1)), max_size=8))
def test_putting_plain_states_first_lowers_no_score_and_exceeds_no_best_score(hits):
    states, scores = [each for each, _ in hits], [score for _, score in hits]
    found = plain_first(scores, states, [frozenset[str]()] * len(hits), "text")
    assert all(before <= after for before, after in zip(scores, found, strict=True))
    assert max(found, default=0) == max(scores, default=0)
