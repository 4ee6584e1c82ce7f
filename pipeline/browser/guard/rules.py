r"""Rules for requests that only read despite their method: built-in in `guard_rules.yaml`, the user's in `--rules`.

    sites:
      - host: "shop.example"              # glob over the site key, or a placeholder of the file
        reads:
          - name: price list
            method: POST                  # default; SEND for WebSocket messages
            url: "^https://shop\\.example/api/prices$"
            body: '"list"'                # optional: searched in the body

Expressions are RE2, whose matching time is linear in the text for every expression.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Annotated, Any, Literal

import re2
import yaml
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from waygraph.core.site_patterns import matches_site
from waygraph.core.yaml_file import read_yaml_file
from waygraph.pipeline.browser.guard.outgoing import (
    MAX_BODY_CHARS,
    SAFE_METHODS,
    OutgoingRequest,
    calls_only_methods,
    grpc_method,
    has_only_keys,
    is_graphql_query,
    is_graphql_subscription,
    may_mutate,
    query_parameters,
)
from waygraph.pipeline.browser.guard.send_shape import message_operations, names_in, sends_mutation
from waygraph.pipeline.browser.guard.verbs import Verbs, has_word, last_segments

_MAX_PATTERN_CHARS = 2_000


def _compiled(pattern: object) -> Any:  # noqa: ANN401 - re2 ships no types
    if not isinstance(pattern, str):
        raise ValueError("a regular expression must be a string")  # noqa: TRY004 - pydantic reports ValueError
    if len(pattern) > _MAX_PATTERN_CHARS:
        raise ValueError(f"a regular expression must not have more than {_MAX_PATTERN_CHARS} characters")
    options = re2.Options()
    options.log_errors = False
    options.max_mem = 8 << 20
    try:
        return re2.compile(pattern, options)
    except re2.error as error:
        reason = error.args[0].decode(errors="replace") if isinstance(error.args[0], bytes) else str(error)
        raise ValueError(
            f"'{pattern}' is not a valid regular expression: {reason} (RE2 syntax: no lookaround, no backreferences)"
        ) from error


Pattern = Annotated[Any, BeforeValidator(_compiled)]


class _Model(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class ReadRule(_Model):
    """Rule for one kind of request (or message) that only reads; every given condition must hold."""

    name: str = "a rule of the user"
    method: Literal["POST", "PUT", "PATCH", "DELETE", "SEND"] = "POST"
    url: Pattern = None
    unless_url: Pattern = None
    address: Literal["reads"] | None = None
    body: Pattern = None
    unless: Pattern = None
    keys: frozenset[str] | None = None
    content_type: Pattern = None
    graphql: Literal["query", "subscription"] | None = None
    jsonrpc: Pattern = None
    calls: Literal["jsonrpc", "address", "message"] | None = None

    def matches(self, request: OutgoingRequest) -> bool:
        """Whether the rule applies to a request; a rule without conditions applies to none."""
        if all(condition is None for condition in (self.url, self.body, self.graphql, self.jsonrpc, self.calls)):
            return False
        text = request.body if request.body is not None and len(request.body) <= MAX_BODY_CHARS else None
        if (self.body is not None or self.unless is not None) and text is None:
            return False
        verbs = _builtin().verbs
        return (
            _is_found(self.url, request.url)
            and (self.unless_url is None or not self.unless_url.search(request.url))
            and (self.address is None or not verbs.names_change(request.url))
            and _is_found(self.content_type, request.content_type)
            and _is_found(self.body, text)
            and (self.unless is None or not self.unless.search(text))
            and (self.graphql != "query" or is_graphql_query(request))
            and (self.graphql != "subscription" or is_graphql_subscription(request))
            and (self.keys is None or has_only_keys(request, self.keys))
            and (self.jsonrpc is None or calls_only_methods(request, lambda name: bool(self.jsonrpc.search(name))))
            and (self.calls != "jsonrpc" or calls_only_methods(request, verbs.is_reading))
            and (self.calls != "address" or verbs.is_reading(grpc_method(request)))
            and (self.calls != "message" or _is_reading_message(request, verbs))
        )


class _Override(_Model):
    name: str
    header: Pattern = None
    parameter: Pattern = None
    graphql: Literal["mutation"] | None = None

    def matches(self, parameters: Sequence[tuple[str, str]], headers: Mapping[str, str]) -> bool:
        """Whether one of the decoded query `parameters`, or one of the headers, overrides the method."""
        if self.graphql is not None:
            return any(name.lower() == "query" and may_mutate(value) for name, value in parameters)
        if self.parameter is not None:
            return any(self.parameter.search(f"{name}={value}") for name, value in parameters)
        return any(self.header.search(f"{name}: {value}") for name, value in headers.items() if name.startswith("x-"))


class _Builtin(_Model):
    verbs: Verbs
    reads: tuple[ReadRule, ...]
    overrides: tuple[_Override, ...]
    sockets: tuple[ReadRule, ...]


class _SiteReads(BaseModel):
    # Other parts of the file belong to other modules, which validate them.
    model_config = ConfigDict(extra="ignore", frozen=True)

    host: str
    reads: tuple[ReadRule, ...] = ()


class _RulesFile(BaseModel):
    model_config = ConfigDict(extra="ignore", frozen=True)

    placeholders: dict[str, str] = Field(default={})
    sites: tuple[_SiteReads, ...] = Field(default=())


class GuardRules:
    """Rules for requests that may pass in the mode `guard` despite their method.

    Parameters
    ----------
    allow
        The user's rules for this site; they are tried before the built-in ones.
    """

    def __init__(self, allow: tuple[ReadRule, ...] = ()) -> None:
        builtin = _builtin()
        self._reads = (*(rule for rule in allow if rule.method != "SEND"), *builtin.reads)
        self._sockets = (*(rule for rule in allow if rule.method == "SEND"), *builtin.sockets)
        self._overrides = builtin.overrides
        self._builtin_names = frozenset(rule.name for rule in builtin.reads)

    @classmethod
    def read(cls, path: Path | None, site: str) -> GuardRules:
        """Load the built-in rules and the user's rules for a site.

        Parameters
        ----------
        path
            The user's rules file; None: only the built-in rules.
        site
            Site key, see `waygraph.core.urls.site_key`.

        Returns
        -------
        GuardRules
            The rules.

        Raises
        ------
        InvalidInput
            If the file cannot be read, is not YAML, or has an invalid rule.
        """
        if path is None:
            return cls()
        parsed = read_yaml_file(path, _RulesFile, what="rules file", hint="See docs/elements.md for the format.")
        entries = (each for each in parsed.sites if matches_site(site, each.host, parsed.placeholders, path))
        return cls(tuple(rule for entry in entries for rule in entry.reads))

    def is_state_changing(self, method: str, url: str, headers: Mapping[str, str]) -> bool:
        """Whether a request could change something by its method, URL and headers (names in lower case)."""
        return method not in SAFE_METHODS or self._has_override(url, headers)

    def matching_read_rule(self, request: OutgoingRequest, *, is_document: bool = False) -> str | None:
        """Return the name of the rule by which a state-changing request only reads, or None.

        Only the user's own rules apply to a document (a submitted form).
        """
        if self._has_override(request.url, request.headers):
            return None
        for rule in self._reads:
            if is_document and rule.name in self._builtin_names:
                continue
            if rule.method == request.method and rule.matches(request):
                return rule.name
        return None

    def matching_message_rule(self, message: OutgoingRequest) -> str | None:
        """Return the name of the rule by which a WebSocket message only reads or keeps alive, or None."""
        return next((rule.name for rule in self._sockets if rule.matches(message)), None)

    def names_change(self, request: OutgoingRequest) -> bool:
        """Whether the URL, a header or the body of a request or message names a change, or holds a GraphQL mutation.

        A message may subscribe to events: over a WebSocket this is how an application asks for data.
        """
        verbs = _builtin().verbs
        words = verbs.change | verbs.visit
        if request.method == "SEND":
            words -= verbs.subscribe
        return (
            self._has_override(request.url, request.headers)
            or verbs.names_change(request.url)
            or any(has_word(name, words) for name in (*last_segments(request.url), *names_in(request)))
            or sends_mutation(request)
        )

    def _has_override(self, url: str, headers: Mapping[str, str]) -> bool:
        parameters = query_parameters(url)
        return any(rule.matches(parameters, headers) for rule in self._overrides)


def _is_reading_message(request: OutgoingRequest, verbs: Verbs) -> bool:
    """Whether all operations that a message names read or keep alive, and nothing else in it names a change.

    The word `read` does not count: as the type of a message it often marks something as read.
    """
    operations = message_operations(request)
    return (
        bool(operations)
        and all(verbs.is_reading(name) or verbs.keeps_alive(name) for name in operations)
        and not any(has_word(name, verbs.change | verbs.visit | {"read"}) for name in names_in(request))
        and not sends_mutation(request)
    )


def _is_found(pattern: Any, text: str | None) -> bool:  # noqa: ANN401 - re2 ships no types
    return pattern is None or (text is not None and bool(pattern.search(text)))


@cache
def _builtin() -> _Builtin:
    text = files("waygraph.pipeline.browser.guard").joinpath("guard_rules.yaml").read_text(encoding="utf-8")
    return _Builtin.model_validate(yaml.safe_load(text))
