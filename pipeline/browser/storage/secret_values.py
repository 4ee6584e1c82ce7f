"""Values of a session that must not be told to anybody else."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

from waygraph.core.urls import is_random_token
from waygraph.pipeline.browser.storage.session_file import SessionState
from waygraph.pipeline.browser.storage.stored_values import has_secret_name

#: Characters of the shortest text that is taken for a token whatever its name is.
_MIN_TOKEN = 20
_TOKEN = re.compile(r"[\w.~+/=-]+", re.ASCII)
_UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)
#: Name of bytes: applications keep keys and tokens as bytes, and hardly ever what their pages show.
_BYTES = "token"


def secret_values(state: SessionState | None, *, of_user: bool) -> Iterator[str]:
    """Return texts in a session that may grant access.

    Parameters
    ----------
    state
        The session; None: none.
    of_user
        Whether a user gave it. All its cookies and items of local and session storage count then. Databases hold the
        contents of pages as well: of those, and of what a site stored since, only what has the name of a secret, is
        nothing but a token, or are bytes counts.

    Yields
    ------
    str
        Each text.
    """
    if state is None:
        return
    for item in state.get("cookies", []):
        yield from _secrets(item["value"], (item["name"],), is_secret=of_user)
    for origin in state.get("origins", []):
        for item in (*origin.get("localStorage", []), *origin.get("sessionStorage", [])):
            yield from _secrets(item["value"], (item["name"],), is_secret=of_user)
        for database in origin.get("indexedDB", []):
            for store in database["stores"]:
                for record in store["records"]:
                    names = (database["name"], store["name"], *_texts(record.get("key", record.get("keyEncoded"))))
                    yield from _secrets(record.get("value", record.get("valueEncoded")), names)


def _secrets(value: Any, names: tuple[str, ...], *, is_secret: bool = False) -> Iterator[str]:  # noqa: ANN401 - JSON
    """Yield the secret texts in a value. `names` are those of what contains it, the nearest last."""
    for path, text in _leaves(value, names):
        if is_secret or any(map(has_secret_name, path)) or _is_token(text):
            yield text
        if (inner := _parsed(text)) is not None:
            yield from _secrets(inner, path)


def _is_token(text: str) -> bool:
    """Return whether a text is nothing but a token. Ids of records, which addresses of pages contain, are none."""
    return (
        len(text) >= _MIN_TOKEN
        and _TOKEN.fullmatch(text) is not None
        and not _UUID.fullmatch(text)
        and is_random_token(text)
    )


def _parsed(text: str) -> Any:  # noqa: ANN401 - JSON
    """Return what a text that is a JSON object or list says; None: it is none."""
    if not text.startswith(("{", "[")):
        return None
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _leaves(value: Any, names: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], str]]:  # noqa: ANN401 - JSON
    """Yield the texts in a value, which may be encoded as in session files, with the names of what contains them."""
    if isinstance(value, str):
        yield names, value
    elif isinstance(value, list):
        for each in value:
            yield from _leaves(each, names)
    elif isinstance(value, dict):
        if value.keys() == {"k", "v"}:  # a member of an object, or an entry of a map
            yield from _leaves(value["v"], (*names, *_texts(value["k"])))
        elif isinstance(value.get("b"), str):
            yield (*names, _BYTES), value["b"]
            with suppress(ValueError):  # no text
                yield (*names, _BYTES), base64.b64decode(value["b"]).decode()
        else:
            for name, each in value.items():
                yield from _leaves(each, (*names, name))


def _texts(value: Any) -> tuple[str, ...]:  # noqa: ANN401 - JSON
    return (value,) if isinstance(value, str) else ()
