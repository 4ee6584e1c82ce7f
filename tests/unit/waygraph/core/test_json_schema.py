"""Schemas of strangers: problems name the field, and no schema makes a check hang or load anything."""

from __future__ import annotations

import pytest

from waygraph.core.json_schema import argument_problems, schema_problem


@pytest.mark.parametrize(
    "schema",
    [{"type": 7}, {"type": "array"}, {"properties": []}, {"properties": {"a": {"type": "nothing"}}}, {"required": "q"}],
)
def test_what_is_no_schema_of_an_object_is_said(schema):
    assert schema_problem(schema)


@pytest.mark.parametrize(
    "schema",
    [
        {}, {"type": "object"}, {"properties": {"a": {"pattern": "(?<word>\\p{L}+)"}}},
        {"$schema": "http://json-schema.org/draft-07/schema#", "properties": {"a": {"items": [{}]}}},
        {"$schema": "http://unknown.example/schema"}, {"$schema": 7},
    ],
)  # fmt: skip
def test_schemas_of_pages_are_accepted(schema):
    assert (schema_problem(schema) == "") is (schema.get("$schema") != 7)


def test_problems_name_the_field():
    inner = {"type": "object", "properties": {"city": {"enum": ["Oslo"]}}, "required": ["city", "street"]}
    schema = {"properties": {"to": inner, "n": {"type": "integer", "maximum": 3}}, "additionalProperties": False}
    assert argument_problems(schema, {"to": {"city": "Rome"}, "n": 4, "x": 1}) == [
        "Additional properties are not allowed ('x' was unexpected)",
        "n: 4 is greater than the maximum of 3",
        "to.city: 'Rome' is not one of ['Oslo']",
        "to.street: is required",
    ]
    assert argument_problems(schema, {"to": {"city": "Oslo", "street": ""}, "n": 3}) == []


def test_no_expression_of_a_page_is_run():
    slow = {"pattern": "^(a+)+$"}
    schema = {"properties": {"a": slow}, "patternProperties": {"^(a+)+$": {}}, "additionalProperties": False}
    assert argument_problems(schema, {"a": "a" * 5_000 + "!"}) == []


def test_references_that_double_their_work_or_lead_out_end():
    doubling = {f"d{n}": {"allOf": [{"$ref": f"#/$defs/d{n + 1}"}] * 2} for n in range(40)}
    schema = {"$defs": {**doubling, "d40": {}}, "$ref": "#/$defs/d0"}
    assert argument_problems(schema, {"a": 1}) == ["the schema refers to itself too often to be checked"]
    assert argument_problems({"$ref": "#"}, {}) == ["the schema refers to itself too often to be checked"]
    (said,) = argument_problems({"$ref": "http://127.0.0.1:1/schema"}, {})
    assert said == "the schema refers to what is not in it: http://127.0.0.1:1/schema"
