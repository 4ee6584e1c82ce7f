"""Storage states that users give: cookies and storage of a session, read and checked before a run."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal
from urllib.parse import urlsplit

from playwright.async_api import StorageState
from pydantic import AfterValidator, BaseModel, Field, StrictBool, StrictFloat, StrictInt, StrictStr, ValidationError

from waygraph.core.errors import InvalidInput
from waygraph.pipeline.explore.policies.scope import registrable_domain

_HINT = "Save one with: waygraph login {site}"


def read_storage_state(path: Path | None, site: str) -> StorageState | None:
    """Read the storage state at `path`, and check that it contains a session of `site`.

    Parameters
    ----------
    path
        JSON file as `waygraph login` and Playwright write it; None for a visitor without a session.
    site
        Key of the site that is to be visited.

    Returns
    -------
    StorageState | None
        None without a path.

    Raises
    ------
    InvalidInput
        If the file cannot be read, is no storage state, has expired, or belongs to another site.
    """
    if path is None:
        return None
    subject, hint = f"The storage state '{path}'", _HINT.format(site=site)
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
    cookies, origins = document.get("cookies", []), document.get("origins", [])
    _check_site(cookies, origins, site, subject)
    state: StorageState = {"cookies": cookies, "origins": origins}
    return state


def _check_origin(text: str) -> str:
    parts = urlsplit(text)  # Raises ValueError if it cannot be parsed.
    if not parts.scheme or not parts.netloc:
        raise ValueError("no origin")
    return text


class _NamedValue(BaseModel):
    """An item of local storage."""

    name: StrictStr
    value: StrictStr


class _StoredCookie(_NamedValue):
    """A cookie."""

    domain: StrictStr
    path: StrictStr
    expires: StrictFloat | StrictInt = -1
    http_only: StrictBool = Field(False, alias="httpOnly")
    secure: StrictBool = False
    same_site: Literal["Strict", "Lax", "None"] = Field("Lax", alias="sameSite")


class _StoredOrigin(BaseModel):
    """The local storage of an origin."""

    origin: Annotated[StrictStr, AfterValidator(_check_origin)]
    local_storage: list[_NamedValue] = Field(alias="localStorage")


class _StorageStateFile(BaseModel):
    """The format that Playwright accepts. Cookie files of other tools differ in details that Playwright rejects."""

    cookies: list[_StoredCookie] = []
    origins: list[_StoredOrigin] = []


def _check_site(cookies: list[dict[str, Any]], origins: list[dict[str, Any]], site: str, subject: str) -> None:
    """Raise InvalidInput unless a cookie or an origin is of the site and has not expired."""
    if not cookies and not origins:
        raise InvalidInput(f"{subject} is empty: it holds no login.", hint=_HINT.format(site=site))
    host = urlsplit(f"//{site}").hostname or site
    own_cookies = [cookie for cookie in cookies if _is_same_site(cookie["domain"].lstrip("."), host)]
    own_origins = [entry for entry in origins if _is_same_site(urlsplit(entry["origin"]).hostname or "", host)]
    if not own_cookies and not own_origins:
        others = sorted({c["domain"].lstrip(".") for c in cookies} | {urlsplit(o["origin"]).netloc for o in origins})
        named = ", ".join(others[:3]) + (f" and {len(others) - 3} more" if len(others) > 3 else "")
        raise InvalidInput(f"{subject} belongs to {named}, not to {site}.", hint=_HINT.format(site=site))
    if own_cookies and not own_origins and all(_has_expired(cookie) for cookie in own_cookies):
        raise InvalidInput(f"{subject} has expired: every cookie for {site} has.", hint=_HINT.format(site=site))


def _is_same_site(other: str, host: str) -> bool:
    if other == host:
        return True
    domain = registrable_domain(host)
    return bool(domain) and registrable_domain(other) == domain


def _has_expired(cookie: Mapping[str, Any]) -> bool:
    expires = cookie.get("expires", -1)
    # -1 is a session cookie, which ends with the browser. Whether the server still accepts it is unknown.
    return isinstance(expires, int | float) and 0 < expires < time.time()
