"""What do the tests' own web sites answer?"""

import threading
from pathlib import Path

import httpx
import pytest

from tests.sites.server import FixtureServer, Page


def test_pages_are_found_by_target_then_by_path_and_everything_else_is_404():
    with FixtureServer({"/": "<p>home</p>", "/a?x=1": "one", "/a": "any"}) as site:
        assert httpx.get(site.url).text == "<p>home</p>"
        assert httpx.get(site.at("/a?x=1")).text == "one"
        assert httpx.get(site.at("/a?x=2")).text == "any"
        assert httpx.get(site.at("/b")).status_code == 404
        assert site.paths == ["/", "/a?x=1", "/a?x=2", "/b"]


def test_status_headers_redirects_and_types_are_as_given(tmp_path: Path):
    script = tmp_path / "x.js"
    script.write_text("1")
    pages = {
        "/gone": Page("bye", status=410, headers={"X-Why": "old"}),
        "/r": Page(redirect="/gone"),
        "/x.js": script,
        "/pdf": Page(b"%PDF", content_type="application/pdf"),
    }
    with FixtureServer(pages) as site:
        answer = httpx.get(site.at("/r"), follow_redirects=True)
        assert (answer.status_code, answer.text, answer.headers["x-why"]) == (410, "bye", "old")
        assert [a.status_code for a in answer.history] == [302]
        assert httpx.get(site.at("/x.js")).headers["content-type"] == "text/javascript"
        assert httpx.get(site.at("/pdf")).headers["content-type"] == "application/pdf"


def test_a_held_answer_waits_for_its_event():
    event = threading.Event()
    with FixtureServer({"/": Page("late", hold=event)}) as site:
        answers: list[str] = []
        asking = threading.Thread(target=lambda: answers.append(httpx.get(site.url).text))
        asking.start()
        assert not answers
        event.set()
        asking.join()
        assert answers == ["late"]


def test_closing_the_server_lets_held_answers_go():
    outcome: list[object] = []

    def ask(url: str) -> None:
        try:
            outcome.append(httpx.get(url).status_code)
        except httpx.TransportError as error:
            outcome.append(error)

    with FixtureServer({"/": Page("never", hold=threading.Event(), hold_at_most_s=60)}) as site:
        asking = threading.Thread(target=ask, args=(site.url,))
        asking.start()
        while not site.requests:
            asking.join(0.01)
    asking.join()
    assert len(outcome) == 1


def test_a_dropped_connection_answers_nothing():
    with FixtureServer({"/": Page(drop=True)}) as site, pytest.raises(httpx.RemoteProtocolError):
        httpx.get(site.url)


def test_requests_of_every_method_are_logged_and_state_changing_ones_counted():
    with FixtureServer({"/": lambda request: f"{request.method} {request.form.get('a', '')}"}) as site:
        with httpx.Client() as client:  # one connection: keep-alive survives bodies and HEAD
            assert client.get(site.url).text == "GET "
            assert client.head(site.url).text == ""
            assert client.post(site.url, data={"a": "1"}).text == "POST 1"
            assert client.delete(site.url).text == "DELETE "
        assert [method for method, _ in site.requests] == ["GET", "HEAD", "POST", "DELETE"]
        assert site.mutations == 2


def test_a_url_is_known_only_while_the_server_runs():
    site = FixtureServer({})
    with pytest.raises(RuntimeError, match="not running"):
        _ = site.url
