"""Detection of sessions that have ended."""

import pytest

from waygraph.core.errors import LoggedOut
from waygraph.pipeline.browser.page.snapshot import Snapshot
from waygraph.pipeline.explore.session.login import LoginWatch, check_start_page


def page(url, structure, *, password=False, status=200):
    return Snapshot(
        f"{url} {structure}", url, url, "", "text/html", status, tuple(structure), (), (), capped=False, opened=0,
        password=password,
    )  # fmt: skip


ORDERS = page("http://x/orders", "abcdefgh")
ORDER = page("http://x/orders/1", "abcdefgi")
LOGIN = page("http://x/login?next=/orders", "lmnop", password=True)
LOGIN_2 = page("http://x/login?next=/orders/1", "lmnop", password=True)


def test_the_login_page_in_place_of_two_known_pages_ends_the_run():
    watch = LoginWatch("x", logged_in=True)
    assert watch.check(ORDERS, LOGIN) is True
    with pytest.raises(LoggedOut, match=r"x shows its login page .*http://x/orders, http://x/orders/1") as raised:
        watch.check(ORDER, LOGIN_2)
    assert "waygraph login" in raised.value.hint


def test_the_same_page_twice_counts_once():
    watch = LoginWatch("x", logged_in=True)
    assert watch.check(ORDERS, LOGIN)
    assert watch.check(ORDERS, LOGIN)


def test_content_in_between_resets_the_count():
    watch = LoginWatch("x", logged_in=True)
    for _ in range(5):
        assert watch.check(ORDERS, LOGIN)
        assert not watch.check(ORDER, ORDER)


def test_a_login_form_in_place_of_content_under_the_same_url_is_suspicious():
    assert LoginWatch("x", logged_in=True).is_suspicious(ORDERS, page(ORDERS.url, "lmnop", password=True))


def test_a_401_in_place_of_content_is_suspicious():
    assert LoginWatch("x", logged_in=True).is_suspicious(ORDERS, page(ORDERS.url, "z", status=401))


def test_pages_that_always_had_a_password_field_and_small_changes_are_not_suspicious():
    watch = LoginWatch("x", logged_in=True)
    settings = page("http://x/settings", "abcdefgk", password=True)
    assert not watch.is_suspicious(settings, page("http://x/settings", "abcdefgkl", password=True))
    assert not watch.is_suspicious(ORDERS, page(ORDERS.url, "abcdefgh1", password=True))
    assert not watch.is_suspicious(None, LOGIN), "a page never seen before may be the login page of something else"
    assert not watch.is_suspicious(ORDERS, page("http://x/other", "xyz"))


def test_the_session_of_a_visitor_cannot_end():
    watch = LoginWatch("x", logged_in=False)
    assert not any(watch.check(known, LOGIN) for known in (ORDERS, ORDER, ORDERS, ORDER))


def test_an_expired_storage_state_is_rejected_at_the_start():
    check_start_page("http://x/orders", LOGIN, logged_in=False)
    check_start_page("http://x/orders", ORDERS, logged_in=True)
    check_start_page(LOGIN.url, LOGIN, logged_in=True)
    with pytest.raises(LoggedOut, match="expired"):
        check_start_page("http://x/orders", LOGIN, logged_in=True)
