import gc
import logging
import random
import threading
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from waygraph.core.errors import EncoderMismatch, InvalidInput, NoPath, NotFound, StoreError
from waygraph.core.urls import UrlPolicy
from waygraph.index.catalog.catalog import MIN_STRUCTURE_SIMILARITY, Catalog, ExplainedRow, HitExplanation, map_key
from waygraph.index.catalog.lexical import WORDS_WEIGHTS
from waygraph.index.catalog.locate import Locator
from waygraph.index.catalog.repeats import REFUSED_PENALTIES, REPEAT_PENALTIES
from waygraph.index.graph import (
    Action,
    Box,
    Edge,
    InteractionGraph,
    Lead,
    Node,
    Observation,
    Segment,
    lead_id,
    node_id,
    similarity,
)
from waygraph.index.store import EncoderInfo, Manifest, MapDraft, Store
from waygraph.index.vectors import MAX_VALUES_PER_MULTIVECTOR, EncodedPage, ExactIndex, MapKey

SITE = "shop.example"
DIM = 3


def state(url: str, structure: list[str], depth: int = 0, *, addressable: bool = True) -> Node:
    return Node(node_id(structure, url), url, f"Title of {url}", tuple(sorted(structure)), depth, addressable)


HOME = state(f"https://{SITE}/", ["a", "b", "c", "d"])
MENU = state(f"https://{SITE}/", ["a", "b", "c", "d", "m"], 1, addressable=False)
ORDER = state(f"https://{SITE}/orders/1", ["a", "o", "p", "q"], 2)
OTHER_ORDER = state(f"https://{SITE}/orders/2", ["a", "o", "p", "r"], 1)
EMPTY = state(f"https://{SITE}/empty", [], 3)


def rows(*values: list[float]) -> np.ndarray:
    return np.array(values, np.float32)


def draft(site: str = SITE, *, title: str = "", pages: dict | None = None, settings: dict | None = None) -> MapDraft:
    nodes = [HOME, MENU, ORDER, OTHER_ORDER, EMPTY]
    edges = [
        Edge(HOME.id, MENU.id, Action("click", name="Menu"), 100),
        Edge(MENU.id, ORDER.id, Action("click", name="Order"), 100),
    ]
    seen = Observation(
        HOME.id,
        HOME.url,
        "Home",
        (Segment("Welcome", "heading", Box(0, 0, 10, 10)), Segment("Cart", "link", Box(0, 20, 10, 10))),
    )
    if pages is None:
        pages = {
            HOME.id: EncodedPage(rows([1, 0, 0], [0, 1, 0]), ("Welcome", "Cart"), ((0,), (1, 7))),
            ORDER.id: EncodedPage(rows([0, 0, 1]), ("Order",), ((0,),)),
        }
    return MapDraft(
        site=site,
        start_url=f"https://{site}/",
        graph=InteractionGraph(nodes, edges),
        observations={HOME.id: seen},
        pages=pages,
        encoder=EncoderInfo("text", DIM, "f1"),
        report={"title": title},
        settings=settings or {},
    )


LEAD = Lead(
    lead_id(f"https://{SITE}/returns"), f"https://{SITE}/returns", ("Returns",), "", "", MENU.id, Action("click"), 2
)


def draft_with_lead() -> MapDraft:
    page = EncodedPage(rows([0.6, 0, 0.8]), ("Returns",), ((),))
    return replace(draft(), leads={LEAD.id: LEAD}, lead_pages={LEAD.id: page})


class CountingIndex(ExactIndex):
    """A real index that tells how many of its kind are open."""

    opened: set[int] = set()  # noqa: RUF012 - reset by the fixture

    def __init__(self, manifest: Manifest) -> None:
        super().__init__(manifest.encoder.dim)
        self.opened.add(id(self))

    def close(self) -> None:
        super().close()
        self.opened.discard(id(self))


@pytest.fixture
def store(tmp_path):
    return Store.open(str(tmp_path), create=True)


@pytest.fixture
def catalog(store):
    CountingIndex.opened = set()
    catalog = Catalog(store, CountingIndex)
    yield catalog
    catalog.close()
    gc.collect()
    assert CountingIndex.opened == set()


@pytest.fixture
def shop(store, catalog):
    store.publish(draft())
    with catalog.open(SITE) as opened:
        yield opened


