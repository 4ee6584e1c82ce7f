"""Lexical scores: which words count, how much, and within which bounds."""

import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import snowballstemmer
from hypothesis import given
from hypothesis import strategies as st

from waygraph.index.catalog.lexical import STOP_WORDS, LexicalIndex, terms

PAGES = {
    "orders": ("Orders", "Number", "Customer", "All orders of the year"),
    "settings": ("Settings", "Customer", "Currency"),
    "empty": (),
}
TEXTS = st.lists(st.text(st.sampled_from("abc deé-1"), max_size=12), max_size=4)


def scores(query: str, *names: str) -> list[float]:
    return LexicalIndex(PAGES).scores(query, names or tuple(PAGES)).tolist()


def test_a_state_that_shows_a_word_scores_more_than_one_that_does_not():
    orders, settings, empty = scores("currency")
    assert settings > orders == empty == 0


def test_a_rare_word_counts_more_than_a_common_one():
    pages = {"common": ("customer",), "rare": ("currency",), "other": ("customer",)}
    common, rare, _ = LexicalIndex(pages).scores("customer currency", tuple(pages))
    assert rare > common > 0


def test_forms_of_a_word_are_one_word():
    assert scores("order", "orders") == scores("ORDERED", "orders") != [0.0]


def test_threads_that_search_at_once_get_the_same_stems():
    letters = "abcdefghijklmnopqrstuvwxyz"
    words = [f"{a}{b}nationalizations{c}ings" for a in letters for b in letters for c in "abc"]
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(4) as threads:
            found = list(threads.map(lambda word: terms(word)[0], words))
    finally:
        sys.setswitchinterval(interval)
    assert found == snowballstemmer.stemmer("english").stemWords(words)


def test_words_that_say_nothing_about_a_page_do_not_count():
    assert terms("where can I see the page of the site") == []
    assert scores("where can I see the page") == [0.0, 0.0, 0.0]
    assert all(word == word.lower() for word in STOP_WORDS)


def test_a_word_that_no_state_shows_lowers_the_share_of_the_others():
    (alone,), (beside,) = scores("currency", "settings"), scores("currency zebra", "settings")
    assert 0 < beside < alone


def test_only_the_named_documents_are_scored_in_the_order_of_the_names():
    assert scores("currency", "settings", "orders") == scores("currency", "orders", "settings")[::-1]


def test_a_name_that_is_no_document_is_refused():
    with pytest.raises(KeyError):
        scores("currency", "nowhere")


DOCUMENTS = st.dictionaries(st.text(min_size=1, max_size=3), TEXTS, max_size=6)


@given(DOCUMENTS, DOCUMENTS, st.text(max_size=20))
def test_scores_are_shares(documents, others, query):
    others = {f"other {name}": texts for name, texts in others.items()}
    found = LexicalIndex(documents, others).scores(query, (*documents, *others))
    assert found.shape == (len(documents) + len(others),)
    assert np.all((found >= 0) & (found < 1))


@given(DOCUMENTS, DOCUMENTS, st.text(max_size=20))
def test_other_documents_change_no_score(documents, others, query):
    others = {f"other {name}": texts for name, texts in others.items()}
    names = tuple(documents)
    beside = LexicalIndex(documents, others).scores(query, names)
    assert beside.tolist() == LexicalIndex(documents).scores(query, names).tolist()


def test_other_documents_are_scored_by_their_words():
    index = LexicalIndex(PAGES, {"invoices": ("Invoices",), "refunds": ("Refunds",)})
    invoices, refunds = index.scores("invoice", ("invoices", "refunds"))
    assert invoices > refunds == 0


@given(st.dictionaries(st.text(min_size=1, max_size=3), TEXTS, min_size=1, max_size=6), st.text(max_size=20))
def test_the_order_of_documents_changes_no_score(documents, query):
    names = tuple(documents)
    backwards = LexicalIndex(dict(reversed(documents.items())))
    assert np.allclose(LexicalIndex(documents).scores(query, names), backwards.scores(query, names))
