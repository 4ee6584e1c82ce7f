"""Which requests of an action are those of the site of its page."""

from types import SimpleNamespace

import pytest

from waygraph.agents.search.requests_seen import RequestsSeen


def sent(url, method="POST"):
    return SimpleNamespace(method=method, url=url, resource_type="fetch", headers={}, post_data_buffer=b"x=1")


@pytest.mark.parametrize(
    ("page", "url", "counts"),
    [
        ("https://shop.example.org/cart", "https://shop.example.org/cart", True),
        ("https://www.example.org/cart", "https://api.example.org/cart", True),
        ("https://www.example.org/cart", "https://ads.example.net/cart", False),
        ("https://one.github.io/", "https://two.github.io/", False),
        ("http://127.0.0.1:8000/", "http://127.0.0.1:9000/", False),
    ],
)
def test_changes_at_another_host_of_the_site_count_and_those_of_other_sites_do_not(page, url, counts):
    seen = RequestsSeen(None)
    seen._note(sent(url))
    assert seen.changing(page) == ([f"POST {url}"] if counts else [])