def test_a_search_explains_each_hit_with_the_row_that_earned_it(shop):
    first, second = shop.search(rows([0, 1, 0], [0, 0.9, 0.1]), 5)
    assert (first.rank, first.node_id, first.url, first.title) == (1, HOME.id, HOME.url, HOME.title)
    assert first.score == pytest.approx(0.95, abs=1e-3)
    # The second index points past the segments of the observation: it is left out.
    cart = Segment("Cart", "link", Box(0, 20, 10, 10))
    assert first.matched == HitExplanation(
        (ExplainedRow(1, (0, 1), "Cart", pytest.approx(1.0), (cart,), pytest.approx(first.score, abs=1e-3)),)
    )
    assert (first.matched.text, first.matched.score, first.matched.segments) == ("Cart", pytest.approx(1.0), (cart,))
    assert (second.rank, second.node_id, second.matched.text) == (2, ORDER.id, "Order")
    assert second.matched.segments == ()


def test_leads_are_found_among_states_and_can_be_left_out(store, catalog):
    store.publish(draft_with_lead())
    with catalog.open(SITE) as opened:
        hits = opened.search(rows([0, 0, 1]), 5)
        assert [(hit.node_id, hit.lead) for hit in hits] == [(ORDER.id, None), (LEAD.id, LEAD), (HOME.id, None)]
        assert (hits[1].title, hits[1].url, hits[1].matched.text) == ("Returns", LEAD.url, "Returns")
        only = opened.search(rows([0, 0, 1]), 5, lambda node, _: isinstance(node, Node))
        assert [hit.node_id for hit in only] == [ORDER.id, HOME.id]
        assert opened.locate(LEAD.url).node_id != LEAD.id
    across = catalog.search(rows([0.6, 0, 0.8]), 1, "f1")
    assert [(site, hit.lead) for site, hit in across.hits] == [(SITE, LEAD)]


def test_words_of_the_query_decide_between_states_of_similar_meaning(store, catalog):
    store.publish(draft_with_lead())
    with catalog.open(SITE) as opened:
        query = rows([0.5, 0, 0.5])
        assert [hit.node_id for hit in opened.search(query, 5)] == [LEAD.id, HOME.id, ORDER.id]
        # "Order" is the name of the link to one state, "Welcome" a text of another, "Returns" the name of the lead.
        for words, first in (("my order", ORDER.id), ("welcome!", HOME.id), ("returning", LEAD.id)):
            assert opened.search(query, 1, words=words)[0].node_id == first
        alone = {hit.node_id: hit.score for hit in opened.search(query, 5)}
        found = {hit.node_id: hit.score for hit in opened.search(query, 5, words="order")}
        assert found[HOME.id] == alone[HOME.id]
        assert alone[ORDER.id] < found[ORDER.id] < alone[ORDER.id] + WORDS_WEIGHTS["text"]
        above = opened.search(query, 5, lambda _, score: score > max(alone.values()), words="order")
        assert [hit.node_id for hit in above] == [ORDER.id]
    across = catalog.search(query, 1, "f1", words="my order")
    assert [hit.node_id for _, hit in across.hits] == [ORDER.id]


def test_the_first_hits_of_a_search_in_words_show_different_pages(store, catalog):
    pages = {
        HOME.id: EncodedPage(rows([1, 0, 0]), ("Welcome",), ((0,),)),
        MENU.id: EncodedPage(rows([0.99, 0, 0]), ("Menu",), ((),)),
        ORDER.id: EncodedPage(rows([0.95, 0, 0]), ("Order",), ((),)),
    }
    store.publish(draft(pages=pages))
    with catalog.open(SITE) as opened:
        alone = opened.search(rows([1, 0, 0]), 3)
        assert [hit.node_id for hit in alone] == [HOME.id, MENU.id, ORDER.id]
        hits = opened.search(rows([1, 0, 0]), 3, words="something else")
        assert [hit.node_id for hit in hits] == [HOME.id, ORDER.id, MENU.id]
        assert hits[2].score == pytest.approx(alone[1].score - REPEAT_PENALTIES["text"][0])


def test_words_of_a_lead_count_like_those_of_a_state(store, catalog):
    store.publish(draft_with_lead())
    with catalog.open(SITE) as opened:
        alone, none, found = (
            {hit.node_id: hit.score for hit in opened.search(rows([0.6, 0, 0.8]), 5, words=words)}
            for words in ("", "nothing", "returns")
        )
    assert none == alone
    assert alone[LEAD.id] < found.pop(LEAD.id) <= alone[LEAD.id] + WORDS_WEIGHTS["text"]
    assert found == {name: score for name, score in alone.items() if name != LEAD.id}


