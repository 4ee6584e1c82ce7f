"""The explorer finds exactly the graph of the demo shop, and changes nothing at its server."""

import json
import os
import subprocess
import sys

import pytest

from tests.exploring import explore
from tests.ground_truth.demo_shop import truth
from tests.ground_truth.match import explored_edges, match_states, true_edges
from waygraph.index.graph.export import to_json

TRUTH = truth()


@pytest.fixture(scope="module")
def keys(shop):
    """Truth key of every explored node."""
    base = shop.site.url.rstrip("/")
    matches = match_states(TRUTH, shop.capture.graph, shop.capture.observations, base)
    assert {node_id: found for node_id, found in matches.items() if len(found) != 1} == {}
    return {node_id: found[0] for node_id, found in matches.items()}


def test_explored_states_equal_the_ground_truth(keys):
    assert sorted(keys.values()) == sorted(TRUTH.states)


def test_depth_and_addressability_equal_the_ground_truth(shop, keys):
    explored = {keys[node.id]: (node.depth, node.addressable) for node in shop.capture.graph.nodes.values()}
    assert explored == {key: (state.depth, state.addressable) for key, state in TRUTH.states.items()}


def test_walked_edges_equal_the_ground_truth(shop, keys):
    explored = explored_edges(shop.capture.graph, keys, shop.site.url.rstrip("/"))
    assert explored - true_edges(TRUTH) == {}
    assert true_edges(TRUTH) - explored == {}


def test_skipped_elements_equal_the_ground_truth(shop, keys):
    reasons = {"form_post": "submit", "form_get": "submit"}
    explored = sorted((keys[s.node_id], reasons.get(s.reason, s.reason)) for s in shop.capture.report.skips)
    assert len(explored) == len(TRUTH.skips)
    for state in {key for key, _ in explored}:
        allowed = set().union(*(skip.reasons for skip in TRUTH.skips if skip.state == state))
        assert {reason for key, reason in explored if key == state} <= allowed


def test_nothing_failed_and_every_state_was_captured(shop):
    assert shop.capture.report.failures == ()
    for observation in shop.capture.observations.values():
        assert shop.blobs[observation.screenshot].startswith(b"\xff\xd8")
        assert b"</html>" in shop.blobs[observation.dom]
        assert observation.aria in shop.blobs


def test_exploring_changes_nothing_at_the_server(shop):
    assert {method for method, _ in shop.requests} <= {"GET", "HEAD"}


def test_inherited_edges_have_the_target_or_the_source_of_a_performed_edge(shop):
    graph = shop.capture.graph
    walked = {(e.source, e.action.role, e.action.name, e.target) for e in graph.edges if not e.inherited}
    led_to = {(role, name, target) for _, role, name, target in walked}
    inherited = [edge for edge in graph.edges if edge.inherited]
    onward = [edge for edge in inherited if (edge.action.role, edge.action.name, edge.target) in led_to]
    back = [edge for edge in inherited if (edge.target, edge.action.role, edge.action.name, edge.source) in walked]
    assert onward
    assert back
    opened = {(edge.source, edge.target) for edge in graph.edges if not edge.inherited}
    closed = [edge for edge in inherited if edge.action.is_page_key and (edge.target, edge.source) in opened]
    assert {*onward, *back, *closed} == set(inherited)


def canonical(capture, base):
    document = to_json("shop", 1, capture.graph)
    return json.loads(json.dumps(document).replace(base, "http://shop"))


RUNS = int(os.environ.get("WAYGRAPH_RUNS", "0"))
"""Explorations of the whole shop per number of workers: `make soak-workers`."""


@pytest.fixture(scope="module")
def shallow(shop):
    """Capture of one worker to depth 1."""
    return explore(shop.site.url, depth=1, workers=1)


def test_the_graph_does_not_depend_on_the_number_of_workers(shop, shallow):
    base = shop.site.url.rstrip("/")
    assert canonical(explore(shop.site.url, depth=1, workers=4), base) == canonical(shallow, base)


@pytest.fixture(scope="module")
def whole(shop):
    """Capture of one worker in the order of novelty, the default; `shop` is explored breadth first."""
    return explore(shop.site.url, workers=1)


@pytest.mark.extended
@pytest.mark.skipif(not RUNS, reason="make soak-workers")
@pytest.mark.timeout(600 * max(RUNS, 1))
@pytest.mark.parametrize("workers", [1, 2, 4])
def test_the_whole_graph_does_not_depend_on_the_number_of_workers(shop, whole, workers):
    base = shop.site.url.rstrip("/")
    for _ in range(RUNS):
        assert canonical(explore(shop.site.url, workers=workers), base) == canonical(whole, base)


@pytest.mark.extended
def test_renewing_browser_contexts_gives_the_same_graph(shop, shallow, monkeypatch):
    base = shop.site.url
    monkeypatch.setattr("waygraph.pipeline.explore.engine.session_page.LOADS_PER_CONTEXT", 2)
    often = explore(base, depth=1, workers=1)
    contexts = [capture.report.counters["browser/contexts"] for capture in (shallow, often)]
    loads, reached = (often.report.counters[name] for name in ("browser/loads", "reach/replays"))
    assert contexts[1] >= contexts[0] + loads // 2 + reached // 2 - 2
    assert canonical(often, base) == canonical(shallow, base)


#: Another process, whose strings have other hashes than this one's.
EXPLORE = """if True:
    import json, sys
    from waygraph.index.graph.export import to_json
    from tests.browsers import BROWSERS
    from tests.exploring import explore
    print(json.dumps(to_json("shop", 1, explore(sys.argv[1], depth=1).graph)))
    BROWSERS.close()
"""


@pytest.mark.extended
def test_the_graph_does_not_depend_on_the_hash_seed(shop, shallow):
    base = shop.site.url.rstrip("/")
    environment = {**os.environ, "PYTHONHASHSEED": "4711", "PYTHONPATH": "."}
    done = subprocess.run(
        [sys.executable, "-c", EXPLORE, f"{base}/"], env=environment, capture_output=True, text=True, check=True
    )
    assert json.loads(done.stdout.replace(base, "http://shop")) == canonical(shallow, base)


@pytest.mark.extended
def test_state_limit_cuts_at_the_same_state_for_any_number_of_workers(shop):
    base = shop.site.url.rstrip("/")
    alone, together = (
        canonical(explore(shop.site.url, workers=workers, max_states=12, depth=2), base) for workers in (1, 3)
    )
    assert alone == together
    assert len(alone["nodes"]) == 12
