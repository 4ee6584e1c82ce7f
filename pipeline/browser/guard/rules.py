r"""Which state-changing methods only read? Rules as data: ours in `guard_rules.yaml`, the user's in `--rules`.

    sites:
      - host: "shop.example"              # glob over the site key, or a placeholder of the file
        reads:
          - name: price list
            method: POST                  # default; SEND for WebSocket messages
            url: "^https://shop\\.example/api/prices$"
            body: '"list"'                # optional: searched in the body

Expressions are RE2: their time grows with the text alone, whatever is written in them.
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

from pipeline.browser.guard.reads import (
    MAX_BODY_CHARS,
    SAFE_METHODS,
    Sent,
    called_by_address,
    calls_only,
    has_only,
    may_mutate,
    only_queries,
    parameters_of,
    subscribes,
)
from pipeline.browser.guard.verbs import Verbs
from pipeline.browser.rule_hosts import speaks_of
from waygraph.rules_file import read_rules

_MAX_PATTERN_CHARS = 2_000


def _compiled(pattern: object) -> Any:  # noqa: ANN401 - re2 ships no types
    if not isinstance(pattern, str):
        raise ValueError("a regular expression must be a text")  # noqa: TRY004 - pydantic reports ValueError
    if len(pattern) > _MAX_PATTERN_CHARS:
        raise ValueError(f"a regular expression of more than {_MAX_PATTERN_CHARS} characters")
    options = re2.Options()
    options.log_errors = False
    options.max_mem = 8 << 20
    try:
        return re2.compile(pattern, options)
    except re2.error as error:
        reason = error.args[0].decode(errors="replace") if isinstance(error.args[0], bytes) else str(error)
        raise ValueError(
            f"'{pattern}' is no regular expression that can be used: {reason} "
            "(RE2 syntax: no lookaround, no backreferences)"
        ) from error


Pattern = Annotated[Any, BeforeValidator(_compiled)]


class _Model(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class ReadRule(_Model):
    """One kind of request (or message) that only reads; every condition that is given must hold."""

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
    calls: Literal["jsonrpc", "address"] | None = None

    def matches(self, sent: Sent) -> bool:
        """Whether `sent` is of this kind; a rule without conditions matches nothing."""
        if all(asked is None for asked in (self.url, self.body, self.graphql, self.jsonrpc, self.calls)):
            return False
        text = sent.body if sent.body is not None and len(sent.body) <= MAX_BODY_CHARS else None
        if (self.body is not None or self.unless is not None) and text is None:
            return False
        verbs = _builtin().verbs
        return (
            _found(self.url, sent.url)
            and (self.unless_url is None or not self.unless_url.search(sent.url))
            and (self.address is None or not verbs.change_at(sent.url))
            and _found(self.content_type, sent.content_type)
            and _found(self.body, text)
            and (self.unless is None or not self.unless.search(text))
            and (self.graphql != "query" or only_queries(sent))
            and (self.graphql != "subscription" or subscribes(sent))
            and (self.keys is None or has_only(sent, self.keys))
            and (self.jsonrpc is None or calls_only(sent, lambda name: bool(self.jsonrpc.search(name))))
            and (self.calls != "jsonrpc" or calls_only(sent, verbs.only_reads))
            and (self.calls != "address" or verbs.only_reads(called_by_address(sent)))
        )


class _Override(_Model):
    name: str
    header: Pattern = None
    parameter: Pattern = None
    graphql: Literal["mutation"] | None = None

    def matches(self, parameters: Sequence[tuple[str, str]], headers: Mapping[str, str]) -> bool:
        """Whether one of the decoded `parameters` of an address, or of the headers, is of this kind."""
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


class _Site(BaseModel):
    # The same file holds rules for other parts, which check them.
    model_config = ConfigDict(extra="ignore", frozen=True)

    host: str
    reads: tuple[ReadRule, ...] = ()


class _RulesFile(BaseModel):
    model_config = ConfigDict(extra="ignore", frozen=True)

    placeholders: dict[str, str] = Field(default={})
    sites: tuple[_Site, ...] = Field(default=())


class GuardRules:
    """What may pass in the mode `guard` although it could change something.

    Parameters
    ----------
    allow : the user's rules for this site, asked before those that come with waygraph.
    """

    def __init__(self, allow: tuple[ReadRule, ...] = ()) -> None:
        builtin = _builtin()
        self._reads = (*(rule for rule in allow if rule.method != "SEND"), *builtin.reads)
        self._sockets = (*(rule for rule in allow if rule.method == "SEND"), *builtin.sockets)
        self._overrides = builtin.overrides
        self._documents = frozenset(rule.name for rule in builtin.reads)

    @classmethod
    def read(cls, path: Path | None, site: str) -> GuardRules:
        """Our rules and those of the file at `path` for `site`.

        Raises
        ------
        InvalidInput
            When the file cannot be read, is not YAML, or a rule in it makes no sense.
        """
        if path is None:
            return cls()
        parsed = read_rules(path, _RulesFile, what="rules file", hint="See docs/explorer.md for the format.")
        entries = (each for each in parsed.sites if speaks_of(site, each.host, parsed.placeholders, path))
        return cls(tuple(rule for entry in entries for rule in entry.reads))

    def changes(self, method: str, url: str, headers: Mapping[str, str]) -> bool:
        """Whether a request could change something, going by method, address and headers (names in lower case)."""
        return method not in SAFE_METHODS or self._override(url, headers)

    def why_read(self, sent: Sent, *, document: bool = False) -> str | None:
        """Name of the rule by which a state-changing request only reads; nothing when none says so.

        A `document` (a form that was sent) is only let through by the user's own rules.
        """
        if self._override(sent.url, sent.headers):
            return None
        for rule in self._reads:
            if document and rule.name in self._documents:
                continue
            if rule.method == sent.method and rule.matches(sent):
                return rule.name
        return None

    def why_message(self, url: str, text: str) -> str | None:
        """Name of the rule by which a WebSocket message only reads or keeps alive; nothing when none says so."""
        sent = Sent("SEND", url, {}, text)
        return next((rule.name for rule in self._sockets if rule.matches(sent)), None)

    def _override(self, url: str, headers: Mapping[str, str]) -> bool:
        parameters = parameters_of(url)
        return any(rule.matches(parameters, headers) for rule in self._overrides)


def _found(pattern: Any, text: str | None) -> bool:  # noqa: ANN401 - re2 ships no types
    return pattern is None or (text is not None and bool(pattern.search(text)))


@cache
def _builtin() -> _Builtin:
    text = files("pipeline.browser").joinpath("guard_rules.yaml").read_text(encoding="utf-8")
    return _Builtin.model_validate(yaml.safe_load(text))
