"""Templates of URLs: addresses of one function for different entities have one in common."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from waygraph.index.graph.url_templates import url_templates


def have_common(one: str, other: str) -> bool:
    return bool(dict(url_templates(one)).keys() & dict(url_templates(other)).keys())


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("http://s/projects/a/issues/gantt", "http://s/projects/b/issues/gantt"),
        ("http://s/projects/a/issues/gantt", "http://s/issues/gantt"),
        ("http://s/doku.php?do=edit&id=a", "http://s/doku.php?do=edit&id=b"),
        ("http://s/app#/orders/1", "http://s/app#/orders/2"),
    ],
)
def test_one_function_of_two_entities_has_a_template(one, other):
    assert have_common(one, other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("http://s/images/add", "http://s/redirects/list"),
        ("http://s/admin/images/add", "http://s/shop/redirects/add"),
        ("http://s/doku.php?do=edit&id=a", "http://s/doku.php?do=diff&id=b"),
        ("http://s/x/a/1/2", "http://s/y/b/1/2"),
        ("http://s/a/edit", "http://t/b/edit"),
    ],
)
def test_other_functions_and_other_sites_have_none(one, other):
    assert not have_common(one, other)


@given(st.text(max_size=30))
def test_any_text_has_templates_or_none(text):
    assert all(isinstance(value, str) for _, value in url_templates(text))
