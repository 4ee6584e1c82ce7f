"""Which looks count as a state besides its recorded one, from the map in a store to every answer about it?"""

from dataclasses import replace

import pytest

from index.graph import Evidence, Merge, Recognition, is_equivalent
from index.graph.export import to_json
from index.store import Store
from pipeline.encode.registry import create_encoder
from tests.small_map import SmallMap
from waygraph.cli import main
from waygraph.errors import InvalidInput, NotFound
from waygraph.local import StoreMap
from waygraph.settings import EncodeSettings

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


def test_it_is_read_back_as_it_was_published(store):
    read = store.read(MAP.site)
    assert read.recognition == RECOGNITION
    assert read.manifest.counts.merges == {"equivalent": 1, "volatile": 1}
    assert read.manifest.counts.stood_for == 11


def test_a_map_that_has_none_writes_no_file_and_is_read_without(tmp_path, draft):
    opened = Store.open(str(tmp_path / "maps"), create=True)
    opened.publish(replace(draft, observations={}))
    assert opened.read(MAP.site).recognition == Recognition()
    assert not list((tmp_path / "maps").rglob("recognition.parquet"))


def test_what_says_something_of_no_state_is_refused(draft):
    with pytest.raises(InvalidInput, match="evidence"):
        replace(draft, recognition=Recognition(stands_for={"f" * 32: 2})).check()


def test_the_id_of_another_look_names_the_state_everywhere(store):
    cards = MAP.id("cards")
    with StoreMap(store.location) as maps:
        node = maps.node(MAP.site, ALIAS)
        assert (node.node_id, node.aliases, node.stands_for) == (cards, [ALIAS], 1)
        assert maps.node(MAP.site, ALIAS[:6]).node_id == cards
        way = maps.path(MAP.site, MAP.id("account"), ALIAS)
        assert (way.target, way.steps[-1].accepts) == (cards, [ALIAS])
        assert way.steps[-1].evidence.model_dump() == {
            "shows": {"f1": 2}, "hides": {"f2": 0}, "features": ["f1", "f3"], "elements": ["e1"],
            "own": [], "alone": True,
        }  # fmt: skip
        assert maps.path(MAP.site, ALIAS, MAP.id("account")).source == cards
        assert maps.node(MAP.site, MAP.id("returns")).stands_for == 12
        with pytest.raises(NotFound):
            maps.node(MAP.site, "c" * 32)


def test_a_page_with_another_looks_id_is_located_exactly_but_a_page_that_is_stood_for_is_not(draft, tmp_path):
    from index.graph import node_id

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


def test_the_export_lists_merges_and_what_is_stood_for_beside_the_nodes(store, capsys):
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
    assert "Looks that were taken for a known state, by reason:\n        1  equivalent\n        1  volatile" in out
    assert "stand for 11 more pages" in out
    assert main(["show", MAP.site, ALIAS, "--store", store.location]) == 0
    assert "one more look" in capsys.readouterr().out


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
def test_a_page_counts_as_a_state_when_it_shows_what_distinguishes_it_and_enough_of_the_rest(
    url, shown, structure, counts
):
    assert is_equivalent(STATE, URL, url, shown, structure) is counts


def test_without_evidence_no_page_counts():
    assert not is_equivalent(None, URL, URL, SHOWN, STRUCTURE)
    assert not is_equivalent(Evidence(), URL, URL, SHOWN, STRUCTURE)
