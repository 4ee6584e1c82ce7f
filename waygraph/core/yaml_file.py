"""YAML files written by users: read, validated against a model, and reported with the line of an error."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from pydantic import BaseModel, ValidationError

from waygraph.core.errors import InvalidInput

if TYPE_CHECKING:
    from yaml import Node

Model = TypeVar("Model", bound=BaseModel)

#: Largest file in bytes; rules written by hand are smaller.
MAX_BYTES = 1 << 20


def read_yaml_file(path: Path, model: type[Model], *, what: str, hint: str = "") -> Model:
    """Read the file at `path` as a `model`; an empty file gives the model's defaults.

    Parameters
    ----------
    path
        The file, at most `MAX_BYTES` large.
    model
        Pydantic model that the document must match.
    what
        Name of the file in messages, such as "rules file".
    hint
        Hint of the errors: where the format is documented.

    Returns
    -------
    Model
        The validated document.

    Raises
    ------
    InvalidInput
        If the file cannot be read, is not YAML, or does not match the model; the message names the line.
    """
    import yaml  # noqa: PLC0415 - part of the `index` extra, which the CLI's front door does not need

    subject = f"The {what} '{path}'"
    try:
        if (size := path.stat().st_size) > MAX_BYTES:
            raise InvalidInput(f"{subject} has {size} bytes; the limit is {MAX_BYTES}.", hint="Split it by site.")
        text = path.read_text(encoding="utf-8")
        root = yaml.compose(text, Loader=yaml.SafeLoader)
        document = yaml.safe_load(text)
    except OSError as error:
        raise InvalidInput(f"{subject} cannot be read: {error.strerror}.", hint="Check the path.") from error
    except UnicodeDecodeError as error:
        raise InvalidInput(f"{subject} is not UTF-8 text.", hint=hint) from error
    except yaml.MarkedYAMLError as error:
        line = f" in line {error.problem_mark.line + 1}" if error.problem_mark else ""
        raise InvalidInput(f"{subject} is not YAML{line}: {error.problem}.", hint=hint) from error
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        reason = str(error).splitlines()[0] if str(error) else "it is nested too deeply"
        raise InvalidInput(f"{subject} is not YAML: {reason}.", hint=hint) from error
    try:
        return model.model_validate({} if document is None else document)
    except ValidationError as error:
        first = error.errors()[0]
        location = ".".join(str(part) for part in first["loc"]) or "its top level"
        message = first["msg"].removeprefix("Value error, ")
        line = f", line {_line_of(root, first['loc'])}" if root is not None else ""
        raise InvalidInput(f"{subject} is wrong at {location}{line}: {message.rstrip('.')}.", hint=hint) from error


def _line_of(node: Node | None, loc: Sequence[int | str]) -> int:
    """Return the line, from 1, of the deepest part of `loc` that the document contains."""
    import yaml  # noqa: PLC0415 - as above

    line = 0 if node is None else node.start_mark.line
    for part in loc:
        if isinstance(node, yaml.SequenceNode) and isinstance(part, int) and part < len(node.value):
            node = node.value[part]
        elif isinstance(node, yaml.MappingNode):
            pairs = [(key, value) for key, value in node.value if key.value == part]
            if not pairs:
                break
            key, node = pairs[-1]
            line = key.start_mark.line
            continue
        else:
            break
        line = node.start_mark.line
    return line + 1
