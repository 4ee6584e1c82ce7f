"""Files of sessions (storage states): their form, and how they are read.

The form is Playwright's, so each program reads the files of the other. waygraph adds what Playwright leaves out:

- `origins[].sessionStorage`: like `localStorage`; new tabs start with it.
- `origins[].indexedDB[].stores[].nextKey`: the next number of a store that counts its records.
- `valueEncoded` and `keyEncoded` of records: more types, see `encode` in `js/databases.js`.
- `signedIn`: what the page showed after the login, see `SignedIn`.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, Literal, TypedDict
from urllib.parse import urlsplit

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    JsonValue,
    PositiveInt,
    StrictBool,
    StrictFloat,
    StrictInt,
    StrictStr,
    ValidationError,
)
from pydantic.alias_generators import to_camel

from waygraph.core.errors import InvalidInput


class SessionState(TypedDict, total=False):
    """A session in the form of its file."""

    cookies: list[dict[str, Any]]
    origins: list[dict[str, Any]]
    signedIn: dict[str, Any]


def read_session_file(path: Path, hint: str = "Save one with `waygraph login`.") -> SessionState:
    """Read a session.

    Parameters
    ----------
    path
        JSON file as `waygraph login` and Playwright write it.
    hint
        What to do about a file that holds no session.

    Returns
    -------
    SessionState
        The session.

    Raises
    ------
    InvalidInput
        If the file cannot be read, or is no storage state.
    """
    subject = f"The storage state '{path}'"
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise InvalidInput(f"{subject} cannot be read: {error.strerror}.", hint="Check the path.") from error
    except (ValueError, RecursionError) as error:
        # Without the content, which consists of secrets.
        position = f" in line {error.lineno}" if isinstance(error, json.JSONDecodeError) else ""
        raise InvalidInput(f"{subject} is not JSON{position}.", hint=hint) from error
    if not isinstance(document, dict) or not {"cookies", "origins"} & document.keys():
        raise InvalidInput(f"{subject} has neither cookies nor origins.", hint=hint)
    try:
        _StorageStateFile.model_validate(document)
    except ValidationError as error:
        # Without the values and without pydantic's messages, which quote them.
        location = ".".join(map(str, error.errors(include_input=False)[0]["loc"]))
        raise InvalidInput(f"{subject} is not in Playwright's format, at '{location}'.", hint=hint) from None
    state: SessionState = {"cookies": document.get("cookies", []), "origins": document.get("origins", [])}
    if "signedIn" in document:
        state["signedIn"] = document["signedIn"]
    return state


def read_session_files(paths: Sequence[Path]) -> SessionState | None:
    """Read sessions of several sites as one.

    Parameters
    ----------
    paths
        Their files; empty: there is no session.

    Returns
    -------
    SessionState or None
        Cookies and origins of all files. What a page showed after the login is kept if one file alone has it.

    Raises
    ------
    InvalidInput
        If a file cannot be read, or two files hold different values for one cookie or one origin.
    """
    if not paths:
        return None
    cookies: dict[tuple[Any, ...], tuple[Path, dict[str, Any]]] = {}
    origins: dict[tuple[Any, ...], tuple[Path, dict[str, Any]]] = {}
    shown = []
    for path in paths:
        state = read_session_file(path)
        for cookie in state["cookies"]:
            key = (cookie["domain"], cookie["path"], cookie["name"], cookie.get("partitionKey"))
            _add(cookies, key, path, cookie, f"the cookie '{cookie['name']}' of {cookie['domain']}")
        for entry in state["origins"]:
            _add(origins, (entry["origin"],), path, entry, f"what {entry['origin']} stores")
        shown += [state["signedIn"]] if "signedIn" in state else []
    merged: SessionState = {
        "cookies": [cookie for _, cookie in cookies.values()],
        "origins": [entry for _, entry in origins.values()],
    }
    if len(shown) == 1:
        merged["signedIn"] = shown[0]
    return merged


def _add(
    known: dict[tuple[Any, ...], tuple[Path, dict[str, Any]]],
    key: tuple[Any, ...],
    path: Path,
    entry: dict[str, Any],
    name: str,
) -> None:
    """Add an entry of a file; raise InvalidInput if another file has another one. Values are secrets: none is named."""
    before, other = known.setdefault(key, (path, entry))
    if other != entry:
        raise InvalidInput(
            f"The storage states '{before}' and '{path}' differ in {name}.",
            hint="Save the sessions one after the other in one browser, or remove the entry from one of the files.",
        )


def _check_origin(text: str) -> str:
    parts = urlsplit(text)  # Raises ValueError if it cannot be parsed.
    if not parts.scheme or not parts.netloc:
        raise ValueError("no origin")
    return text


class _FilePart(BaseModel):
    model_config = ConfigDict(alias_generator=to_camel)


class _NamedValue(_FilePart):
    """An item of local or session storage."""

    name: StrictStr
    value: StrictStr


class _StoredCookie(_NamedValue):
    """A cookie. With a partition key, only pages of that site carry it."""

    domain: StrictStr
    path: StrictStr
    expires: StrictFloat | StrictInt = -1
    http_only: StrictBool = False
    secure: StrictBool = False
    same_site: Literal["Strict", "Lax", "None"] = "Lax"
    partition_key: StrictStr | None = None


class _Keyed(_FilePart):
    """An object store or an index: the members of records that are their keys."""

    name: StrictStr
    key_path: StrictStr | None = None
    key_path_array: list[StrictStr] | None = None


class _Index(_Keyed):
    """An index of an object store."""

    unique: StrictBool
    multi_entry: StrictBool


class _ObjectStore(_Keyed):
    """An object store of a database."""

    auto_increment: StrictBool
    indexes: list[_Index]
    records: list[dict[str, JsonValue]]
    next_key: StrictInt | StrictFloat | None = None


class _Database(_FilePart):
    """A database (IndexedDB)."""

    name: StrictStr
    version: PositiveInt
    stores: list[_ObjectStore]


class _StoredOrigin(_FilePart):
    """What an origin stores."""

    origin: Annotated[StrictStr, AfterValidator(_check_origin)]
    local_storage: list[_NamedValue]
    session_storage: list[_NamedValue] = []
    indexed_db: list[_Database] = Field([], alias="indexedDB")


class SignedIn(_FilePart):
    """What a page showed after the login, by which a session that has ended is noticed.

    Attributes
    ----------
    url
        URL of the page.
    account
        Name of the account, if the page showed it.
    password
        Whether a password field was visible.
    """

    model_config = ConfigDict(alias_generator=to_camel, frozen=True)

    url: StrictStr = ""
    account: StrictStr = ""
    password: StrictBool = False


class _StorageStateFile(_FilePart):
    """A file of a session. Cookie files of other tools differ in details that browsers reject."""

    cookies: list[_StoredCookie] = []
    origins: list[_StoredOrigin] = []
    signed_in: SignedIn | None = None
