"""Pages that JSON-LD names: breadcrumbs and the search of the site."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from waygraph.pipeline.browser.page.linked_data import named_pages

BASE = "https://shop.example/a/b"


def crumbs(*items):
    return {"@context": "https://schema.org", "@type": "BreadcrumbList", "itemListElement": list(items)}


def named(*documents):
    return named_pages((each if isinstance(each, str) else json.dumps(each) for each in documents), BASE)


def test_breadcrumbs_name_the_pages_above():
    items = [
        {"@type": "ListItem", "position": 1, "name": "Home ", "item": "https://shop.example/"},
        {"@type": "ListItem", "position": 2, "item": {"@id": "/a", "name": "Garden\n tools"}},
        {"@type": "ListItem", "position": 3, "name": "Rakes"},
    ]
    expected = (("https://shop.example/", "Home"), ("https://shop.example/a", "Garden tools"))
    assert named(crumbs(*items)) == expected
    assert named({"@graph": [{"@type": "WebPage", "breadcrumb": crumbs(*items)}]}) == expected


@pytest.mark.parametrize("target", ["/find?q={words}", {"@type": "EntryPoint", "urlTemplate": "/find?q={words}"}])
def test_the_search_of_the_site_is_named_without_words(target):
    action = {"@type": "SearchAction", "target": target, "query-input": "required name=words"}
    site = {"@type": ["WebSite"], "name": "Shop", "url": "https://shop.example/", "potentialAction": [action]}
    assert named([site]) == (("https://shop.example/find?q=", "Search Shop"),)


@pytest.mark.parametrize(
    "document",
    ["", "{", "[" * 60_000, "null", '{"@type": "BreadcrumbList"}', '{"@type": {"a": []}, "potentialAction": 1}',
     crumbs({"item": "javascript:alert(1)", "name": "x"}, {"item": "http://["}, {"item": 7}, "text", None),
     {"@type": "WebSite", "potentialAction": {"@type": "SearchAction", "target": None}}],
)  # fmt: skip
def test_other_documents_name_nothing(document):
    assert named(document) == ()


def test_a_long_list_is_cut():
    assert len(named(crumbs(*({"item": f"/{number}"} for number in range(5_000))))) == 20


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.text(max_size=5)
    | st.sampled_from(["BreadcrumbList", "WebSite", "SearchAction", "/x"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["@type", "itemListElement", "item", "@id", "name", "potentialAction", "target"]), inner
        )
    ),
    max_leaves=12,
)


@given(JSON)
def test_any_json_is_read_without_an_exception(document):
    assert all(url.startswith(("http://", "https://")) for url, _ in named(document))


def test_halves_of_characters_are_replaced():
    document = '{"@type": "BreadcrumbList", "itemListElement": [{"item": "/c\\ud800", "name": "Party \\ud83d"}]}'
    (found,) = named_pages([document], "http://x.example/")
    assert [text.encode().decode() for text in found] == list(found)