def test_a_refused_lead_is_lowered_in_searches_in_words(store, catalog):
    store.publish(replace(draft_with_lead(), leads={LEAD.id: replace(LEAD, refusal="hazard")}))
    with catalog.open(SITE) as opened:
        alone, found = ({h.node_id: h.score for h in opened.search(rows([0.6, 0, 0.8]), 5, words=w)} for w in ("", "x"))
    assert found[LEAD.id] == pytest.approx(alone[LEAD.id] - REFUSED_PENALTIES["text"])


def test_leads_without_vectors_are_found_by_their_words_alone(store, catalog, monkeypatch):
    monkeypatch.setattr("waygraph.index.catalog.open_map.WORDS_CANDIDATES", 1)
    other = replace(LEAD, id=lead_id(f"https://{SITE}/returns/7"), url=f"https://{SITE}/returns/7", names=("Parcel 7",))
    store.publish(replace(draft_with_lead(), leads={LEAD.id: LEAD, other.id: other}))
    with catalog.open(SITE) as opened:
        query = rows([0, 0.1, 0])
        first = opened.search(query, 1, words="parcel 7")[0]
        assert (first.node_id, first.matched.text) == (other.id, "Parcel 7")
        assert opened.best_texts(other.id, query, 3) == ["Parcel 7"]
        for words in ("", "welcome"):
            assert other.id not in {hit.node_id for hit in opened.search(query, 9, words=words)}


def test_leads_take_no_place_of_states_among_what_a_search_compares(store, catalog, monkeypatch):
    monkeypatch.setattr("waygraph.index.catalog.open_map.WORDS_CANDIDATES", 1)
    leads = [replace(LEAD, id=lead_id(url), url=url) for url in (f"https://{SITE}/returns/{n}" for n in "abc")]
    page = EncodedPage(rows([0.72, 0, 0.72]), ("Returns",), ((),))  # before all states, but for words
    store.publish(replace(draft(), leads={e.id: e for e in leads}, lead_pages={e.id: page for e in leads}))
    with catalog.open(SITE) as opened:
        assert opened.search(rows([1, 0, 0.5]), 1)[0].lead is not None
        assert opened.search(rows([1, 0, 0.5]), 1, words="welcome")[0].node_id == HOME.id


def test_leads_change_no_score_of_a_state(store, catalog):
    scores = []
    for each in (draft(), draft_with_lead()):
        store.publish(each)
        catalog.refresh()
        with catalog.open(SITE) as opened:
            hits = opened.search(rows([0.5, 0, 0.5]), 5, words="my order")
            assert any(hit.lead for hit in hits) == bool(each.leads)
            scores.append({hit.node_id: hit.score for hit in hits if hit.lead is None})
    assert scores[0] == scores[1]


def test_an_encoder_whose_scores_were_never_compared_with_words_ranks_by_maxsim_alone(store, catalog):
    store.publish(replace(draft(), encoder=EncoderInfo("other", DIM, "f1")))
    with catalog.open(SITE) as opened:
        query = rows([0.5, 0, 0.4])
        assert opened.search(query, 5, words="my order") == opened.search(query, 5)


def test_versions_with_other_leads_have_other_keys(store):
    keys = {map_key(store.manifest(SITE, store.publish(each))).content for each in (draft(), draft_with_lead())}
    assert len(keys) == 2


def test_every_query_row_is_explained_by_its_best_row_and_its_box(shop):
    hit = shop.search(rows([0.5, 0, 0], [0, 1, 0], [0.4, 0, 0]), 1)[0]
    assert [(p.row, p.query_rows, p.text) for p in hit.matched.parts] == [(1, (1,), "Cart"), (0, (0, 2), "Welcome")]
    assert [segment.box for segment in hit.matched.segments] == [Box(0, 20, 10, 10), Box(0, 0, 10, 10)]


def test_a_hit_with_negative_products_only_is_explained_too(shop):
    found = {hit.node_id: hit for hit in shop.search(rows([-1, -2, -3]), 2)}
    assert found[HOME.id].matched.text == "Welcome"
    assert found[HOME.id].score == pytest.approx(-1)


def test_searching_a_map_without_vectors_has_no_hits(store, catalog):
    store.publish(draft(pages={}))
    with catalog.open(SITE) as opened:
        assert opened.search(rows([1, 0, 0]), 5) == []


