"""Is a saved session any good? Reads the cookies and storage that a user gives, and says what is wrong with them."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal
from urllib.parse import urlsplit

from playwright.async_api import StorageState
from pydantic import AfterValidator, BaseModel, Field, StrictBool, StrictFloat, StrictInt, StrictStr, ValidationError

from pipeline.explore.scope import registrable_domain
from waygraph.errors import InvalidInput

_HINT = "Save one with: waygraph login {site}"


def read_storage_state(path: Path | None, site: str) -> StorageState | None:
    """The storage state at `path`, checked to be one that `site` would see; nothing without a path.

    Parameters
    ----------
    site : key of the site that is to be visited.

    Raises
    ------
    InvalidInput
        When it cannot be read, is no storage state, has expired, or is another site's.
    """
    if path is None:
        return None
    where, hint = f"The storage state '{path}'", _HINT.format(site=site)
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise InvalidInput(f"{where} cannot be read: {error.strerror}.", hint="Check the path.") from error
    except (ValueError, RecursionError) as error:
        # Not the content: it is made of secrets.
        position = f" in line {error.lineno}" if isinstance(error, json.JSONDecodeError) else ""
        raise InvalidInput(f"{where} is not JSON{position}.", hint=hint) from error
    if not isinstance(document, dict) or not {"cookies", "origins"} & document.keys():
        raise InvalidInput(f"{where} has neither cookies nor origins.", hint=hint)
    try:
        _Document.model_validate(document)
    except ValidationError as error:
        # Neither values nor what is wrong with them: they are secrets.
        place = ".".join(map(str, error.errors(include_input=False)[0]["loc"]))
        raise InvalidInput(f"{where} is not written as Playwright does, at '{place}'.", hint=hint) from None
    cookies, origins = document.get("cookies", []), document.get("origins", [])
    _check_fits(cookies, origins, site, where)
    state: StorageState = {"cookies": cookies, "origins": origins}
    return state


def _is_origin(text: str) -> str:
    parts = urlsplit(text)  # ValueError when it cannot be taken apart
    if not parts.scheme or not parts.netloc:
        raise ValueError("no origin")
    return text


class _Entry(BaseModel):
    name: StrictStr
    value: StrictStr


class _Cookie(_Entry):
    domain: StrictStr
    path: StrictStr
    expires: StrictFloat | StrictInt = -1
    http_only: StrictBool = Field(False, alias="httpOnly")
    secure: StrictBool = False
    same_site: Literal["Strict", "Lax", "None"] = Field("Lax", alias="sameSite")


class _Origin(BaseModel):
    origin: Annotated[StrictStr, AfterValidator(_is_origin)]
    local_storage: list[_Entry] = Field(alias="localStorage")


class _Document(BaseModel):
    """What Playwright takes: others' cookie files differ in details that it would refuse in words of its own."""

    cookies: list[_Cookie] = []
    origins: list[_Origin] = []


def _check_fits(cookies: list[dict[str, Any]], origins: list[dict[str, Any]], site: str, where: str) -> None:
    if not cookies and not origins:
        raise InvalidInput(f"{where} is empty: nobody was logged in.", hint=_HINT.format(site=site))
    host = urlsplit(f"//{site}").hostname or site
    own = [cookie for cookie in cookies if _same_site(cookie["domain"].lstrip("."), host)]
    stored = [entry for entry in origins if _same_site(urlsplit(entry["origin"]).hostname or "", host)]
    if not own and not stored:
        others = sorted({c["domain"].lstrip(".") for c in cookies} | {urlsplit(o["origin"]).netloc for o in origins})
        named = ", ".join(others[:3]) + (f" and {len(others) - 3} more" if len(others) > 3 else "")
        raise InvalidInput(f"{where} belongs to {named}, not to {site}.", hint=_HINT.format(site=site))
    if own and not stored and all(_has_expired(cookie) for cookie in own):
        raise InvalidInput(f"{where} has expired: every cookie for {site} has.", hint=_HINT.format(site=site))


def _same_site(theirs: str, host: str) -> bool:
    if theirs == host:
        return True
    domain = registrable_domain(host)
    return bool(domain) and registrable_domain(theirs) == domain


def _has_expired(cookie: Mapping[str, Any]) -> bool:
    expires = cookie.get("expires", -1)
    # -1: a session cookie, which ends with the browser; nobody can tell whether the server still knows it.
    return isinstance(expires, int | float) and 0 < expires < time.time()
