"""JSON Schemas of strangers: whether one is valid, what is wrong with a value, and a copy without long texts.

A page may declare any schema. Checking a value against it takes bounded time: regular expressions are not run (the
page's are those of JavaScript, and may take exponential time), references to other documents are not loaded, and the
number of references that are followed is limited.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from waygraph.core.text import shortened

if TYPE_CHECKING:
    from jsonschema.exceptions import ValidationError
    from jsonschema.protocols import Validator

#: Longest message about a value, in characters: it quotes the value and the schema.
_MAX_MESSAGE_CHARS = 300
#: Most problems that are named.
_MAX_PROBLEMS = 10
#: Most references that a check follows: a schema may refer to itself in a way that doubles the work at each step.
_MAX_REFERENCES = 10_000
#: Keywords that hold texts for readers.
_TEXTS = frozenset({"title", "description", "$comment"})
#: Keywords that hold values, not schemas.
_VALUES = frozenset({"enum", "const", "default", "examples", "required"})
#: Keywords that hold schemas by name: the names are no keywords.
_NAMED_SCHEMAS = frozenset({"properties", "patternProperties", "$defs", "definitions", "dependentSchemas"})


def schema_problem(schema: Mapping[str, Any]) -> str:
    """Return why an object is no JSON Schema of an object; empty if it is one.

    >>> schema_problem({"type": "object"}), schema_problem({"type": "string"})
    ('', "its type is 'string', not 'object'")
    """
    from jsonschema.exceptions import SchemaError  # noqa: PLC0415 - only calls of tools need it

    if schema.get("type", "object") != "object":
        return shortened(f"its type is {schema['type']!r}, not 'object'", _MAX_MESSAGE_CHARS)
    try:
        # Without format checks: the patterns of a schema are regular expressions of JavaScript.
        _validator_class(schema).check_schema(schema, format_checker=None)
    except SchemaError as error:
        return _message(error)
    except RecursionError:
        return "it is nested too deeply"
    return ""


def argument_problems(schema: Mapping[str, Any], arguments: Mapping[str, Any]) -> list[str]:
    """Return what is wrong with arguments, with the name of the field in each message; empty if nothing is.

    Parameters
    ----------
    schema
        A valid schema, see `schema_problem`.
    arguments
        The arguments, as JSON values.

    Returns
    -------
    list[str]
        The first problems.

    Examples
    --------
    >>> argument_problems({"properties": {"n": {"type": "integer"}}, "required": ["q"]}, {"n": "two"})
    ["n: 'two' is not of type 'integer'", 'q: is required']
    """
    from referencing import Registry  # noqa: PLC0415 - as above
    from referencing.exceptions import Unresolvable  # noqa: PLC0415 - as above

    try:
        errors = _limited(_validator_class(schema))(schema, registry=Registry()).iter_errors(arguments)
        return sorted({_message(error) for error in errors})[:_MAX_PROBLEMS]
    except (RecursionError, _TooManyReferences):
        return ["the schema refers to itself too often to be checked"]
    except Unresolvable as error:
        return [shortened(f"the schema refers to what is not in it: {error.ref}", _MAX_MESSAGE_CHARS)]


def with_short_texts(schema: Any, length: int) -> Any:  # noqa: ANN401 - any part of a schema
    """Return a schema with its titles and descriptions cut to a number of characters; what values may be stays.

    >>> with_short_texts({"description": "abcdef", "properties": {"title": {"const": {"title": "abcdef"}}}}, 3)
    {'description': 'ab…', 'properties': {'title': {'const': {'title': 'abcdef'}}}}
    """
    if isinstance(schema, list):
        return [with_short_texts(each, length) for each in schema]
    if not isinstance(schema, dict):
        return schema
    cut: dict[str, Any] = {}
    for name, value in schema.items():
        if name in _TEXTS:
            cut[name] = shortened(value, length) if isinstance(value, str) else value
        elif name in _NAMED_SCHEMAS and isinstance(value, dict):
            cut[name] = {each: with_short_texts(of, length) for each, of in value.items()}
        else:
            cut[name] = value if name in _VALUES else with_short_texts(value, length)
    return cut


class _TooManyReferences(Exception):
    """Ends a check: it would take too long."""


def _validator_class(schema: Mapping[str, Any]) -> type[Validator]:
    from jsonschema import Draft202012Validator  # noqa: PLC0415 - as above
    from jsonschema.validators import validator_for  # noqa: PLC0415 - as above

    is_named = isinstance(schema.get("$schema"), str)
    kind: type[Validator] = validator_for(schema, Draft202012Validator) if is_named else Draft202012Validator
    return kind


def _limited(kind: type[Validator]) -> Any:  # noqa: ANN401 - a class with the keywords of `kind`
    """Return a validator that runs no regular expression and follows a limited number of references."""
    from jsonschema.validators import extend  # noqa: PLC0415 - as above

    followed = 0

    def ignore(_validator: object, _value: object, _instance: object, _schema: object) -> Iterator[ValidationError]:
        return iter(())

    def counted(keyword: str) -> Any:  # noqa: ANN401 - as above
        def check(validator: Any, value: object, instance: object, schema: object) -> Iterator[ValidationError]:  # noqa: ANN401
            nonlocal followed
            followed += 1
            if followed > _MAX_REFERENCES:
                raise _TooManyReferences
            yield from kind.VALIDATORS[keyword](validator, value, instance, schema) or ()

        return check

    def additional(validator: Any, value: object, instance: object, schema: Any) -> Iterator[ValidationError]:  # noqa: ANN401
        # Which properties are additional depends on the expressions in `patternProperties`.
        if "patternProperties" not in schema:
            yield from kind.VALIDATORS["additionalProperties"](validator, value, instance, schema) or ()

    references = {name: counted(name) for name in ("$ref", "$dynamicRef", "$recursiveRef") if name in kind.VALIDATORS}
    changed = {"pattern": ignore, "patternProperties": ignore, "additionalProperties": additional}
    return extend(kind, {**changed, **references})


def _message(error: ValidationError | Any) -> str:  # noqa: ANN401 - or `SchemaError`, which has the same fields
    path = ".".join(str(part) for part in error.absolute_path)
    message = error.message
    if error.validator == "required" and message.endswith(" is a required property"):
        named = next((name for name in error.validator_value if message.startswith(repr(name))), "")
        path, message = f"{path}.{named}" if path else str(named), "is required"
    return shortened(f"{path}: {message}" if path else message, _MAX_MESSAGE_CHARS)
