"""The scope of a site, and scope settings that contradict themselves."""

import pytest

from tests.sites.static_pages import look
from tests.unit.pipeline.explore.policies.test_policies import candidate
from waygraph.core.errors import InvalidInput
from waygraph.core.settings import ExploreSettings
from waygraph.pipeline.explore.policies.scope import Scope, registrable_domain


def scope(site, **explore):
    # Settings validate hosts too; without that check, the scope must reject them.
    return Scope.of(site, ExploreSettings().model_copy(update=explore))


def inside(found, *urls):
    return [found.refuse_url(url) is None for url in urls]


def test_host_scope_is_the_exact_host_and_port():
    found = scope("shop.example")
    assert inside(found, "https://shop.example/x", "http://shop.example/", "HTTPS://SHOP.example:443/") == [True] * 3
    assert (
        inside(found, "https://www.shop.example/", "https://shop.example:8443/", "https://shop.example.evil/")
        == [False] * 3
    )


def test_domain_scope_covers_all_hosts_and_ports_of_the_domain():
    found = scope("www.shop.co.uk", scope="domain")
    assert found.domain == "shop.co.uk"
    assert inside(found, "https://api.shop.co.uk:8443/", "http://shop.co.uk/", "https://a.b.shop.co.uk/") == [True] * 3
    assert (
        inside(found, "https://other.co.uk/", "https://myshop.co.uk/", "https://shop.co.uk.evil.example/")
        == [False] * 3
    )


def test_hosts_of_one_provider_are_different_sites():
    assert registrable_domain("me.github.io") == "me.github.io"


def test_further_hosts_belong_to_the_site_and_are_named_for_the_proxy():
    found = scope(
        "127.0.0.1:8000", scope_hosts=("Docs.Example.org", "127.0.0.1:8001", "[::1]:9000", "bücher.example:443")
    )
    assert inside(found, "https://docs.example.org/", "http://127.0.0.1:8001/", "http://[::1]:9000/") == [True] * 3
    assert inside(found, "http://127.0.0.1:8002/", "http://docs.example.org:81/") == [False] * 2
    assert found.named == {
        "127.0.0.1:8000",
        "docs.example.org",
        "127.0.0.1:8001",
        "[::1]:9000",
        "xn--bcher-kva.example",
    }
    assert scope("a.intranet.example", scope="domain").named == {"a.intranet.example", ".intranet.example"}


def test_urls_of_other_schemes_belong_to_no_site():
    found = scope("shop.example")
    for url in ("file:///etc/passwd", "javascript:alert(1)", "chrome://version", "data:text/html,x", "about:blank"):
        assert found.refuse_url(url).reason == "scheme"


@pytest.mark.parametrize(
    ("target", "here", "reason"),
    [
        ("http://x/www.partner.example/x/", "http://x/", "external"),
        ("http://x/shop/www2.partner.example", "http://x/shop/cart?a=/b/", "external"),
        ("http://x/archive/www.partner.example/", "http://x/", None),
        ("http://x/github.com/you/it", "http://x/", None),
        ("http://x/www.html", "http://x/", None),
        ("http://x/www/partner.example", "http://x/", None),
    ],
)
def test_the_address_of_a_host_without_its_scheme_is_external(target, here, reason):
    refused = scope("x").refuse(candidate("Partner", target=target), look("<p>Hello", here))
    assert (refused.reason if refused else None) == reason


@pytest.mark.parametrize("host", ["", " ", "https://a.example", "a.example/x", "*.example", "a b", "user@a", "a:99999"])
def test_malformed_hosts_are_rejected_with_a_message(host):
    with pytest.raises(InvalidInput):
        scope("shop.example", scope_hosts=(host,))


@pytest.mark.parametrize("site", ["127.0.0.1:8000", "localhost:3000", "[::1]:80", "co.uk"])
def test_a_host_without_a_registrable_domain_cannot_have_domain_scope(site):
    with pytest.raises(InvalidInput):
        scope(site, scope="domain")


def test_a_start_page_that_leads_out_of_the_listed_hosts_is_rejected():
    listed = ExploreSettings(scope_hosts=("docs.shop.example",))
    assert Scope.of("docs.shop.example", listed, start="shop.example").site == "docs.shop.example"
    with pytest.raises(InvalidInput, match="leads to"):
        Scope.of("elsewhere.example", listed, start="shop.example")
    assert Scope.of("elsewhere.example", ExploreSettings(), start="shop.example").site == "elsewhere.example"
