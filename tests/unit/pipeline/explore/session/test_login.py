"""Detection of sessions that have ended."""

from dataclasses import replace

import pytest

from tests.sites.static_pages import look
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


GIVEN = {"cookies": [], "origins": []}


def after_login(url, *, account="", password=False):
    return {**GIVEN, "signedIn": {"url": url, "account": account, "password": password}}


def test_an_expired_storage_state_is_rejected_at_the_start():
    assert check_start_page("http://x/orders", LOGIN, None) == ""
    assert check_start_page("http://x/orders", ORDERS, GIVEN) == ""
    with pytest.raises(LoggedOut, match="expired"):
        check_start_page("http://x/orders", LOGIN, GIVEN)


def shown(url, *, password=False, title=""):
    return replace(page(url, "abc", password=password), title=title)


@pytest.mark.parametrize(
    ("requested", "snapshot", "given", "removed", "says"),
    [
        ("http://x/home", shown("http://x/home", password=True), GIVEN, (), "it shows a password field"),
        ("http://x/", shown("http://x/users/sign_in"), GIVEN, (), "it leads to http://x/users/sign_in"),
        ("http://x/", shown("http://x/#/login"), GIVEN, (), "it leads to http://x/#/login"),
        (
            "http://x/",
            shown("http://x/", title="Welcome"),
            after_login("http://x/", account="ann"),
            (),
            "name of the acc",
        ),
        ("http://x/", shown("http://x/"), GIVEN, ("the cookie 'sid'",), "it removed what may be the login: the cookie"),
    ],
)
def test_a_start_page_that_does_not_look_signed_in_is_suspicious(requested, snapshot, given, removed, says):
    warning = check_start_page(requested, snapshot, given, removed)
    assert says in warning
    assert "waygraph login" in warning
    assert check_start_page(requested, snapshot, None, removed) == ""


@pytest.mark.parametrize(
    ("requested", "snapshot", "given"),
    [
        ("http://x/", shown("http://x/", password=True), after_login("http://x/", password=True)),
        ("http://x/login", shown("http://x/login"), GIVEN),
        ("http://x/", shown("http://x/blog/login-with-passkeys"), GIVEN),
        ("http://x/", shown("http://x/", title="Hello Ann"), after_login("http://x/", account="ann")),
        ("http://x/help", shown("http://x/help"), after_login("http://x/", account="ann")),
    ],
)
def test_a_start_page_that_shows_what_it_showed_after_the_login_is_not_suspicious(requested, snapshot, given):
    assert check_start_page(requested, snapshot, given) == ""


SIGNED_IN = look("<title>Start</title><a href='/orders'>Orders</a><a href='/me'>Ann</a>", "http://x/")
VISITOR = look("<title>Start</title><a href='/orders'>Orders</a><a href='/login'>Sign in</a>", "http://x/")


@pytest.mark.parametrize(
    ("requested", "shown", "expected"),
    [
        ("http://x/orders", LOGIN, True),
        ("http://x/orders", look("<h1>Sign in</h1>", "http://x/sso?back=/orders"), True),
        ("http://x/news", look("<h1>News</h1><a href='/users/sign_in'>Sign in</a>", "http://x/news"), True),
        ("http://x/orders", page("http://x/orders", "z", status=401), True),
        ("http://x/login", LOGIN, False),
        ("http://x/orders", ORDERS, False),
        ("http://x/settings", page("http://x/settings", "ab", password=True), True),  # the start page tells
        ("http://x/app#/orders", page("http://x/app#/login", "ab", password=True), True),
        ("http://x/old", look("<h1>New</h1>", "http://x/new"), False),
    ],
)
def test_a_page_that_visitors_may_see_is_suspicious_though_it_was_not_loaded_before(requested, shown, expected):
    assert LoginWatch("x", logged_in=True, start=SIGNED_IN).may_be_signed_out(requested, shown) == expected
    assert not LoginWatch("x", logged_in=False, start=SIGNED_IN).may_be_signed_out(requested, shown)


@pytest.mark.parametrize("again", [VISITOR, LOGIN, page("http://x/", "z", status=401)])
def test_a_session_has_ended_if_the_start_page_is_what_visitors_see(again):
    watch = LoginWatch("x", logged_in=True, start=SIGNED_IN)
    with pytest.raises(LoggedOut, match=r"shows http://x/login.* for http://x/orders") as raised:
        watch.check_start("http://x/orders", LOGIN, again)
    assert "--resume" in raised.value.hint


def test_a_session_goes_on_if_the_start_page_is_as_before():
    watch = LoginWatch("x", logged_in=True, start=SIGNED_IN)
    watch.check_start("http://x/admin", LOGIN, SIGNED_IN)
    watch.check_start("http://x/admin", LOGIN, look("<title>Start</title><a href='/me'>Ann</a><p>News", "http://x/"))


def test_a_page_that_offers_a_login_which_it_did_not_before_is_suspicious_and_does_not_end_the_run_by_itself():
    watch = LoginWatch("x", logged_in=True, start=SIGNED_IN)
    for number in range(5):
        news = look("<h1>News</h1>", f"http://x/news/{number}")
        assert watch.check(news, look("<h1>News</h1><a href='/login'>Sign in</a>", f"http://x/news/{number}"))
        assert watch.take_unchecked() is not None
    assert not watch.check(VISITOR, VISITOR)


def test_a_suspicious_page_on_the_way_to_a_state_is_checked_once():
    watch = LoginWatch("x", logged_in=True, start=SIGNED_IN)
    assert watch.check(ORDERS, LOGIN)
    assert (watch.take_unchecked(), watch.take_unchecked()) == (LOGIN, None)


def test_a_session_that_goes_on_clears_the_doubts_and_its_login_links_are_no_sign():
    watch = LoginWatch("x", logged_in=True, start=SIGNED_IN, in_a_row=2)
    sudo = look("<h1>Confirm</h1><a href='/login'>Other account</a><input type=password>", "http://x/sudo")
    assert watch.check(ORDERS, LOGIN)
    watch.check_start("http://x/keys", sudo, SIGNED_IN)
    assert watch.check(ORDERS, LOGIN)  # would be the second in a row
    news = look("<h1>News</h1><a href='/login'>Other account</a>", "http://x/news")
    assert not watch.may_be_signed_out("http://x/news", news)
