"""JSON Schemas of strangers: whether one is valid, what is wrong with a value, and copies with other texts.

A page may declare any schema. Checking a value against it takes bounded time: regular expressions are not run (the
page's are those of JavaScript, and may take exponential time), references lead to a place in the schema and nowhere
else, and the work of a check is limited. The dialect is that of the whole schema: `$schema` inside of it counts for
nothing.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Mapping
from fractions import Fraction
from itertools import islice
from typing import TYPE_CHECKING, Any

from waygraph.core.text import mask_numbers, shortened

if TYPE_CHECKING:
    from jsonschema.exceptions import ValidationError
    from jsonschema.protocols import Validator

#: Longest message about a value, in characters: it quotes the value and the schema.
_MAX_MESSAGE_CHARS = 300
#: Most problems that are named, of those that are found first; each one quotes values.
_MAX_PROBLEMS, _MAX_FOUND = 10, 100
#: Most references that a check follows, and most parts of schemas that it tries: a schema may refer to itself in a way
#: that doubles the work at each step.
_MAX_REFERENCES, _MAX_STEPS = 1_000, 20_000
#: Keywords that hold texts for readers.
_TEXTS = frozenset({"title", "description", "$comment"})
#: Keywords that hold values, not schemas.
_VALUES = frozenset({"enum", "const", "default", "examples", "required"})
#: Keywords whose lists mean the same in any order.
_UNORDERED = frozenset({"enum", "required", "type", "allOf", "anyOf", "oneOf"})
#: Keywords that hold schemas by name: the names are no keywords.
_NAMED_SCHEMAS = frozenset({"properties", "patternProperties", "$defs", "definitions", "dependentSchemas"})


def schema_problem(schema: Mapping[str, Any]) -> str:
    """Return why an object is no JSON Schema of an object; empty if it is one.

    >>> schema_problem({"type": "object"}), schema_problem({"type": "string"})
    ('', "its type is 'string', not 'object'")
    """
    kinds = schema.get("type", "object")
    if kinds != "object" and not (isinstance(kinds, list) and "object" in kinds):
        return shortened(f"its type is {kinds!r}, not 'object'", _MAX_MESSAGE_CHARS)
    kind = _validator_class(schema)
    try:
        # Without format checks: the patterns of a schema are regular expressions of JavaScript. Whether the values of
        # a list differ may take quadratic time.
        error = next(_fixed(kind, {"uniqueItems": _ignore})(kind.META_SCHEMA).iter_errors(schema), None)
    except RecursionError:
        return "it is nested too deeply"
    return _message(error) if error else ""


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
    from referencing import Registry  # noqa: PLC0415 - only calls of tools need it
    from referencing.exceptions import Unresolvable  # noqa: PLC0415 - as above

    try:
        errors = _limited(_validator_class(schema), schema)(schema, registry=Registry()).iter_errors(arguments)
        return sorted({_message(error) for error in islice(errors, _MAX_FOUND)})[:_MAX_PROBLEMS]
    except (RecursionError, _TooMuchWork):
        return ["the schema refers to itself too often to be checked"]
    except _OtherReference as error:
        return [shortened(f"the schema refers to what is not at a place in it: {error}", _MAX_MESSAGE_CHARS)]
    except Unresolvable as error:
        return [shortened(f"the schema refers to what is not in it: {error.ref}", _MAX_MESSAGE_CHARS)]
    except Exception as error:  # noqa: BLE001 - a reference may lead to what is no schema, where the library raises anything
        return [shortened(f"the schema cannot be checked: {type(error).__name__}: {error}", _MAX_MESSAGE_CHARS)]


def with_short_texts(schema: Any, length: int) -> Any:  # noqa: ANN401 - any part of a schema
    """Return a schema with its titles and descriptions cut to a number of characters; what values may be stays.

    >>> with_short_texts({"description": "abcdef", "properties": {"title": {"const": {"title": "abcdef"}}}}, 3)
    {'description': 'ab…', 'properties': {'title': {'const': {'title': 'abcdef'}}}}
    """
    return _rewritten(schema, lambda text: shortened(text, length))


def comparable_schema(schema: Any) -> Any:  # noqa: ANN401 - any part of a schema
    """Return a schema without what is noise in a comparison: numbers in texts, and the order where it means nothing.

    >>> comparable_schema({"required": ["b", "a"], "properties": {"a": {"title": "Inbox (3)", "enum": [3, 1]}}})
    {'required': ['a', 'b'], 'properties': {'a': {'title': 'Inbox (0)', 'enum': [1, 3]}}}
    """
    return _rewritten(schema, mask_numbers, is_sorted=True)


def _rewritten(schema: Any, rewrite: Callable[[str], str], *, is_sorted: bool = False) -> Any:  # noqa: ANN401 - as above
    """Return a schema with other texts, and with its unordered lists sorted by their JSON."""
    if isinstance(schema, list):
        return [_rewritten(each, rewrite, is_sorted=is_sorted) for each in schema]
    if not isinstance(schema, dict):
        return schema
    written: dict[str, Any] = {}
    for name, value in schema.items():
        if name in _TEXTS:
            written[name] = rewrite(value) if isinstance(value, str) else value
        elif name in _NAMED_SCHEMAS and isinstance(value, dict):
            written[name] = {each: _rewritten(of, rewrite, is_sorted=is_sorted) for each, of in value.items()}
        else:
            written[name] = value if name in _VALUES else _rewritten(value, rewrite, is_sorted=is_sorted)
            if is_sorted and name in _UNORDERED and isinstance(value, list):
                written[name] = sorted(written[name], key=lambda each: json.dumps(each, sort_keys=True))
    return written


class _TooMuchWork(Exception):
    """Ends a check: it would take too long."""


class _OtherReference(Exception):
    """Ends a check: a reference by a name, for which the whole schema would be searched each time."""


def _validator_class(schema: Mapping[str, Any]) -> type[Validator]:
    from jsonschema import Draft202012Validator  # noqa: PLC0415 - as above
    from jsonschema.validators import validator_for  # noqa: PLC0415 - as above

    is_named = isinstance(schema.get("$schema"), str)
    kind: type[Validator] = validator_for(schema, Draft202012Validator) if is_named else Draft202012Validator
    return kind


def _fixed(kind: type[Validator], keywords: Mapping[str, Any], on_step: Callable[[], None] = lambda: None) -> Any:  # noqa: ANN401 - a class with the keywords of `kind`
    """Return a validator with other keywords that stays the same one where a part of a schema has a `$schema`."""
    from jsonschema.validators import extend  # noqa: PLC0415 - as above

    def evolve(self: Any, **changes: Any) -> Any:  # noqa: ANN401 - of the class that is returned
        on_step()
        part = changes.get("schema")
        if isinstance(part, dict) and "$schema" in part:
            changes["schema"] = {name: value for name, value in part.items() if name != "$schema"}
        return kind.evolve(self, **changes)

    fixed: Any = extend(kind, keywords)
    fixed.evolve = evolve
    return fixed


def _ignore(_validator: object, _value: object, _instance: object, _schema: object) -> Iterator[ValidationError]:
    return iter(())


def _limited(kind: type[Validator], schema: Mapping[str, Any]) -> Any:  # noqa: ANN401 - as above
    """Return a validator of a schema that runs no regular expression and does a limited amount of work."""
    references = steps = 0
    # An id gives references another base, which is searched for.
    has_ids = any(isinstance(kind.ID_OF(each), str) for each in _objects(schema) if each is not schema)

    def on_step() -> None:
        nonlocal steps
        steps += 1
        if steps > _MAX_STEPS:
            raise _TooMuchWork

    def reference(keyword: str) -> Any:  # noqa: ANN401 - the function of a keyword
        def check(validator: Any, value: Any, instance: object, schema: object) -> Iterator[ValidationError]:  # noqa: ANN401
            nonlocal references
            references += 1
            if references > _MAX_REFERENCES:
                raise _TooMuchWork
            if has_ids or not (value == "#" or value.startswith("#/")):
                raise _OtherReference(value)
            yield from kind.VALIDATORS[keyword](validator, value, instance, schema) or ()

        return check

    def additional(validator: Any, value: object, instance: object, schema: Any) -> Iterator[ValidationError]:  # noqa: ANN401
        # Which properties are additional depends on the expressions in `patternProperties`.
        if "patternProperties" not in schema:
            yield from kind.VALIDATORS["additionalProperties"](validator, value, instance, schema) or ()

    unknown = ("pattern", "patternProperties", "unevaluatedProperties", "unevaluatedItems")
    keywords = dict.fromkeys(unknown, _ignore) | {"additionalProperties": additional, "multipleOf": _multiple_of}
    followed = {name: reference(name) for name in ("$ref", "$dynamicRef", "$recursiveRef") if name in kind.VALIDATORS}
    return _fixed(kind, keywords | followed, on_step)


def _multiple_of(validator: Any, of: Any, number: Any, _schema: object) -> Iterator[ValidationError]:  # noqa: ANN401
    """Check `multipleOf` for numbers as they are written: 19.99 is a multiple of 0.01."""
    from jsonschema.exceptions import ValidationError  # noqa: PLC0415 - as above

    if not validator.is_type(number, "number"):
        return
    is_finite = isinstance(number, int) or math.isfinite(number)
    if not is_finite or (_written(number) / _written(of)).denominator != 1:
        yield ValidationError(f"{number!r} is not a multiple of {of!r}")


def _written(number: float) -> Fraction:
    return Fraction(number if isinstance(number, int) else repr(number))


def _objects(part: object) -> Iterator[dict[str, Any]]:
    if isinstance(part, dict):
        yield part
    for inner in part.values() if isinstance(part, dict) else part if isinstance(part, list) else ():
        yield from _objects(inner)


def _message(error: ValidationError | Any) -> str:  # noqa: ANN401 - or `SchemaError`, which has the same fields
    path = ".".join(str(part) for part in error.absolute_path)
    message = error.message
    if error.validator == "required" and message.endswith(" is a required property"):
        named = next((name for name in error.validator_value if message.startswith(repr(name))), "")
        path, message = f"{path}.{named}" if path else str(named), "is required"
    return shortened(f"{path}: {message}" if path else message, _MAX_MESSAGE_CHARS)
