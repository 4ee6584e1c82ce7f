"""How long responses may answer later requests of a run."""

import pytest

from waygraph.pipeline.browser.guard.reuse import FOR_THE_RUN, MAX_FILE_BYTES, reuse_seconds

DATE, OLD = "Sat, 28 Nov 2026 12:00:00 GMT", "Wed, 18 Nov 2026 12:00:00 GMT"
PAGE = {"content-type": "text/html; charset=utf-8", "content-length": "9"}
TEN_DAYS = 10 * 24 * 3600


@pytest.mark.parametrize(
    ("status", "headers"),
    [
        (200, {}),
        (200, {"cache-control": "private, max-age=0", "etag": '"1"'}),
        (200, {"vary": "Accept-Encoding, Cookie, Origin"}),
        (200, {"content-length": str(MAX_FILE_BYTES)}),
        (404, PAGE),
        (410, {}),
    ],
)
def test_static_file_is_reused_for_the_run_and_so_is_a_missing_one(status, headers):
    assert reuse_seconds("Script", status, headers) == FOR_THE_RUN


@pytest.mark.parametrize(
    ("status", "headers"),
    [
        (206, {}),
        (304, {}),
        (403, {}),
        (503, {}),
        (0, {}),
        (200, {"cache-control": "private, No-Store"}),
        (404, {"cache-control": "no-store"}),
        (200, {"vary": "*"}),
        (200, {"vary": "Accept-Encoding, X-Tenant"}),
        (200, PAGE),
        (200, {"content-length": str(MAX_FILE_BYTES + 1)}),
    ],
)
def test_response_that_another_request_may_not_get_is_not_reused(status, headers):
    assert reuse_seconds("Script", status, headers) == 0


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, 0),
        ({"etag": '"1"'}, 0),
        ({"cache-control": "max-age=60"}, 60),
        ({"cache-control": "max-age=60, must-revalidate"}, 60),
        ({"cache-control": "private, Max-Age=60", "age": "15"}, 45),
        ({"cache-control": "max-age=60", "age": "90"}, 0),
        ({"expires": "Sat, 28 Nov 2026 12:02:00 GMT"}, 120),
        ({"expires": "0"}, 0),
        ({"expires": "Sat, 28 Nov 2026 12:02:00 GMT", "date": ""}, 0),
        ({"last-modified": OLD}, TEN_DAYS / 10),
        ({"cache-control": "public, max-age=0", "last-modified": OLD}, TEN_DAYS / 10),
        ({"cache-control": "private, max-age=0", "last-modified": OLD}, 0),
        ({"last-modified": "Thu, 01 Jan 99999999999999999999 00:00:00 GMT"}, 0),
        ({"cache-control": "max-age=\u00b2", "age": "\u00b2"}, 0),
        ({"pragma": "no-cache", "last-modified": OLD}, 0),
        ({"cache-control": "max-age=0, must-revalidate", "last-modified": OLD}, 0),
        ({"cache-control": "no-cache", "last-modified": OLD}, 0),
        ({"cache-control": "no-store, max-age=60"}, 0),
        ({"cache-control": "max-age=60", "vary": "Cookie"}, 0),
        ({"cache-control": "max-age=60", "vary": "Origin, Accept"}, 60),
        ({"cache-control": "max-age=60", "vary": "*"}, 0),
    ],
)
@pytest.mark.parametrize("kind", ["Fetch", "XHR"])
def test_answer_to_a_script_is_reused_as_long_as_http_calls_it_fresh(kind, headers, seconds):
    headers = {"content-type": "text/html", "content-length": "9", "date": DATE, **headers}
    assert reuse_seconds(kind, 200, headers) == pytest.approx(seconds)


def test_answer_without_a_stated_length_may_be_a_stream_and_is_not_read_to_its_end():
    assert reuse_seconds("Fetch", 200, {"cache-control": "max-age=60", "date": DATE}) == 0


def test_page_that_scripts_do_not_find_is_missing_for_the_run_and_a_missing_record_is_not():
    assert reuse_seconds("Fetch", 404, PAGE) == FOR_THE_RUN
    assert reuse_seconds("XHR", 404, {"content-type": "application/json", "content-length": "9"}) == 0
    assert reuse_seconds("Fetch", 404, {**PAGE, "cache-control": "no-cache"}) == 0
