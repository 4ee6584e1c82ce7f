"""`waygraph show` lists the outcome of every element of an explored site."""

import json
from collections import Counter

import pytest

from waygraph.cli import main


@pytest.fixture
def show(shop, shop_store, capsys):
    def run(*words):
        code = main(["show", shop.capture.site, *words, "--store", str(shop_store), "--json"])
        return code, json.loads(capsys.readouterr().out)

    return run


def test_all_skipped_elements_are_listed_not_only_those_in_the_report(shop, show):
    code, answer = show("--skipped", "--limit", "100000")
    assert code == 0
    skipped = {name.removeprefix("skip/"): n for name, n in shop.capture.report.counters.items() if name[:5] == "skip/"}
    assert answer["reasons"] == skipped
    assert answer["total"] == len(answer["outcomes"]) == sum(skipped.values())
    urls = {node.url for node in shop.capture.graph.nodes.values()}
    assert {row["url"] for row in answer["outcomes"]} <= urls


def test_elements_that_were_acted_on_are_listed_on_request(shop, show):
    _, answer = show("--done", "--limit", "100000")
    acted = {(edge.source, str(edge.action)) for edge in shop.capture.graph.edges if not edge.inherited}
    assert {(row["node_id"], row["element"]) for row in answer["outcomes"]} >= acted
    assert Counter(row["kind"] for row in answer["outcomes"]).keys() == {"done"}
    assert show("--failed")[1]["total"] == show("--pending")[1]["total"] == 0


def test_outcomes_are_read_from_the_table_not_from_the_report(shop, shop_store, show):
    """The report of a version lists the first 2,000; without the table nothing else would be known."""
    from waygraph.index.store import Store
    from waygraph.index.store.element_outcomes import read_element_outcomes

    store = Store.open(str(shop_store))
    report = store.manifest(shop.capture.site).report
    rows = list(read_element_outcomes(store.blobs.get(report["fates"])))
    assert Counter(row["status"] for row in rows)["done"] > 0
    _, answer = show("--skipped", "--limit", "1", "--offset", "1")
    wanted = [row for row in rows if row["status"] == "skipped"][1]
    assert answer["outcomes"][0]["element"] == wanted["element"]


def test_a_page_of_search_results_names_its_word_and_what_it_stands_for(shop, shop_store, show, capsys):
    ((results, word),) = (
        (edge.target, edge.action.value)
        for edge in shop.capture.graph.edges
        if edge.action.kind == "submit" and not edge.inherited
    )
    assert show(results)[1]["searched_word"] == word
    assert main(["show", shop.capture.site, results, "--store", str(shop_store)]) == 0
    assert f"shows what a search form finds for '{word}', and stands for all" in capsys.readouterr().out
    assert (
        main(["navigate", shop.capture.site, f"search results for {word}", "--store", str(shop_store), "--json"]) == 0
    )
    found = json.loads(capsys.readouterr().out)
    assert found["node_id"] == results
    assert any(f"finds for '{word}'" in note for note in found["notes"])
