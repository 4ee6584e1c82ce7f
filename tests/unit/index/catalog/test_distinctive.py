"""Distinctive features of states, and recognition of pages with or without the boilerplate of the site."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from waygraph.index.catalog.distinctive import add_distinctive_features
from waygraph.index.graph import Evidence, InteractionGraph, Node, is_contradicted, is_equivalent

FRAME = ("f1", "f2", "f3", "f4", "f5", "f6")
MORE_FRAME = ("g1", "g2", "g3", "g4", "g5", "g6")
PAGE = "http://x/a"
OWN = ("o1", "o2", "o3", "o4")
SEEN = dict.fromkeys((*FRAME, *OWN), 1)
#: A page of a site with a large frame; elements 1-8 are its frame's, 9-12 its own.
ELEMENTS = tuple(f"{number:012}" for number in range(12))
EVIDENCE = Evidence(features=tuple(sorted((*FRAME, *OWN))), elements=ELEMENTS, own=OWN)


def graph(structures: dict[str, tuple[str, ...]]) -> InteractionGraph:
    """A graph with a state of this structure at each URL; ids are the URLs' last letters."""
    return InteractionGraph(
        Node(url[-1], url, "", structure, 0, addressable=True) for url, structure in structures.items()
    )


def test_features_shown_by_every_page_are_not_distinctive():
    evidence = {name: Evidence(features=(f"h{name}", "nav")) for name in "abcdef"}
    found = add_distinctive_features(graph({f"http://x/{name}": (name,) for name in evidence}), evidence)
    assert {name: its.own for name, its in found.items()} == {name: (f"h{name}",) for name in evidence}


def test_feature_outside_the_samples_of_other_pages_is_not_distinctive():
    """Pages b to f show many features: their samples end before "z", so it is unknown whether they show it."""
    evidence = {"a": Evidence(features=("b1", "z")), **{n: Evidence(features=("b1", "b2", "b3")) for n in "bcdef"}}
    found = add_distinctive_features(graph({f"http://x/{name}": (name,) for name in evidence}), evidence)
    assert found["a"].own == ()


def test_site_of_one_page_has_no_distinctive_features():
    found = add_distinctive_features(graph({"http://x/a": ("e",)}), {"a": Evidence(features=("h", "nav"))})
    assert found["a"].own == ()


def test_structure_shared_by_two_urls_is_not_unique():
    structures = {"http://x/a": ("e",), "http://x/b": ("e",), "http://x/c": ("other",)}
    found = add_distinctive_features(graph(structures), {name: Evidence(features=("h",)) for name in "abc"})
    assert [found[name].alone for name in "abc"] == [False, False, True]


def test_random_path_parts_distinguish_pages_if_the_map_has_several_of_them():
    """Commits share a template, and most of their texts; a session id in a URL says nothing."""
    commits = [f"http://x/info/{name * 8}1{name * 8}" for name in "ab"]
    session = "http://x/cart?sid=0f0f0f0f1c1c1c1c"
    structures = dict.fromkeys([*commits, session, "http://x/h"], ("e",))
    nodes = [Node(url, url, "", structure, 0, addressable=True) for url, structure in structures.items()]
    evidence = {url: Evidence(features=(*FRAME, *OWN), elements=ELEMENTS, own=OWN) for url in structures}
    found = add_distinctive_features(InteractionGraph(nodes), evidence)
    assert [found[url].named for url in structures] == [True, True, False, False]

    def is_it(state, url):
        its = replace(found[state], own=OWN)
        return is_equivalent(its, state, url, SEEN, [e + "0" * 20 for e in ELEMENTS])

    assert is_it(commits[0], commits[0])
    assert not is_it(commits[0], commits[1])
    assert is_it(session, session.replace("0f0f", "9a7b"))


@given(st.dictionaries(st.sampled_from("abcdefgh"), st.sets(st.sampled_from("mnopqrstu"), min_size=1), min_size=1))
def test_distinctive_features_are_a_subset_of_the_sampled_ones_and_features_are_unchanged(features):
    evidence = {name: Evidence(features=tuple(sorted(shown))) for name, shown in features.items()}
    found = add_distinctive_features(graph({f"http://x/{name}": () for name in features}), evidence)
    for name, its in found.items():
        assert set(its.own) <= set(evidence[name].features)
        assert its.features == evidence[name].features


def seen(*left_out: str, **more: int) -> dict[str, int]:
    return {name: count for name, count in SEEN.items() if name not in left_out} | more


def is_like(features, elements=ELEMENTS, evidence=EVIDENCE) -> bool:
    return is_equivalent(evidence, PAGE, PAGE, features, [element + "0" * 20 for element in elements])


def test_page_without_the_site_menu_is_recognised_by_its_distinctive_features():
    assert is_like(seen(*FRAME[:4]), ELEMENTS[6:])


def test_page_with_boilerplate_only_is_not_recognised():
    assert not is_like(seen(*OWN))


def test_page_with_boilerplate_and_few_distinctive_features_is_not_recognised():
    of_a_large_page = Evidence(features=tuple(sorted((*FRAME, *MORE_FRAME, *OWN))), elements=ELEMENTS, own=OWN)
    shown = seen() | dict.fromkeys(MORE_FRAME, 1)
    assert is_like(shown, evidence=of_a_large_page)
    shown = {name: count for name, count in shown.items() if name not in OWN[:3]}
    assert not is_like(shown, evidence=of_a_large_page)


def test_page_without_boilerplate_and_with_many_unknown_features_is_not_recognised():
    assert not is_like(seen(*FRAME[:4], "o4", e1=1, e2=1, e3=1, e4=1, e5=1), ELEMENTS[6:])


def test_page_without_boilerplate_and_structure_is_not_recognised():
    assert not is_like(seen(*FRAME[:4]), ELEMENTS[11:])


def test_login_form_with_the_id_of_a_state_contradicts_its_evidence():
    assert is_contradicted(EVIDENCE, seen(*OWN, login=1))
    assert not is_contradicted(EVIDENCE, seen("o1", "o2", "o3"))


def test_translated_page_is_accepted_if_its_structure_is_unique():
    translated = dict.fromkeys(("übersetzt", "ganz"), 1)
    assert not is_contradicted(EVIDENCE, translated)
    shared = Evidence(features=EVIDENCE.features, elements=ELEMENTS, own=OWN, alone=False)
    assert is_contradicted(shared, translated)
    assert not is_contradicted(shared, {**translated, "o2": 1})


def test_maps_without_evidence_rely_on_ids():
    assert not is_contradicted(None, {})
    assert not is_contradicted(Evidence(features=FRAME), {})
