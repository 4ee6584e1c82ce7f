"""Schemas of strangers: problems name the field, and no schema makes a check hang or load anything."""

from __future__ import annotations

import pytest

from waygraph.core.json_schema import argument_problems, schema_problem

SEVEN = "http://json-schema.org/draft-07/schema#"


@pytest.mark.parametrize(
    "schema",
    [{"type": 7}, {"type": "array"}, {"properties": []}, {"properties": {"a": {"type": "nothing"}}}, {"required": "q"}],
)
def test_what_is_no_schema_of_an_object_is_said(schema):
    assert schema_problem(schema)


@pytest.mark.parametrize(
    "schema",
    [
        {}, {"type": "object"}, {"type": ["object", "null"]}, {"properties": {"a": {"pattern": "(?<word>\\p{L}+)"}}},
        {"$schema": SEVEN, "properties": {"a": {"items": [{}]}}},
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


@pytest.mark.parametrize(
    "schema",
    [
        {"properties": {"a": {"pattern": "^b"}}},
        {"patternProperties": {"^a": {"type": "integer"}}, "additionalProperties": False},
        {"patternProperties": {"^b": {}}, "unevaluatedProperties": False},
        {"properties": {"a": {"$schema": SEVEN, "pattern": "^b"}}},
        {"$schema": SEVEN, "allOf": [{"properties": {"a": {"pattern": "^b"}}}]},
        {"properties": {"a": {"$ref": "#/default"}}, "default": {"$schema": SEVEN, "pattern": "b"}},
    ],
)  # fmt: skip
def test_no_expression_of_a_page_is_run(schema):
    assert argument_problems(schema, {"a": "a"}) == []


def test_what_a_part_says_of_its_dialect_counts_for_nothing():
    part = {"$schema": "http://json-schema.org/draft-04/schema#", "minimum": 3, "exclusiveMinimum": 3}
    schema = {"properties": {"n": part}}
    assert argument_problems(schema, {"n": 3}) == ["n: 3 is less than or equal to the minimum of 3"]


@pytest.mark.parametrize(
    "schema",
    [
        {"$defs": {"a": {"$anchor": "named"}}, "$ref": "#named"},
        {"$defs": {"a": {"$dynamicAnchor": "named"}}, "$dynamicRef": "#named"},
        {"$defs": {"a": {"$id": "http://shop.example/a"}}, "$ref": "http://shop.example/a"},
        {"properties": {"a": {"$id": "http://shop.example/a", "$defs": {"b": {}}, "$ref": "#/$defs/b"}}},
        {"$ref": "http://shop.example/schema"},
    ],
)
def test_references_lead_to_a_place_in_the_schema_and_nowhere_else(schema):
    (said,) = argument_problems(schema, {"a": 1})
    assert said.startswith("the schema refers to what is not at a place in it: ")


def test_references_to_places_are_followed():
    schema = {
        "$id": "http://shop.example/x",
        "$defs": {"n": {"type": "integer"}},
        "properties": {"a": {"$ref": "#/$defs/n"}},
    }
    assert argument_problems(schema, {"a": "b"}) == ["a: 'b' is not of type 'integer'"]
    assert argument_problems({"$ref": "#/$defs/none"}, {}) == ["the schema refers to what is not in it: /$defs/none"]


@pytest.mark.parametrize(
    "part", [{"type": "nothing"}, {"multipleOf": 0}, {"minimum": "x"}, {"properties": 3}, {"required": 1}]
)
def test_a_reference_to_what_is_no_schema_is_a_problem_of_the_schema(part):
    schema = {"properties": {"a": {"$ref": "#/default"}, "b": {"$ref": "#/default"}}, "default": part}
    problems = argument_problems(schema, {"a": 1, "b": {"c": 1}})
    assert problems[0].startswith("the schema cannot be checked: ")


@pytest.mark.parametrize(
    ("number", "of", "is_multiple"),
    [
        (19.99, 0.01, True), (0.3, 0.1, True), (19.995, 0.01, False), (1e308, 0.01, True), (7, 2, False),
        (4, 2.0, True), (10**30, 0.5, True), (float("inf"), 1, False), (float("nan"), 1, False), (-0.5, 0.25, True),
        (True, 2, True),
    ],
)  # fmt: skip
def test_multiples_are_those_of_the_numbers_as_they_are_written(number, of, is_multiple):
    assert (argument_problems({"properties": {"n": {"multipleOf": of}}}, {"n": number}) == []) is is_multiple


def test_references_that_multiply_their_work_end():
    doubling = {f"d{n}": {"allOf": [{"$ref": f"#/$defs/d{n + 1}"}] * 2} for n in range(40)}
    schema = {"$defs": {**doubling, "d40": {}}, "$ref": "#/$defs/d0"}
    assert argument_problems(schema, {"a": 1}) == ["the schema refers to itself too often to be checked"]
    assert argument_problems({"$ref": "#"}, {}) == ["the schema refers to itself too often to be checked"]
    wide = {"$defs": {"wide": {"allOf": [{}] * 500}}, "allOf": [{"$ref": "#/$defs/wide"}] * 100}
    assert argument_problems(wide, {}) == ["the schema refers to itself too often to be checked"]
