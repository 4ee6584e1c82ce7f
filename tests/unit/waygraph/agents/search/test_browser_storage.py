"""What a site keeps in the browser: which values are recorded, and what sets them back."""

from hypothesis import given
from hypothesis import strategies as st

from waygraph.agents.search.browser_storage import recorded_storage, storage_change
from waygraph.agents.search.tree import BrowserStorage, StoredCookie

ORIGIN = "http://a.example"


def page(local=None, session=None, origin=ORIGIN):
    return {"url": f"{origin}/", "origin": origin, "local": local or {}, "session": session or {}}


def raw_cookie(name, value, **more):
    about = {"domain": "a.example", "path": "/", "expires": -1, "secure": False, "httpOnly": False, "sameSite": "Lax"}
    return {"name": name, "value": value, **about, **more}


def cookie(name, value):
    return StoredCookie(name=name, value=value, domain="a.example", path="/", expires=-1, secure=False, same_site="Lax")


def test_settings_are_recorded():
    stored = recorded_storage(page({"theme": "dark"}, {"open": "filters, dates"}), [raw_cookie("folded", "1")])
    assert (stored.local, stored.session) == ({"theme": "dark"}, {"open": "filters, dates"})
    assert [(each.name, each.value) for each in stored.cookies] == [("folded", "1")]
    assert stored.withheld == []


def test_what_may_grant_access_is_withheld():
    values = {
        "access_token": "abc",
        "user": '{"jwt": "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkw"}',
        "id": "0b4c2d1e-9f86-4d08-8a1b-c65d0b4c2d1e",
        "copy": "x" * 2_000,
    }
    cookies = [raw_cookie("sid", "1"), raw_cookie("view", "list", httpOnly=True), raw_cookie("csrftoken", "abc")]
    stored = recorded_storage(page(values, values), cookies)
    assert (stored.local, stored.session, stored.cookies) == ({}, {}, [])
    assert len(stored.withheld) == 2 * len(values) + len(cookies)
    assert not any(value in stored.model_dump_json() for value in values.values())


def test_what_is_withheld_stays_as_it_is():
    before = recorded_storage(page({"note": "short"}), [raw_cookie("view", "list"), raw_cookie("sid", "1")])
    later = recorded_storage(page({"note": "long" * 500, "access_token": "abc"}), [raw_cookie("sid", "2")])
    change = storage_change(later, before)
    assert [each.name for each in change.cookies] == ["view"]
    assert (change.dropped, change.local) == ((), {})


NAMES = st.dictionaries(st.sampled_from("abcd"), st.sampled_from(["0", "1", "dark"]))


def kept(local, cookies=(), origin=ORIGIN):
    jar = [cookie(*each) for each in dict(cookies).items()]
    return BrowserStorage(url=f"{origin}/", origin=origin, local=local, cookies=jar)


def test_local_storage_of_another_origin_is_left_alone():
    assert storage_change(kept({"a": "1"}, origin="http://b.example"), kept({"b": "1"})).local == {}


@given(NAMES, NAMES, NAMES, NAMES)
def test_the_change_makes_the_present_values_those_that_were_recorded(local, cookies, local_then, cookies_then):
    change = storage_change(kept(local, cookies), kept(local_then, cookies_then))
    after = {name: value for name, value in {**local, **change.local}.items() if value is not None}
    dropped = {each.name for each in change.dropped}
    jar = {name: value for name, value in cookies.items() if name not in dropped}
    jar |= {each.name: each.value for each in change.cookies}
    assert (after, jar) == (local_then, cookies_then)
    assert set(change.local) == {name for name in local | local_then if local.get(name) != local_then.get(name)}
