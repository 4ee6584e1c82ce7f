"""Recognition data of a map (merged snapshots, represented pages, evidence): storage, lookup, export and use."""

from dataclasses import replace

import pytest

from tests.small_map import SmallMap
from waygraph.cli import main
from waygraph.core.errors import InvalidInput, NotFound
from waygraph.core.settings import EncodeSettings
from waygraph.index.graph import Evidence, InteractionGraph, Merge, Recognition, is_equivalent, node_id
from waygraph.index.graph.export import to_json
from waygraph.index.store import Store
from waygraph.pipeline.encode.registry import create_encoder
from waygraph.sdk.local import StoreMap

MAP = SmallMap()
ALIAS, OTHER_PAGE = "a" * 32, "b" * 32
RECOGNITION = Recognition(
    merges={
        ALIAS: Merge(MAP.id("cards"), ALIAS, "volatile", MAP.nodes["cards"].url),
        OTHER_PAGE: Merge(MAP.id("returns"), OTHER_PAGE, "equivalent", "http://tea.example/returns2"),
    },
    stands_for={MAP.id("returns"): 12},
    evidence={MAP.id("cards"): Evidence({"f1": 2}, {"f2": 0}, ("f1", "f3"), ("e1",))},
)


@pytest.fixture(scope="module")
def draft(tmp_path_factory):
    blobs = Store.open(str(tmp_path_factory.mktemp("blobs") / "maps"), create=True).blobs
    return MAP.draft(create_encoder(EncodeSettings()), blobs)


@pytest.fixture
def store(tmp_path, draft):
    opened = Store.open(str(tmp_path / "maps"), create=True)
    opened.publish(replace(draft, recognition=RECOGNITION, observations={}))
    return opened


def test_recognition_is_read_back_as_published(store):
    read = store.read(MAP.site)
    assert read.recognition == RECOGNITION
    assert read.manifest.counts.merges == {"equivalent": 1, "volatile": 1}
    assert read.manifest.counts.stood_for == 11


def test_map_without_recognition_has_no_recognition_file(tmp_path, draft):
    opened = Store.open(str(tmp_path / "maps"), create=True)
    opened.publish(replace(draft, observations={}))
    assert opened.read(MAP.site).recognition == Recognition()
    assert not list((tmp_path / "maps").rglob("recognition.parquet"))


def test_recognition_of_an_unknown_state_is_refused(draft):
    with pytest.raises(InvalidInput, match="evidence"):
        replace(draft, recognition=Recognition(stands_for={"f" * 32: 2})).check()


def test_alias_id_names_the_state_in_every_operation(store):
    cards = MAP.id("cards")
    with StoreMap(store.location) as maps:
        node = maps.node(MAP.site, ALIAS)
        assert (node.node_id, node.aliases, node.stands_for) == (cards, [ALIAS], 1)
        assert maps.node(MAP.site, ALIAS[:6]).node_id == cards
        way = maps.path(MAP.site, MAP.id("account"), ALIAS)
        assert (way.target, way.steps[-1].accepts) == (cards, [ALIAS])
        assert way.steps[-1].evidence.model_dump() == {
            "shows": {"f1": 2}, "hides": {"f2": 0}, "features": ["f1", "f3"], "elements": ["e1"],
            "own": [], "alone": True, "named": False, "urls": [],
        }  # fmt: skip
        assert maps.path(MAP.site, ALIAS, MAP.id("account")).source == cards
        assert maps.node(MAP.site, MAP.id("returns")).stands_for == 12
        with pytest.raises(NotFound):
            maps.node(MAP.site, "c" * 32)


