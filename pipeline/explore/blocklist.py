"""Which elements does the user want left alone, or acted on after all? Regular expressions per site, from a YAML file.

    sites:
      - host: "shop.example"          # glob over the site key, or a placeholder of the file
        block:
          - name: no comparing        # shown as the reason
            text: "compare"           # searched in the accessible name, any case
            href: "/compare/"         # searched in the resolved link target
            xpath: "^/html/body"      # searched in the full XPath
            role: "^link$"            # searched in the role
        allow:
          - name: the order form      # left alone by the lexicon otherwise
            text: "^order now$"

All expressions of one rule must match. Rules of every entry whose `host` matches apply. `block` wins over `allow`; what
`allow` names is only spared by the lexicon and as a GET form, not by scope, robots.txt or the network guard.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, field_validator, model_validator

from index.graph import Action
from pipeline.browser.rule_hosts import speaks_of
from pipeline.browser.snapshot import Candidate, Snapshot
from pipeline.explore.policy import Refusal
from waygraph.errors import InvalidInput
from waygraph.patterns import compile_pattern
from waygraph.rules_file import read_rules

_HINT = "docs/explorer.md, section Rules, shows the format."
#: Explore settings that the same file may give to a site.
SITE_SETTINGS = ("depth", "max_states", "max_activations", "max_seconds", "max_bytes", "storage_state")


class ElementRule(BaseModel):
    """One kind of element."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: str
    text: str | None = None
    href: str | None = None
    xpath: str | None = None
    role: str | None = None

    @field_validator("text", "href", "xpath", "role")
    @classmethod
    def _compiles(cls, pattern: str | None) -> str | None:
        if pattern is not None:
            try:
                compile_pattern(pattern)
            except InvalidInput as error:
                raise ValueError(f"{error.message} {error.hint}") from error
        return pattern

    @model_validator(mode="after")
    def _says_something(self) -> ElementRule:
        if not any((self.text, self.href, self.xpath, self.role)):
            raise ValueError(f"the rule '{self.name}' has none of text, href, xpath and role")
        return self

    def matches(self, action: Action) -> bool:
        """Whether every expression of the rule is found."""
        pairs = (
            (self.text, action.name),
            (self.href, action.target),
            (self.xpath, action.xpath),
            (self.role, action.role),
        )
        return all(
            compile_pattern(pattern).search(value) is not None for pattern, value in pairs if pattern is not None
        )


class _Site(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    host: str
    block: tuple[ElementRule, ...] = ()
    allow: tuple[ElementRule, ...] = ()
    reads: tuple[Any, ...] = ()
    """Requests that only read: the guard's to check."""

    @model_validator(mode="before")
    @classmethod
    def _without_settings(cls, entry: object) -> object:
        """Leave out what is not a rule, and `pipeline.jobs.sites.site_settings` checks."""
        return {k: v for k, v in entry.items() if k not in SITE_SETTINGS} if isinstance(entry, dict) else entry


class _RulesFile(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    placeholders: dict[str, str] = {}
    sites: tuple[_Site, ...] = ()


def _entries(path: Path, site: str) -> list[_Site]:
    """What the file at `path` says of a site."""
    parsed = read_rules(path, _RulesFile, what="rules file", hint=_HINT)
    return [entry for entry in parsed.sites if speaks_of(site, entry.host, parsed.placeholders, path)]


def rules_digest(path: Path | None, site: str) -> str:
    """SHA-256 of the rules of the file at `path` for `site`, of all kinds; empty when there are none.

    Raises
    ------
    InvalidInput
        As `BlockList.read`.
    """
    if path is None:
        return ""
    rules = [entry.model_dump(mode="json", exclude={"host"}) for entry in _entries(path, site)]
    said = [entry for entry in rules if any(entry.values())]
    return hashlib.sha256(json.dumps(said, sort_keys=True).encode()).hexdigest() if said else ""


@dataclass(frozen=True, slots=True)
class BlockList:
    """The rules that apply to one site, as a policy."""

    block: tuple[ElementRule, ...] = ()
    allow: tuple[ElementRule, ...] = ()

    @classmethod
    def read(cls, path: Path | None, site: str) -> BlockList:
        """Rules of the file at `path` for `site`; none without a file.

        Raises
        ------
        InvalidInput
            When the file cannot be read, is not YAML, or holds something else than rules.
        """
        if path is None:
            return cls()
        entries = _entries(path, site)
        return cls(
            tuple(rule for entry in entries for rule in entry.block),
            tuple(rule for entry in entries for rule in entry.allow),
        )

    def allows(self, candidate: Candidate) -> bool:
        """Whether the user wants the element acted on although the lexicon would leave it alone."""
        return any(rule.matches(candidate.action) for rule in self.allow)

    def allows_url(self, url: str) -> bool:
        """Whether the user wants a URL loaded although the lexicon would not: by the `href` of a rule."""
        hrefs = (rule.href for rule in self.allow if rule.href is not None)
        return any(compile_pattern(href).search(url) is not None for href in hrefs)

    def refuse(self, candidate: Candidate, seen: Snapshot) -> Refusal | None:  # noqa: ARG002 - a Policy
        """Why an element must not be activated."""
        for rule in self.block:
            if rule.matches(candidate.action):
                return Refusal("rule", rule.name, f"the user's rule '{rule.name}'")
        return None

    def refuse_url(self, url: str) -> Refusal | None:
        """Why a script or redirect must not go to a URL: by rules that know addresses alone."""
        for rule in self.block:
            knows_address_alone = rule.href is not None and rule.text is rule.xpath is rule.role is None
            if knows_address_alone and compile_pattern(rule.href or "").search(url) is not None:
                return Refusal("rule", rule.name, f"the user's rule '{rule.name}'")
        return None
