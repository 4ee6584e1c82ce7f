"""What a site keeps in a browser, as flat values: which of them changed, which may grant access, which were removed."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator, Mapping
from fnmatch import fnmatchcase
from typing import Any

from waygraph.core.urls import SECRET_PARAMETERS, is_random_token
from waygraph.pipeline.browser.storage.session_file import SessionState

#: (area, key) -> hash or value, for everything that a site stores in the browser.
StoredValues = Mapping[tuple[str, str], str]

COOKIES = "cookie"
LOCAL = "local"
SESSION = "session"
DATABASES = "database"

#: Length of a value from which on it is no setting, but a copy of something that the site can load again.
_MAX_CHARS = 1_000
#: Names of values that may grant access. An old one of them may end a session, and none belongs in a file.
_SECRET_NAMES = (*SECRET_PARAMETERS, "*token*", "*secret*", "*auth*", "*csrf*", "*session*", "*jwt*", "*passw*")
_WORD = re.compile(r"[A-Za-z0-9-]+")


def cookie_key(cookie: Mapping[str, Any]) -> str:
    """Return the key of a cookie among the stored values."""
    partition = f" {cookie['partitionKey']}" if cookie.get("partitionKey") else ""
    return f"{cookie['domain']}{cookie['path']} {cookie['name']}{partition}"


def record_key(origin: str, database: str, store: str, record: str) -> str:
    """Return the key of a record of a database among the stored values."""
    return f"{origin} {json.dumps([database, store])}\n{record}"


def store_of(key: str) -> str:
    """Return the key of a record without the record: it stands for all records of the store."""
    return key.partition("\n")[0]


def differences(first: StoredValues, second: StoredValues) -> frozenset[tuple[str, str]]:
    """Return the keys whose values differ."""
    return frozenset(key for key in first.keys() | second.keys() if first.get(key) != second.get(key))


def volatile_keys(first: StoredValues, second: StoredValues) -> frozenset[tuple[str, str]]:
    """Return the keys whose values differ between two loads of the same page.

    A store of a database to which loads add records, or from which they remove some, is volatile as a whole: each load
    adds others.
    """
    changed = differences(first, second)
    stores = (key for key in changed if key[0] == DATABASES and (key in first) != (key in second))
    return changed | {(area, store_of(key)) for area, key in stores}


def may_grant_access(name: str, value: str) -> bool:
    """Return whether a value may be a session or a part of one, rather than a setting or a text."""
    return len(value) > _MAX_CHARS or has_secret_name(name) or any(map(is_random_token, _WORD.findall(value)))


def has_secret_name(name: str) -> bool:
    """Return whether a name says that its value grants access."""
    return any(fnmatchcase(name.lower(), glob) for glob in _SECRET_NAMES)


def removed_secrets(given: SessionState, origin: str, after: StoredValues) -> list[str]:
    """Return the names of values of a session that may grant access and that a page of an origin removed.

    Parameters
    ----------
    given
        The session.
    origin
        Origin of the page.
    after
        What the browser keeps now. A cookie without a value is removed as well.

    Returns
    -------
    list
        Names for people.
    """
    kept = {(area, store_of(key) if area == DATABASES else key) for (area, key), value in after.items() if value}
    return [name for area, key, name in _secrets_of(given, origin) if (area, key) not in kept]


def _secrets_of(given: SessionState, origin: str) -> Iterator[tuple[str, str, str]]:
    """Yield area, key and name of what may grant access: values, and stores of databases that hold records."""
    for cookie in given.get("cookies", []):
        has_expired = 0 <= cookie.get("expires", -1) < time.time()
        if not has_expired and may_grant_access(cookie["name"], cookie["value"]):
            yield COOKIES, cookie_key(cookie), f"the cookie '{cookie['name']}'"
    for entry in given.get("origins", []):
        if entry["origin"] == origin:
            yield from _items_of(entry)
            for database, store in ((d["name"], s) for d in entry.get("indexedDB", []) for s in d["stores"]):
                if store["records"]:
                    key = store_of(record_key(origin, database, store["name"], ""))
                    yield DATABASES, key, f"'{store['name']}' in the database '{database}'"


def _items_of(entry: Mapping[str, Any]) -> Iterator[tuple[str, str, str]]:
    for area, items in ((LOCAL, entry["localStorage"]), (SESSION, entry.get("sessionStorage", []))):
        for item in items:
            if may_grant_access(item["name"], item["value"]):
                yield area, item["name"], f"'{item['name']}' in the {area} storage"