def test_a_query_of_another_size_is_refused(shop):
    with pytest.raises(InvalidInput):
        shop.search(np.ones((1, DIM + 1), np.float32), 5)


def test_queries_of_another_encoder_are_refused(shop):
    shop.check_encoder("f1")
    with pytest.raises(EncoderMismatch, match=r"shop\.example.*f1.*f2"):
        shop.check_encoder("f2")


def test_structure_and_url_of_a_state_locate_it_exactly(shop):
    located = shop.locate(f"HTTPS://{SITE}:443/?utm_source=mail#top", ["m", "d", "c", "b", "a"])
    assert (located.node_id, located.rule, located.confidence) == (MENU.id, "exact", 1.0)


def test_a_state_without_elements_is_located_exactly(shop):
    assert shop.locate(EMPTY.url, []).node_id == EMPTY.id
    assert shop.locate(EMPTY.url, []).rule == "exact"


def test_an_unknown_structure_is_located_at_the_most_similar_state_of_its_url(shop):
    located = shop.locate(HOME.url, ["a", "b", "c", "d", "m", "n"])
    assert (located.node_id, located.rule) == (MENU.id, "structure")
    assert located.confidence == pytest.approx(5 / 6)


def test_an_unknown_url_is_located_at_the_most_similar_state_of_its_template(shop):
    located = shop.locate(f"https://{SITE}/orders/99", ["a", "o", "p", "r"])
    assert (located.node_id, located.rule, located.confidence) == (OTHER_ORDER.id, "structure", 1.0)


def test_state_of_the_same_url_is_preferred_to_a_more_similar_state_of_the_template(shop):
    located = shop.locate(ORDER.url, ["a", "o", "p", "r"])
    assert (located.node_id, located.rule) == (ORDER.id, "structure")
    assert located.confidence == pytest.approx(3 / 5)


def test_dissimilar_structure_is_located_by_url_only(shop):
    located = shop.locate(HOME.url, ["a", "x", "y"])
    assert (located.node_id, located.rule) == (HOME.id, "url")
    assert located.confidence < MIN_STRUCTURE_SIMILARITY


def test_a_url_alone_is_located_at_the_addressable_state(shop):
    assert shop.locate(ORDER.url).confidence == 1
    located = shop.locate(HOME.url)
    assert (located.node_id, located.rule, located.confidence) == (HOME.id, "url", 0.5)


elements = st.lists(st.sampled_from("abcdefgh"), max_size=8)


@given(st.lists(elements, min_size=1, max_size=12), elements)
def test_nearest_structure_has_the_highest_jaccard_similarity(structures, seen):
    url = "http://x/"
    nodes = {node_id(s, url): Node(node_id(s, url), url, "", tuple(sorted(set(s))), 0, True) for s in structures}
    located = Locator(InteractionGraph(nodes.values()), UrlPolicy()).locate(url, seen)
    best = max(similarity(seen, s) for s in structures)
    if best >= MIN_STRUCTURE_SIMILARITY:
        assert located.confidence == pytest.approx(best)
        assert located.rule == ("exact" if best == 1 else "structure")
        assert similarity(seen, nodes[located.node_id].structure) == pytest.approx(best)
    else:
        assert located.rule == "url"
        assert located.confidence == pytest.approx(similarity(seen, nodes[located.node_id].structure))


@pytest.mark.parametrize("url", [f"https://{SITE}/nowhere", "https://other.example/", "not a url", "", "http://[::1"])
def test_unknown_pages_are_not_located(shop, url):
    for structure in (None, ["x"]):
        located = shop.locate(url, structure)
        assert (located.node_id, located.rule, located.confidence) == (None, "none", 0.0)


def test_urls_are_normalised_with_the_policy_of_the_map(store, catalog):
    store.publish(draft(settings={"url_policy": {"fragment": "keep"}}))
    with catalog.open(SITE) as opened:
        assert opened.locate(f"{HOME.url}#top").rule == "none"


def test_paths_are_found_on_the_map(shop):
    assert [step.expected_node_id for step in shop.path(HOME.id, ORDER.id, allow_goto=False).steps] == [
        MENU.id,
        ORDER.id,
    ]
    assert shop.path(None, ORDER.id).steps[0].action.kind == "goto"
    with pytest.raises(NoPath):
        shop.path(ORDER.id, HOME.id, allow_goto=False)
    with pytest.raises(NotFound):
        shop.path("x", HOME.id)


