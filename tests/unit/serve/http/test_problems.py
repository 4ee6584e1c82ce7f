"""Errors of the service are problem details, whatever their cause."""

from __future__ import annotations

from typing import Any

import httpx
import pytest
from fastapi import FastAPI
from pydantic import BaseModel

from waygraph.core.errors import (
    EncoderMismatch,
    NoPath,
    NotFound,
    StoreError,
    Unauthorized,
    WaygraphError,
    error_class_for,
)
from waygraph.core.schemas import MAX_BODY_BYTES, Problem, problem_slug
from waygraph.core.settings import ServeSettings
from waygraph.serve.http import problems
from waygraph.serve.http.keys import ApiKeys
from waygraph.serve.http.middleware import RequestMiddleware
from waygraph.serve.telemetry.metrics import Metrics

KEY = "a-key-of-these-tests"
ANOTHER_KEY = "another-key-of-these"


class Order(BaseModel):
    amount: int


@pytest.fixture
def app() -> FastAPI:
    app = FastAPI()
    problems.install(app)
    settings = ServeSettings()
    app.add_middleware(RequestMiddleware, settings=settings, keys=ApiKeys(settings), metrics=Metrics())

    @app.get("/raise/{slug}")
    async def fail(slug: str) -> None:
        kind = error_class_for(slug)
        if kind is None:
            raise KeyError("a secret of the implementation")
        raise kind("What happened.", hint="What to do.")

    @app.post("/orders")
    async def order(wanted: Order) -> int:
        return wanted.amount

    return app


async def ask(app: FastAPI, method: str, path: str, **options: Any) -> httpx.Response:
    transport = httpx.ASGITransport(app)
    async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as http:
        return await http.request(method, path, **options)


def problem_of(response: httpx.Response) -> Problem:
    assert response.headers["content-type"] == "application/problem+json"
    problem = Problem.model_validate_json(response.content)
    assert problem.status == response.status_code
    return problem


@pytest.mark.parametrize("kind", [NotFound, NoPath, EncoderMismatch, StoreError, Unauthorized])
async def test_an_expected_error_has_its_status_type_and_hint(app: FastAPI, kind: type[WaygraphError]) -> None:
    response = await ask(app, "GET", f"/raise/{kind.slug}")
    problem = problem_of(response)
    assert response.status_code == kind.http_status
    assert problem_slug(problem.type) == kind.slug
    assert (problem.title, problem.detail, problem.hint) == (kind.title, "What happened.", "What to do.")
    assert problem.instance == f"/raise/{kind.slug}"


async def test_an_unexpected_error_is_a_problem_without_internal_details(app: FastAPI) -> None:
    response = await ask(app, "GET", "/raise/anything")
    assert problem_of(response).status == 500
    assert "secret" not in response.text


async def test_an_unknown_path_is_a_problem(app: FastAPI) -> None:
    problem = problem_of(await ask(app, "GET", "/nowhere"))
    assert (problem.status, problem_slug(problem.type)) == (404, "not-found")


async def test_a_wrong_method_is_a_problem_that_keeps_the_allow_header(app: FastAPI) -> None:
    response = await ask(app, "GET", "/orders")
    assert problem_of(response).status == 405
    assert response.headers["allow"] == "POST"


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b'{"amount": "many"}', b"\xff\xfe"])
async def test_a_body_that_does_not_fit_is_a_problem_that_names_the_field(app: FastAPI, body: bytes) -> None:
    response = await ask(app, "POST", "/orders", content=body, headers={"content-type": "application/json"})
    problem = problem_of(response)
    assert problem.status in {400, 422}
    assert problem.detail


async def test_a_body_with_a_too_large_content_length_is_refused_unread(app: FastAPI) -> None:
    response = await ask(app, "POST", "/orders", content=b"x" * (MAX_BODY_BYTES + 1))
    assert problem_of(response).status == 413


async def test_a_chunked_body_that_grows_too_large_is_refused(app: FastAPI) -> None:
    async def endless() -> Any:
        for _ in range(MAX_BODY_BYTES // 1_000 + 2):
            yield b"x" * 1_000

    response = await ask(app, "POST", "/orders", content=endless(), headers={"content-type": "application/json"})
    assert problem_of(response).status == 413


async def test_answers_are_never_sniffed_as_another_type(app: FastAPI) -> None:
    assert (await ask(app, "POST", "/orders", json={"amount": 3})).headers["x-content-type-options"] == "nosniff"


@pytest.fixture
def guarded() -> FastAPI:
    app = FastAPI()
    problems.install(app)
    settings = ServeSettings(api_keys=(KEY, ANOTHER_KEY))
    app.add_middleware(RequestMiddleware, settings=settings, keys=ApiKeys(settings), metrics=Metrics())

    @app.get("/healthz")
    async def healthz() -> str:
        return "ok"

    @app.get("/v1/sites")
    async def sites() -> list[str]:
        return []

    return app


@pytest.mark.parametrize(
    "authorization",
    [None, "", "Bearer", "Bearer ", "Bearer wrong", f"Basic {KEY}", KEY, f"Bearer {KEY}x", f"Bearer {KEY[:-1]}"],
)
async def test_unknown_keys_are_rejected_below_v1(guarded: FastAPI, authorization: str | None) -> None:
    headers = {} if authorization is None else {"authorization": authorization}
    for path in ("/v1/sites", "/v1/nowhere", "/v1"):
        response = await ask(guarded, "GET", path, headers=headers)
        assert problem_slug(problem_of(response).type) == "unauthorized"
        assert response.status_code == 401
        assert response.headers["www-authenticate"] == "Bearer"


@pytest.mark.parametrize(
    "authorization", [f"Bearer {KEY}", f"bearer {KEY}", f"Bearer {ANOTHER_KEY}", f"Bearer  {KEY} "]
)
async def test_any_of_the_keys_is_accepted(guarded: FastAPI, authorization: str) -> None:
    assert (await ask(guarded, "GET", "/v1/sites", headers={"authorization": authorization})).status_code == 200


async def test_health_needs_no_key(guarded: FastAPI) -> None:
    assert (await ask(guarded, "GET", "/healthz")).status_code == 200


def test_keys_are_kept_as_digests_only() -> None:
    keys = ApiKeys(ServeSettings(api_keys=(KEY,)))
    assert KEY not in repr(vars(keys))
