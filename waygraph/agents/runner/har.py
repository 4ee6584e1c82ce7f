"""HTTP archives (HAR 1.2) without credentials: pure functions over the decoded document.

Masked are the values of headers and cookies that grant access, secrets in URLs, and fields of forms and JSON bodies
whose names say that they are secret. Names stay, so that a reader sees that a session was sent.
"""

from __future__ import annotations

import json
import re
from email.message import Message
from typing import Any
from urllib.parse import parse_qsl, urlencode

from waygraph.core.urls import MASK, mask_secrets

#: Cookies that WebArena-Verified 1.2.3 reads in its checks: the shop's messages, and the engine of a map's directions.
KEPT_COOKIES = frozenset({"mage-messages", "_osm_directions_engine"})
#: Names of headers and fields whose values grant access.
_SECRET_NAME = re.compile(
    r"passw|passphrase|passcode|\bpwd\b|secret|token|api[-_]?key|auth(?!ors?(?:\b|_))|session|credential|csrf|xsrf|form_key|otp\b",
    re.IGNORECASE,
)
_COOKIE_HEADERS = frozenset({"cookie", "set-cookie"})
_URL_HEADERS = frozenset({"referer", "location", "content-location", "origin", "refresh"})


def redact_har(document: dict[str, Any]) -> dict[str, Any]:
    """Return an archive without credentials.

    Parameters
    ----------
    document
        The decoded archive.

    Returns
    -------
    dict
        A new document. Parts of unknown form are kept as they are.

    Examples
    --------
    >>> request = {"url": "http://a.example/", "headers": [{"name": "Authorization", "value": "Bearer 1"}]}
    >>> redact_har({"log": {"entries": [{"request": request}]}})["log"]["entries"][0]["request"]["headers"]
    [{'name': 'Authorization', 'value': '***'}]
    """
    log = document.get("log", {})
    pages = [{**page, "title": mask_secrets(str(page.get("title", "")))} for page in log.get("pages", [])]
    entries = [_entry(entry) for entry in log.get("entries", [])]
    return {**document, "log": {**log, "pages": pages, "entries": entries}}


def changes_data(document: dict[str, Any]) -> bool:
    """Return whether any request of an archive may have changed data at a site: one that is no GET, HEAD or OPTIONS."""
    methods = {entry.get("request", {}).get("method") for entry in document.get("log", {}).get("entries", [])}
    return bool(methods - {"GET", "HEAD", "OPTIONS", None})


def _entry(entry: dict[str, Any]) -> dict[str, Any]:
    return {
        **entry,
        **({"request": _request(entry["request"])} if "request" in entry else {}),
        **({"response": _response(entry["response"])} if "response" in entry else {}),
    }


def _request(request: dict[str, Any]) -> dict[str, Any]:
    redacted = _message(request)
    if "queryString" in request:
        # The URL is masked as a whole, since the meaning of a parameter can depend on the others.
        query = str(redacted.get("url", "")).partition("#")[0].partition("?")[2]
        redacted["queryString"] = [{"name": name, "value": value} for name, value in parse_qsl(query, True)]
    if isinstance(request.get("postData"), dict):
        redacted["postData"] = _post_data(request["postData"])
    return redacted


def _response(response: dict[str, Any]) -> dict[str, Any]:
    redacted = _message(response)
    if "redirectURL" in response:
        redacted["redirectURL"] = mask_secrets(str(response["redirectURL"]))
    return redacted


def _message(message: dict[str, Any]) -> dict[str, Any]:
    redacted = dict(message)
    if "url" in message:
        redacted["url"] = mask_secrets(str(message["url"]))
    redacted["headers"] = [_header(header) for header in message.get("headers", [])]
    redacted["cookies"] = [
        cookie if cookie.get("name") in KEPT_COOKIES else {**cookie, "value": MASK}
        for cookie in message.get("cookies", [])
    ]
    return redacted


def _header(header: dict[str, Any]) -> dict[str, Any]:
    name, value = str(header.get("name", "")).lower(), str(header.get("value", ""))
    if name in _COOKIE_HEADERS:
        value = "\n".join(_cookies(line, is_response=name == "set-cookie") for line in value.split("\n"))
    elif name in _URL_HEADERS:
        value = mask_secrets(value)
    elif _SECRET_NAME.search(name):
        value = MASK
    return {**header, "value": value}


def _cookies(line: str, *, is_response: bool) -> str:
    """Mask the values of the cookies of a line. In `Set-Cookie`, what follows the first pair are attributes."""
    pairs = line.split(";")
    number = 1 if is_response else len(pairs)
    return ";".join((*(_cookie(pair) for pair in pairs[:number]), *pairs[number:]))


def _cookie(pair: str) -> str:
    name, equals, value = pair.partition("=")
    if not equals:  # a cookie without a name: all of it is the value
        return MASK if pair.strip() else pair
    return f"{name}={value if name.strip() in KEPT_COOKIES else MASK}"


def _post_data(body: dict[str, Any]) -> dict[str, Any]:
    text, mime = str(body.get("text", "")), str(body.get("mimeType", ""))
    kind = mime.partition(";")[0].strip().lower()
    redacted = dict(body)
    if "params" in body:
        redacted["params"] = [
            {**param, "value": MASK} if _SECRET_NAME.search(str(param.get("name", ""))) else param
            for param in body["params"]
        ]
    if kind == "application/x-www-form-urlencoded":
        redacted["text"] = _form(text)
    elif kind == "application/json" or kind.endswith("+json"):
        redacted["text"] = _json(text)
    elif kind == "multipart/form-data":
        redacted["text"] = _multipart(text, mime)
    return redacted


def _form(text: str) -> str:
    fields = parse_qsl(text, keep_blank_values=True)
    if not any(_SECRET_NAME.search(name) for name, _ in fields):
        return text
    return urlencode([(name, MASK if _SECRET_NAME.search(name) else value) for name, value in fields])


def _json(text: str) -> str:
    try:
        document = json.loads(text)
    except ValueError:  # a body that is not what its type says: it cannot be searched for secrets
        return MASK if _SECRET_NAME.search(text) else text
    redacted = _masked(document)
    return text if redacted == document else json.dumps(redacted, ensure_ascii=False)


def _masked(value: object) -> object:
    if isinstance(value, dict):
        return {
            key: MASK if _SECRET_NAME.search(key) and isinstance(item, str | int | float) else _masked(item)
            for key, item in value.items()
        }
    if isinstance(value, list):
        return [_masked(item) for item in value]
    return value


def _multipart(text: str, mime: str) -> str:
    header = Message()
    header["Content-Type"] = mime
    boundary = header.get_param("boundary")
    if not isinstance(boundary, str):
        return MASK
    parts = text.split(f"--{boundary}")
    return f"--{boundary}".join(_part(part) for part in parts)


def _part(part: str) -> str:
    head, gap, _ = part.partition("\r\n\r\n")
    name = re.search(r'name="([^"]*)"', head)
    return f"{head}{gap}{MASK}\r\n" if gap and name is not None and _SECRET_NAME.search(name[1]) else part