def test_an_unknown_site_is_not_found(catalog):
    with pytest.raises(NotFound, match="not mapped"):
        catalog.open("other.example")


def test_a_version_is_loaded_once(store, catalog):
    store.publish(draft())
    with catalog.open(SITE) as one, catalog.open(SITE) as other:
        assert one.graph is other.graph
    assert len(CountingIndex.opened) == 1


def test_new_version_is_used_after_a_refresh(store, catalog):
    store.publish(draft(title="old"))
    assert catalog.refresh() == []
    catalog.open(SITE).close()
    assert catalog.refresh() == []
    store.publish(draft(title="new"))
    with catalog.open(SITE) as opened:
        assert opened.manifest.report["title"] == "old"
    assert catalog.refresh() == [SITE]
    with catalog.open(SITE) as opened:
        assert (opened.version, opened.manifest.report["title"]) == (2, "new")
    assert len(CountingIndex.opened) == 1


def test_map_in_use_still_answers_after_a_newer_version_is_opened(store, catalog):
    store.publish(draft())
    with catalog.open(SITE) as in_use:
        store.publish(draft())
        catalog.refresh()
        assert len(CountingIndex.opened) == 2
        assert in_use.version == 1
        assert len(in_use.search(rows([1, 0, 0]), 5)) == 2
    assert len(CountingIndex.opened) == 1


def test_map_in_use_still_answers_after_its_site_is_removed_or_the_catalog_closed(store, catalog):
    store.publish(draft())
    in_use = catalog.open(SITE)
    store.remove(SITE)
    assert catalog.refresh() == [SITE]
    with pytest.raises(NotFound):
        catalog.open(SITE)
    catalog.close()
    assert len(in_use.search(rows([1, 0, 0]), 5)) == 2
    in_use.close()
    in_use.close()
    assert CountingIndex.opened == set()


def test_site_removed_and_mapped_again_is_reopened(store, catalog):
    store.publish(draft(title="old"))
    catalog.open(SITE).close()
    store.remove(SITE)
    store.publish(draft(title="new"))
    assert catalog.refresh() == [SITE]
    with catalog.open(SITE) as opened:
        assert opened.manifest.report["title"] == "new"


def test_map_that_was_not_closed_is_released_when_garbage_collected(store, catalog):
    store.publish(draft())
    forgotten = catalog.open(SITE)
    catalog.close()
    assert len(CountingIndex.opened) == 1
    del forgotten
    gc.collect()
    assert CountingIndex.opened == set()


def test_damaged_new_version_keeps_the_previous_one_and_other_sites_available(store, catalog, caplog):
    for site in (SITE, "other.example"):
        store.publish(draft(site))
        catalog.open(site).close()
        store.publish(draft(site))
    damaged = Path(store.location) / "sites" / SITE / "versions" / "2" / "nodes.parquet"
    damaged.write_bytes(b"")
    with caplog.at_level(logging.ERROR):
        assert catalog.refresh() == ["other.example"]
        assert catalog.refresh() == []
    assert len(caplog.records) == 1
    assert "the one before stays" in caplog.text
    assert isinstance(catalog.failures[SITE], StoreError)
    with catalog.open(SITE) as opened:
        assert opened.version == 1
    store.publish(draft())
    assert catalog.refresh() == [SITE]
    assert catalog.failures == {}


SITES = ("a.example", "b.example", "c.example")


@pytest.fixture
def bounded(store):
    """Three sites, and room for two of them."""
    CountingIndex.opened = set()
    for site in SITES:
        store.publish(draft(site))
    with Catalog(store, CountingIndex).open(SITES[0]) as opened:
        each = opened.memory_bytes
    made = Catalog(store, CountingIndex, budget_bytes=2 * each)
    yield made
    made.close()
    gc.collect()
    assert CountingIndex.opened == set()


def open_now(catalog) -> set[str]:
    found = {site: catalog.get_open(site) for site in SITES}
    for opened in found.values():
        if opened is not None:
            opened.close()
    return {site for site, opened in found.items() if opened is not None}


def test_least_recently_used_map_beyond_the_budget_is_closed_and_reopened_on_demand(bounded):
    a, b, c = SITES
    for site in (a, b, a, c):
        bounded.open(site).close()
    assert open_now(bounded) == {a, c}
    assert len(CountingIndex.opened) == bounded.usage.maps == 2
    with bounded.open(b) as opened:
        assert opened.search(rows([1, 0, 0]), 1)[0].node_id == HOME.id
    assert bounded.usage.evicted == 2
    assert b in open_now(bounded)


