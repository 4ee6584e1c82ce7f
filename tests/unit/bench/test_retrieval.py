"""The retrieval benchmark: its queries, the matching of targets, and its metrics."""

import doctest
from collections import Counter

import numpy as np
import pytest

from bench.retrieval import lexical, metrics, queries, walks
from bench.retrieval.leads import paired
from bench.retrieval.lexical import BM25
from bench.retrieval.maps import SITES, names, path_of
from bench.retrieval.metrics import area_under_curve, bootstrap, ndcg_at, ranks_of, recall_at
from bench.retrieval.queries import PAGES, Query, Target, read_queries, resolve
from bench.retrieval.systems import maxsim
from bench.tool_questions import QUESTIONS, is_meant
from waygraph.index.graph import Box, InteractionGraph, Node, Observation, Segment, Tool
from waygraph.index.vectors.exact import maxsim as exact_maxsim

EVERY = [query for site in SITES for query in read_queries(site)]


def state(name: str, path: str, *texts: str, addressable: bool = True) -> tuple[Node, Observation]:
    url = f"http://127.0.0.1:1234{path}"
    shown = tuple(Segment(text, "text", Box(0, 0, 1, 1)) for text in texts)
    return Node(name, url, "", (), 0, addressable), Observation(name, url, "", shown)


STATES = [
    state("list", "/orders?page=2", "Orders", "Filter"),
    state("dialog", "/orders?page=2", "Orders", "Really  delete\n it?", addressable=False),
    state("help", "/help", "Orders"),
]


def found(*at: str) -> tuple[frozenset[int], frozenset[int]]:
    graph = InteractionGraph(node for node, _ in STATES)
    (question,) = resolve([Query("x", "?", at)], graph, {node.id: seen for node, seen in STATES})
    return question.targets, question.plain


def test_the_query_set_is_large_enough_and_sites_of_both_splits_have_questions_without_an_answer():
    for split, least in (("dev", 300), ("test", 120)):
        asked = [query for query in EVERY if query.site in names(split)]
        assert sum(bool(query.at) for query in asked) >= least
        assert sum(not query.at for query in asked) >= 12


def test_every_site_belongs_to_one_split():
    assert sorted(names("dev") + names("test")) == sorted(SITES)


def test_questions_of_the_test_sites_are_written_in_three_styles_equally_often():
    for site in names("test"):
        styles = Counter(query.style for query in EVERY if query.site == site)
        assert set(styles) == {"shows", "does", "words"}
        assert max(styles.values()) - min(styles.values()) <= 2


def test_questions_about_every_page_are_of_dev_sites_and_others_than_those_of_the_benchmark():
    sites = {file.stem for file in PAGES.glob("*.yaml")}
    assert sites
    assert sites <= set(names("dev"))
    of_pages = [query for site in sites for query in read_queries(site, PAGES)]
    assert all(query.at and query.style for query in of_pages)
    assert {query.ask for query in of_pages}.isdisjoint(query.ask for query in EVERY)


def test_tools_are_asked_for_on_sites_of_both_splits_each_question_with_an_answer():
    asked = [query for file in QUESTIONS.glob("*.yaml") for query in read_queries(file.stem, QUESTIONS)]
    assert all(query.at for query in asked)
    sites = {query.site for query in asked}
    assert sites <= set(SITES)
    assert set(SITES) - sites == {"jupyterlab"}  # its map has no tools
    assert sum(query.site != "shop" for query in asked) >= 120


def test_a_tool_is_meant_by_a_state_that_has_it_and_by_its_texts():
    graph = InteractionGraph(node for node, _ in STATES)
    schema = {"properties": {"q": {"title": "Words  of the\norder"}}}
    tool = Tool("id", "find", "Find", "", schema, "inferred", ("list", "help"), "http://127.0.0.1:1234")
    for text in ("/orders*", "/help + Find + Words of the order", "* ! Delete"):
        assert is_meant(Target.parse(text), tool, graph)
    for text in ("/orders", "/orders* + Delete", "* ! Find"):
        assert not is_meant(Target.parse(text), tool, graph)


def test_pages_that_the_map_lacks_and_pages_that_the_site_lacks_are_told_apart():
    graph = InteractionGraph(node for node, _ in STATES)
    seen = {node.id: observation for node, observation in STATES}
    lacking, unanswerable = resolve([Query("x", "?", ("/nowhere",)), Query("x", "??", ())], graph, seen)
    assert (lacking.targets, lacking.is_answerable) == (frozenset(), True)
    assert (unanswerable.targets, unanswerable.is_answerable) == (frozenset(), False)


def test_path_without_texts_matches_every_state_there_and_plainly_its_addressable_ones():
    assert found("/orders?page=2") == ({0, 1}, {0})