def test_page_with_an_alias_id_is_located_exactly_but_a_represented_page_is_not(draft, tmp_path):
    seen, url = ["c" * 32], MAP.nodes["cards"].url
    alias = node_id(seen, url)
    other = node_id(seen, MAP.nodes["returns"].url)
    known = Recognition(
        {
            alias: Merge(MAP.id("cards"), alias, "reload", url),
            other: Merge(MAP.id("returns"), other, "equivalent", MAP.nodes["returns"].url),
        }
    )
    opened = Store.open(str(tmp_path / "maps"), create=True)
    opened.publish(replace(draft, recognition=known, observations={}))
    with StoreMap(opened.location) as maps:
        found = maps.locate(MAP.site, url, seen)
        assert (found.node_id, found.rule) == (MAP.id("cards"), "exact")
        assert maps.locate(MAP.site, MAP.nodes["returns"].url, seen).rule != "exact"


def test_unknown_snapshot_is_located_by_the_distinctive_features_of_its_state(draft, tmp_path):
    """Its structure is more similar to another state at the same URL."""
    cards, url = MAP.id("cards"), MAP.nodes["cards"].url
    shown = {f"{number:012x}": 1 for number in range(4)}
    elements = ("e" * 12, "f" * 12)
    evidence = {
        cards: Evidence({"0" * 12: 1}, {}, tuple(sorted(shown)), elements),
        MAP.id("returns"): Evidence({}, {}, tuple(sorted(shown)), elements),  # of another page
    }
    opened = Store.open(str(tmp_path / "maps"), create=True)
    opened.publish(replace(draft, recognition=Recognition(evidence=evidence), observations={}))
    seen = [element + "0" * 20 for element in elements]
    with StoreMap(opened.location) as maps:
        found = maps.locate(MAP.site, url, seen, shown)
        assert (found.node_id, found.rule, found.confidence) == (cards, "evidence", 1.0)
        without = maps.locate(MAP.site, url, seen)
        assert maps.locate(MAP.site, url, seen, {**shown, "0" * 12: 0}) == without  # what must be there is not
        assert maps.locate(MAP.site, "http://tea.example/nowhere", seen, shown).rule == "none"
        exact = maps.locate(MAP.site, url, list(MAP.nodes["cards"].structure), shown)
        assert (exact.node_id, exact.rule) == (cards, "exact")


def test_a_state_is_located_at_another_url_of_its_page(draft, tmp_path):
    """The page as loaded and a state of it are recognised at a URL where the site showed the same page."""
    page = replace(MAP.nodes["cards"], addressable=True)
    opened_menu = replace(page, id=node_id(["d" * 32], page.url), structure=("d" * 32,), addressable=False)
    features = {f"{number:012x}": 1 for number in range(4)}
    evidence = {opened_menu.id: Evidence({}, {}, tuple(sorted(features)), ("d" * 12,))}
    other, token = f"{page.url}?id=start", f"{page.url}?sid=9f86d081884c7d65"
    merges = {
        "a" * 32: Merge(page.id, "a" * 32, "same_content", other),
        "b" * 32: Merge(page.id, "b" * 32, "same_content", MAP.nodes["returns"].url),
        "c" * 32: Merge(page.id, "c" * 32, "reload", token),
        "e" * 32: Merge(opened_menu.id, "e" * 32, "same_content", f"{other}2"),
    }
    graph = InteractionGraph(
        [*(n for n in draft.graph.nodes.values() if n.id != page.id), page, opened_menu], draft.graph.edges
    )
    recognition = Recognition(merges, evidence=evidence)
    assert recognition.other_urls(graph) == {page.url: (other,)}
    store = Store.open(str(tmp_path / "maps"), create=True)
    store.publish(replace(draft, graph=graph, recognition=recognition, observations={}, pages={}))
    with StoreMap(store.location) as maps:
        seen = ["d" * 32, "9" * 32, "8" * 32]
        assert maps.locate(MAP.site, other, seen, features).node_id == opened_menu.id
        assert maps.locate(MAP.site, f"{page.url}?id=other", seen, features).node_id is None
        assert (
            maps.node(MAP.site, page.id).evidence.urls == maps.node(MAP.site, opened_menu.id).evidence.urls == [other]
        )