def test_evicted_map_still_answers_its_current_users(bounded):
    with bounded.open(SITES[0]) as in_use:
        for site in SITES[1:]:
            bounded.open(site).close()
        assert SITES[0] not in open_now(bounded)
        assert in_use.search(rows([1, 0, 0]), 1)[0].node_id == HOME.id
        assert len(CountingIndex.opened) == 3
    assert len(CountingIndex.opened) == 2


def test_map_larger_than_the_budget_is_the_only_open_one(store):
    CountingIndex.opened = set()
    for site in SITES:
        store.publish(draft(site))
    catalog = Catalog(store, CountingIndex, budget_bytes=1)
    for site in SITES:
        catalog.open(site).close()
        assert open_now(catalog) == {site}
    catalog.close()
    assert catalog.usage.bytes == 0


def test_search_across_more_maps_than_the_budget_gives_the_same_results(store, bounded):
    store.publish(draft("d.example", pages={ORDER.id: EncodedPage(rows([1, 1, 1]), ("Order",), ((0,),))}))
    unbounded = Catalog(store, CountingIndex)
    query = rows([1, 0, 0], [0, 0.5, 1])
    assert bounded.search(query, 5, "f1") == unbounded.search(query, 5, "f1")
    assert bounded.usage.maps == 2
    unbounded.close()


def test_new_version_replaces_the_previous_one_in_the_budget(store, bounded):
    a, b, _ = SITES
    for site in (a, b):
        bounded.open(site).close()
    held = bounded.usage
    store.publish(draft(b))
    assert bounded.refresh() == [b]
    assert bounded.usage == held


def test_a_closed_catalog_opens_nothing(store, catalog):
    store.publish(draft())
    catalog.close()
    with pytest.raises(RuntimeError, match="closed"):
        catalog.open(SITE)


def test_concurrent_readers_and_a_publisher_never_use_a_closed_index(store, catalog):
    store.publish(draft())
    stop = threading.Event()
    problems: list[BaseException] = []
    searches = 0

    def read() -> None:
        nonlocal searches
        try:
            while not stop.is_set():
                with catalog.open(SITE) as opened:
                    assert len(opened.search(rows([1, 0, 0]), 5)) == 2
                    searches += 1
                stop.wait(0.001)  # readers in a loop would leave the publisher little time
        except BaseException as problem:  # noqa: BLE001 - reported below
            problems.append(problem)

    readers = [threading.Thread(target=read) for _ in range(2)]
    for reader in readers:
        reader.start()
    for _ in range(10):
        store.publish(draft())
        catalog.refresh()
    stop.set()
    for reader in readers:
        reader.join()
    assert problems == []
    assert searches > 0
    assert catalog.open(SITE).version == 11


def test_index_that_holds_the_version_is_not_filled_again(store):
    filled: list[str] = []

    class Server(ExactIndex):
        def add(self, items):
            items = list(items)
            filled.extend(name for name, _ in items)
            super().add(items)

        def close(self):
            """The points stay on the server."""

    server = Server(DIM)
    store.publish(draft())
    for _ in range(2):
        Catalog(store, lambda _: server).open(SITE).close()
    assert len(filled) == 2


def test_all_maps_are_searched_together_and_incompatible_ones_are_named(store, catalog):
    for site in (SITE, "other.example"):
        store.publish(draft(site))
    store.publish(replace(draft("foreign.example"), encoder=EncoderInfo("visual", DIM, "f2")))
    store.publish(draft("damaged.example"))
    (Path(store.location) / "sites" / "damaged.example" / "versions" / "1" / "vectors.parquet").write_bytes(b"")
    everywhere = catalog.search(rows([0, 0, 1]), 3, "f1")
    best, second, third = everywhere.hits
    assert [(site, hit.rank, hit.node_id) for site, hit in (best, second)] == [
        ("other.example", 1, ORDER.id),
        (SITE, 2, ORDER.id),
    ]
    assert (third[1].rank, third[1].node_id, third[1].score) == (3, HOME.id, 0)
    assert best[1].matched.text == "Order"
    assert set(everywhere.skipped) == {"damaged.example", "foreign.example"}
    assert "damaged" in everywhere.skipped["damaged.example"]
    assert "made by encoder 'visual'" in everywhere.skipped["foreign.example"]
    assert len(CountingIndex.opened) == 3  # the foreign one stays open for its own questions


