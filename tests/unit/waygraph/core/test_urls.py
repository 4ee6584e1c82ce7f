"""URLs: canonical forms, site keys, typed addresses and templates."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from waygraph.core.errors import InvalidInput
from waygraph.core.urls import (
    SECRET_PARAMETERS,
    UrlPolicy,
    linked_url,
    normalize_url,
    parse_start_url,
    site_key,
    url_template,
)

pieces = st.text(st.sampled_from("ab/%2Ff5cé?=&;+ .~:@[]#!\t\ud800"), max_size=12)
urls = st.one_of(
    st.text(max_size=30),
    st.builds(
        "{}://{}{}/{}?{}#{}".format,
        st.sampled_from(["http", "https", "HTTP", "ftp", "javascript"]),
        st.sampled_from(["shop.example", "Shop.Example.", "bücher.example", "[::1]", "u:p@h", "a..b", "", "[::1"]),
        st.sampled_from(["", ":80", ":443", ":8000", ":99999", ":x", ":"]),
        pieces,
        pieces,
        pieces,
    ),
)  # fmt: skip
policies = st.builds(
    UrlPolicy,
    st.sampled_from(["route", "keep", "drop"]),
    st.sampled_from([(), ("a*",), ("utm_*", "gclid")]),
    raw=st.booleans(),
)


@given(urls, policies)
@example("http://x/%25%32%66", UrlPolicy())
@example("http://x/%ff?q=%ff", UrlPolicy())
@example("http://x//a//b", UrlPolicy())
def test_normalising_is_idempotent(url, policy):
    once = normalize_url(url, policy)
    assert normalize_url(once, policy) == once


@pytest.mark.parametrize(
    ("url", "canonical"),
    [
        ("HTTP://Shop.Example:80", "http://shop.example/"),
        ("https://shop.example:443/a", "https://shop.example/a"),
        ("https://shop.example:80/a", "https://shop.example:80/a"),
        ("http://shop.example./", "http://shop.example/"),
        ("http://user:secret@shop.example/", "http://shop.example/"),
        ("http://Bücher.example/", "http://xn--bcher-kva.example/"),
        ("http://[::1]:8000/", "http://[::1]:8000/"),
        ("http://x/?b=2&a=1&a=0", "http://x/?a=1&a=0&b=2"),
        ("http://x/?q=&utm_source=mail&gclid=1", "http://x/?q="),
        ("http://x/#section", "http://x/"),
        ("http://x/#/orders", "http://x/#/orders"),
        ("http://x/#!orders", "http://x/#!orders"),
        ("http://x/%7Eme/%e4", "http://x/~me/%E4"),
        ("http://x/a b", "http://x/a%20b"),
        ("http://x/a%2fb%7E", "http://x/a%2Fb~"),
        ("mailto:a@b", "mailto:a@b"),
        ("http://x:99999/", "http://x:99999/"),
        ("http://[::1/", "http://[::1/"),
    ],
)
def test_urls_of_one_page_have_one_form(url, canonical):
    assert normalize_url(url) == canonical


@pytest.mark.parametrize(
    ("query", "kept"),
    [("sid=sport", True), ("token=amber", True), ("sig=17", True), ("sid=9f86d081884c7d65", False), ("otp=17", False)],
)
def test_a_parameter_that_may_name_a_page_is_dropped_only_if_its_value_is_random(query, kept):
    policy = UrlPolicy(drop_parameters=SECRET_PARAMETERS)
    assert (normalize_url(f"http://x/?{query}", policy) == f"http://x/?{query}") == kept


@pytest.mark.parametrize(
    ("url", "requested"),
    [
        ("http://x/?b=2&a=1", "http://x/?b=2&a=1"),
        ("http://x/?wsdl#top", "http://x/?wsdl"),
        ("http://x/%7e?fbclid=1#/orders", "http://x/%7e?fbclid=1#/orders"),
        ("http://x/a%#", "http://x/a%"),
    ],
)
def test_a_page_is_requested_as_its_link_is_written(url, requested):
    assert linked_url(url) == requested


@pytest.mark.parametrize("url", ["http://x/%ff", "http://x/?q=%ff%fe"])
def test_percent_encoded_bytes_outside_utf8_are_kept(url):
    assert normalize_url(url).lower() == url


def test_the_fragment_policy_decides_which_fragments_are_kept():
    url = "http://x/#section"
    assert normalize_url(url, UrlPolicy("keep")) == url
    assert normalize_url("http://x/#/orders", UrlPolicy("drop")) == "http://x/"


def test_a_lone_surrogate_is_read_as_browsers_read_it():
    assert normalize_url("http://x/\ud800?q=\ud800") == "http://x/%EF%BF%BD?q=%EF%BF%BD"


def test_raw_urls_are_not_changed():
    assert normalize_url("HTTP://X:80/?b&a#top", UrlPolicy(raw=True)) == "HTTP://X:80/?b&a#top"


@pytest.mark.parametrize(
    ("text", "url"),
    [
        ("example.org", "https://example.org/"),
        (" https://example.org ", "https://example.org/"),
        ("example.org/a?b=c", "https://example.org/a?b=c"),
        ("localhost:8000", "http://localhost:8000/"),
        ("127.0.0.1:8000/x", "http://127.0.0.1:8000/x"),
        ("[::1]:8000", "http://[::1]:8000/"),
        ("example.org:80", "http://example.org:80/"),
        ("example.org:80?q=:443", "http://example.org:80?q=:443"),
        ("example.org:443/x:80", "https://example.org:443/x:80"),
        ("example.org:8080", "https://example.org:8080/"),
        ("localhost:443", "https://localhost:443/"),
        ("http://bücher.example", "http://bücher.example/"),
        ("HTTPS://Example.org/", "HTTPS://Example.org/"),
    ],
)
def test_typed_addresses_become_urls(text, url):
    assert parse_start_url(text) == url


NO_WEB_ADDRESSES = (
    *["", " ", "http://", "https:///path", "ftp://example.org", "file:///etc/passwd", "javascript:alert(1)"],
    *["mailto:a@b.c", "data:text/html,x", "http://[::1", "http://a]b/", "http://example.org:port/", "http://?q"],
    *["http://example.org:99999/", "http://example.org:0/", "http://exa mple.org/", "http://-/", "http://a..b/"],
    *["http://" + "x" * 70 + ".example/", "?", "/", "http://./", "http://%zz/", "http://exa\nmple.org/"],
    *["example.org\\@evil.example", "http://example.org/\0"],
)


@pytest.mark.parametrize("text", NO_WEB_ADDRESSES)
def test_malformed_addresses_are_refused_with_the_text_in_the_message(text):
    with pytest.raises(InvalidInput) as caught:
        parse_start_url(text)
    assert text in caught.value.message
    assert caught.value.hint


@given(st.text(max_size=40))
def test_any_text_is_either_a_url_or_refused(text):
    try:
        url = parse_start_url(text)
    except InvalidInput:
        return
    assert site_key(url)
    assert "/" not in site_key(url)


def test_site_is_the_exact_host_and_port():
    assert site_key("https://Example.org:443/x") == "example.org"
    assert site_key("http://user:pw@127.0.0.1:8000/") == "127.0.0.1:8000"
    assert site_key("http://www.example.org/") != site_key("http://example.org/")
    assert site_key("http://[::1]:8000/") == "[::1]:8000"
    assert site_key("http://Bücher.example/") == "xn--bcher-kva.example"


@pytest.mark.parametrize(
    ("url", "template"),
    [
        ("http://x/orders/17/edit?tab=a", "http://x/orders/*/edit?tab="),
        ("http://x/o/550e8400-e29b-41d4-a716-446655440000", "http://x/o/*"),
        ("http://x/about#top", "http://x/about"),
        ("http://x/facade", "http://x/facade"),
        ("http://[::1", "http://[::1"),
    ],
)
def test_pages_of_one_kind_share_a_template(url, template):
    assert url_template(url) == template
