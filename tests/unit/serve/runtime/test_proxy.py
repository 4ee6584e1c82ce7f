"""The proxy refuses requests beyond a limit or without an application, and always admits health checks."""

from __future__ import annotations

import asyncio

import httpx
import pytest
from starlette.responses import PlainTextResponse

from waygraph.core.schemas import problem_slug
from waygraph.serve.http.middleware import ANSWER_HEADERS
from waygraph.serve.runtime.proxy import AdmissionMiddleware, NoApplicationMiddleware, middlewares


async def test_requests_beyond_the_limit_are_refused_until_one_is_answered():
    let, inside = asyncio.Event(), asyncio.Semaphore(0)

    async def app(scope, receive, send):
        if scope["path"] != "/healthz":
            inside.release()
            await let.wait()
        await PlainTextResponse("answered")(scope, receive, send)

    transport = httpx.ASGITransport(AdmissionMiddleware(app, max_requests=2))
    async with httpx.AsyncClient(transport=transport, base_url="http://service") as http:
        first = [asyncio.create_task(http.get("/v1/sites")) for _ in range(2)]
        for _ in first:
            await inside.acquire()
        refused = await http.get("/v1/sites")
        assert refused.status_code == 503
        assert refused.headers["retry-after"] == "1"
        assert problem_slug(refused.json()["type"]) == "overloaded"
        assert (await http.get("/healthz")).text == "answered"
        let.set()
        assert [(await each).status_code for each in first] == [200, 200]
        assert (await http.get("/v1/sites")).status_code == 200


def test_the_proxy_reads_the_limit_from_its_environment(monkeypatch):
    monkeypatch.setenv("WAYGRAPH_SERVE__MAX_REQUESTS", "7")
    *_, made = middlewares()
    assert made.cls(None, *made.args, **made.kwargs)._max_requests == 7


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