def test_texts_choose_among_the_states_of_a_path():
    assert found("/orders?page=2 + Really delete it?") == ({1}, {1})
    assert found("/orders?page=2 + Orders ! Filter") == ({1}, {1})


def test_star_is_a_wildcard_and_a_question_mark_is_literal():
    assert found("/orders?page=*")[0] == {0, 1}
    assert Target.parse("/*").fits(STATES[2][1])
    assert not Target.parse("/orders?page=").fits(STATES[0][1])


def test_a_target_that_the_map_lacks_leaves_the_others():
    assert found("/help", "/orders?page=2 + Refund") == ({2}, {2})


def test_paths_have_no_host_and_keep_query_and_route():
    assert path_of("http://127.0.0.1:99/a/b?c=d#/e") == "/a/b?c=d#/e"
    assert path_of("http://127.0.0.1:99") == "/"


def test_ranks_share_ties_and_recall_takes_the_best_target():
    scores = np.array([0.5, 0.9, 0.5, 0.1])
    assert ranks_of({0}, scores) == [2.5]
    assert ranks_of({3, 1}, scores) == [1.0, 4.0]
    assert (recall_at(1)([1.0, 4.0]), recall_at(1)([1.5])) == (1.0, 0.0)


def test_ndcg_is_one_for_all_targets_first_and_counts_nothing_beyond_the_cut():
    assert ndcg_at(10)([1.0, 2.0, 3.0]) == pytest.approx(1)
    assert ndcg_at(10)([11.0]) == 0
    assert ndcg_at(2)([1.0, 2.0, 3.0]) == pytest.approx(1)


def test_area_is_a_half_for_uninformative_scores():
    assert area_under_curve([1.0, 1.0], [1.0]) == 0.5
    assert area_under_curve([2.0], [1.0]) == 1


def test_the_bootstrap_of_a_constant_difference_is_that_difference():
    assert bootstrap({"a": [0.25] * 5, "b": [0.25] * 3}) == pytest.approx((0.25, 0.25, 0.25))


def test_bootstrap_interval_contains_the_mean_and_narrows_with_more_queries():
    few, many = bootstrap({"a": [0.0, 1.0] * 5}), bootstrap({"a": [0.0, 1.0] * 500})
    assert few[1] < few[0] < few[2]
    assert many[2] - many[1] < few[2] - few[1]


def test_bm25_prefers_rare_words_and_short_texts_and_scores_unknown_words_zero():
    index = BM25(["order list", "order list of every customer that ever was here", "unpaid order"])
    assert index.scores("unpaid orders").argmax() == 2
    assert index.scores("list")[0] > index.scores("list")[1] > 0
    assert not index.scores("zebra").any()


def test_scores_are_those_of_exact_maxsim():
    chance = np.random.default_rng(1)
    queries_ = [chance.normal(size=(n, 8)).astype(np.float32) for n in (1, 3)]
    pages = [chance.normal(size=(n, 8)).astype(np.float32) for n in (2, 1, 5)]
    expected = [[exact_maxsim(query, page) for page in pages] for query in queries_]
    assert np.allclose(maxsim(queries_, pages), expected, atol=1e-5)


def test_two_builds_are_compared_question_by_question():
    def ranks(*found):
        rows = [{"ask": ask, "rank": rank, "visited": seen, "lead": True} for ask, rank, seen in found]
        return [{"site": "shop", "questions": rows}]

    before, now = (
        ranks(("a", 1, True), ("b", 30, False), ("c", 12, True)),
        ranks(("a", 2, True), ("b", 9, False), ("c", 10, True), ("new", 1, True)),
    )
    assert paired(now, before) == [
        "visited pages @1: 1 -> 0 of 2 (lost 1, won 0)",
        "visited pages @10: 1 -> 2 of 2 (lost 0, won 1)",
        "leads alone @1: 0 -> 0 of 1 (lost 0, won 0)",
        "leads alone @10: 0 -> 1 of 1 (lost 0, won 1)",
    ]


def test_a_lead_is_compared_with_the_path_of_a_target():
    target = Target.parse("/info/* + Ticket")
    assert target.is_at("http://127.0.0.1:1/info/7?x=1")
    assert not target.is_at("http://127.0.0.1:1/wiki/info/7")
    page = Target.parse("/doku.php?do=edit&id=visit%3Atickets")
    assert page.is_at("http://127.0.0.1:1/doku.php?id=visit:tickets&do=edit#prices")


@pytest.mark.parametrize("module", [metrics, lexical, queries, walks])
def test_the_examples_in_docstrings_are_true(module):
    assert doctest.testmod(module, extraglobs={"np": np}).failed == 0
