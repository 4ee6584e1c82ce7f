"""Who is shown the password and the headers of a site? Its own hosts, and nobody else."""

from pipeline.browser.access import Access
from waygraph.settings import ExploreSettings

EXPLORE = ExploreSettings(basic_auth="ann:pw:1", headers={"X-Key": "abc", "Accept": "text/html"})
ACCESS = Access.of("https://shop.example:8443/a?b#c", EXPLORE, lambda url: url.startswith("https://shop.example:8443/"))


def test_the_password_is_given_at_the_origin_of_the_start_page_alone():
    assert ACCESS.credentials == {"username": "ann", "password": "pw:1", "origin": "https://shop.example:8443"}
    assert Access.of("https://x/", ExploreSettings(), lambda _: True).credentials is None


def test_headers_are_added_to_requests_of_own_hosts_and_replace_those_of_the_same_name():
    added = ACCESS.add_to("https://shop.example:8443/x.png", {"accept": "*/*", "Referer": "r"})
    assert added == [
        {"name": "Referer", "value": "r"},
        {"name": "X-Key", "value": "abc"},
        {"name": "Accept", "value": "text/html"},
    ]
    assert ACCESS.add_to("https://ads.example/x.png", {"accept": "*/*"}) is None
    assert Access.of("https://x/", ExploreSettings(), lambda _: True).add_to("https://x/", {}) is None


def test_no_representation_shows_them():
    assert "pw:1" not in repr(ACCESS)
    assert "abc" not in repr(ACCESS)
