"""Further states of a page count less in a search."""

from __future__ import annotations

from collections import defaultdict

from hypothesis import given
from hypothesis import strategies as st

from waygraph.index.catalog.repeats import (
    REPEAT_PENALTIES,
    after_copied,
    page_key,
    places_of,
    plain_first,
    repeat_penalties,
)
from waygraph.index.graph import Action, Lead, Node

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
OTHER = state("d", "http://s/bowls?sort=up")
LEAD = Lead("e", "http://s/mugs", ("Mugs",), "", "", "a", Action(kind="click"), 2)
PLACES = places_of([PLAIN, SORTED, OPENED, OTHER, LEAD])


def put_first(scores, hits, encoder="text", words=None):
    shown = words or [frozenset[str]()] * len(hits)
    places = [PLACES[each.id] for each in hits]
    return plain_first(scores, places, lambda of: [shown[i] for i in of], encoder)


def test_states_and_leads_of_one_page_have_its_number():
    assert {name: place.page for name, place in PLACES.items()} == {"a": 0, "b": 0, "c": 0, "d": 1, "e": 0}
    assert [place.is_lead for place in PLACES.values()] == [False, False, False, False, True]
    assert PLACES["e"].plainness < PLACES["a"].plainness < PLACES["b"].plainness < PLACES["c"].plainness


def test_a_plain_page_comes_before_its_variants_that_score_little_more():
    assert put_first([1.0, 1.02, 1.04], [PLAIN, SORTED, OPENED]) == [1.04, 1.02, 1.04]


def test_a_variant_stays_first_if_it_alone_shows_a_word_of_the_query_or_scores_much_more():
    words = [frozenset({"mug"}), frozenset({"mug"}), frozenset({"mug", "delet"})]
    assert put_first([1.0, 1.0, 1.04], [PLAIN, SORTED, OPENED], words=words) == [1.0, 1.0, 1.04]
    assert put_first([1.0, 1.0, 1.2], [PLAIN, SORTED, OPENED]) == [1.0, 1.0, 1.2]


def test_leads_other_pages_and_encoders_that_were_not_measured_keep_their_scores():
    assert put_first([1.0, 1.02, 1.03], [PLAIN, LEAD, OTHER]) == [1.0, 1.02, 1.03]
    assert put_first([1.0, 1.02, 1.04], [PLAIN, SORTED, OPENED], "jina-v4") == [1.0, 1.02, 1.04]


def test_words_are_looked_up_for_states_of_pages_with_several_only():
    asked = []

    def shown(of):
        asked.extend(of)
        return [frozenset[str]()] * len(of)

    plain_first([1.0] * 4, [PLACES[each.id] for each in (OTHER, SORTED, LEAD, PLAIN)], shown, "text")
    assert asked == [1, 3]


@given(st.lists(st.tuples(st.sampled_from([PLAIN, SORTED, OPENED, LEAD]), st.floats(0, 1)), max_size=8))
def test_putting_plain_states_first_lowers_no_score_and_exceeds_no_best_score(hits):
    scores = [score for _, score in hits]
    found = put_first(scores, [each for each, _ in hits])
    assert all(before <= after for before, after in zip(scores, found, strict=True))
    assert max(found, default=0) == max(scores, default=0)


def history_of(name: str, *names: str) -> Lead:
    url = f"http://s/pages/{name}/history"
    return Lead(name, url, names, "", "", "a", Action("click", target=url), 2)


def test_leads_of_one_name_are_one_page():
    places = places_of([PLAIN, history_of("b", "History"), history_of("c", "history"), history_of("d", "Edit")])
    pages = [place.page for place in places.values()]
    assert pages[1] == pages[2]
    assert len({pages[0], pages[1], pages[3]}) == 3


VISITED = Node("visited", "http://s/pages/about/history", "History: About us", (), 2, True)
COPY, ELSEWHERE = history_of("prints", "History", "Prints"), history_of("maps", "Where charts lie")
COPY_PLACES = places_of([VISITED, COPY, ELSEWHERE])


def in_order(scores: dict[str, float], shown: dict[str, set[str]]) -> list[str]:
    names = list(scores)
    found = after_copied(
        list(scores.values()),
        names,
        [COPY_PLACES[name] for name in names],
        lambda of: [frozenset(shown.get(names[i], ())) for i in of],
    )
    return sorted(names, key=lambda name: -found[names.index(name)])


def test_a_lead_never_comes_before_the_visited_page_whose_copy_it_is():
    scores = {"visited": 1.0, "prints": 1.4}
    assert in_order(scores, {"visited": {"histori"}, "prints": {"histori"}}) == ["visited", "prints"]
    assert in_order(scores, {}) == ["visited", "prints"]


def test_it_comes_first_by_a_word_of_the_query_that_the_visited_page_does_not_show():
    shown = {"visited": {"histori"}, "prints": {"histori", "print"}}
    assert in_order({"visited": 1.0, "prints": 1.4}, shown) == ["prints", "visited"]
    assert in_order({"visited": 1.0, "prints": 0.9}, shown) == ["visited", "prints"]


def test_a_lead_of_another_name_is_no_copy():
    assert COPY_PLACES["maps"].copied == ()
    assert in_order({"visited": 1.0, "maps": 1.4}, {}) == ["maps", "visited"]
