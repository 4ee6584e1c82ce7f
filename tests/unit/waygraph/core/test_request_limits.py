"""What requests may hold: every string, list and object has a limit of size, and every number is finite."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel, ValidationError

from waygraph.core import schemas
from waygraph.core.schemas import (
    ActionModel,
    AvoidedStep,
    BatchSearchRequest,
    FeedbackRequest,
    LocateRequest,
    NavigateRequest,
    PathRequest,
    SearchRequest,
    WalkedStep,
)
from waygraph.core.settings import Settings
from waygraph.serve.http.api import create_api
from waygraph.serve.mcp import create_server
from waygraph.serve.query.maps import Maps

#: Of any kind that pydantic takes for a number.
NOT_FINITE = ["NaN", "Infinity", "-Infinity", "1e999", '"NaN"', '"inf"', '"-Infinity"']


def request_models() -> list[type[BaseModel]]:
    found, bases = [], [schemas._Request, schemas.SentAction]
    for base in bases:
        bases += base.__subclasses__()
        found += [] if base is schemas._Request else [base]
    return found


def without_limit(schema: dict[str, Any], definitions: dict[str, Any], where: str) -> Iterator[str]:
    """Yield the places of a JSON schema where a string, a list, an object or an integer may be of any size."""
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        # A request that contained itself could be nested to any depth.
        assert f" {name}." not in where, where
        yield from without_limit(definitions[name], definitions, f"{where} {name}.")
        return
    wanted = {"string": "maxLength", "integer": "maximum", "array": "maxItems", "object": "maxProperties"}
    kind = schema.get("type", "anything")
    limits = {"enum", "const", "anyOf", "properties", wanted.get(kind)}
    if kind not in {"number", "boolean", "null"} and not limits & schema.keys():
        yield f"{where} ({kind})"
    for name, part in parts(schema, kind):
        yield from without_limit(part, definitions, f"{where}.{name}")


def parts(schema: dict[str, Any], kind: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the schemas of what is inside a JSON value, with names."""
    yield from (("", part) for part in schema.get("anyOf", ()))
    yield from schema.get("properties", {}).items()
    if kind == "array":
        yield "[]", schema.get("items", {})
    elif kind == "object" and "properties" not in schema:
        yield "{key}", {"type": "string", **schema.get("propertyNames", {})}
        yield from schema.get("patternProperties", {"{}": schema.get("additionalProperties", {})}).items()


def test_every_request_model_is_within_limits() -> None:
    models = request_models()
    assert len(models) >= 10
    for model in models:
        assert model.model_config["extra"] == "forbid"
        schema = model.model_json_schema()
        assert list(without_limit(schema, schema.get("$defs", {}), model.__name__)) == []


@pytest.fixture
def document(tmp_path: Path) -> dict[str, Any]:
    settings = Settings(store=str(tmp_path))
    app = create_api(settings, Maps(settings))
    (route,) = [route for route in app.routes if getattr(route, "path", "") == "/openapi.json"]
    cells = dict(zip(route.endpoint.__code__.co_freevars, route.endpoint.__closure__, strict=True))
    return cells["document"].cell_contents


def test_every_parameter_and_body_of_the_api_is_within_limits(document: dict[str, Any]) -> None:
    calls = [
        (f"{method} {path}", operation)
        for path, operations in document["paths"].items()
        for method, operation in operations.items()
    ]
    asked = [
        (f"{call} {parameter['name']}", parameter["schema"])
        for call, operation in calls
        for parameter in operation.get("parameters", ())
        if parameter["in"] != "header"  # headers are within the limit of a request's head
    ]
    asked += [
        (call, content["schema"])
        for call, operation in calls
        for content in operation.get("requestBody", {}).get("content", {}).values()
    ]
    assert len(asked) > 20
    definitions = document["components"]["schemas"]
    assert [found for where, schema in asked for found in without_limit(schema, definitions, where)] == []


async def test_every_argument_of_the_tools_is_within_limits() -> None:
    tools = await create_server(lambda _: None).list_tools()
    assert len(tools) == 9
    schemas_of = [(tool.name, tool.input_schema) for tool in tools]
    assert [
        found for name, schema in schemas_of for found in without_limit(schema, schema.get("$defs", {}), name)
    ] == []


def numbers(schema: dict[str, Any]) -> set[str]:
    """Return the names of the properties of a schema that may be numbers."""
    return {
        name
        for name, part in schema.get("properties", {}).items()
        for each in (part, *part.get("anyOf", ()))
        if each.get("type") in {"number", "integer"}
    }


def test_numbers_of_requests_are_finite() -> None:
    tried = 0
    for model in request_models():
        for name in numbers(model.model_json_schema()):
            for number in NOT_FINITE:
                with pytest.raises(ValidationError) as refused:
                    model.model_validate_json(f'{{"{name}": {number}}}')
                assert name in {str(error["loc"][0]) for error in refused.value.errors()}, (model, name, number)
                tried += 1
    assert tried >= 7 * len(NOT_FINITE)
    with pytest.raises(ValidationError):
        LocateRequest.model_validate_json('{"url": "http://x/", "features": {"aaaaaaaaaaaa": 1e999}}')


@pytest.mark.parametrize(
    ("model", "values", "field", "limit"),
    [
        (BatchSearchRequest, {"searches": [{"query": "x"}]}, "site", 300),
        (NavigateRequest, {"query": "x"}, "site", 300),
        (LocateRequest, {}, "url", 32_768),
        (SearchRequest, {"query": "x"}, "url_prefix", 8_000),
        (PathRequest, {}, "to", 64),
    ],
)
def test_the_length_of_a_text_counts_bytes(model, values, field, limit) -> None:
    assert model.model_validate({**values, field: "é" * (limit // 2)})
    assert model.model_validate({**values, field: "a" * limit})
    for long in ("é" * (limit // 2) + "a", "a" * (limit + 1), "🙂" * (limit // 4 + 1)):
        with pytest.raises(ValidationError, match="bytes in UTF-8"):
            model.model_validate({**values, field: long})


def test_a_question_may_have_as_many_characters_in_any_script() -> None:
    assert SearchRequest(query="あ" * schemas.MAX_QUERY_CHARS)
    with pytest.raises(ValidationError):
        SearchRequest(query="a" * (schemas.MAX_QUERY_CHARS + 1))


@pytest.mark.parametrize("field", ["url", "role", "name", "xpath", "css", "target", "value"])
def test_an_action_in_a_request_is_small_and_one_in_an_answer_of_any_size(field: str) -> None:
    large = ActionModel.model_validate({"kind": "click", field: "x" * 70_000})
    for refuse in (
        lambda: AvoidedStep(source=None, action=large),
        lambda: WalkedStep(source=None, action=large, target="b", outcome="ok"),
        lambda: FeedbackRequest.model_validate(
            {"walked": [{"source": None, "action": large.model_dump(), "target": "b", "outcome": "ok"}]}
        ),
    ):
        with pytest.raises(ValidationError, match="65536 bytes"):
            refuse()
    assert AvoidedStep(source=None, action=ActionModel(kind="click", name="x" * 300)).action.name == "x" * 300
