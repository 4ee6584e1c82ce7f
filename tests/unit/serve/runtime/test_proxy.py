"""The proxy refuses requests beyond a limit or without an application, and always admits health checks."""

from __future__ import annotations

import asyncio

import httpx
import pytest
from starlette.requests import Request
from starlette.responses import PlainTextResponse

from waygraph.core.schemas import MAX_BODY_BYTES, problem_slug
from waygraph.core.settings import ServeSettings, Settings
from waygraph.serve.http.middleware import ANSWER_HEADERS
from waygraph.serve.http.request_bodies import MAX_FORWARDED_BYTES, receive_forwarded
from waygraph.serve.runtime import http_protocol
from waygraph.serve.runtime.app import _environment
from waygraph.serve.runtime.proxy import ALWAYS_ADMITTED, AdmissionMiddleware, NoApplicationMiddleware, middlewares


class Application:
    """Answers a request when the test lets it."""

    def __init__(self) -> None:
        self.let, self.inside = asyncio.Event(), asyncio.Semaphore(0)

    async def __call__(self, scope, receive, send) -> None:
        if scope["path"] not in ALWAYS_ADMITTED:
            self.inside.release()
            await self.let.wait()
        body = await Request(scope, receive_forwarded(scope, receive)).body()
        await PlainTextResponse(f"answered {len(body)}")(scope, receive, send)


def made(app, **settings):
    return AdmissionMiddleware(app, settings=ServeSettings(**settings))


def caller(app, address="127.0.0.1", **settings):
    """A client of a proxy, or of one that exists."""
    proxy = (
        app if isinstance(app, AdmissionMiddleware) else AdmissionMiddleware(app, settings=ServeSettings(**settings))
    )
    return httpx.AsyncClient(transport=httpx.ASGITransport(proxy, client=(address, 1)), base_url="http://localhost")


def slug(answer: httpx.Response) -> str:
    assert answer.headers["content-type"] == "application/problem+json"
    assert answer.headers["x-content-type-options"] == "nosniff"
    return problem_slug(answer.json()["type"])


async def test_requests_beyond_the_limit_are_refused_until_one_is_answered():
    app = Application()
    async with caller(app, max_requests=2) as http:
        first = [asyncio.create_task(http.get("/v1/sites")) for _ in range(2)]
        for _ in first:
            await app.inside.acquire()
        refused = await http.get("/v1/sites")
        assert (refused.status_code, refused.headers["retry-after"], slug(refused)) == (503, "1", "overloaded")
        for path in ALWAYS_ADMITTED:
            assert (await http.post(path, content=b"x" * 100)).text == "answered 0"
        app.let.set()
        assert [(await each).status_code for each in first] == [200, 200]
        assert (await http.get("/v1/sites")).status_code == 200


async def test_the_requests_of_one_caller_leave_slots_to_the_others():
    app = Application()
    proxy = made(app, max_requests=3, max_requests_per_caller=2)
    async with caller(proxy) as one, caller(proxy, "127.0.0.2") as other:
        taken = [asyncio.create_task(one.get("/v1/sites")) for _ in range(2)]
        for _ in taken:
            await app.inside.acquire()
        refused = await one.get("/v1/sites")
        assert (refused.status_code, refused.headers["retry-after"], slug(refused)) == (429, "1", "rate-limited")
        taken.append(asyncio.create_task(other.get("/v1/sites")))
        await app.inside.acquire()
        app.let.set()
        assert [(await each).status_code for each in taken] == [200] * 3
        assert not proxy._by_caller


async def test_with_keys_a_caller_is_a_key_and_an_unknown_one_is_refused_at_once():
    app = Application()
    proxy = made(app, api_keys=("the-key-of-one-caller", "the-key-of-another"), max_requests_per_caller=1)
    async with caller(proxy) as http:
        first = [
            asyncio.create_task(http.get("/v1/sites", headers={"authorization": f"Bearer {key}"}))
            for key in ("the-key-of-one-caller", "the-key-of-another")
        ]
        for _ in first:
            await app.inside.acquire()
        assert (
            await http.get("/v1/sites", headers={"authorization": "Bearer the-key-of-one-caller"})
        ).status_code == 429
        refused = await http.post("/v1/search", content=endless(), headers={"authorization": "Bearer unknown"})
        assert (refused.status_code, refused.headers["www-authenticate"]) == (401, "Bearer")
        assert slug(refused) == "unauthorized"
        app.let.set()
        assert [(await each).status_code for each in first] == [200, 200]


async def endless(started=None):
    """A body whose end does not come."""
    yield b"{"
    if started is not None:
        started.release()
    await asyncio.Event().wait()


