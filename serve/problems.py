"""How does the service say that something went wrong? RFC 9457 problem details, for every kind of error."""

from __future__ import annotations

import logging
import math
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse

from waygraph.errors import InvalidInput, NotFound, Superseded, WaygraphError
from waygraph.schemas import Problem, problem_type

MEDIA_TYPE = "application/problem+json"

log = logging.getLogger("ray.serve.waygraph")

#: More validation errors than this help nobody.
MAX_REPORTED_FIELDS = 5


def problem(
    error: WaygraphError, *, instance: str = "", extensions: Mapping[str, object] | None = None
) -> JSONResponse:
    """Turn an expected error into a response; `extensions` are further members of the problem (RFC 9457, 3.2)."""
    body = Problem(
        type=problem_type(error.slug),
        title=error.title,
        status=error.http_status,
        detail=error.message,
        hint=error.hint,
        instance=instance,
    )
    return JSONResponse(
        {**body.model_dump(), **(extensions or {})},
        status_code=error.http_status,
        media_type=MEDIA_TYPE,
        headers=_headers(error),
    )


def _headers(error: WaygraphError) -> dict[str, str]:
    headers = {"WWW-Authenticate": "Bearer"} if error.http_status == HTTPStatus.UNAUTHORIZED else {}
    if error.after_s:
        headers["Retry-After"] = str(math.ceil(error.after_s))
    return headers


def plain_problem(
    status: int, detail: str, *, hint: str = "", instance: str = "", headers: Mapping[str, str] | None = None
) -> JSONResponse:
    """Make a problem that says no more than its HTTP status (`about:blank`, RFC 9457, 4.2.1)."""
    body = Problem(
        type="about:blank", title=HTTPStatus(status).phrase, status=status, detail=detail, hint=hint, instance=instance
    )
    return JSONResponse(body.model_dump(), status_code=status, media_type=MEDIA_TYPE, headers=dict(headers or {}))


def unexpected(error: Exception, *, instance: str) -> JSONResponse:
    """Log an error that nobody foresaw, and answer without telling the caller about our insides."""
    log.error("%s failed unexpectedly", instance, exc_info=error)
    return problem(
        WaygraphError("The service failed on this request.", hint="Its log has the details."), instance=instance
    )


async def _on_waygraph_error(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, WaygraphError)  # noqa: S101 - registered for nothing else
    if error.http_status >= HTTPStatus.INTERNAL_SERVER_ERROR:
        log.warning("%s: %s", request.url.path, error)
    answer = problem(error, instance=request.url.path)
    if isinstance(error, Superseded) and (old := request.path_params.get("node_id")):
        answer.headers["Location"] = request.url.path.replace(f"/{old}", f"/{error.successor}", 1)
    return answer


async def _on_validation_error(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, RequestValidationError)  # noqa: S101 - registered for nothing else
    fields = [
        {"field": ".".join(str(piece) for piece in item["loc"] if piece != "body") or "body", "problem": item["msg"]}
        for item in error.errors()
    ]
    shown = "; ".join(f"{item['field']}: {item['problem']}" for item in fields[:MAX_REPORTED_FIELDS])
    invalid = InvalidInput(f"The request is not valid: {shown}.", hint="GET /openapi.json describes each request.")
    return problem(invalid, instance=request.url.path, extensions={"errors": fields[:MAX_REPORTED_FIELDS]})


async def _on_http_error(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, HTTPException)  # noqa: S101 - registered for nothing else
    path = request.url.path
    if error.status_code == HTTPStatus.NOT_FOUND:
        nowhere = NotFound(f"There is nothing at {path}.", hint="GET /openapi.json lists what there is.")
        return problem(nowhere, instance=path)
    return plain_problem(error.status_code, str(error.detail), instance=path, headers=error.headers)


def install(app: FastAPI) -> None:
    """Make every error of `app` a problem."""
    app.add_exception_handler(WaygraphError, _on_waygraph_error)
    app.add_exception_handler(RequestValidationError, _on_validation_error)
    app.add_exception_handler(HTTPException, _on_http_error)


def describe(schema: dict[str, Any], *, with_keys: bool) -> dict[str, Any]:
    """Say in an OpenAPI document what FastAPI does not know: every error is a problem, and `/v1` may need a key."""
    components = schema.setdefault("components", {})
    schemas: dict[str, Any] = components.setdefault("schemas", {})
    for name in ("HTTPValidationError", "ValidationError"):
        schemas.pop(name, None)
    schemas["Problem"] = Problem.model_json_schema(ref_template="#/components/schemas/{model}")
    if with_keys:
        components["securitySchemes"] = {"apiKey": {"type": "http", "scheme": "bearer"}}
    error = {
        "description": "A problem (RFC 9457).",
        "content": {MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}}},
    }
    for path, operations in schema["paths"].items():
        for operation in operations.values():
            responses: dict[str, Any] = operation["responses"]
            responses.pop("422", None)
            responses["default"] = error
            if with_keys and path.startswith("/v1"):
                operation["security"] = [{"apiKey": []}]
    return schema
