"""Error answers: RFC 9457 problem details for every kind of error."""

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

from waygraph.core.errors import InvalidInput, NotFound, Superseded, WaygraphError, not_mapped
from waygraph.core.schemas import Problem, problem_type

MEDIA_TYPE = "application/problem+json"

log = logging.getLogger("ray.serve.waygraph")

#: Most validation errors that an answer names.
MAX_REPORTED_FIELDS = 5
#: Longest name of a field in an answer, in characters.
MAX_FIELD_CHARS = 200


def problem(
    error: WaygraphError, *, instance: str = "", extensions: Mapping[str, object] | None = None
) -> JSONResponse:
    """Return the response for an expected error.

    Parameters
    ----------
    error
        The error.
    instance
        Path of the request.
    extensions
        Further members of the problem (RFC 9457, 3.2).

    Returns
    -------
    JSONResponse
        The problem, with `WWW-Authenticate` and `Retry-After` headers where they apply.
    """
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
    if error.retry_after_s:
        headers["Retry-After"] = str(math.ceil(error.retry_after_s))
    return headers


def plain_problem(
    status: int, detail: str, *, hint: str = "", instance: str = "", headers: Mapping[str, str] | None = None
) -> JSONResponse:
    """Return a problem whose type is its HTTP status (`about:blank`, RFC 9457, 4.2.1)."""
    body = Problem(
        type="about:blank", title=HTTPStatus(status).phrase, status=status, detail=detail, hint=hint, instance=instance
    )
    return JSONResponse(body.model_dump(), status_code=status, media_type=MEDIA_TYPE, headers=dict(headers or {}))


def unexpected(error: Exception, *, instance: str) -> JSONResponse:
    """Log an unexpected error, and return a response without internal details."""
    log.error("%s failed unexpectedly", instance, exc_info=error)
    return problem(
        WaygraphError("The service failed on this request.", hint="Its log has the details."), instance=instance
    )


async def _on_waygraph_error(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, WaygraphError)  # noqa: S101 - registered for this type only
    if isinstance(error, NotFound) and error.site:
        error = not_mapped(error.site)  # without the store's location and its other sites
    if error.http_status >= HTTPStatus.INTERNAL_SERVER_ERROR:
        log.warning("%s: %s", request.url.path, error)
    answer = problem(error, instance=request.url.path)
    if isinstance(error, Superseded) and (node_id := request.path_params.get("node_id")):
        answer.headers["Location"] = request.url.path.replace(f"/{node_id}", f"/{error.successor}", 1)
    return answer


async def _on_validation_error(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, RequestValidationError)  # noqa: S101 - registered for this type only
    fields = [
        # A name may be the caller's own, of any length.
        {
            "field": (".".join(str(part) for part in item["loc"] if part != "body") or "body")[:MAX_FIELD_CHARS],
            "problem": item["msg"],
        }
        for item in error.errors()[:MAX_REPORTED_FIELDS]
    ]
    shown = "; ".join(f"{item['field']}: {item['problem']}" for item in fields)
    invalid = InvalidInput(f"The request is not valid: {shown}.", hint="GET /openapi.json describes each request.")
    return problem(invalid, instance=request.url.path, extensions={"errors": fields})


async def _on_http_error(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, HTTPException)  # noqa: S101 - registered for this type only
    path = request.url.path
    if error.status_code == HTTPStatus.NOT_FOUND:
        not_found = NotFound(f"There is nothing at {path}.", hint="GET /openapi.json lists the paths.")
        return problem(not_found, instance=path)
    return plain_problem(error.status_code, str(error.detail), instance=path, headers=error.headers)


def install(app: FastAPI) -> None:
    """Make `app` answer every error with a problem."""
    app.add_exception_handler(WaygraphError, _on_waygraph_error)
    app.add_exception_handler(RequestValidationError, _on_validation_error)
    app.add_exception_handler(HTTPException, _on_http_error)


def describe(schema: dict[str, Any], *, with_keys: bool) -> dict[str, Any]:
    """Add the error responses and, if the service has keys, the security scheme of `/v1` to an OpenAPI document."""
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