async def test_bodies_that_do_not_end_take_no_slot():
    app = Application()
    app.let.set()
    proxy = made(app, max_requests=1, max_requests_per_caller=3)
    async with caller(proxy) as slow, caller(proxy, "127.0.0.2") as http:
        started = asyncio.Semaphore(0)
        waiting = [asyncio.create_task(slow.post("/v1/search", content=endless(started))) for _ in range(3)]
        await asyncio.gather(*(started.acquire() for _ in waiting))
        assert (await http.post("/v1/search", content=b"{}")).text == "answered 2"
        assert (await slow.get("/v1/sites")).status_code == 429
        for each in waiting:
            each.cancel()
        await asyncio.wait(waiting)
        assert (await slow.get("/v1/sites")).status_code == 200


async def test_a_body_that_is_late_is_refused():
    async with caller(Application(), request_seconds=0.05) as http:
        refused = await http.post("/v1/search", content=endless())
        assert (refused.status_code, slug(refused)) == (408, "")


@pytest.mark.parametrize("length", [0, 1, MAX_FORWARDED_BYTES, MAX_FORWARDED_BYTES + 1, MAX_BODY_BYTES])
async def test_a_body_arrives_whole(length):
    app = Application()
    app.let.set()
    async with caller(app) as http:
        assert (await http.post("/v1/search", content=b"x" * length)).text == f"answered {length}"


async def test_a_body_that_is_too_large_is_refused_before_its_end():
    async def growing():
        while True:
            yield b"x" * 100_000

    async with caller(Application()) as http:
        for content in (b"x" * (MAX_BODY_BYTES + 1), growing()):
            refused = await http.post("/v1/search", content=content)
            assert (refused.status_code, slug(refused)) == (413, "")


async def test_a_client_that_does_not_read_keeps_no_slot():
    reading, app = asyncio.Event(), Application()
    app.let.set()
    proxy = made(app, max_requests=1)

    async def send(_):
        await reading.wait()

    async def receive():
        return {"type": "http.request", "body": b"", "more_body": False}

    scope = {"type": "http", "method": "GET", "path": "/v1/sites", "headers": [], "client": ("127.0.0.3", 1)}
    deaf = asyncio.create_task(proxy(scope, receive, send))
    await app.inside.acquire()
    await asyncio.sleep(0)
    async with caller(proxy) as http:
        assert (await http.get("/v1/sites")).status_code == 200
    assert proxy._by_caller == {"127.0.0.3": 1}
    reading.set()
    await deaf
    assert not proxy._by_caller


async def test_the_place_of_a_client_that_goes_is_free():
    proxy = made(Application())

    async def receive():
        return {"type": "http.disconnect"}

    scope = {"type": "http", "method": "POST", "path": "/v1/search", "headers": [], "client": ("127.0.0.1", 1)}
    await proxy(scope, receive, lambda _: pytest.fail("nobody reads an answer"))
    assert (proxy._by_caller, proxy._in_progress) == ({}, 0)


def test_the_proxy_reads_the_limits_and_keys_from_its_environment(monkeypatch):
    serve = ServeSettings(max_requests=7, max_requests_per_caller=5, request_seconds=3, api_keys=("a-key-of-settings",))
    for name, value in _environment(Settings(serve=serve)).items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(http_protocol, "install", lambda: None)
    *_, made = middlewares()
    proxy = made.cls(None, *made.args, **made.kwargs)
    assert proxy._settings == serve
    assert proxy._keys.entry_of("Bearer a-key-of-settings")


def client(answer):
    transport = httpx.ASGITransport(NoApplicationMiddleware(answer))
    return httpx.AsyncClient(transport=transport, base_url="http://service")


async def test_without_an_application_requests_are_to_be_sent_again():
    """What Ray Serve's proxy answers before an application is deployed, and after it was removed."""
    async with client(PlainTextResponse("Path '/v1/sites' not found.", status_code=404)) as http:
        refused = await http.get("/v1/sites")
        assert (refused.status_code, refused.headers["retry-after"]) == (503, "1")
        assert refused.headers["connection"] == "close"
        assert problem_slug(refused.json()["type"]) == "overloaded"
        assert (await http.get("/healthz")).status_code == 404


@pytest.mark.parametrize("status", [200, 404, 500])
async def test_answers_of_the_application_pass_unchanged(status):
    headers = {name.decode(): value.decode() for name, value in ANSWER_HEADERS}
    async with client(PlainTextResponse("ours", status_code=status, headers=headers)) as http:
        answer = await http.get("/v1/sites/other.example")
        assert (answer.status_code, answer.text) == (status, "ours")
