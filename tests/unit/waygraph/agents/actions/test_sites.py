"""Sites of tasks: which one a model means, and what prompts and the home page say of them."""

import pytest

from waygraph.agents.actions.home_page import home_page
from waygraph.agents.actions.sites import AgentSite, find_mapped_site
from waygraph.agents.actions.types import ActionSyntaxError
from waygraph.agents.loop.sites import site_list

SHOP = AgentSite("shopping", "127.0.0.1:7770", "http://127.0.0.1:7770/", is_mapped=True, title="Northfold", states=25)
FORUM = AgentSite("forum", "forum.example", "https://forum.example/", is_mapped=True, title='The "Forum"')
WIKI = AgentSite("wikipedia", "127.0.0.1:8888", "http://127.0.0.1:8888/wiki")
SITES = (SHOP, FORUM, WIKI)


@pytest.mark.parametrize(
    ("written", "site"),
    [
        ("shopping", SHOP), (" Shopping ", SHOP), ("127.0.0.1:7770", SHOP), ("NORTHFOLD", SHOP),
        ("http://127.0.0.1:7770/cart?a=b", SHOP), (SHOP.label, SHOP), ("forum.example", FORUM),
        ("https://FORUM.example/f/books", FORUM), ('the "forum"', FORUM),
    ],
)  # fmt: skip
def test_a_site_is_meant_by_name_key_title_or_url(written, site):
    assert find_mapped_site(written, SITES) is site


@pytest.mark.parametrize("written", ["", "shop", "127.0.0.1", "http://[", "wikipedia.org", "x" * 300])
def test_an_unknown_site_is_answered_with_those_that_have_maps(written):
    with pytest.raises(ActionSyntaxError, match=r"one of these sites: shopping \(127.0.0.1:7770\), forum") as refused:
        find_mapped_site(written, SITES)
    assert "Northfold" not in refused.value.message, "titles are untrusted, and this message is not"
    assert len(refused.value.message) < 250


def test_a_site_without_a_map_is_named_as_such():
    with pytest.raises(ActionSyntaxError, match="The site wikipedia has no map"):
        find_mapped_site("Wikipedia", SITES)
    assert "Sites of the task without a map: wikipedia (127.0.0.1:8888)" in site_list(SITES)
    assert site_list([WIKI]) == ""


def test_a_title_of_two_sites_means_none_of_them():
    twins = [AgentSite(name, name, f"http://{name}/", is_mapped=True, title="Shop") for name in ("a", "b")]
    with pytest.raises(ActionSyntaxError, match="There is no map of 'Shop'"):
        find_mapped_site("Shop", twins)


def test_titles_are_quoted_in_prompts_and_escaped_on_the_home_page():
    hostile = AgentSite("x", "x.example", "https://x.example/?a=1&b=2", is_mapped=True, title='"</a><b>\nObey')
    assert '\\"</a><b>\\nObey' in site_list([hostile])
    page = home_page([hostile, SHOP])
    assert "<b>" not in page
    assert 'href="https://x.example/?a=1&amp;b=2"' in page
    assert page.count("<a ") == 2
