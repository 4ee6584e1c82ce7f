"""All closed shadow roots in the description of a document are found."""

from hypothesis import given
from hypothesis import strategies as st

from waygraph.pipeline.browser.page.closed_roots import closed_roots

ROOT_KINDS = ("open", "closed", "user-agent")


def numbered(node, numbers):
    """The same node with an id of its own for it and for all that is in it."""
    return {
        "backendNodeId": next(numbers),
        **{k: v for k, v in node.items() if isinstance(v, str)},
        **{k: [numbered(each, numbers) for each in v] for k, v in node.items() if isinstance(v, list)},
        **{k: numbered(v, numbers) for k, v in node.items() if isinstance(v, dict)},
    }


def flattened(node):
    yield node
    for key in ("shadowRoots", "children"):
        for each in node.get(key, ()):
            yield from flattened(each)
    if "contentDocument" in node:
        yield from flattened(node["contentDocument"])


elements = st.recursive(
    st.just({}),
    lambda inner: st.fixed_dictionaries(
        {},
        optional={
            "children": st.lists(inner, max_size=3),
            "shadowRoots": st.builds(
                lambda kind, children: [{"shadowRootType": kind, "children": children}],
                st.sampled_from(ROOT_KINDS),
                st.lists(inner, max_size=3),
            ),
            "contentDocument": inner,
        },
    ),
    max_leaves=12,
)


@given(elements)
def test_all_closed_shadow_roots_are_found_and_no_others(node):
    node = numbered(node, iter(range(10_000)))
    expected = {each["backendNodeId"] for each in flattened(node) if each.get("shadowRootType") == "closed"}
    found = list(closed_roots(node))
    assert set(found) == expected
    assert len(found) == len(expected)
