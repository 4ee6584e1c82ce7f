"""How long a response may answer the same request of another page of the run."""

from __future__ import annotations

import math
from collections.abc import Mapping
from email.utils import parsedate_to_datetime
from http import HTTPStatus

#: Resource types of the DevTools protocol of the files that pages consist of. During a run they are taken as unchanged.
STATIC_TYPES = ("Script", "Stylesheet", "Font", "Image")

#: Resource types of what scripts request: reused as HTTP allows, as a browser with one cache does.
SCRIPT_TYPES = ("XHR", "Fetch")

#: A larger response is not reused, in bytes.
MAX_FILE_BYTES = 8 << 20

#: Reuse for the rest of the run.
FOR_THE_RUN = math.inf

#: Share of its age for which a file without a stated lifetime counts as fresh (RFC 9111, section 4.2.2).
_HEURISTIC_SHARE = 0.1

#: Headers that browsers send with the same value in every request with one key (`static_files.request_key`).
_CONSTANT_HEADERS = frozenset({"accept", "accept-encoding", "accept-language", "user-agent", "origin"})

_GONE = frozenset({HTTPStatus.NOT_FOUND, HTTPStatus.GONE})


def reuse_seconds(kind: str, status: int, headers: Mapping[str, str]) -> float:
    """Return how long a response may answer later requests, in seconds; 0: not at all.

    Parameters
    ----------
    kind
        Resource type.
    status
        HTTP status.
    headers
        Headers by lower-case name.

    Returns
    -------
    float
        0 for `no-store`, responses that vary by headers which the guard does not see, and large ones.
        Static files, and files and pages that do not exist, are reused for the run. For answers to scripts HTTP
        decides; they are not reused without a stated length, since a stream has no end to wait for.
    """
    length, directives = headers.get("content-length", ""), _directives(headers)
    is_of_script = kind in SCRIPT_TYPES
    if (
        "no-store" in directives
        or not varying_names(headers) <= (_CONSTANT_HEADERS if is_of_script else _CONSTANT_HEADERS | {"cookie"})
        or (is_of_script and not _is_number(length))
        or (_is_number(length) and int(length) > MAX_FILE_BYTES)
    ):
        return 0.0
    is_page = "text/html" in headers.get("content-type", "").lower()
    if status in _GONE and (is_page or not is_of_script):
        return 0.0 if is_of_script and {"no-cache", "must-revalidate"} & directives.keys() else FOR_THE_RUN
    if status != HTTPStatus.OK:
        return 0.0
    if is_of_script:
        return _fresh_seconds(headers, directives)
    return 0.0 if is_page else FOR_THE_RUN


def varying_names(headers: Mapping[str, str]) -> set[str]:
    """Return the names in `Vary`, in lower case."""
    return {name.strip().lower() for name in headers.get("vary", "").split(",")} - {""}


def _fresh_seconds(headers: Mapping[str, str], directives: Mapping[str, str]) -> float:
    """Return for how long a response is fresh (RFC 9111, section 4.2), in seconds; 0 if it is stale.

    A public file (`Last-Modified`) counts as fresh for a tenth of its age even if it states `max-age=0`, as some web
    servers do for whole folders: one that has not changed for long does not change during a run.
    """
    if "no-cache" in directives or "no-cache" in headers.get("pragma", "").lower():
        return 0.0
    date, age = _time(headers.get("date", "")), headers.get("age", "")
    stated, fresh = directives.get("max-age", ""), 0.0
    if _is_number(stated):
        fresh = float(stated)
    elif "expires" in headers and date:
        fresh = _time(headers["expires"]) - date
    modified = _time(headers.get("last-modified", ""))
    if modified and date and not {"must-revalidate", "private"} & directives.keys():
        fresh = max(fresh, _HEURISTIC_SHARE * (date - modified))
    return max(0.0, fresh - (float(age) if _is_number(age) else 0.0))


def _directives(headers: Mapping[str, str]) -> dict[str, str]:
    """Return the directives of `Cache-Control`, in lower case, with their values."""
    pairs = (part.strip().partition("=") for part in headers.get("cache-control", "").lower().split(","))
    return {name.strip(): value.strip(' "') for name, _, value in pairs}


def _time(text: str) -> float:
    """Return an HTTP date in seconds since the epoch; 0 if there is none that can be read."""
    try:
        return parsedate_to_datetime(text).timestamp() if text else 0.0
    except (ValueError, OverflowError):
        return 0.0


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit()