def test_catalog_without_maps_has_no_hits(catalog):
    assert catalog.search(rows([0, 0, 1]), 3, "f1").hits == ()


def test_page_with_too_many_rows_is_searched_by_pooled_rows_and_explained_by_all(store, catalog, caplog):
    many = MAX_VALUES_PER_MULTIVECTOR // DIM + 5
    vectors = np.tile(rows([1, 0, 0]), (many, 1))
    vectors[-1] = [0, 1, 0]
    page = EncodedPage(vectors, tuple(map(str, range(many))), ((),) * many)
    store.publish(draft(pages={ORDER.id: page}))
    with caplog.at_level(logging.WARNING), catalog.open(SITE) as opened:
        hit = opened.search(rows([0, 1, 0]), 1)[0]
    assert (hit.node_id, hit.matched.text) == (ORDER.id, str(many - 1))
    assert hit.score == pytest.approx(1, abs=1e-3)
    assert f"has {many} vectors" in caplog.text


def test_nearest_page_is_found_among_thousands_of_one_template():
    chance = random.Random(7)
    frame = [f"frame {i}" for i in range(60)]
    nodes = []
    for number in range(3_000):
        structure = tuple(sorted({*frame, *(f"own {chance.randrange(900)}" for _ in range(40))}))
        nodes.append(Node(f"{number:032x}", f"http://{SITE}/p/{number}", "", structure, 1, addressable=True))
    locator = Locator(InteractionGraph(nodes), UrlPolicy())
    for node in chance.sample(nodes, 40):
        changed = [*chance.sample(node.structure, len(node.structure) - 8), "new 1", "new 2"]
        located = locator.locate(f"http://{SITE}/p/123456", changed)
        assert (located.node_id, located.rule) == (node.id, "structure")
        assert located.confidence == pytest.approx(similarity(changed, node.structure))


def test_pages_of_equal_structure_are_located_at_the_shallowest_one():
    nodes = [
        Node(f"{number:032x}", f"http://{SITE}/p/{number}", "", ("a", "b"), 3 if number else 1, addressable=True)
        for number in range(500)
    ]
    located = Locator(InteractionGraph(nodes), UrlPolicy()).locate(f"http://{SITE}/p/123456", ["a", "b", "c"])
    assert (located.node_id, located.rule) == (nodes[0].id, "structure")


def test_equal_version_numbers_of_two_stores_are_distinguished(tmp_path):
    def key_of(store: str, **more) -> MapKey:
        opened = Store.open(str(tmp_path / store), create=True)
        opened.publish(replace(draft(), **more))
        return map_key(opened.manifest(SITE, 1))

    other = {ORDER.id: EncodedPage(rows([1, 0, 0]), ("Order",), ((0,),))}
    same_width = EncoderInfo("another", DIM, "another fingerprint")
    assert key_of("one") == key_of("restored")
    assert len({key_of("one again"), key_of("made anew", pages=other), key_of("encoded anew", encoder=same_width)}) == 3


def test_malformed_urls_of_states_and_leads_do_not_prevent_searches_by_words(store, catalog):
    malformed = "http://[not an address/"
    bad = Node("f" * 32, malformed, "Lamps", ("z",), 1, addressable=True)
    lead = replace(LEAD, url=malformed)
    plain = draft_with_lead()
    graph = InteractionGraph([*plain.graph.nodes.values(), bad], plain.graph.edges)
    store.publish(replace(plain, graph=graph, leads={LEAD.id: lead}))
    hits = catalog.search(rows([0.6, 0, 0.8]), 3, "f1", words="returns").hits
    assert hits[0][1].node_id == LEAD.id
    with catalog.open(SITE) as opened:
        assert opened.locate(malformed).node_id == bad.id


@pytest.mark.parametrize("forged", [{"cost_ms": float("nan")}, {"cost_ms": -1.0}, {"cost_ms": 1e308}])
def test_map_that_no_reader_would_open_is_not_published(store, forged):
    plain = draft()
    edges = [replace(edge, **forged) for edge in plain.graph.edges]
    with pytest.raises(InvalidInput, match="could not be read back: a value of 'cost_ms'"):
        store.publish(replace(plain, graph=InteractionGraph(plain.graph.nodes.values(), edges)))
    assert store.sites() == []
