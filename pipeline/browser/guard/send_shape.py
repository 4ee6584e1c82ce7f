"""Shapes of requests and messages: what stays the same when a page sends the same kind of request again."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from waygraph.pipeline.browser.guard.outgoing import BINARY, MAX_BODY_CHARS, OutgoingRequest, may_mutate, parse_json

#: Keys whose values name an operation. Their numbers are opcodes and count as part of the shape.
OPERATION_KEYS = frozenset(
    {
        "type", "op", "operation", "operationname", "method", "action", "act", "cmd", "command", "event", "name", "msg",
        "func", "function", "fn", "service", "call", "task", "verb", "intent", "kind", "target", "do", "t", "e",
    }
)  # fmt: skip
#: Keys whose values identify an operation although they look like data (persisted GraphQL queries).
_OPERATION_ID_KEYS = frozenset({"sha256hash", "documentid", "doc_id", "queryid", "query_hash"})
#: Parts of key names whose values are data, whatever they look like.
_OPAQUE_KEY = re.compile(r"token|secret|session|csrf|nonce|cursor|stamp|uuid|(?:^|_)(?:ref|id|ids|sid|hash)$|Id$")

_DATA = "*"
_NUMBER = "#"
_MAX_NAME_CHARS = 64
_MAX_DEPTH = 12
_MAX_ORDERED_ITEMS = 8
#: Kept elements of a longer list, and kept characters of a text that has no known form.
_MAX_ITEMS, _MAX_TEXT_CHARS = 1_000, 2_000
_NAME = re.compile(r"[^\W\d][\w.:/$#@-]*")
_RANDOM = re.compile(
    r"(?=.*\d)[0-9a-fA-F-]{8,}"  # hexadecimal, UUID
    r"|(?=\S*\d\S*\d)(?=\S*[A-Za-z])[A-Za-z0-9_-]{16,}"  # random characters with digits
)
_PARTS = re.compile(r"([:./])")
_DIGITS = re.compile(r"\d+")
#: Number before the JSON of a socket.io packet (`42["event", ...]`).
_PACKET = re.compile(r"^\d{1,3}(?:/[\w/-]+,)?\d*(?=[\[{])")


def send_shape(request: OutgoingRequest) -> str:
    """Return the shape of a request or WebSocket message; equal shapes are the same operation with other data.

    The shape has the method, the endpoint (host, path and query without identifiers), and the body: keys, names of
    operations and other words of a JSON object or a form are kept, while numbers, identifiers, tokens and longer texts
    are replaced by placeholders. A GraphQL operation keeps its document or hash, not its variables. A binary or
    oversized body has no shape of its own: only an equal one is the same.

    Parameters
    ----------
    request
        The request, or the message (method `SEND`).

    Returns
    -------
    str
        The first 32 digits of its SHA-256.
    """
    parts = [request.method, *_endpoint(request.url), *_body(request)]
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:32]


def operation_label(request: OutgoingRequest) -> str:
    """Return a short description of a request for people: method, address without query, and named operation."""
    try:
        parts = urlsplit(request.url)
        address = f"{parts.scheme}://{parts.netloc}{_path(parts.path)}"
    except ValueError:
        address = request.url[:_MAX_NAME_CHARS]
    names = dict.fromkeys(_operation_names(_content(request)))
    return " ".join([request.method, address, *list(names)[:2]])


def message_operations(request: OutgoingRequest) -> tuple[str, ...]:
    """Return the operations that a JSON object names at its top level, such as `{"type": "items/list"}`."""
    content = _content(request)
    return tuple(_operation_names(content)) if isinstance(content, dict) else ()


def names_in(request: OutgoingRequest) -> Iterator[str]:
    """Yield the names in a body: its top-level keys, and every value that is written like an identifier.

    Values of tokens and random identifiers are left out, since letters in them form words by chance. Of a body that is
    neither JSON nor a form, all identifiers are names.
    """
    content = _content(request)
    if content is None:
        yield from _NAME.findall((request.body or "")[:MAX_BODY_CHARS])
        return
    if isinstance(content, dict):
        yield from (str(key) for key in content)
    yield from _names(content, "", 0)


def sends_mutation(request: OutgoingRequest) -> bool:
    """Whether a body has a GraphQL document that holds a mutation, or mentions one and cannot be parsed."""
    if request.content_type.startswith("application/graphql") and "json" not in request.content_type:
        return may_mutate(request.body or "")
    return any(may_mutate(document) for document in _documents(_content(request), 0))


def _endpoint(url: str) -> list[Any]:
    try:
        parts = urlsplit(url)
        query = parse_qsl(parts.query, keep_blank_values=True, max_num_fields=200)
    except ValueError:
        return [url]
    return [parts.scheme, parts.netloc, _path(parts.path), sorted([key, _text(value, key)] for key, value in query)]


def _path(path: str) -> str:
    return "/".join(_DATA if part.isdigit() or _RANDOM.fullmatch(part) else part for part in path.split("/"))


def _body(request: OutgoingRequest) -> list[Any]:
    if request.body is None:
        return ["unreadable"]
    content = _content(request)
    if content is not None:
        return [_abstract(content, "", 0)]
    text = request.body
    if len(text) > _MAX_TEXT_CHARS or request.content_type == BINARY:
        return [hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()]
    if boundary := request.content_type.partition("boundary=")[2].strip('"'):
        text = text.replace(boundary, "")
    return [_DIGITS.sub(_NUMBER, text)]


def _content(request: OutgoingRequest) -> Any:  # noqa: ANN401 - what the page wrote
    """Return the parsed body: JSON (after the number of a packet), or the fields of a form; None for other text."""
    body = request.body
    if not body:
        return None
    packet = _PACKET.match(body)
    content = parse_json(body[packet.end() :] if packet else body)
    if content is not None:
        return [packet.group(), content] if packet else content
    if request.content_type.startswith("application/x-www-form-urlencoded"):
        try:
            return dict(parse_qsl(body, keep_blank_values=True, max_num_fields=1_000))
        except ValueError:
            return None
    return None


def _abstract(value: Any, key: str, depth: int) -> Any:  # noqa: ANN401 - JSON
    if depth > _MAX_DEPTH:
        return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()
    if isinstance(value, Mapping):
        is_operation = isinstance(value.get("query"), str) or "operationName" in value
        return {
            name: _DATA if is_operation and name == "variables" else _abstract(each, name, depth + 1)
            for name, each in sorted(value.items())
        }
    if isinstance(value, list):
        items = [_abstract(each, key, depth + 1) for each in value[:_MAX_ITEMS]]
        if len(value) <= _MAX_ORDERED_ITEMS:
            return items
        return ["several", *sorted({json.dumps(item, sort_keys=True) for item in items})]
    if isinstance(value, str):
        return _text(value, key)
    if isinstance(value, bool) or value is None:
        return value
    return value if key.lower() in OPERATION_KEYS else _NUMBER


def _text(value: str, key: str) -> str:
    if key.lower() in _OPERATION_ID_KEYS or (key == "query" and "{" in value):
        return value
    if not _is_name(value, key):
        return _DATA if value else ""
    return "".join(_DATA if _RANDOM.fullmatch(part) else part for part in _PARTS.split(value))


def _is_name(value: str, key: str) -> bool:
    """Whether a value is written like an identifier of a program: no data, no token, no random characters."""
    return (
        len(value) <= _MAX_NAME_CHARS
        and _NAME.fullmatch(value) is not None
        and "://" not in value
        and not _OPAQUE_KEY.search(key)
        and not _RANDOM.fullmatch(value)
    )


def _names(value: Any, key: str, depth: int) -> Iterator[str]:  # noqa: ANN401 - JSON
    if depth > _MAX_DEPTH:
        return
    if isinstance(value, Mapping):
        for name, each in value.items():
            yield from _names(each, name, depth + 1)
    elif isinstance(value, list):
        for each in value[:_MAX_ITEMS]:
            yield from _names(each, key, depth + 1)
    elif isinstance(value, str) and _is_name(value, key):
        yield value


def _operation_names(value: Any) -> Iterator[str]:  # noqa: ANN401 - JSON
    if isinstance(value, Mapping):
        for key, each in value.items():
            if key.lower() in OPERATION_KEYS and isinstance(each, str) and _is_name(each, key):
                yield each
    elif isinstance(value, list):
        for each in value[:_MAX_ORDERED_ITEMS]:
            if isinstance(each, str) and not each.isdigit() and _is_name(each, ""):
                yield each
            else:
                yield from _operation_names(each)


def _documents(value: Any, depth: int) -> Iterator[str]:  # noqa: ANN401 - JSON
    """Yield the texts that may be GraphQL documents, at any depth: graphql-ws wraps them in a payload."""
    if depth > _MAX_DEPTH:
        return
    if isinstance(value, Mapping):
        for each in value.values():
            yield from _documents(each, depth + 1)
    elif isinstance(value, list):
        for each in value[:_MAX_ITEMS]:
            yield from _documents(each, depth + 1)
    elif isinstance(value, str) and "{" in value:
        yield value
