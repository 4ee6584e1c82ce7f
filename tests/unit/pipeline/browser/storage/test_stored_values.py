"""What a site keeps in a browser: what changes on every load, what a page removed, and what is secret."""

import base64

from waygraph.pipeline.browser.session import PreparedSession
from waygraph.pipeline.browser.storage.secret_values import secret_values
from waygraph.pipeline.browser.storage.stored_values import (
    COOKIES,
    DATABASES,
    LOCAL,
    SESSION,
    cookie_key,
    record_key,
    removed_secrets,
    volatile_keys,
)

ORIGIN = "https://a.example"
RANDOM = "9f86d081884c7d659a2f"


def record(key, store="users"):
    return (DATABASES, record_key(ORIGIN, "app", store, key))


def changed(first, second, later):
    return PreparedSession(None, second, volatile_keys(first, second)).changed_areas(later)


def test_a_record_that_each_load_replaces_is_volatile_but_its_neighbours_are_not():
    first, second = {record("a"): "1", record("user"): "x"}, {record("a"): "2", record("user"): "x"}
    assert changed(first, second, {**second, record("a"): "3"}) == set()
    assert changed(first, second, {record("a"): "3"}) == {DATABASES}
    assert changed(first, second, {**second, record("user"): "y"}) == {DATABASES}


def test_a_store_to_which_each_load_adds_records_is_volatile_as_a_whole():
    user = {record("user"): "x"}
    first, second = {record("1", "log"): "a", **user}, {record("1", "log"): "a", record("2", "log"): "b", **user}
    assert changed(first, second, {**second, record("3", "log"): "c"}) == set()
    assert changed(first, second, {record("1", "log"): "a"}) == {DATABASES}


def cookie(name="sid", value="1", **more):
    return {"name": name, "value": value, "domain": "a.example", "path": "/", "expires": -1, **more}


def state(*cookies, local=(), session=(), records=()):
    items = {
        area: [{"name": name, "value": value} for name, value in found]
        for area, found in (("localStorage", local), ("sessionStorage", session))
    }
    stores = [{"name": "users", "records": list(records)}]
    databases = [{"name": "app", "version": 1, "stores": stores}]
    entry = {"origin": ORIGIN, **items, "indexedDB": databases}
    return {"cookies": list(cookies), "origins": [entry]}


def test_removed_values_that_may_grant_access_are_named():
    given = state(
        cookie(),
        cookie("theme", "dark"),
        cookie("old_session", expires=5.0),
        local=[("accessToken", "x"), ("view", "list")],
        session=[("state", RANDOM)],
        records=[{"key": 1, "value": "x"}],
    )
    assert removed_secrets(given, ORIGIN, {}) == [
        "the cookie 'sid'",
        "'accessToken' in the local storage",
        "'state' in the session storage",
        "'users' in the database 'app'",
    ]
    kept = {
        (COOKIES, cookie_key(cookie())): "2",
        (LOCAL, "accessToken"): "x",
        (SESSION, "state"): "x",
        record("another"): "x",
    }
    assert removed_secrets(given, ORIGIN, kept) == []
    assert removed_secrets(given, ORIGIN, {**kept, (COOKIES, cookie_key(cookie())): ""}) == ["the cookie 'sid'"]
    assert removed_secrets(given, "https://b.example", kept) == []


def test_a_cookie_of_another_partition_is_another_cookie():
    assert cookie_key(cookie()) != cookie_key(cookie(partitionKey="https://b.example"))


def test_secrets_are_all_items_that_a_user_gave_and_what_looks_like_a_secret_in_databases():
    kept = {
        "o": [{"k": "user", "v": {"o": [{"k": "refreshToken", "v": "r-1"}, {"k": "name", "v": "Ann Lee"}]}}],
        "id": 1,
    }
    given = state(
        cookie(value="c-1"),
        local=[("theme", "l-1"), ("app", '{"jwt": "j-1", "cart": "two"}')],
        session=[("x", "s-1")],
        records=[
            {"valueEncoded": kept},
            {"value": {"id": "0b4c2d1e-9f86-4d08-8a1b-c65d0b4c2d1e", "made": RANDOM, "title": "A warm throw"}},
            {"valueEncoded": {"ta": {"k": "ui8", "b": base64.b64encode(b"b-1").decode()}}},
        ],
    )
    found = set(secret_values(given, of_user=True))
    assert found >= {"c-1", "l-1", "j-1", "s-1", "r-1", "b-1", RANDOM}
    assert not found & {"Ann Lee", "A warm throw", "0b4c2d1e-9f86-4d08-8a1b-c65d0b4c2d1e", "two"}
    later = set(secret_values(given, of_user=False))
    assert later >= {"c-1", "j-1", "r-1", RANDOM}
    assert "l-1" not in later
