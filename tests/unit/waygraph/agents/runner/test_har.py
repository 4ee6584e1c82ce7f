"""No credential is left in an archive of requests, and what scorers read is."""

import json

import pytest

from waygraph.agents.runner.har import changes_data, redact_har


def archive(**request):
    entry = {"request": {"method": "GET", "url": "http://a.example/", **request}, "response": {"status": 200}}
    return {
        "log": {"version": "1.2", "pages": [{"id": "p", "title": "http://u:hidden1@a.example/"}], "entries": [entry]}
    }


def request_of(document):
    return document["log"]["entries"][0]["request"]


def header(name, value):
    return {"name": name, "value": value}


def multipart(password):
    fields = {"password": password, "user": "ann"}
    parts = [f'Content-Disposition: form-data; name="{name}"\r\n\r\n{value}\r\n' for name, value in fields.items()]
    return "".join(f"--xx\r\n{part}" for part in parts) + "--xx--\r\n"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (header("Authorization", "Basic c2VjcmV0"), "***"),
        (header("X-Api-Key", "hidden1"), "***"),
        (header("X-CSRF-Token", "hidden1"), "***"),
        (header("Cookie", "sid=hidden1; theme=dark; mage-messages=[x]"), "sid=***; theme=***; mage-messages=[x]"),
        (header("Set-Cookie", "sid=hidden1; Path=/\ncart=hidden2"), "sid=***; Path=/\ncart=***"),
        (header("Set-Cookie", "hidden1"), "***"),
        (header("Referer", "http://u:hidden1@a.example/?token=hidden2"), "http://***@a.example/?token=***"),
        (header("Accept", "text/html"), "text/html"),
        (header("Author", "Ann"), "Ann"),
        (header("Authors", "Ann"), "Ann"),
    ],
)
def test_headers_that_grant_access_are_masked(before, after):
    document = redact_har(archive(headers=[before]))
    assert request_of(document)["headers"] == [{"name": before["name"], "value": after}]


@pytest.mark.parametrize(
    ("mime", "text", "after"),
    [
        (
            "application/x-www-form-urlencoded",
            "login[password]=hidden1&user=ann",
            "login%5Bpassword%5D=%2A%2A%2A&user=ann",
        ),
        ("application/x-www-form-urlencoded", "q=a+b&c", "q=a+b&c"),
        (
            "application/json; charset=utf-8",
            '{"a": [{"apiKey": "hidden1", "b": 1}]}',
            '{"a": [{"apiKey": "***", "b": 1}]}',
        ),
        ("application/json", '{"a":1}', '{"a":1}'),
        ("application/json", "password=hidden1", "***"),
        ("multipart/form-data; boundary=xx", multipart("hidden1"), multipart("***")),
        ("multipart/form-data", "hidden1", "***"),
        ("text/plain", "hello", "hello"),
    ],
)
def test_secret_fields_of_bodies_are_masked_and_other_bodies_stay_byte_for_byte(mime, text, after):
    document = redact_har(archive(postData={"mimeType": mime, "text": text}))
    assert request_of(document)["postData"]["text"] == after


def test_nothing_secret_is_left_anywhere():
    secret = {
        "url": "http://u:hidden1@a.example/?session_id=hidden2&q=1",
        "queryString": [header("session_id", "hidden2"), header("q", "1")],
        "cookies": [header("sid", "hidden3")],
        "postData": {"mimeType": "x/y", "text": "", "params": [header("password", "hidden4"), header("a", "b")]},
    }
    document = archive(**secret)
    document["log"]["entries"][0]["response"] = {
        "status": 302,
        "headers": [header("Location", "/next?token=hidden5")],
        "cookies": [header("sid", "hidden6"), header("mage-messages", "added")],
        "redirectURL": "/next?token=hidden5",
    }
    redacted = redact_har(document)
    assert "hidden" not in json.dumps(redacted)
    assert request_of(redacted)["queryString"] == [header("session_id", "***"), header("q", "1")]
    assert request_of(redacted)["postData"]["params"] == [header("password", "***"), header("a", "b")]
    assert redacted["log"]["entries"][0]["response"]["cookies"][1] == header("mage-messages", "added")
    assert "hidden6" in json.dumps(document)  # the argument is not changed


@pytest.mark.parametrize(("method", "changes"), [("GET", False), ("HEAD", False), ("POST", True), ("DELETE", True)])
def test_requests_that_may_change_data_are_recognised_by_their_method(method, changes):
    assert changes_data(archive(method=method)) is changes