def test_evidence_that_matches_two_states_is_ignored(draft, tmp_path):
    page = MAP.nodes["cards"]
    twin = replace(page, id=node_id(["d" * 32], page.url), structure=("d" * 32,))
    features = {f"{number:012x}": 1 for number in range(4)}
    same = Evidence({}, {}, tuple(sorted(features)), ("e" * 12,))
    graph = InteractionGraph([*draft.graph.nodes.values(), twin], draft.graph.edges)
    opened = Store.open(str(tmp_path / "maps"), create=True)
    both = Recognition(evidence={page.id: same, twin.id: same})
    opened.publish(replace(draft, graph=graph, recognition=both, observations={}, pages={}))
    with StoreMap(opened.location) as maps:
        seen = ["e" * 32]
        assert maps.locate(MAP.site, page.url, seen, features) == maps.locate(MAP.site, page.url, seen)


def test_export_lists_merges_and_represented_pages(store, capsys):
    read = store.read(MAP.site)
    plain, full = to_json(MAP.site, 1, read.graph), to_json(MAP.site, 1, read.graph, recognition=read.recognition)
    assert {name: full[name] for name in plain} == plain
    assert [(m["kept"], m["merged"], m["reason"]) for m in full["merges"]] == [
        (MAP.id("cards"), ALIAS, "volatile"),
        (MAP.id("returns"), OTHER_PAGE, "equivalent"),
    ]
    assert full["stands_for"] == {MAP.id("returns"): 12}
    assert main(["show", MAP.site, "--store", store.location]) == 0
    out = capsys.readouterr().out
    assert "Snapshots merged into a known state, by reason:\n        1  equivalent\n        1  volatile" in out
    assert "representing 11 more pages" in out
    assert main(["show", MAP.site, ALIAS, "--store", store.location]) == 0
    assert "one more snapshot" in capsys.readouterr().out


URL = "http://x/orders?zx=9f86d081884c7d65"
STATE = Evidence(
    shows={"menu": 1},
    hides={"dialog": 0},
    features=("a", "b", "c", "d", "menu"),
    elements=("e" * 12, "f" * 12),
)
SHOWN = dict.fromkeys(STATE.features, 1)
STRUCTURE = [element + "0" * 20 for element in STATE.elements]


@pytest.mark.parametrize(
    ("url", "shown", "structure", "counts"),
    [
        (URL, SHOWN, STRUCTURE, True),
        (URL, {**SHOWN, "advertisement": 3}, [*STRUCTURE, "9" * 32], True),
        (URL.replace("9f86", "1a2b"), SHOWN, STRUCTURE, True),
        (URL.replace("orders", "order"), SHOWN, STRUCTURE, False),
        (URL, {**SHOWN, "menu": 0}, STRUCTURE, False),
        (URL, {**SHOWN, "dialog": 1}, STRUCTURE, False),
        (URL, {"a": 1, "menu": 1}, STRUCTURE, False),
        (URL, SHOWN, [], False),
    ],
    ids=["all of it", "more", "another token", "another page", "closed menu", "a dialog", "little else", "elsewhere"],
)
def test_page_is_equivalent_to_a_state_if_it_shows_its_distinctive_and_enough_other_features(
    url, shown, structure, counts
):
    assert is_equivalent(STATE, URL, url, shown, structure) is counts


def test_page_at_another_url_of_the_same_page_is_equivalent():
    other = "http://x/start"
    assert not is_equivalent(STATE, URL, other, SHOWN, STRUCTURE)
    assert is_equivalent(replace(STATE, urls=(other,)), URL, other, SHOWN, STRUCTURE)


def test_without_evidence_no_page_is_equivalent():
    assert not is_equivalent(None, URL, URL, SHOWN, STRUCTURE)
    assert not is_equivalent(Evidence(), URL, URL, SHOWN, STRUCTURE)
