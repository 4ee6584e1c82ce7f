"""Does a request only read, going by what it carries? GraphQL documents and JSON-RPC calls are parsed, not guessed."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from graphql import GraphQLError, OperationDefinitionNode, parse

SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})

#: A larger body is not looked into, so that no rule lets it through.
MAX_BODY_CHARS = 256 * 1024

_MAX_TOKENS = 20_000
_MAX_OPERATIONS = 100
#: What a mutation begins like, in a document that a laxer server may take.
_MUTATION = re.compile(r"\bmutation\b[^{]*\{")
_GRAPHQL_KEYS = frozenset({"query", "variables", "operationName", "extensions"})


@dataclass(frozen=True, slots=True)
class Sent:
    """What a page wants to send: a request, or a message over a WebSocket (method `SEND`).

    Attributes
    ----------
    headers : by lower-case name.
    body : as text; nothing when it is binary, too large or could not be had.
    """

    method: str
    url: str
    headers: Mapping[str, str] = field(default_factory=dict)
    body: str | None = None

    @property
    def content_type(self) -> str:
        """Media type of the body, with parameters."""
        return self.headers.get("content-type", "")


def parsed_json(text: str | None) -> Any:  # noqa: ANN401 - whatever the page wrote
    """The JSON value of a text, nothing when it is none or nested beyond reason."""
    if not text or len(text) > MAX_BODY_CHARS or text.lstrip()[:1] not in {"{", "["}:
        return None
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def only_queries(sent: Sent) -> bool:
    """Whether an HTTP body holds GraphQL operations, and all that will be executed are queries.

    Operations that are named by a hash alone (persisted queries) are unknown, so they are none.
    """
    if sent.content_type.startswith("application/graphql") and "json" not in sent.content_type:
        return sent.body is not None and _operation(sent.body, None) == "query"
    body = parsed_json(sent.body)
    operations = body if isinstance(body, list) else [body]
    return 0 < len(operations) <= _MAX_OPERATIONS and all(
        isinstance(one, dict) and one.keys() <= _GRAPHQL_KEYS and _executes(one) == "query" for one in operations
    )


def may_mutate(document: str) -> bool:
    """Whether a GraphQL document of an address holds a mutation, or speaks of one and cannot be read."""
    if "mutation" not in document:
        return False
    kinds = _kinds(document)
    return "mutation" in kinds if kinds is not None else bool(_MUTATION.search(document))


def parameters_of(url: str) -> list[tuple[str, str]]:
    """Names and values of an address's query, decoded."""
    try:
        return parse_qsl(urlsplit(url).query, keep_blank_values=True)
    except ValueError:
        return []


def subscribes(sent: Sent) -> bool:
    """Whether a message asks for a GraphQL query or subscription (graphql-ws, and its predecessor)."""
    message = parsed_json(sent.body)
    if not isinstance(message, dict) or message.get("type") not in {"subscribe", "start"}:
        return False
    payload = message.get("payload")
    return isinstance(payload, dict) and _executes(payload) in {"query", "subscription"}


def calls_only(sent: Sent, reads: Callable[[str], bool]) -> bool:
    """Whether a body holds JSON-RPC calls, and `reads` says yes to the name of each method."""
    body = parsed_json(sent.body)
    calls = body if isinstance(body, list) else [body]
    return 0 < len(calls) <= _MAX_OPERATIONS and all(
        isinstance(call, dict)
        and "jsonrpc" in call
        and isinstance(name := call.get("method"), str)
        and reads(_called(name, call.get("params")))
        for call in calls
    )


def called_by_address(sent: Sent) -> str:
    """The method that a gRPC call names at the end of its path."""
    return urlsplit(sent.url).path.rstrip("/").rpartition("/")[2]


def has_only(sent: Sent, keys: frozenset[str]) -> bool:
    """Whether the body is a JSON object with some of these keys and no others."""
    body = parsed_json(sent.body)
    return isinstance(body, dict) and len(body) > 0 and body.keys() <= keys


def _called(name: str, params: object) -> str:
    """Some servers have one method for all calls and name the real one in its parameters."""
    if name in {"call", "execute", "execute_kw"}:
        inner = params.get("method") if isinstance(params, dict) else None
        return inner if isinstance(inner, str) else ""
    return name


def _executes(request: Mapping[str, Any]) -> str:
    """Kind of the operation that a GraphQL request executes; empty when that cannot be told."""
    document, name = request.get("query"), request.get("operationName")
    if not isinstance(document, str) or not (name is None or isinstance(name, str)):
        return ""
    return _operation(document, name)


def _operation(document: str, name: str | None) -> str:
    """Kind of the operation of this name, or of all there are; empty when there is none, or it cannot be told."""
    kinds = _kinds(document, name) or set()
    return kinds.pop() if len(kinds) == 1 else ""


def _kinds(document: str, name: str | None = None) -> set[str] | None:
    """Kinds of the operations (of this name) in a document; nothing when it cannot be read."""
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
