"""When does a site that was logged in look logged out?"""

import pytest

from pipeline.browser.snapshot import Snapshot
from pipeline.explore.login import LoginWatch, check_start
from waygraph.errors import LoggedOut


def page(url, structure, *, password=False, status=200):
    return Snapshot(
        f"{url} {structure}", url, url, "", "text/html", status, tuple(structure), (), (), capped=False, opened=0,
        password=password,
    )  # fmt: skip


ORDERS = page("http://x/orders", "abcdefgh")
ORDER = page("http://x/orders/1", "abcdefgi")
LOGIN = page("http://x/login?next=/orders", "lmnop", password=True)
LOGIN_2 = page("http://x/login?next=/orders/1", "lmnop", password=True)


def test_two_known_pages_that_turn_into_the_login_page_end_the_run():
    watch = LoginWatch("x", logged_in=True)
    assert watch.check(ORDERS, LOGIN) is True
    with pytest.raises(LoggedOut, match=r"x shows its login page .*http://x/orders, http://x/orders/1") as raised:
        watch.check(ORDER, LOGIN_2)
    assert "waygraph login" in raised.value.hint


def test_the_same_page_twice_is_one_suspicion():
    watch = LoginWatch("x", logged_in=True)
    assert watch.check(ORDERS, LOGIN)
    assert watch.check(ORDERS, LOGIN)


def test_content_in_between_takes_the_suspicion_away():
    watch = LoginWatch("x", logged_in=True)
    for _ in range(5):
        assert watch.check(ORDERS, LOGIN)
        assert not watch.check(ORDER, ORDER)


def test_a_login_form_in_place_of_content_under_the_same_url_is_suspicious():
    assert LoginWatch("x", logged_in=True).suspicious(ORDERS, page(ORDERS.url, "lmnop", password=True))


def test_a_refusal_in_place_of_content_is_suspicious():
    assert LoginWatch("x", logged_in=True).suspicious(ORDERS, page(ORDERS.url, "z", status=401))


def test_pages_that_always_had_a_password_field_and_small_changes_are_not():
    watch = LoginWatch("x", logged_in=True)
    settings = page("http://x/settings", "abcdefgk", password=True)
    assert not watch.suspicious(settings, page("http://x/settings", "abcdefgkl", password=True))
    assert not watch.suspicious(ORDERS, page(ORDERS.url, "abcdefgh1", password=True))
    assert not watch.suspicious(None, LOGIN), "a page never seen before may be the login page of something else"
    assert not watch.suspicious(ORDERS, page("http://x/other", "xyz"))


def test_a_visitor_has_nothing_to_lose():
    watch = LoginWatch("x", logged_in=False)
    assert not any(watch.check(known, LOGIN) for known in (ORDERS, ORDER, ORDERS, ORDER))


def test_a_storage_state_that_has_expired_is_noticed_at_the_start():
    check_start("http://x/orders", LOGIN, logged_in=False)
    check_start("http://x/orders", ORDERS, logged_in=True)
    check_start(LOGIN.url, LOGIN, logged_in=True)
    with pytest.raises(LoggedOut, match="expired"):
        check_start("http://x/orders", LOGIN, logged_in=True)
