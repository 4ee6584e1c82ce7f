"""Groups of alike pages."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from waygraph.index.graph import Node, element_hash
from waygraph.serve.views.alike import LEAST_STATES, group_alike, url_pattern

FRAME = [element_hash(f"/html/header/a[{n}]") for n in range(20)]


def state(number: int, url: str, *, depth: int = 1, own: int = 2) -> Node:
    """A state that shares a frame with all others, and has elements of its own."""
    mine = [element_hash(f"/html/main[{number}]/p[{n}]") for n in range(own)]
    return Node(f"{number:032x}", url, f"Page {number}", tuple(sorted(FRAME + mine)), depth, addressable=True)


def test_pages_whose_urls_differ_in_one_place_and_whose_elements_are_alike_are_grouped() -> None:
    products = [state(n, f"http://x/p/thing-{n}") for n in range(5)]
    others = [state(10, "http://x/about/us"), state(11, "http://x/p/thing/parts")]
    assert group_alike([*products, *others]) == [("/p/*", [node.id for node in products])]


def test_pages_with_other_elements_or_at_another_depth_are_not_grouped() -> None:
    alike = [state(n, f"http://x/admin/{n}") for n in range(3)]
    assert group_alike([*alike, state(9, "http://x/admin/9", own=30)]) == []
    assert group_alike([*alike, state(9, "http://x/admin/9", depth=2)]) == []


def test_numbers_and_values_of_parameters_are_left_out_of_patterns() -> None:
    assert url_pattern("http://x/orders/17/edit?tab=a&page=2") == "/orders/*/*?page&tab"
    assert url_pattern("http://x") == "/*"
    assert url_pattern("http://[broken/") == "http://[broken/"


STATES = st.tuples(st.integers(0, 3), st.sampled_from(["a", "b/c", "b/d", "b/1"]), st.integers(0, 40))


@given(st.lists(STATES, max_size=30))
def test_groups_are_disjoint_and_large_enough(drawn: list[tuple[int, str, int]]) -> None:
    nodes = [state(n, f"http://x/{path}", depth=depth, own=own) for n, (depth, path, own) in enumerate(drawn)]
    groups = [members for _, members in group_alike(nodes)]
    listed = [node_id for members in groups for node_id in members]
    assert len(listed) == len(set(listed))
    assert all(len(members) >= LEAST_STATES for members in groups)
    depths = {node.id: node.depth for node in nodes}
    assert all(len({depths[node_id] for node_id in members}) == 1 for members in groups)
