"""The password and the headers of a site go to its own hosts only."""

from waygraph.core.settings import ExploreSettings
from waygraph.pipeline.browser.guard.credentials import SiteCredentials

EXPLORE = ExploreSettings(basic_auth="ann:pw:1", headers={"X-Key": "abc", "Accept": "text/html"})
ACCESS = SiteCredentials.from_settings(
    "https://shop.example:8443/a?b#c", EXPLORE, lambda url: url.startswith("https://shop.example:8443/")
)


def test_password_is_sent_to_the_origin_of_the_start_page_only():
    assert ACCESS.http_credentials == {"username": "ann", "password": "pw:1", "origin": "https://shop.example:8443"}
    assert SiteCredentials.from_settings("https://x/", ExploreSettings(), lambda _: True).http_credentials is None


def test_headers_are_added_to_requests_of_own_hosts_and_replace_those_of_the_same_name():
    added = ACCESS.with_headers("https://shop.example:8443/x.png", {"accept": "*/*", "Referer": "r"})
    assert added == [
        {"name": "Referer", "value": "r"},
        {"name": "X-Key", "value": "abc"},
        {"name": "Accept", "value": "text/html"},
    ]
    assert ACCESS.with_headers("https://ads.example/x.png", {"accept": "*/*"}) is None
    assert (
        SiteCredentials.from_settings("https://x/", ExploreSettings(), lambda _: True).with_headers("https://x/", {})
        is None
    )


def test_credentials_are_hidden_in_representations():
    assert "pw:1" not in repr(ACCESS)
    assert "abc" not in repr(ACCESS)
