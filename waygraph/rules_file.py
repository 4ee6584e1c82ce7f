"""How is a YAML file that a user wrote read? Checked against a model; what is wrong is told with its line."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from pydantic import BaseModel, ValidationError

from waygraph.errors import InvalidInput

if TYPE_CHECKING:
    from yaml import Node

Model = TypeVar("Model", bound=BaseModel)

#: Nobody writes more rules than fit in here by hand.
MAX_BYTES = 1 << 20


def read_rules(path: Path, model: type[Model], *, what: str, hint: str = "") -> Model:
    """Read `path` as a `model`; an empty file is a model without values.

    Parameters
    ----------
    what : how messages call the file ("rules file").
    hint : where its format is described.

    Raises
    ------
    InvalidInput
        When it cannot be read, is not YAML, or holds something else than the model knows: the line is named.

    """
    import yaml  # noqa: PLC0415 - the front door works without it

    where = f"The {what} '{path}'"
    try:
        if (size := path.stat().st_size) > MAX_BYTES:
            raise InvalidInput(f"{where} has {size} bytes, more than {MAX_BYTES}.", hint="Split it by site.")
        text = path.read_text(encoding="utf-8")
        root = yaml.compose(text, Loader=yaml.SafeLoader)
        document = yaml.safe_load(text)
    except OSError as error:
        raise InvalidInput(f"{where} cannot be read: {error.strerror}.", hint="Check the path.") from error
    except UnicodeDecodeError as error:
        raise InvalidInput(f"{where} is not UTF-8 text.", hint=hint) from error
    except yaml.MarkedYAMLError as error:
        line = f" in line {error.problem_mark.line + 1}" if error.problem_mark else ""
        raise InvalidInput(f"{where} is not YAML{line}: {error.problem}.", hint=hint) from error
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        reason = str(error).splitlines()[0] if str(error) else "it is nested too deeply"
        raise InvalidInput(f"{where} is not YAML: {reason}.", hint=hint) from error
    try:
        return model.model_validate({} if document is None else document)
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(str(part) for part in first["loc"]) or "its top"
        message = first["msg"].removeprefix("Value error, ")
        line = f", line {_line(root, first['loc'])}" if root is not None else ""
        raise InvalidInput(f"{where} is wrong at {place}{line}: {message.rstrip('.')}.", hint=hint) from error


def _line(node: Node | None, loc: Sequence[int | str]) -> int:
    """Line (from 1) of the deepest part of `loc` that the document has."""
    import yaml  # noqa: PLC0415

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
