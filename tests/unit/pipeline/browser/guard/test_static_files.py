"""Which responses are stored for a run, and how requests of several pages for one file wait for each other."""

import asyncio
from collections import Counter

import pytest

from waygraph.pipeline.browser.guard import static_files
from waygraph.pipeline.browser.guard.static_files import RequestKey, StaticFiles, request_key

KEY = RequestKey("Script", "https://shop.test/app.js", "")
FIRST, SECOND = object(), object()


def files(max_bytes=1 << 20):
    return StaticFiles(max_bytes, Counter())


async def cookies():
    return "session=1"


def request(method="GET", url="https://shop.test/app.js", **headers):
    return {"method": method, "url": url, "headers": headers}


def test_requests_in_cors_mode_have_keys_of_their_own():
    plain, cors = request(), request(Origin="https://shop.test")
    assert request_key("Script", plain) == KEY
    assert request_key("Script", cors) == KEY._replace(origin="https://shop.test")


@pytest.mark.parametrize(
    ("kind", "sent"),
    [
        ("Document", request()),
        ("Media", request()),
        ("XHR", request("POST")),
        ("Fetch", request(Range="bytes=0-9")),
        ("Fetch", request(Authorization="Bearer 1")),
        ("Fetch", request(**{"If-None-Match": '"1"'})),
        ("XHR", request(Pragma="no-cache")),
        ("Image", request("POST")),
        ("Image", request(Range="bytes=0-9")),
        ("Image", request(url="data:image/png;base64,AA")),
        ("Script", request(url="blob:https://shop.test/1")),
    ],
)
def test_other_requests_have_no_key(kind, sent):
    assert request_key(kind, sent) is None


def test_scripts_that_may_get_other_answers_have_keys_of_their_own():
    def key(**headers):
        return request_key("Fetch", request(**headers, Referer="https://shop.test/a", **{"Sec-Fetch-Mode": "cors"}))

    assert key(Accept="text/html") == key(Accept="text/html")
    assert len({key(), key(Accept="text/html"), key(Accept="application/json"), key(**{"X-Tenant": "1"})}) == 4


async def test_answer_to_a_script_is_not_used_after_a_request_that_may_change_data():
    store, key = files(), KEY._replace(kind="Fetch")
    assert await store.find(key, cookies, FIRST) is None
    store.add(key, {}, "[1]", is_base64=False, seconds=60)
    assert await store.find(key, cookies, SECOND) is not None
    store.expect_changes()
    assert await store.find(key, cookies, SECOND) is None
    store.expect_changes()  # while the answer is on its way
    store.add(key, {}, "[2]", is_base64=False, seconds=60)
    assert await store.find(key, cookies, FIRST) is None


async def test_second_page_waits_for_the_response_to_the_first_and_gets_it():
    store = files()
    assert await store.find(KEY, cookies, FIRST) is None
    assert store.awaits(KEY, FIRST)
    waiting = asyncio.ensure_future(store.find(KEY, cookies, SECOND))
    await asyncio.sleep(0)
    assert not waiting.done()
    store.add(KEY, {"content-type": "text/javascript", "content-encoding": "br"}, "let a;", is_base64=False)
    file = await waiting
    assert file is not None
    assert file.fulfilment("7") == {
        "requestId": "7",
        "responseCode": 200,
        "responseHeaders": [
            {"name": "content-type", "value": "text/javascript"},
            {"name": "cache-control", "value": "max-age=86400, immutable"},
        ],
        "body": "bGV0IGE7",
    }


async def test_page_that_is_left_lets_the_next_one_send_its_request():
    store = files()
    await store.find(KEY, cookies, FIRST)
    waiting = asyncio.ensure_future(store.find(KEY, cookies, SECOND))
    await asyncio.sleep(0)
    store.release(FIRST)
    assert await waiting is None
    assert store.awaits(KEY, SECOND)


async def test_response_that_does_not_arrive_is_waited_for_up_to_a_limit(monkeypatch):
    monkeypatch.setattr(static_files, "_MAX_WAIT_S", 0.01)
    store = files()
    await store.find(KEY, cookies, FIRST)
    assert await store.find(KEY, cookies, SECOND) is None
    assert not store.awaits(KEY, SECOND)


async def test_request_whose_response_may_not_be_stored_is_sent_by_each_page_without_waiting():
    store = files()
    await store.find(KEY, cookies, FIRST)
    store.end(KEY, is_storable=False)
    for page in (FIRST, SECOND):
        assert await store.find(KEY, cookies, page) is None
        assert not store.awaits(KEY, page)


async def test_response_that_varies_by_cookie_is_reused_with_the_same_cookies_only():
    store, now = files(), ["lang=en"]

    async def read():
        return now[0]

    await store.find(KEY, read, FIRST)
    store.add(KEY, {"vary": "Cookie"}, "en", is_base64=False)
    stored = await store.find(KEY, read, SECOND)
    assert stored is not None
    # The renderer compares no cookies, so it has to ask again.
    assert {"name": "cache-control", "value": "no-cache"} in stored.headers
    now[0] = "lang=de"
    assert await store.find(KEY, read, SECOND) is None


async def test_least_recently_used_files_are_dropped_beyond_the_limit():
    store = files(max_bytes=3_000)
    keys = [KEY._replace(url=f"https://shop.test/{n}.js") for n in range(3)]
    for key in keys:
        await store.find(key, cookies, FIRST)
        store.add(key, {}, "x" * 1_000, is_base64=True)
    assert await store.find(keys[2], cookies, FIRST) is not None
    assert await store.find(keys[0], cookies, FIRST) is None


async def test_request_of_a_script_waits_for_no_other_and_is_answered_while_the_response_is_fresh(monkeypatch):
    store, key, now = files(), KEY._replace(kind="Fetch"), [100.0]
    monkeypatch.setattr(static_files.time, "monotonic", lambda: now[0])
    assert await store.find(key, cookies, FIRST) is None
    assert await store.find(key, cookies, SECOND) is None
    assert store.awaits(key, FIRST)
    assert not store.awaits(key, SECOND)
    store.add(key, {"cache-control": "max-age=60", "content-length": "2"}, "{}", is_base64=False, seconds=60)
    file = await store.find(key, cookies, SECOND)
    assert file is not None
    assert file.headers == ({"name": "cache-control", "value": "max-age=60"},)
    now[0] = 161.0
    assert await store.find(key, cookies, SECOND) is None
    assert store.awaits(key, SECOND)


async def test_missing_file_is_reported_missing_again():
    store = files()
    await store.find(KEY, cookies, FIRST)
    store.add(KEY, {"content-type": "text/html"}, "Not found", is_base64=False, status=404)
    file = await store.find(KEY, cookies, SECOND)
    assert file is not None
    assert file.fulfilment("7")["responseCode"] == 404
