"""Requests and messages that a page sends, and parsers for the GraphQL documents and JSON-RPC calls in them."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from graphql import GraphQLError, OperationDefinitionNode, parse

SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})

#: A larger body is not parsed, and no rule lets it pass.
MAX_BODY_CHARS = 256 * 1024

#: Content type of a binary WebSocket message. Its bytes are the characters of the body (Latin-1).
BINARY = "application/octet-stream"

_MAX_TOKENS = 20_000
_MAX_OPERATIONS = 100
#: Start of a mutation, for documents that this parser rejects and a more lenient server may accept.
_MUTATION = re.compile(r"\bmutation\b[^{]*\{")
_GRAPHQL_KEYS = frozenset({"query", "variables", "operationName", "extensions"})


@dataclass(frozen=True, slots=True)
class OutgoingRequest:
    """A request that a page sends, or a message over a WebSocket (method `SEND`).

    Attributes
    ----------
    method
        HTTP method, or `SEND`.
    url
        URL of the request, or of the WebSocket.
    headers
        Headers by lower-case name.
    body
        Body as text; None if it is binary, too large or not available.
    """

    method: str
    url: str
    headers: Mapping[str, str] = field(default_factory=dict)
    body: str | None = None

    @property
    def content_type(self) -> str:
        """Media type of the body, with parameters."""
        return self.headers.get("content-type", "")


def websocket_message(url: str, body: str | None, *, is_binary: bool = False) -> OutgoingRequest:
    """Return a message over the WebSocket at `url`; `body` is its text, or its bytes as Latin-1."""
    return OutgoingRequest("SEND", url, {"content-type": BINARY} if is_binary else {}, body)


def is_prefetch(purpose: str) -> bool:
    """Whether a `Sec-Purpose` header (or one like it) says that the response is for a page that may be opened later.

    >>> is_prefetch("prefetch;prerender"), is_prefetch("")
    (True, False)
    """
    return purpose.partition(";")[0].strip().lower() in {"prefetch", "prerender", "preview"}


def parse_json(text: str | None) -> Any:  # noqa: ANN401 - whatever the page wrote
    """Parse a JSON object or array; None for anything else, and for values nested too deeply."""
    if not text or len(text) > MAX_BODY_CHARS or text.lstrip()[:1] not in {"{", "["}:
        return None
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def is_graphql_query(request: OutgoingRequest) -> bool:
    """Whether the body of a request holds GraphQL operations, and all executed ones are queries.

    An operation that is identified by a hash alone (a persisted query) is unknown, and does not count as a query.
    """
    if request.content_type.startswith("application/graphql") and "json" not in request.content_type:
        return request.body is not None and _operation_kind(request.body, None) == "query"
    body = parse_json(request.body)
    operations = body if isinstance(body, list) else [body]
    return 0 < len(operations) <= _MAX_OPERATIONS and all(
        isinstance(one, dict) and one.keys() <= _GRAPHQL_KEYS and _executed_kind(one) == "query" for one in operations
    )


def may_mutate(document: str) -> bool:
    """Whether a GraphQL document in a URL holds a mutation, or mentions one and cannot be parsed."""
    if "mutation" not in document:
        return False
    kinds = _operation_kinds(document)
    return "mutation" in kinds if kinds is not None else bool(_MUTATION.search(document))


def query_parameters(url: str) -> list[tuple[str, str]]:
    """Return the decoded (name, value) pairs of a URL's query."""
    try:
        return parse_qsl(urlsplit(url).query, keep_blank_values=True)
    except ValueError:
        return []


def is_graphql_subscription(request: OutgoingRequest) -> bool:
    """Whether a message starts a GraphQL query or subscription (graphql-ws or subscriptions-transport-ws)."""
    message = parse_json(request.body)
    if not isinstance(message, dict) or message.get("type") not in {"subscribe", "start"}:
        return False
    payload = message.get("payload")
    return isinstance(payload, dict) and _executed_kind(payload) in {"query", "subscription"}


def calls_only_methods(request: OutgoingRequest, is_accepted: Callable[[str], bool]) -> bool:
    """Whether the body holds JSON-RPC calls, and `is_accepted` is true for the name of each method."""
    body = parse_json(request.body)
    calls = body if isinstance(body, list) else [body]
    return 0 < len(calls) <= _MAX_OPERATIONS and all(
        isinstance(call, dict)
        and "jsonrpc" in call
        and isinstance(name := call.get("method"), str)
        and is_accepted(_method_name(name, call.get("params")))
        for call in calls
    )


def grpc_method(request: OutgoingRequest) -> str:
    """Return the method that a gRPC call names at the end of its path."""
    return urlsplit(request.url).path.rstrip("/").rpartition("/")[2]


def has_only_keys(request: OutgoingRequest, keys: frozenset[str]) -> bool:
    """Whether the body is a JSON object with some of these keys and no others."""
    body = parse_json(request.body)
    return isinstance(body, dict) and len(body) > 0 and body.keys() <= keys


def _method_name(name: str, params: object) -> str:
    """Return the real method name: some servers have one method for all calls, with the real name in its parameters."""
    if name in {"call", "execute", "execute_kw"}:
        inner = params.get("method") if isinstance(params, dict) else None
        return inner if isinstance(inner, str) else ""
    return name


def _executed_kind(operation: Mapping[str, Any]) -> str:
    """Return the kind of operation that a GraphQL request executes; empty if it cannot be determined."""
    document, name = operation.get("query"), operation.get("operationName")
    if not isinstance(document, str) or not (name is None or isinstance(name, str)):
        return ""
    return _operation_kind(document, name)


def _operation_kind(document: str, name: str | None) -> str:
    """Return the kind of the operation `name`, or of all operations; empty if there is none or they differ."""
    kinds = _operation_kinds(document, name) or set()
    return kinds.pop() if len(kinds) == 1 else ""


def _operation_kinds(document: str, name: str | None = None) -> set[str] | None:
    """Return the kinds of the operations (of this name) in a document; None if it cannot be parsed."""
    if len(document) > MAX_BODY_CHARS:
        return None
    try:
        parsed = parse(document, no_location=True, max_tokens=_MAX_TOKENS)
    except (GraphQLError, RecursionError):
        return None
    return {
        definition.operation.value
        for definition in parsed.definitions
        if isinstance(definition, OperationDefinitionNode)
        and (not name or (definition.name and definition.name.value == name))
    }
