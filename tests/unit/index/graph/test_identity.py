import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from waygraph.index.graph import Box, Observation, Segment, change_digest, element_hash, node_id, similarity

ROOT = Path(__file__).parents[4]
hashes = st.lists(st.text("0123456789abcdef", min_size=32, max_size=32), max_size=6)


def test_ids_and_the_export_are_the_same_in_processes_with_different_hash_seeds():
    code = """if True:
        import hashlib
        from waygraph.index.graph import Action, Edge, InteractionGraph, Node, element_hash, node_id, normalize_url
        from waygraph.index.graph.export import to_bytes, to_graphml, to_json
        from waygraph.index.graph.paths import PathFinder

        nodes = []
        for i in range(30):
            structure = {element_hash(f"/html[1]/body[1]/div[{n}]") for n in range(i + 3)}
            url = normalize_url(f"http://x/{i}?b=2&a=1&c=ä")
            nodes.append(Node(node_id(structure, url), url, str(i), tuple(sorted(structure)), i, i % 3 == 0))
        ends = {(nodes[i], nodes[(i * 7 + j) % 30]) for i in range(30) for j in range(4)}
        edges = [Edge(s.id, t.id, Action("click", name=t.title)) for s, t in ends]
        graph = InteractionGraph(nodes, edges)
        finder = PathFinder(graph)
        digest = hashlib.sha256(to_bytes(to_json("x", 1, graph)) + to_graphml("x", 1, graph).encode())
        for target in nodes:
            digest.update(repr(finder.cheapest_path(nodes[0].id, target.id)).encode())
        print(digest.hexdigest())
    """
    running = [
        subprocess.Popen(
            [sys.executable, "-c", code],
            stdout=subprocess.PIPE,
            text=True,
            cwd=ROOT,
            env=os.environ | {"PYTHONHASHSEED": str(seed)},
        )
        for seed in range(20)
    ]
    printed = {process.communicate()[0] for process in running}
    assert all(process.returncode == 0 for process in running)
    assert len(printed) == 1


@given(hashes, st.text(max_size=20).filter(lambda text: text.isprintable()), st.randoms(use_true_random=False))
def test_order_and_repetition_of_elements_do_not_change_a_node_id(structure, url, rng):
    shuffled = structure * 2
    rng.shuffle(shuffled)
    assert node_id(shuffled, url) == node_id(structure, url)


@given(hashes, hashes)
def test_other_elements_make_another_node(one, other):
    assert (node_id(one, "http://x/") == node_id(other, "http://x/")) == (set(one) == set(other))


def test_another_url_makes_another_node():
    assert node_id(["a"], "http://x/") != node_id(["a"], "http://y/")


def test_an_element_in_a_frame_is_another_element():
    assert element_hash("/html[1]") != element_hash("/html[1]", ["/html[1]/body[1]/iframe[1]"])
    assert element_hash("/html[1]", ["/a"]) != element_hash("/html[1]", ["/a", "/b"])


@given(hashes, hashes)
def test_similarity_is_symmetric_and_one_only_for_equal_structures(one, other):
    jaccard = similarity(one, other)
    assert jaccard == similarity(other, one)
    assert 0 <= jaccard <= 1
    assert (jaccard == 1) == (set(one) == set(other))


@pytest.mark.parametrize("change", ["url", "title", "segments"])
def test_the_content_hash_changes_with_what_an_encoder_reads(change):
    box = Box(0, 0, 1, 1)
    values = {"node_id": "n", "url": "u", "title": "t", "segments": (Segment("s", "text", box),)}
    changed = values | {change: (Segment("other", "text", box),) if change == "segments" else "other"}
    assert Observation(**values).content_hash != Observation(**changed).content_hash
    assert Observation(**values).content_hash == Observation(**values, screenshot="0").content_hash


@given(hashes, hashes, hashes)
def test_change_digest_does_not_depend_on_the_rest_of_the_page(before, after, noise):
    noise = [*{*noise} - {*before} - {*after}]
    assert change_digest(before + noise, noise + after) == change_digest(before[::-1], after)
    assert (change_digest(before, after) == "") is ({*before} == {*after})


@given(hashes, hashes, hashes)
def test_another_change_has_another_digest(before, after, other):
    same = ({*before} - {*after}, {*after} - {*before}) == ({*before} - {*other}, {*other} - {*before})
    assert (change_digest(before, after) == change_digest(before, other)) is same
